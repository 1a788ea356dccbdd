"""The settings of the star graphs: the paper's, for a GPU and ten minutes, and for two cores and half an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mech.lookahead.star_graphs import StarGraph
from hf_mech.lookahead.star_graphs.graphs import sizes_of
from hf_mech.lookahead.star_graphs.layouts import Layout, check_layout

from ..engine import SettingsError, axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.paper import Paper
from ..engine.settings import By

PAPER = Paper(Path(__file__).with_name("paper.json"))
GRAPHS = ("g-2-5", "g-5-5", "g-2-20")
"""The paper's graphs."""
BELIEF_STATES = ("bst", "bst_without_prev", "bst_without_backward")
"""The Belief State Transformer and its ablations (Section 3.6)."""
OBJECTIVES = ("next_latent", "multi_token", "joint_multi_token")
"""Of other papers: GPT-2 with a loss of more than the next token."""
BASELINES: dict[str, Layout] = {
    "forward_only": "plain",
    "augmented": "augmented",
    "fim": "fim",
    "teacherless": "teacherless",
    **dict.fromkeys(OBJECTIVES, "plain"),
}
"""The baselines, all GPT-2, and the layout of their rows: those of App. C.1, and the objectives of other papers."""
MOST_SEEN = 0.01
"""The most of all graphs that may be trained; training and test are drawn from the same ones."""
MODELS = ("bst", *BASELINES, *BELIEF_STATES[1:])

_RECIPE: dict[str, Any] = {  # fixed in trials with other graphs than those of the seeds shown
    "initialization": "orthogonal",
    "optimizer": "muon",
    "learning_rate": 1e-3,
    "beta2": 0.98,
    "weight_decay": 0.01,
    "head_layers": 2,
    "warmup_steps": 100,
    "decay": 0.8,
}
_ONE_CORE: dict[str, Any] = _RECIPE | {
    "layers": 8,  # with 5 or 6, some seeds had not learned the last node of the chain at the end
    "backward_layers": 2,
    "baseline_layers": 9,  # more computation than both encoders, as B reads the path alone
    "hidden": 96,
    "heads": 3,
    "head_width": 256,
    "depth_decay": 0.5,
    "batch_size": 64,
    "muon_learning_rate": 9e-3,
    "decay": 0.3,  # the chain is learned before the rates fall, or never
}
_CPU = _ONE_CORE | {"steps": 3_400, "eval_steps": 200}


def _of_graph(values: Mapping[str, Any], other: Any) -> Any:
    """The values for the paper's graphs, and one for all others."""
    return By("graph", values, other=other)


