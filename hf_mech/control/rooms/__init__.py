"""Four rooms in the first person: a small relative of My Way Home that needs no engine."""
