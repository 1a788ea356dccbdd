"""The settings of a cell of Table 1."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hf_mech.planning.pddl import BUNDLED
from hf_mech.planning.walks import NEGATIVES, POLICIES

from ..engine import axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.paper import Paper
from ..engine.settings import By, SettingsError

DATASET = "hf_mech/strips_traces"
PAPER = Paper(Path(__file__).with_name("paper.json"))
ALL_SEEDS = "0..9"
EVERY_TRACE = 1_000_000_000
"""The size that stands for all traces of the user's data."""
OPTIONS_OF = {
    "gradient": (
        "max_steps",
        "eval_steps",
        "patience",
        "redraw_after",
        "beta2",
        "walk_weight",
        "extra_steps",
        "search_factor",
        "learning_rate",
        "batch_size",
    ),
    "two_part_code": ("sweeps", "restarts", "search_factor", "shortest_only"),
    "locm": (),
    "lifted": (),
}
"""Each learner's own options."""
OTHER_DATA = (
    *("negative_fraction", "negatives", "test_negatives", "walk_bias", "label_noise"),
    *("policy", "failure_rate"),
)
"""Settings of the data set that are not the paper's if one of them differs from its default."""


def _by_size(few: float, many: float) -> By:
    """A setting for up to 200 traces, and for more."""
    return By("num_train", {size: many for size in PAPER.values("num_train") if size > 200}, other=few)


