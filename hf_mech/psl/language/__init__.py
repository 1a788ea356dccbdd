"""The language: from the text of a program to a checked [`Program`]. Nothing here runs one."""
