"""The settings of the story models: the paper's (Appendix D.1), and reduced ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hf_mech.lookahead.stories.grammar import LENGTHS, Length
from hf_mech.lookahead.stories.tokens import HELD_OUT, MAX_TOKENS, PREFIX_TOKENS, SUFFIX_TOKENS, VOCABULARY

from ..engine import SettingsError, axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.settings import SCHEDULERS, By

MODELS = ("bst", "fim")
CORPORA = ("grammar", "tinystories", "tinystories-gpt4")


def _by_model(bst: int, fim: int) -> object:
    return By("model", {"bst": bst, "fim": fim})


_CPU: dict[str, Any] = {
    "corpus": "grammar",
    "layers": _by_model(2, 4),
    "hidden": 96,
    "heads": 4,
    "inner": 384,
    "head_width": 96,
    "batch_size": 8,
    "steps": _by_model(4_000, 8_000),  # about the same time
    "optimizer": "muon",  # learns as much as AdamW in less than half of the steps
    "learning_rate": 2e-3,
    "muon_learning_rate": 1e-2,
    "warmup_steps": 50,
    "scheduler": "cosine",
    "mixed_precision": "no",
    "pairs_per_sequence": 512,  # of up to 33,000
}
_COPYING: dict[str, Any] = {  # learns facts in half of the steps
    "vocabulary": 880,  # nearly every word is a token
    "inner": 192,
    "head_width": 192,
    "initialization": "copying",
    "muon_learning_rate": 5e-3,
    "batch_size": 16,
}


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a model and a seed, and how the model is built, trained and measured."""

    PRESETS = {
        "paper": {
            "corpus": "tinystories-gpt4",
            "layers": _by_model(8, 12),
            "hidden": 768,
            "heads": 8,
            # The paper gives no width; these make its 80 and 85 million parameters.
            "inner": _by_model(1_536, 3_072),
            "head_width": 512,
            "batch_size": 256,
            "steps": _by_model(10_547, 42_188),  # one epoch; the baseline has 4 in about the same time
            "learning_rate": 3e-4,
            "warmup_steps": 0,
            "scheduler": "constant_with_warmup",
            "mixed_precision": "bf16",
        },
        "gpu-10min": {  # reduced in everything
            "corpus": "grammar",
            "layers": _by_model(3, 6),
            "hidden": 384,
            "heads": 6,
            "inner": 1_536,
            "head_width": 256,
            "batch_size": 64,
            "steps": _by_model(2_000, 8_000),
            "learning_rate": 1e-3,
            "warmup_steps": 200,
            "scheduler": "cosine",
            "mixed_precision": "bf16",
        },
        "cpu": _CPU,
        "cpu-long": _CPU
        | _COPYING
        | {  # 40 minutes of one core, on shorter stories
            "length": "short",
            "max_tokens": 128,
            "prefix_tokens": 25,
            "suffix_tokens": 30,
            "pairs_per_sequence": 128,  # of some 4,000
            "steps": _by_model(13_000, 12_000),
        },
        "night": _CPU
        | _COPYING
        | {  # eight hours of two cores for both models and three seeds, on whole stories
            "pairs_per_sequence": 256,  # of up to 33,000
            "steps": _by_model(32_000, 26_000),
        },
    }

    COLUMNS = {"text": str}
    GENERATED = ("corpus", "length", "num_train", "num_test", "data_seed")

    model: str = axis("bst: Belief State Transformer; fim: GPT-2 that fills in the middle", MODELS, default=MODELS)
    seed: int = fixed("of the weights, of the dropout, of the order of the stories, and of the baseline's suffixes")
    corpus: str = option("the stories; tinystories needs the Hub", known=CORPORA)
    length: Length = option("of the grammar's stories: 20 sentences, or 7", default="full", known=LENGTHS)  # noqa: RUF009
    layers: int = option("blocks; of each encoder, where there are two", least=1)
    hidden: int = option("width", least=1)
    heads: int = option("attention heads", least=1)
    inner: int = option("width of the feed-forward layers", least=1)
    head_width: int = option("width of the text head (bst)", least=1)
    batch_size: int = option("stories a step", least=1)
    pairs_per_sequence: int = option("random pairs of each story in the loss (bst); 0: all", default=0, least=0)
    steps: int = option("training steps", least=1)
    learning_rate: float = option("AdamW's learning rate; the paper gives none for stories", least=0)
    initialization: str = option(
        "gpt2: transformers' own; copying: a model that adds up the tokens it reads",
        default="gpt2",
        known=("gpt2", "copying"),
    )
    optimizer: str = option(
        "muon: Muon for the blocks' matrices, AdamW for the rest", default="adamw", known=("adamw", "muon")
    )
    muon_learning_rate: float = option("Muon's learning rate", default=7e-3, least=0)
    weight_decay: float = option("weight decay of both", default=0.1, least=0)
    warmup_steps: int = option("steps over which the learning rate rises", least=0)
    scheduler: str = option("the schedule of the learning rate", known=SCHEDULERS)
    max_grad_norm: float = option("gradients are clipped to this norm", default=1.0, least=0)
    dropout: float = option("dropout everywhere", default=0.0, least=0, most=1)
    mixed_precision: str = option("of the arithmetic", known=("no", "bf16"))
    num_train: int = option("stories of the grammar for training", default=100_000, least=1)
    num_test: int = option("stories of the grammar for evaluation", default=1_000, least=1)
    data_seed: int = option("seed of the grammar's stories", default=0, least=0)
    vocabulary: int = option("tokens of the BPE", default=VOCABULARY, least=262)
    tokenizer_stories: int = option("stories that the BPE is trained on, the first ones", default=20_000, least=1)
    max_tokens: int = option("longer stories are left out", default=MAX_TOKENS, least=3)
    prefix_tokens: int = option("tokens of a held-out story's prefix", default=PREFIX_TOKENS, least=1)
    suffix_tokens: int = option("tokens of its suffix", default=SUFFIX_TOKENS, least=1)
    eval_stories: int = option("held-out stories that are completed", default=HELD_OUT, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % self.heads:
            raise SettingsError(f"--hidden must be a multiple of --heads, got {self.hidden} and {self.heads}.")
        if self.initialization == "copying" and self.model == "bst" and self.head_width < 2 * self.hidden:
            raise SettingsError(
                f"--initialization copying needs a --head_width of at least twice --hidden, got {self.head_width} and "
                f"{self.hidden}."
            )
        if self.prefix_tokens + self.suffix_tokens + 2 > self.max_tokens:
            raise SettingsError(
                f"--max_tokens must leave room for a prefix, a suffix, a token between them and EOS, got "
                f"{self.max_tokens} for {self.prefix_tokens} and {self.suffix_tokens}."
            )
