"""Lifted domains learned from logs, judged in bigger instances."""
