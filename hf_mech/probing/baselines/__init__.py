"""Models that the papers compare theirs with and that transformers does not have, in plain PyTorch."""
