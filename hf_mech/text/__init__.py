"""Text to train language models on: corpora with splits, and blocks of tokens of one length."""
