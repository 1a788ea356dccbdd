"""The Semi-formal Transformer on texts that are judged by rules (Sec. 9.4)."""