def graph_named(name: str, num_nodes: int, directed: bool = True) -> StarGraph:
    """The graphs `g-D-L`.

    Raises:
        SettingsError: another name.
        LookaheadError: sizes that make no star graph, or too few names.
    """
    sizes = sizes_of(name)
    if sizes is None:
        raise SettingsError(
            f"--graph must be g-D-L for D arms and paths of L nodes, such as {', '.join(GRAPHS)}, got {name}."
        )
    return StarGraph(*sizes, num_nodes, directed)


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a graph, a model, a seed, and how the model is built, trained and measured (App. C)."""

    PRESETS = {
        "paper": {  # App. C; silent are batch, warmup and AdamW's betas, and the text head is that of App. D.1
            "layers": 6,
            "backward_layers": 6,
            "baseline_layers": 6,  # "The baselines use the same configuration"
            "hidden": 768,
            "heads": 8,
            "head_width": 512,
            "head_layers": 3,
            "initialization": "gpt2",
            "optimizer": "adamw",
            "learning_rate": By("graph", {"g-2-5": 3e-4}, other=1e-4),
            "beta2": 0.95,  # as in the authors' code
            "weight_decay": 0.1,
            "warmup_steps": 0,
            "decay": 0.0,
            "batch_size": 256,  # as in the authors' code
            "examples": 8_000_000,
            "steps": 3_125_000,  # 100 epochs
            "eval_steps": 31_250,  # once an epoch
        },
        "gpu-10min": _RECIPE
        | {  # the paper's width; BST and forward-only on the three graphs in about ten minutes of one GPU
            "layers": 6,
            "backward_layers": 2,
            "baseline_layers": 8,
            "hidden": 768,
            "heads": 8,
            "head_width": 512,
            "batch_size": 256,
            "muon_learning_rate": 3e-3,
            "steps": _of_graph({"g-2-5": 2_000}, 2_500),
            "eval_steps": 250,
            "mixed_precision": "bf16",
        },
        "cpu": _CPU,
        "cpu-long": _ONE_CORE
        | {  # hours of one core
            "hidden": 128,  # tokens and positions are more than 96
            "heads": 4,
            "batch_size": _of_graph({"g-2-20": 32}, 64),
            "steps": _of_graph({"g-2-5": 6_000, "g-5-5": 7_000, "g-2-20": 9_000}, 10_000),
            "eval_steps": 500,
            # Who has learned to find the arm among two, after some 2,000 steps, soon finds it among five if the rates
            # have fallen by then; who has not, never does. Long paths need no short ones: pairs of all gaps are a
            # curriculum.
            "growth_after": _of_graph({"g-5-5": 0.55}, 0.0),
            "growth": _of_graph({"g-5-5": 0.16}, 0.0),
            "decay": _of_graph({"g-5-5": 0.65}, 0.3),
            "first_degree": _of_graph(dict.fromkeys(GRAPHS, 2), 0),
            "first_length": _of_graph({"g-2-5": 5, "g-5-5": 5, "g-2-20": 20}, 0),
        },
        "probes": _CPU | {"probes": 10},
    }

    COLUMNS = {"prompt": str, "completion": str}
    GENERATED = (
        *("graph", "num_nodes", "directed", "examples", "growth_after", "growth"),
        *("first_degree", "first_length", "first_nodes", "places"),
        *("eval_graphs", "generated", "probes"),
    )

    graph: str = axis("the graphs G(d,l): any g-D-L; all: those of the paper", all=GRAPHS, default=["g-2-5"])
    model: str = axis(
        "the models of Figure 2, objectives of other papers, and the ablations of Figure 4",
        MODELS,
        default=["bst", "forward_only"],
    )
    seed: int = fixed("of the weights and of the training graphs")
    num_nodes: int = option("N, the names that nodes are drawn from", default=50, least=1)
    directed: bool = option(
        "edges stand from parent to child; false: either way round, as in the path-star graphs of x-transformers",
        default=True,
    )
    steps: int = option("training steps", least=1)
    batch_size: int = option("graphs a step", least=1)
    examples: int = option("training graphs, seen again every epoch; 0: new ones in every step", default=0, least=0)
    layers: int = option("blocks of BST's forward encoder", least=1)
    backward_layers: int = option("blocks of BST's backward encoder", least=1)
    shared_from: int = option(
        "the block of BST's forward encoder, counted from 0, whose weights all later ones share, as a loop; 0: none do",
        default=0,
        least=0,
    )
    baseline_layers: int = option("blocks of the baselines", least=1)
    hidden: int = option("width of embeddings, states and MLPs (an expansion factor of 1)", least=1)
    heads: int = option("attention heads", least=1)
    head_width: int = option("width of BST's text head", least=1)
    head_layers: int = option("linear layers of BST's text head", least=2)
    horizon: int = option(
        "how far beyond the next token or state next_latent, multi_token and joint_multi_token look; 0: L - 2, to the "
        "end of the path from its first node",
        default=0,
        least=0,
    )
    initialization: str = option(
        "gpt2: transformers' own; orthogonal: of unit gain, token and position rows orthogonal to each other; waves: "
        "the same with positions that are waves, which turn by the same angles from each to the next",
        known=("gpt2", "orthogonal", "waves"),
    )
    optimizer: str = option("muon: Muon for the blocks' matrices, AdamW for the rest", known=("adamw", "muon"))
    learning_rate: float = option("AdamW's learning rate", least=0)
    muon_learning_rate: float = option("Muon's learning rate", default=7e-3, least=0)
    depth_decay: float = option(
        "how much lower Muon's learning rate is in the last block than in the first, of what reads the prompt",
        default=0.0,
        least=0,
        most=1,
    )
    beta2: float = option("AdamW's second beta; the first is 0.9", least=0, most=1)
    weight_decay: float = option("weight decay of both", least=0)
    warmup_steps: int = option("steps over which the learning rates rise", least=0)
    decay: float = option("the last share of the steps, over which the learning rates fall to 0", least=0, most=1)
    max_grad_norm: float = option("gradients are clipped to this norm; 0: not at all", default=0.0, least=0)
    growth_after: float = option(
        "the share of the steps that have the first graphs before these begin to grow", default=0.0, least=0, most=1
    )
    growth: float = option(
        "the share of the steps over which the graphs grow from the first ones to G(d,l)", default=0.0, least=0, most=1
    )
    first_degree: int = option("arms of the first graphs, at most d; 0: d", default=0, least=0)
    first_length: int = option("nodes of their paths, at most l; 0: l", default=0, least=0)
    places: str = option(
        "positions at which rows of graphs that still grow are read. last: they end where the last rows end; any: "
        "drawn for each row, so that no position is new when the graphs have grown",
        default="last",
        known=("last", "any"),
    )
    first_nodes: int = option("names that their nodes are drawn from, at most N; 0: N", default=0, least=0)
    eval_graphs: int = option("graphs that a trained model is measured on", default=10_000, least=1)
    curve_graphs: int = option("graphs that it is measured on while it trains", default=1_000, least=1)
    eval_steps: int = option("steps between these measurements", least=1)
    generated: int = option(
        "graphs whose paths are also generated token by token, to compare with the fast measurement",
        default=100,
        least=1,
    )
    probes: int = option("moments at which probes are trained on the states behind the prompt", default=0, least=0)
    mixed_precision: str = option("of the arithmetic", default="no", known=("no", "bf16"))
    max_minutes: float = option("end the training after this time; 0: after --steps", default=0.0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % self.heads:
            raise SettingsError(f"--hidden must be a multiple of {self.heads}, the --heads, got {self.hidden}.")
        if self.own_data:
            if self.layout != "plain" or self.probes:
                known = ", ".join(model for model in MODELS if BASELINES.get(model, "plain") == "plain")
                raise SettingsError(f"Your data trains --model {known}, and a preset without probes.")
            return
        for name, least, most in (
            ("first_degree", 1, self.final.degree),
            ("first_length", 2, self.final.length),
            ("first_nodes", 1, self.num_nodes),
        ):
            value = getattr(self, name)
            if value and not least <= value <= most:
                raise SettingsError(f"--{name} must be {least} to {most} for {self.graph}, or 0, got {value}.")
        if self.growth_after + self.growth > 1 or (self.growth_after and not self.growth):
            raise SettingsError(
                "--growth_after and --growth are shares of the same steps: give a --growth above 0, together at most "
                f"1, got {self.growth_after} and {self.growth}."
            )
        if self.examples and self.examples % self.batch_size:
            raise SettingsError(
                f"--examples must be a multiple of {self.batch_size}, the --batch_size, got {self.examples}."
            )
        check_layout(self.grown(0.0), self.layout)  # refuses first graphs with too few names, or no subgoal
        trained = min(self.steps * self.batch_size, self.examples or self.steps * self.batch_size)
        if trained > MOST_SEEN * self.final.graphs:
            raise SettingsError(
                f"There are {self.final.graphs:,} graphs {self.graph} with --num_nodes {self.num_nodes}, and "
                f"{trained:,} are trained: more than {MOST_SEEN:.0%} of the test would be training graphs. Give more "
                "names, or fewer steps."
            )

    @property
    def card(self) -> str:
        """The end of the card's name: the preset, and whether graphs or objectives are others than the paper's."""
        preset = "" if self.preset == "cpu" else f"-{self.preset}"
        if self.graph not in GRAPHS:
            return f"{preset}-other-graphs"
        return preset + ("-objectives" if self.model in OBJECTIVES else "")

    @property
    def final(self) -> StarGraph:
        """The graphs that the run learns and is measured on."""
        return graph_named(self.graph, self.num_nodes, self.directed)

    def grown(self, done: float) -> StarGraph:
        """The graphs to train on when a share of the steps is done."""
        share = min(1.0, max(0.0, done - self.growth_after) / self.growth) if self.growth else 1.0
        last = self.final

        def between(first: int, end: int) -> int:
            return end if share == 1 else (first or end) + int(share * (end - (first or end) + 1))

        return StarGraph(
            between(self.first_degree, last.degree),
            between(self.first_length, last.length),
            between(self.first_nodes, last.num_nodes),
            self.directed,
        )

    @property
    def ahead(self) -> int:
        """The horizon of the objectives; the default is that of the paper on next-latent prediction."""
        return self.horizon or max(1, self.final.length - 2)

    @property
    def layout(self) -> Layout:
        """The layout of the rows: that of the baseline, or the plain one."""
        return BASELINES.get(self.model, "plain")
