"""Table 1 of the STRIPS Transformer paper."""
