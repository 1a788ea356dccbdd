"""Action traces of hidden STRIPS domains (STRIPS Transformer paper, "Data generation").

    load_dataset("hf_mech/strips_traces", "blocksworld-2b", seed=0, num_train=500)
    load_dataset("hf_mech/strips_traces", "pddl", domain_file="domain.pddl", problem_file="problem.pddl")
    load_dataset("hf_mech/strips_traces", "driverlog-lifted", num_train=40, failure_rate=0.1, wrong_action=0.02)

The traces come from `hf_mech.planning.traces`, those of lifted domains from `hf_mech.planning.lifted.traces`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.data.shards import tables_of
from hf_mech.models.strips.strips_lifted import GroundAction, parse_action
from hf_mech.planning.lifted.domains import DOMAINS
from hf_mech.planning.lifted.traces import LiftedSplits, LiftedTraceSettings, generate_lifted_traces
from hf_mech.planning.pddl import BUNDLED, load_bundled, read_pddl
from hf_mech.planning.problem import PlanningError, StripsProblem
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, TraceSettings, TraceSplits, generate_traces

from ._base import SeededConfig, ShardedBuilder

OTHER_MAX_TRAIN_LENGTH = 20  # for problems that are not in the paper

_DESCRIPTION = """\
Traces of actions of a hidden propositional STRIPS domain. A trace is valid (positive) if no action has a \
precondition that the actions before it have last deleted; nothing is known of the initial state. In an invalid \
(negative) trace the last action, and no other, is inapplicable. Test traces are longer than training traces."""
_LIFTED = """\
Logs of actions with arguments, of a hidden lifted STRIPS domain. The training traces come from one instance, with as \
many failed attempts and wrong rows as the settings ask for; the test traces from a bigger one, without any, half of \
them with an inapplicable last action."""
_LIFTED_SUFFIX = "-lifted"
_LABELS = datasets.List(datasets.ClassLabel(names=["applicable", "inapplicable"]))
_ACTIONS = datasets.List({"name": datasets.Value("string"), "arguments": datasets.List(datasets.Value("string"))})


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


@dataclass
class LiftedTracesConfig(SeededConfig, settings=LiftedTraceSettings):
    """One dataset of traces of a lifted domain, `<domain>-lifted`; the settings are those of `LiftedTraceSettings`."""

    def values(self) -> dict[str, Any]:
        """The generator's settings; the domain is the name without `-lifted`."""
        return super().values() | {"domain": self.name.removesuffix(_LIFTED_SUFFIX)}

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The name of the cache: it depends on the content of the domain's PDDL file."""
        splits = generate_lifted_traces(self.settings)
        problems = [splits.train_problem, splits.test_problem]
        content = [problems[0].domain.to_dict(), *([p.objects, sorted(p.initial)] for p in problems)]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        config_id: str = super().create_config_id({**config_kwargs, "problem": digest}, custom_features)
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

    - `input_ids`: the actions, a list of ClassLabel over the names of the domain's actions; not for lifted domains;
    - `actions`: the actions, a list of `{"name": "stack", "arguments": ["b1", "b2"]}`; for lifted domains and `pddl`;
    - `labels`: one for each action, `applicable` (0) or `inapplicable` (1) after the actions before it (Eq. 6). An
      inapplicable action before the last is a failed attempt, which changed nothing;
    - `valid`: whether all are applicable, f_M = 0 in Definition 1.
    """

    PAPER = "nunezmolina2025strips"
    BUILDER_CONFIG_CLASS = StripsTracesConfig
    BUILDER_CONFIGS: ClassVar[list[StripsTracesConfig | LiftedTracesConfig]] = [
        *(StripsTracesConfig(name=name) for name in (*BUNDLED, "pddl")),
        *(LiftedTracesConfig(name=f"{domain}{_LIFTED_SUFFIX}") for domain in DOMAINS),
    ]
    config: StripsTracesConfig | LiftedTracesConfig

    @cached_property
    def problem(self) -> StripsProblem:
        """The hidden problem; a training script compares the learned domain with `builder.problem.domain`.

        Raises:
            PlanningError: the domain is lifted, and `lifted.train_problem` is the problem.
        """
        if isinstance(self.config, LiftedTracesConfig):
            raise PlanningError(f"{self.config.name!r} is lifted; its problems and traces are in `builder.lifted`.")
        return problem_of(self.config)

    @property
    def traces(self) -> TraceSplits:
        """All traces, before they become rows; `generate_traces` keeps them. Raises PlanningError like it."""
        return generate_traces(self.problem, self.config.settings)

    @property
    def lifted(self) -> LiftedSplits:
        """The traces and problems of a lifted domain. Raises PlanningError: the domain is not lifted."""
        if isinstance(self.config, StripsTracesConfig):
            raise PlanningError(f"{self.config.name!r} is not lifted; see `builder.problem` and `builder.traces`.")
        return generate_lifted_traces(self.config.settings)

    def describe(self) -> str:
        """The difference between positive and negative traces, and whatever the reader of the PDDL compiled away."""
        if isinstance(self.config, LiftedTracesConfig):
            return _LIFTED
        notes = [str(note) for note in self.problem.notes]
        return "\n".join([_DESCRIPTION, *(["The PDDL files were compiled to STRIPS:"] if notes else []), *notes])

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        if isinstance(self.config, LiftedTracesConfig):
            return {"actions": _ACTIONS, "labels": _LABELS, "valid": datasets.Value("bool")}
        names = list(self.problem.domain.action_names)
        columns = {"input_ids": datasets.List(datasets.ClassLabel(names=names))}
        if self.config.name == "pddl":
            columns["actions"] = _ACTIONS
        return columns | {"labels": _LABELS, "valid": datasets.Value("bool")}

    def check(self) -> None:
        """Draws the traces, which are kept. Raises PlanningError: they are too few."""
        _ = self.lifted if isinstance(self.config, LiftedTracesConfig) else self.traces

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        if isinstance(self.config, LiftedTracesConfig):
            own = getattr(self.lifted, split)
            for rows in tables_of(len(own), shard):
                logs = own[rows.start : rows.stop]
                labels = [list(log.labels) for log in logs]
                yield pa.table({"actions": _structs(log.actions for log in logs), **_verdicts(labels)})
            return
        traces, named = getattr(self.traces, split), self.config.name == "pddl"
        actions = [parse_action(name) for name in self.problem.domain.action_names]
        for rows in tables_of(len(traces), shard):
            chosen = traces[rows.start : rows.stop]
            columns = {"input_ids": [trace.actions for trace in chosen]}
            if named:
                columns["actions"] = _structs([actions[a] for a in trace.actions] for trace in chosen)
            yield pa.table({**columns, **_verdicts([trace.labels for trace in chosen])})


def _structs(traces: Iterable[Iterable[GroundAction]]) -> pa.Array:
    """The column `actions`."""
    action = pa.struct([("name", pa.string()), ("arguments", pa.list_(pa.string()))])
    rows = [[{"name": a.name, "arguments": list(a.objects)} for a in trace] for trace in traces]
    return pa.array(rows, pa.list_(action))


def _verdicts(labels: list[list[int]]) -> dict[str, Any]:
    """The columns `labels` and `valid`."""
    return {"labels": labels, "valid": [not any(own) for own in labels]}
