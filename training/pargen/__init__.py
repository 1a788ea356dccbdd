"""Programs compiled into transformers, on the prompts of templatic generation."""
