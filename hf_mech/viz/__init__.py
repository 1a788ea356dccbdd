"""Figures: plain arrays and names in, a matplotlib Figure out. The code here does not read runs or results files."""
