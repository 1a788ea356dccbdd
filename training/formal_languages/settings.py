"""The settings of a run on a formal language: the paper's, and reduced ones for two cores and an afternoon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mech.languages import TASKS
from hf_mech.languages.rows import Layout

from ..engine import axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.paper import Paper
from ..engine.settings import SCHEDULERS, By, SettingsError

MODELS = ("stack", "recurrent_stack", "vanilla", "rnn", "stack_rnn")
TRANSFORMERS = ("stack", "recurrent_stack", "vanilla")
PAPERS_MODELS = ("stack", "vanilla", "rnn", "stack_rnn")
"""All but `recurrent_stack`, whose stack holds recurrent values."""
STACKS = ("stack", "recurrent_stack")
LAYOUTS: tuple[Layout, ...] = ("mlm", "alm")
ENCODINGS = ("none", "sinusoidal", "relative", "rotary", "alibi")
"""Those of Table 2; `learned`, RoBERTa's own, can be asked for besides."""

PAPER = Paper(Path(__file__).with_name("paper.json"))
PAPERS_TASKS = tuple(PAPER.values("task"))
"""The four tasks of the paper (§4.1), in its order."""
TEST_LENGTHS = (41, 100)
"""The shortest and the longest length of the score (§4.2)."""
LONG_LENGTHS = (150, 200, 300, 400, 500)
"""Longer texts, which `max_test_length` may ask for."""


_OF_STACKS = (
    *("multi_pop", "stack_gate", "stack_actions_from", "stack_actions_start"),
    *("balance", "balance_ends", "least_push", "entropy", "noise", "stack_texts"),
)
_OF_TRANSFORMERS = (
    *("dropout", "attention_dropout", "initializer_range", "num_hidden_layers"),
    *("optimizer", "muon_learning_rate"),
)


def without_effect(model: str) -> tuple[str, ...]:
    """The options that say nothing of a model: the paper's stack has no values of its own, a vanilla model no stack, a
    recurrent network no attention either."""
    if model in STACKS:
        return () if model == "recurrent_stack" else ("noise",)
    return _OF_STACKS if model in TRANSFORMERS else (*_OF_STACKS, *_OF_TRANSFORMERS)


