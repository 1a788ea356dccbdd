"""Figures: plain arrays and names in, a matplotlib Figure out. Nothing here knows a run or a file of results."""
