"""Ratios against a reference, measured in one run. Records go to results/."""
