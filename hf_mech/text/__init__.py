"""Text for training language models: corpora with splits, and token blocks of one length."""
