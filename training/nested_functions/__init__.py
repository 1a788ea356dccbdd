"""Nested function evaluation: a compiled program, and models that learn it."""
