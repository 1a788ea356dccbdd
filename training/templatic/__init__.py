"""Table 3 of the symbol processing paper: models that learn templatic generation."""
