"""The model of a run. Both read the same tokens."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerFast, RoFormerConfig, RoFormerForSequenceClassification

from hf_mech.models.dat import SemiFormalForSequenceClassification
from hf_mech.programs.rules.formulas import WORDS
from hf_mech.programs.rules.program import POSITIONS, rule_config, rule_tokenizer

from .settings import Run


def make_model(
    run: Run, words: Sequence[str] = WORDS, positions: int = POSITIONS
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The untrained model and its tokenizer; the weights come from torch's random numbers.

    Args:
        run: its settings.
        words: those of the texts.
        positions: the most words that a prompt has.
    """
    program = rule_config(
        words,
        positions,
        hidden_size=run.hidden,
        num_hidden_layers=run.layers,
        num_attention_heads=run.heads,
        intermediate_size=run.filter,
        attention_entropy_weight=run.entropy_weight,
    )
    tokenizer = rule_tokenizer(program, words)
    if run.model == "semi_formal":
        return SemiFormalForSequenceClassification(program), tokenizer
    config = RoFormerConfig(
        vocab_size=len(tokenizer),
        embedding_size=run.hidden,
        hidden_size=run.hidden,
        num_hidden_layers=run.layers,
        num_attention_heads=run.heads,
        intermediate_size=run.filter,
        max_position_embeddings=2 * positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=program.initializer_range,
        pad_token_id=tokenizer.pad_token_id,
    )
    return RoFormerForSequenceClassification(config), tokenizer