@dataclass(frozen=True, kw_only=True)
class Cell(OwnData):
    """A cell: a domain, a number of traces, and how the ensemble is trained."""

    PRESETS = {
        "paper": {},
        "redraw": {"redraw_after": 5_000, "beta2": 0.99},
        # With few traces most cells are open, and further heads learn what is true of these alone. With many, seeds end
        # with a proposition missing, and what the walks say of their initial states is wrong in others.
        "by_size": {
            "redraw_after": 2_000,
            "beta2": 0.99,
            "extra_steps": 4_000,
            "walk_weight": _by_size(few=0.05, many=0.0),
            "search_factor": _by_size(few=1.0, many=2.0),
            "max_steps": _by_size(few=20_000, many=60_000),
        },
        "two_part_code": {"learner": "two_part_code", "search_factor": 1.5},
        "locm": {"learner": "locm"},
        "lifted": {"learner": "lifted"},
    }

    COLUMNS = {"actions": list, "labels": list}
    GENERATED = ("data_seed", "head_factor", *OTHER_DATA, "test_negatives")

    domain: str = axis(
        "configurations of hf_mech/strips_traces; own: your data", (*BUNDLED, "pddl", "own"), all=PAPER.values("domain")
    )
    num_train: int = axis(
        "numbers of training traces; all: those of Table 1", all=["all"], default=["all"], called="sizes", least=1
    )
    head_factor: float = axis("heads per true proposition; 1: their number is known, as in the paper", default=[1.0])
    data_seed: int = axis("seeds of the traces and their initial states", default=[0], least=0)
    seeds: str = fixed("the seeds, trained at once", default=ALL_SEEDS)
    num_propositions: int | None = option("heads, for your own data", default=None, least=1)
    learner: str = option(
        "gradient: descent, as in the paper; two_part_code: the domain with the shortest code, by annealing; locm: a "
        "peer, which sees the actions' objects and no labels; lifted: learn_lifted_domain, which sees the actions' "
        "objects and the labels, more than the paper's learners see",
        known=OPTIONS_OF,
        default="gradient",
    )
    max_steps: int = option(
        "steps at most; training stops earlier when every seed has settled", default=100_000, least=1
    )
    eval_steps: int = option("steps between two measurements of the training accuracy", default=1_000, least=1)
    patience: int = option(
        "a seed settles when it is perfect in training and its symbols are those of the last measurement, or (if none "
        "is redrawn) when they have not changed for this many steps",
        default=20_000,
        least=1,
    )
    redraw_after: int = option(
        "a seed whose best training accuracy has not improved for this many steps goes back to its best weights, with "
        "one head drawn anew; 0: never",
        default=0,
        least=0,
    )
    # Rare gradients, an action seen in one batch of a hundred, take steps of lr / sqrt(1 - beta2): with torch's 0.999
    # they undo what was learnt.
    beta2: float = option("RAdam's second coefficient", default=0.999, least=0, most=1)
    # A cell that no label determines keeps its random start, or what the first gradients made of it.
    walk_weight: float = option(
        "weight of a second term of the loss, the likelihood of the walks if each applicable action is as likely: that "
        "of its mean over all walks, where the label of one trace has 1; 0: the paper's loss alone",
        default=0.0,
        least=0,
    )
    extra_steps: int = option(
        "a seed settles so many steps after it was perfect for the first time, whether its symbols change or not, with "
        "the latest perfect ones; 0: as --patience says",
        default=0,
        least=0,
    )
    learning_rate: float = option("RAdam's learning rate", default=0.02, least=0)
    batch_size: int = option("traces a step", default=8, least=1)
    sweeps: int = option("of the annealing", default=400, least=1)
    restarts: int = option("chains a seed; the shortest code wins", default=2, least=1)
    search_factor: float = option(
        "propositions to choose from, for each head; the two-part code leaves most of the others empty",
        default=1.0,
        least=1,
    )
    shortest_only: bool = option("keep the shortest code as it is, without what walks support besides", default=False)
    num_test: int = option("test traces, half of them positive", default=10_000, least=2)
    negative_fraction: float = option("the share of negative training traces", default=0.8, least=0, most=1)
    negatives: str = option("how negative training traces end", known=NEGATIVES, default="contradiction")
    test_negatives: str = option("how negative test traces end", known=NEGATIVES, default="contradiction")
    walk_bias: int = option("half of the actions are 1 + walk_bias times as likely in training", default=0, least=0)
    label_noise: float = option("the share of training traces with a wrong last label", default=0.0, least=0, most=0.4)
    policy: str = option("how the actions of a training trace are drawn", known=POLICIES, default="walk")
    failure_rate: float = option(
        "how likely each action of a training trace is a failed attempt, which changes nothing",
        default=0.0,
        least=0,
        most=0.9,
    )
    domain_file: str | None = fixed("the PDDL domain of --domain pddl", default=None)
    problem_file: str | None = fixed("the PDDL problem of --domain pddl", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.domain == "own") != bool(self.own_data) or bool(self.own_data) != bool(self.num_propositions):
            raise SettingsError(
                "--domain own goes with --dataset_name or --train_file and with --num_propositions, and they with it."
            )
        usual = {entry.name: entry.default for entry in fields(self)} | dict(self.PRESETS.get(self.preset, {}))
        for learner, names in OPTIONS_OF.items():
            others = [name for name in names if name not in OPTIONS_OF[self.learner]]
            if given := [name for name in others if getattr(self, name) != usual[name]]:
                raise SettingsError(f"--{given[0]} is an option of --learner {learner}, not of {self.learner}.")

    @property
    def labels(self) -> list[str]:
        heads = [] if self.head_factor == 1 else [f"heads-x{self.head_factor:g}"]
        data = [] if self.data_seed == 0 else [f"data{self.data_seed}"]
        file = self.problem_file or self.own_data
        domain = self.domain if file is None else Path(file).stem
        sizes = [] if self.num_train == EVERY_TRACE else [str(self.num_train)]
        return [domain, *sizes, *heads, *data]

    @property
    def ending(self) -> list[str]:
        return [] if self.seeds == ALL_SEEDS else [f"seeds={self.seeds}"]

    @property
    def card(self) -> str:
        """The name of the card without its beginning; a learner that is told how walks are drawn has one of its own."""
        return self.labels[0] + ("-by-size" if self.preset == "by_size" else "")

    @property
    def data(self) -> dict[str, Any]:
        """The arguments of the data set's builder, besides the configuration's name."""
        own = {"seed": self.data_seed} | {name: getattr(self, name) for name in ("num_train", "num_test")}
        usual = {entry.name: entry.default for entry in fields(self)}
        other = {name: getattr(self, name) for name in OTHER_DATA}
        own |= other if any(value != usual[name] for name, value in other.items()) else {}
        files = {"domain_file": self.domain_file, "problem_file": self.problem_file}
        return own | (files if self.domain_file is not None else {})
