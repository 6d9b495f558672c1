"""Figures, by matplotlib, which is imported late."""
