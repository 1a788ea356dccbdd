"""What all data sets share: `load_dataset`'s hook, shards, random streams."""
