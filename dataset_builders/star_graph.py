"""Star graphs: find the path from the start to a goal (Section 3 of the Belief State Transformer, and its theorems).

    load_dataset("hf_mech/star_graph", "g-2-5", num_train=1_000_000, seed=0)
    load_dataset("hf_mech/star_graph", "g-7-4", layout="fim")  # any g-D-L
    load_dataset("hf_mech/star_graph", degree=3, length=9)
    load_dataset("hf_mech/star_graph", "g-3-3", directed=False)  # edges either way round
    load_dataset("hf_mech/star_graph", "parity", bits=12, num_train=1_000, num_test=100)
    load_dataset("hf_mech/star_graph", "theorem-3")

The rows come from `hf_mech.lookahead.star_graphs.rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs.graphs import sizes_of
from hf_mech.lookahead.star_graphs.layouts import token_type
from hf_mech.lookahead.star_graphs.rows import COUNTEREXAMPLES, CounterexampleSettings, StarGraphSettings

from ._base import SeededConfig, ShardedBuilder

PAPER_GRAPHS = ("g-2-5", "g-5-5", "g-2-20")
PARITY_BITS = 20

_GRAPHS = """\
Star graphs G({degree},{length}): {degree} arms of {length} nodes each go out from a start node, and the task is the \
path to the end of one of them. Next-token predictors do not learn its first step. No graph is in both splits."""
_PARITY = """\
Strings of {bits} bits as star graphs: the first step of the path tells whether the number of ones is even \
(Theorem 5). No string is in both splits."""
_SEQUENCES = """\
The uniform distribution over {sequences}: the counter-example in the proof of {name}."""


@dataclass
class StarGraphConfig(SeededConfig, settings=StarGraphSettings, without=("parity",)):
    """One data set: `g-D-L` for the graphs G(D, L), `parity`, `theorem-3` or `theorem-4`; without a name, G(2,5).

    Args:
        seed, num_train, num_test, num_nodes, directed, layout: see `StarGraphSettings`; the two theorems take the seed
            and `num_train` alone.
        degree, length: of the graphs; not beside other numbers in the name.
        bits: of a string, only for `parity`; None for 20.
    """

    degree: int | None = None
    length: int | None = None
    bits: int | None = None

    @property
    def settings(self) -> StarGraphSettings | CounterexampleSettings:
        """The config as the generator takes it.

        Raises:
            LookaheadError: arguments that the config does not take, or values out of range; see `StarGraphSettings`.
        """
        values = self.values()
        if self.name in COUNTEREXAMPLES:
            self._refuse("num_test", "num_nodes", "directed", "layout", "degree", "length", "bits")
            return CounterexampleSettings(self.name, seed=values["seed"], num_train=values["num_train"])
        shape: dict[str, Any] = {}
        if self.name == "parity":
            self._refuse("degree", "length")
            bits = PARITY_BITS if self.bits is None else self.bits
            check_whole("bits", bits, 1, LookaheadError)
            shape = {"length": bits + 2, "parity": True}
        else:
            self._refuse("bits")
            shape = {k: v for k in ("degree", "length") if (v := getattr(self, k)) is not None}
            if sizes := sizes_of(self.name):
                named: dict[str, Any] = dict(zip(("degree", "length"), sizes, strict=True))
                if wrong := {k: v for k, v in shape.items() if v != named[k]}:
                    raise LookaheadError(
                        f"The config {self.name!r} has {named}, got also {wrong}; leave one of the two out."
                    )
                shape = named
        rest = {name: value for name, value in values.items() if name not in ("degree", "length")}
        return StarGraphSettings(**rest, **shape)

    def _refuse(self, *names: str) -> None:
        """Raises LookaheadError if an argument has another value than its default."""
        defaults = {f.name: f.default for f in fields(self) if f.default is not MISSING}
        if given := [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) != defaults[name]]:
            raise LookaheadError(
                f"The config {self.name!r} does not take {', '.join(given)}; leave it out, or name another config."
            )


class StarGraphs(ShardedBuilder):
    """Splits `train` and `test`, or `train` alone for the two theorems, with the columns

    - `input_ids`: the row, a list of as many tokens in every row of a config;
    - `labels`: the same length, -100 for the prompt and the padding; models shift them;
    - `attention_mask`: only in the layout `fim`, whose rows are padded.

    `hf_mech.lookahead.star_graphs.star_graph_tokenizer` reads and writes them as texts.
    """

    PAPER = "hu2025belief"
    BUILDER_CONFIG_CLASS = StarGraphConfig
    BUILDER_CONFIGS: ClassVar[list[StarGraphConfig]] = [
        StarGraphConfig(name=name) for name in (*PAPER_GRAPHS, "parity", *COUNTEREXAMPLES)
    ]
    config: StarGraphConfig

    def _create_builder_config(self, config_name: str | None = None, *args: Any, **kwargs: Any) -> Any:
        if config_name is None or config_name in self.builder_configs:
            return super()._create_builder_config(config_name, *args, **kwargs)
        if not sizes_of(config_name):
            listed = ", ".join(self.builder_configs)
            raise LookaheadError(
                f"The config must be g-D-L for two numbers D and L, or one of {listed}; got {config_name!r}."
            )
        # Every g-D-L is a config: without a list of them, the base makes one of that name.
        self.BUILDER_CONFIGS = []  # type: ignore[misc]
        return super()._create_builder_config(config_name, *args, **kwargs)

    def describe(self) -> str:
        """The task and its size."""
        settings = self.config.settings
        if isinstance(settings, CounterexampleSettings):
            sequences = ", ".join(COUNTEREXAMPLES[settings.name].sequences)
            return _SEQUENCES.format(sequences=sequences, name=settings.name.replace("theorem-", "Theorem "))
        if settings.parity:
            return _PARITY.format(bits=settings.length - 2)
        return _GRAPHS.format(degree=settings.degree, length=settings.length)

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        settings = self.config.settings
        kind = datasets.Value(token_type(len(settings.tokens)))
        return {name: datasets.List(kind, length=settings.width) for name in settings.columns}

    def check(self) -> None:
        """Raises LookaheadError if a split has no graphs."""
        self.config.settings.check()

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [s for s in super()._split_generators(dl_manager) if s.name in self.config.settings.SPLITS]

    def tables(self, split: Any, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard. Raises LookaheadError if a graph belongs to the other split."""
        return self.config.settings.tables(split, shard)
