"""The language: from the text of a program to a checked [`Program`]. It does not run programs."""
