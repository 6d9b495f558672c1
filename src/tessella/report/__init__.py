"""The page of a fitted estimator, drawn from the plain data in its folder."""
