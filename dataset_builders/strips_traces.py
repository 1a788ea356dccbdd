"""Action traces of hidden STRIPS domains (STRIPS Transformer paper, "Data generation").

    load_dataset("hf_mech/strips_traces", "blocksworld-2b", seed=0, num_train=500)
    load_dataset("hf_mech/strips_traces", "pddl", domain_file="domain.pddl", problem_file="problem.pddl")

The traces come from `hf_mech.planning.traces`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.data.shards import tables_of
from hf_mech.planning.pddl import BUNDLED, load_bundled, read_pddl
from hf_mech.planning.problem import PlanningError, StripsProblem
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, TraceSettings, TraceSplits, generate_traces

from ._base import SeededConfig, ShardedBuilder

OTHER_MAX_TRAIN_LENGTH = 20  # for problems that are not in the paper

_DESCRIPTION = """\
Traces of actions of a hidden propositional STRIPS domain. A trace is valid (positive) if no action has a \
precondition that the actions before it have last deleted; nothing is known of the initial state. In an invalid \
(negative) trace the last action, and no other, is inapplicable. Test traces are longer than training traces."""


@dataclass
class StripsTracesConfig(SeededConfig, settings=TraceSettings):
    """One dataset of traces: a bundled problem by its name, or `pddl` with two files of your own.

    Args:
        max_train_length: None for the paper's: 10 for simple, 20 for blocksworld-2b and ferry-1c, 30 for blocksworld-3b
            and ferry-2c; 20 for every other problem.
        domain_file, problem_file: PDDL files, only for the config `pddl`.
        max_ground: the maximum number of ground actions and of atoms, see `read_pddl`; only for `pddl`.
    """

    max_train_length: int | None = None
    domain_file: str | None = None
    problem_file: str | None = None
    max_ground: int | None = None

    def values(self) -> dict[str, Any]:
        """The generator's settings, with the paper's length of training traces."""
        values = super().values()
        if self.max_train_length is None:
            values["max_train_length"] = PAPER_MAX_TRAIN_LENGTH.get(self.name, OTHER_MAX_TRAIN_LENGTH)
        return values

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The name of the cache: it depends on the content of the PDDL files, not on their paths."""
        problem = problem_of(self)
        content = {"domain": problem.domain.to_dict(), "initial": sorted(problem.initial)}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        read_already = ("domain_file", "problem_file", "max_ground")
        kept = {k: v for k, v in config_kwargs.items() if k not in read_already and v is not None}
        config_id: str = super().create_config_id({**kept, "problem": digest}, custom_features)
        return config_id


def problem_of(config: StripsTracesConfig) -> StripsProblem:
    """The hidden problem behind a config.

    Raises:
        PlanningError: `pddl` without its two files, files or max_ground for a bundled problem, a name that is
            neither, or files that cannot be read, as in `read_pddl`.
    """
    files = (config.domain_file, config.problem_file)
    if config.name in BUNDLED:
        if (*files, config.max_ground) != (None, None, None):
            raise PlanningError(
                f"Config {config.name!r} is a bundled problem and takes no domain_file, problem_file or max_ground, "
                f"got {(*files, config.max_ground)}; use the config 'pddl' for your own."
            )
        return load_bundled(config.name)
    if config.domain_file is None or config.problem_file is None:
        raise PlanningError(
            f"Config {config.name!r} needs domain_file= and problem_file=, the paths of two PDDL files, got {files}; "
            f"or name a bundled problem: {', '.join(BUNDLED)}."
        )
    if config.max_ground is None:
        return read_pddl(config.domain_file, config.problem_file)
    return read_pddl(config.domain_file, config.problem_file, max_ground=config.max_ground)


class StripsTraces(ShardedBuilder):
    """Splits `train` and `test` with the columns

    - `input_ids`: the actions, a list of ClassLabel over the names of the domain's actions;
    - `labels`: one for each action, `applicable` (0) or `inapplicable` (1) after the actions before it (Eq. 6);
    - `valid`: whether all are applicable, f_M = 0 in Definition 1.
    """

    PAPER = "nunezmolina2025strips"
    BUILDER_CONFIG_CLASS = StripsTracesConfig
    BUILDER_CONFIGS: ClassVar[list[StripsTracesConfig]] = [StripsTracesConfig(name=name) for name in (*BUNDLED, "pddl")]
    config: StripsTracesConfig

    @cached_property
    def problem(self) -> StripsProblem:
        """The hidden problem; a training script compares the learned domain with `builder.problem.domain`."""
        return problem_of(self.config)

    @property
    def traces(self) -> TraceSplits:
        """All traces, before they become rows; `generate_traces` keeps them. Raises PlanningError like it."""
        return generate_traces(self.problem, self.config.settings)

    def describe(self) -> str:
        """The difference between positive and negative traces, and whatever the reader of the PDDL compiled away."""
        notes = [str(note) for note in self.problem.notes]
        return "\n".join([_DESCRIPTION, *(["The PDDL files were compiled to STRIPS:"] if notes else []), *notes])

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {
            "input_ids": datasets.List(datasets.ClassLabel(names=list(self.problem.domain.action_names))),
            "labels": datasets.List(datasets.ClassLabel(names=["applicable", "inapplicable"])),
            "valid": datasets.Value("bool"),
        }

    def check(self) -> None:
        """Draws the traces, which are kept. Raises PlanningError: they are too few."""
        _ = self.traces

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        traces = getattr(self.traces, split)
        for rows in tables_of(len(traces), shard):
            chosen = traces[rows.start : rows.stop]
            yield pa.table(
                {
                    "input_ids": [trace.actions for trace in chosen],
                    "labels": [trace.labels for trace in chosen],
                    "valid": [trace.valid for trace in chosen],
                }
            )
