"""Programs on symbols: the Production System Language, its tasks, and tests of language models on them."""
