"""Whole data sets of episodes from settings: the shards, their Parquet files, and several machines that make them."""
