"""Nested function evaluation: definitions and an expression; the completion is every step to its value, (89)."""
