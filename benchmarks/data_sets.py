"""Data sets as Parquet files: rows a second of one core, and bytes a row.

    python benchmarks/data_sets.py

A shard is made in memory, as `write_parquet` of the builders makes it on every machine. Seconds are those of the
processor, so a busy machine changes little.
"""

from __future__ import annotations

import time

from datasets import load_dataset_builder
from harness import arguments, report

import hf_mech  # noqa: F401  (registers the data sets)
from hf_mech.data.shards import SHARDS
from hf_mech.dataset_builders._base import parquet_of
from hf_mech.hub import Measurement, measurement

TASK = "data_sets"
SETS = {
    "star_graph": ("g-2-5", 10_000),
    "stories": (None, 1_000),
    "formal_languages": ("reverse_string", 5_000),
    "nested_text": ("json", 1_000),
    "templatic_generation": ("1_shot_rlw", 1_000),
    "nested_functions": ("rlw", 1_000),
    "rules": (None, 1_000),
}
"""Configuration, and rows of a shard."""


def measured(name: str, runs: int) -> list[Measurement]:
    """Speed and size of a data set's training shards, after one to warm up."""
    config, rows = SETS[name]
    builder = load_dataset_builder(f"hf_mech/{name}", config, num_train=rows * SHARDS)
    builder.check()
    parquet_of(builder, "train", 0)
    speeds, sizes = [], []
    for shard in range(1, runs + 1):
        began = time.process_time()
        content = parquet_of(builder, "train", shard)
        speeds.append(rows / (time.process_time() - began))
        sizes.append(len(content) / rows)
    setting = {"name": name, "config": config, "rows": rows}
    return [
        measurement(TASK, name, setting, "rows_per_cpu_second", speeds),
        measurement(TASK, name, setting, "bytes_per_row", sizes),
    ]


def main() -> None:
    options, began = arguments(__doc__, __file__, runs=5), time.perf_counter()
    report(options.output, [entry for name in SETS for entry in measured(name, options.runs)], began)


if __name__ == "__main__":
    main()
