"""The program that evaluates rules, and what a Semi-formal Transformer and its tokenizer need of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.models.dat import SemiFormalConfig
from hf_mech.programs.psl import load_program, lower_program
from hf_mech.programs.rules.formulas import RULE, WORDS

POSITIONS = 64
"""More than the longest prompt has."""
PAD = "<pad>"


def rule_program() -> str:
    """The text of the program, in PSL."""
    return resources.files(__package__).joinpath("rule.psl").read_text(encoding="utf-8")


def rule_config(words: Sequence[str] = WORDS, positions: int = POSITIONS, **options: Any) -> SemiFormalConfig:
    """A Semi-formal Transformer whose biased heads evaluate rules, and whose unbiased part judges the text.

    Args:
        words: those of the texts.
        positions: the most words that a prompt has.
        options: further arguments of [`SemiFormalConfig`].
    """
    lowered = lower_program(load_program(rule_program(), "rule.psl"), positions)
    return SemiFormalConfig(
        qkvl=lowered.to_json(),
        max_position_embeddings=positions,
        num_open_values=len(words) + 1,
        estimates={"JUDGED": ["T", "F"]},
        label_values=["F", "T"],
        **options,
    )


def rule_tokenizer(config: SemiFormalConfig, words: Sequence[str] = WORDS) -> PreTrainedTokenizerFast:
    """Words as tokens: a token's id is the neuron of its value.

    Args:
        config: of the words.
        words: those of the texts; one that rules have, too, is one token.
    """
    values = config.values
    names = [values.value(index) or f"<{index}>" for index in range(values.first_open)]
    names = [PAD, *names[1:], RULE]
    names += [word for word in words if word not in names]
    tokenizer = Tokenizer(WordLevel({name: index for index, name in enumerate(names)}, unk_token=names[1]))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=names[1],
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
