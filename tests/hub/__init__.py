"""Tests of results, cards, pushes and the command line, against a Hub on this machine."""