def _by_task(*values: Any, other: Any) -> Any:
    return By("task", dict(zip(PAPERS_TASKS, values, strict=True)), other=other)


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a task, a layout, a model, an encoding, a seed, and how it is trained and measured (App. B.1)."""

    PRESETS = {
        "paper": {  # App. B.1 to the letter
            "steps": _by_task(100_000, 100_000, 1_000_000, 1_000_000, other=100_000),
            "batch_size": _by_task(32, 32, 128, 128, other=32),
            "scheduler": "constant_with_warmup",
            "restart_after": 0,
            "learning_rate": 1e-4,
            "warmup_steps": 0,
            "attention_dropout": 0.1,
            "learned_loss": 0.0,
            "steps_after": 0,
            "test_samples": 512,
        },
        "cpu": {  # reduced: two cores and an afternoon
            "steps": _by_task(4_000, 4_500, 2_000, 2_000, other=3_000),
            # RS, SM: three seeds beside the table's found the stack no later with 16 than with 32. MA, SE: with 16 and
            # a constant rate the models did no better than the most frequent answer.
            "batch_size": _by_task(16, 16, 32, 32, other=16),
            "scheduler": _by_task(*["constant_with_warmup"] * 2, *["linear"] * 2, other="constant_with_warmup"),
            "restart_after": _by_task(1_000, 1_500, 0, 0, other=0),
            "learning_rate": 1e-3,
            "warmup_steps": 100,
            "attention_dropout": 0.0,  # on a processor this dropout costs as much as the attention itself
            # Seeds find the stack after 300 steps or after 2,000: to train all of them for the longest is a waste.
            "learned_loss": 0.01,
            "steps_after": 500,
            "test_samples": 32,
        },
        "taught": {  # not the paper's: more than the answer is taught, and short texts first
            "steps": _by_task(3_000, 3_000, 12_000, 14_000, other=8_000),
            "batch_size": 64,
            "scheduler": _by_task("linear", "linear", "linear", "cosine", other="linear"),
            "restart_after": 0,
            "learning_rate": 1e-3,
            "warmup_steps": 0,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "learned_loss": 0.0,
            "steps_after": 0,
            "test_samples": 32,
            # All lengths from the start ask for more partial results a step: equations are learned in fewer steps.
            "first_train_length": _by_task(9, 9, 9, 0, other=9),
            "partial_results": _by_task(False, False, True, True, other=False),
            # Reversed strings and stacks need not end empty, so that pushing is all that can be asked for.
            "balance": _by_task(0.0, 0.0, 1.0, 1.0, other=0.0),
            "least_push": _by_task(0.5, 0.5, 0.15, 0.15, other=0.0),
            # With self-attention before them, one of two seeds beside the table's found no action in equations. In
            # expressions, ALM, seeds 0 to 4 were right on 72 to 100 %; without it the seeds 20 to 22 on 97 to 99 %.
            "stack_actions_from": _by_task(
                *["hidden"] * 2, By("layout", {"alm": "layer_input"}, other="hidden"), "layer_input", other="hidden"
            ),
            "stack_texts": _by_task(16, 16, 16, 0, other=16),  # short texts are balanced in too many ways
            "num_hidden_layers": By("model", {"recurrent_stack": 1}, other=5),
            "max_test_length": 500,
        },
    }

    # `taught`, but no token begins nearer to one action than to another. From random weights an action is decided
    # within a hundred steps: in equations, seeds 902 and 22 drew digits to the pops before a closing bracket had its
    # gradient, and all actions were then too certain to change. With an unknown that pushes, and a `=` that pops it,
    # the whole equation is balanced, too; so balance is asked of its left side alone.
    PRESETS["even"] = {
        **PRESETS["taught"],
        # Equations, ALM, seed 219: 95.3 after 6,000 steps, 100 after 10,000.
        "steps": _by_task(1_000, 1_000, 6_000, 10_000, other=3_000),
        "optimizer": "muon",  # as far as Adam in a fraction of the steps
        # Expressions: at .04 the loss jumps. Equations: after 3,000 steps seed 902 is right on 88 % with .02.
        "muon_learning_rate": _by_task(0.02, 0.02, 0.02, 0.03, other=0.02),
        "learning_rate": 3e-3,
        "warmup_steps": 50,
        "scheduler": "linear",
        "first_train_length": _by_task(9, 9, 0, 0, other=9),
        "stack_texts": _by_task(16, 16, 0, 0, other=16),
        "stack_actions_from": _by_task(
            *[By("layout", {"mlm": "layer_input"}, other="hidden")] * 2, *["layer_input"] * 2, other="hidden"
        ),
        "stack_actions_start": "even",
        # All of a string that is to be reversed is pushed. With .5, ALM, seed 200 did not tell the string from the
        # answer.
        "least_push": _by_task(0.9, 0.5, 0.15, 0.15, other=0.0),
        # Errors of almost certain actions, and of values that drift, add up on longer texts. Reversed strings of 500
        # symbols: 68 to 81 % without the entropy, all with it (seeds 20 to 22). Equations, ALM, seed 25, on lengths 41
        # to 100: 95.5 % after 12,000 steps without noise on the values that are read; with it after 6,000 steps 100 %
        # for .1 (at 500, too) and 93 for .3, with which less is learned. After 10,000 steps .3 is learned as well
        # (seeds 40 to 42), and .1 is not enough: seed 237, ALM, has 93.8.
        "entropy": _by_task(0.1, 0.1, 0.1, 0.0, other=0.1),  # equations' actions become certain without
        "noise": _by_task(0.1, 0.1, 0.1, 0.3, other=0.1),
        # Seed 201: equations, MLM, 92.7 without and 99.9 with; expressions, ALM, 89.8 after 3,000 steps, and 99.95 so.
        "weight_decay": _by_task(0.0, 0.0, 0.03, 0.03, other=0.0),
        "balance_ends": _by_task(*[""] * 3, "=", other=""),
    }

    COLUMNS = {"inputs": (str, list), "outputs": (str, list)}
    GENERATED = (
        *("task", "max_train_length", "partial_results", "stack_texts"),
        *("test_samples", "max_test_length", "test_seed"),
    )

    task: str = axis("configurations of hf_mech/formal_languages; own: your data", (*TASKS, "own"), all=PAPERS_TASKS)
    layout: Layout = axis("how a text is laid out (§2.3, §4.1)", LAYOUTS, default=["mlm"])
    model: str = axis(
        "the model; the recurrent networks have the layout mlm alone", MODELS, all=PAPERS_MODELS, default=["stack"]
    )
    encoding: str = axis(
        "the transformers' positional encodings", (*ENCODINGS, "learned"), all=ENCODINGS, default=["none"]
    )
    seed: int = fixed("of the weights, of the dropout, and of the training examples")
    steps: int = option("training steps", least=1)
    batch_size: int = option("texts a step", least=1)
    learning_rate: float = option("Adam's learning rate", least=0)
    optimizer: str = option(
        "muon: Muon for the matrices of the layers, Adam for the rest", default="adam", known=("adam", "muon")
    )
    muon_learning_rate: float = option("Muon's learning rate", default=0.02, least=0)
    weight_decay: float = option("weight decay, as AdamW's, of all weights", default=0.0, least=0)
    scheduler: str = option("the schedule of the learning rate", known=SCHEDULERS)
    # A model that has found another way first seldom leaves it soon: in reverse_string, to guess the next symbol by
    # those before it.
    restart_after: int = option(
        "draw the weights anew whenever so many steps have not brought the training loss below --learned_loss, and go "
        "on with them for the rest of the steps; 0: never",
        least=0,
    )
    warmup_steps: int = option("steps over which the schedule warms up", least=0)
    max_grad_norm: float = option("gradients are clipped to this norm", default=1.0, least=0)
    dropout: float = option("dropout of the transformers' hidden states", default=0.1, least=0, most=1)
    attention_dropout: float = option("dropout of their attention", least=0, most=1)
    # The paper is silent. With RoBERTa's 0.02 at d 64 the stack is found late or, in the ALM layout of reverse_string,
    # not at all in the steps of `cpu`.
    initializer_range: float = option("standard deviation of their new weights", default=0.1, least=0)
    learned_loss: float = option(
        "end --steps_after steps after the training loss, the mean of a hundredth of the steps, has fallen below this; "
        "0: never",
        least=0,
    )
    steps_after: int = option("see --learned_loss", least=0)
    max_train_length: int = option("training lengths are uniform in 1 to this", default=40, least=1)
    first_train_length: int = option(
        "train on texts up to this long at first, and on longer ones as they are learned; 0: on all from the start",
        default=0,
        least=0,
    )
    grow_at: float = option(
        "the share of right answers, lately, at which texts count as learned", default=0.95, least=0, most=1
    )
    partial_results: bool = option(
        "teach the value of every bracket, and in equations the sign of the unknown", default=False
    )
    balance: float = option(
        "weight of a loss of the stacks, without labels: they end empty and are not popped when empty",
        default=0.0,
        least=0,
    )
    balance_ends: str = option(
        "the symbol before which the text ends for the losses of the stacks; empty: none", default=""
    )
    least_push: float = option(
        "the share of pushes that a loss of the stacks, without labels, asks for", default=0.0, least=0, most=1
    )
    entropy: float = option(
        "weight of the entropy of the stacks' actions in the loss, without labels, where --grow_at is reached",
        default=0.0,
        least=0,
    )
    noise: float = option(
        "standard deviation of the noise on recurrent values that are read, in training, so that they do not drift",
        default=0.0,
        least=0,
    )
    stack_texts: int = option(
        "texts of all training lengths, without labels, for the stacks' losses; 0: the texts of the step",
        default=0,
        least=0,
    )
    test_samples: int = option("examples at each test length", least=1)
    max_test_length: int = option(
        "the longest texts to test on; beyond 100, at 150, 200, 300, 400 and 500 and outside the score",
        default=100,
        least=100,
        most=500,
    )
    multi_pop: int = option("the most pops that the stack takes in a step; 1: the paper", default=1, least=1)
    stack_gate: bool = option("the stack's learned gate; off: the paper", default=False)
    stack_actions_from: str = option(
        "what the stack's actions depend on; hidden: the paper",
        known=("hidden", "layer_input"),
        default="hidden",
    )
    stack_actions_start: str = option(
        "the stack's new actions: drawn for every token, or even, the same for all; random: the paper",
        known=("random", "even"),
        default="random",
    )
    num_hidden_layers: int = option("layers of the transformers; 5: the paper", default=5, least=1)
    test_seed: int = option("seed of the test examples; another one to choose settings by", default=0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.task == "own") != bool(self.own_data):
            raise SettingsError("--task own goes with --dataset_name or --train_file, and they with it.")
        if self.own_data and self.model not in TRANSFORMERS:
            raise SettingsError(f"Your data trains transformers: --model {', '.join(TRANSFORMERS)}, got {self.model}.")
        if self.restart_after and not self.learned_loss:
            raise SettingsError(
                f"--restart_after {self.restart_after} needs a --learned_loss above 0: a run that gets there goes on."
            )

    @property
    def is_taught(self) -> bool:
        """Whether more is taught than the answer to texts of all lengths, so that no figure of the paper compares."""
        lessons = self.first_train_length, self.partial_results, self.balance, self.least_push, self.entropy, self.noise
        return any(lessons)

    @property
    def test_lengths(self) -> list[int]:
        """All lengths at which the trained model is tested; the score has a part of them."""
        task = TASKS[self.task]
        longer = [task.lengths(length, length + 1)[0] for length in LONG_LENGTHS if length <= self.max_test_length]
        return [*task.lengths(1, TEST_LENGTHS[1]), *longer]
