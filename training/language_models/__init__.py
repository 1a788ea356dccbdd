"""Table 3 of the stack attention paper: language models with and without a stack."""
