"""Whether hidden states of models are PARGEN's registers (Sec. 9.2.1)."""
