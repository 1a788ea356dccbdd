"""Texts that are judged by rules: properties of words, joined by and, or, not (Sec. 9.4)."""
