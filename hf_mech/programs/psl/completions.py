"""Completions of many prompts by the compiled network, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from hf_mech.models.dat.dat_errors import DATError
from hf_mech.models.dat.dat_values import NIL
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.psl.machines.machine import words_of


@dataclass(frozen=True)
class Completion:
    """The network's completion of a prompt.

    Args:
        words: the words before the one that ended the generation.
        ended: whether nil or a stop word ended it; False if `max_new_tokens` cut it off.
    """

    words: tuple[str, ...]
    ended: bool

    @property
    def text(self) -> str:
        """The words with spaces between them."""
        return " ".join(self.words)


def complete_batch(
    model: DATForCausalLM, tokenizer: DATTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> Iterator[Completion]:
    """The completion of each prompt, by `generate()`.

    If a prompt of a batch cannot be completed, the prompts before it still are.

    Raises:
        PromptError: a prompt has no word.
        DATError: a prompt is too long, has too many new words, or a repeat block does not end.
    """
    for prompt in prompts:
        words_of(prompt)
    try:
        found = _generate(model, tokenizer, prompts, max_new_tokens)
    except DATError:
        if len(prompts) == 1:
            raise
        for prompt in prompts:
            yield from complete_batch(model, tokenizer, [prompt], max_new_tokens)
        return
    yield from found


def _generate(
    model: DATForCausalLM, tokenizer: DATTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> list[Completion]:
    batch = tokenizer(list(prompts), padding=True, return_tensors="pt").to(model.device)
    with torch.no_grad():
        rows = model.generate(**batch, max_new_tokens=max_new_tokens)[:, batch["input_ids"].shape[1] :].tolist()
    completions = []
    for row in rows:
        end = next((place for place, token in enumerate(row) if token == NIL), None)
        completions.append(Completion(tuple(tokenizer.convert_ids_to_tokens(row[:end])), ended=end is not None))
    return completions
