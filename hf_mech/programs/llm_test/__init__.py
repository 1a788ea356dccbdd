"""Tests of language models on templatic generation, as the paper tested GPT-4 (Sec. 4.2.2, App. G and H)."""
