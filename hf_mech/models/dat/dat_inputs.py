"""From token ids to cells: the words of the prompt, the words after it, and the tokens without a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .dat_errors import DATInputError, DATLengthError
from .dat_values import END_OF_PROMPT, NIL, UNSET


@dataclass(frozen=True)
class Words:
    """The words of one part of every row, moved together to the left.

    Args:
        symbols: [batch, most words].
        exists: True where there is a word, [batch, most words].
        rank: for every token its index among the words, or -1, [batch, length].
    """

    symbols: Tensor
    exists: Tensor
    rank: Tensor


def check_ids(ids: Tensor, size: int) -> None:
    """Refuses ids that are not values.

    Raises:
        DATInputError: not [batch, length] of integers, or out of range.
    """
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise DATInputError(f"input_ids must be integers [batch, length], got {ids.dtype} {tuple(ids.shape)}.")
    if ids.numel() and (int(ids.max()) >= size or int(ids.min()) < 0):
        raise DATInputError(
            f"input_ids must lie between 0 and {size - 1}, got {int(ids.min())} to {int(ids.max())}; use the "
            "checkpoint's own tokenizer, or compile the program with more num_open_values."
        )


def read_mask(mask: Tensor | None, ids: Tensor) -> Tensor:
    """True at tokens that are not padding, [batch, length]: the last columns of the mask; all True without a mask.

    Raises:
        DATInputError: the mask is not [batch, at least length].
    """
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    if mask.dim() != 2 or len(mask) != len(ids) or mask.shape[1] < ids.shape[1]:
        raise DATInputError(
            f"attention_mask must have a row for each of input_ids' and at least as many columns, got "
            f"{tuple(mask.shape)} for {tuple(ids.shape)}."
        )
    return mask[:, mask.shape[1] - ids.shape[1] :].bool()


def collect(ids: Tensor, chosen: Tensor) -> Words:
    """Moves the chosen tokens of every row to the left, in their order."""
    if len(ids) and bool(chosen.all()):
        return Words(ids, chosen, torch.arange(ids.shape[1], device=ids.device).expand_as(ids))
    count = chosen.sum(1)
    most = int(count.max()) if len(ids) else 0
    rank = torch.where(chosen, chosen.cumsum(1) - 1, -1)
    if not most:
        return Words(ids[:, :0], chosen[:, :0], rank)
    order = (~chosen).int().argsort(dim=1, stable=True)[:, :most]
    exists = torch.arange(most, device=ids.device) < count[:, None]
    return Words(ids.gather(1, order) * exists, exists, rank)


def split(ids: Tensor, mask: Tensor) -> tuple[Words, Words, Tensor]:
    """The prompts, the words after them, and the places of their ends, a boolean [batch, length].

    Padding makes no cell, and neither does the mark of the end.

    Raises:
        DATInputError: a row with no end of the prompt, with two, or with no word before it.
    """
    ends = mask & (ids == END_OF_PROMPT)
    words = mask & (ids != END_OF_PROMPT) & (ids != NIL)
    odd = (ends.sum(1) != 1).nonzero().flatten().tolist()
    if odd:
        raise DATInputError(
            f"A prompt ends with the token {END_OF_PROMPT}, once; rows {odd[:8]} have "
            f"{ends.sum(1)[odd[:8]].tolist()} of them. The tokenizer adds it unless add_special_tokens=False."
        )
    behind = ends.long().cumsum(1) > 0
    prompt = words & ~behind
    empty = (~prompt.any(1)).nonzero().flatten().tolist()
    if empty:
        raise DATInputError(f"A prompt needs a word; rows {empty[:8]} have none.")
    return collect(ids, prompt), collect(ids, words & behind), ends


def read_registers(
    values: Tensor | None, ids: Tensor, prompt: Words, registers: Sequence[str], allowed: Sequence[int], size: int
) -> dict[int, Tensor]:
    """The first values of registers that the prompt sets, by cell.

    Args:
        values: [batch, columns, registers], `UNSET` where the program decides; those of the first columns of `ids`.
        ids: [batch, length].
        prompt: the prompts' words.
        registers: the names of all registers.
        allowed: those that a prompt may set.
        size: the number of values.

    Returns:
        register -> [batch, most words], for the registers that any cell sets.

    Raises:
        DATInputError: another shape, a value out of range, or set at a token that is no word of a prompt or in a
            register that the program does not let a prompt set.
    """
    if values is None:
        return {}
    shape = (len(ids), ids.shape[1], len(registers))
    fits = values.dim() == 3 and (len(values), values.shape[2]) == (shape[0], shape[2]) and values.shape[1] <= shape[1]
    if not fits or values.dtype not in (torch.int64, torch.int32):
        raise DATInputError(
            f"register_values must be integers {shape}, or of fewer columns, got {values.dtype} {tuple(values.shape)}."
        )
    own = values != UNSET
    if own.any() and (int(values[own].max()) >= size or int(values[own].min()) < 0):
        raise DATInputError(
            f"register_values must lie between 0 and {size - 1}, or be {UNSET}, got {int(values[own].min())} to "
            f"{int(values[own].max())}."
        )
    asked = own.flatten(0, 1).any(0).nonzero().flatten().tolist()
    if wrong := [registers[index] for index in asked if index not in allowed]:
        names = ", ".join(registers[index] for index in allowed) or "none"
        raise DATInputError(
            f"A prompt of this program may set the registers {names}, got values of {', '.join(wrong)}; name them in "
            "the program's `prompt: [...]`."
        )
    rank = prompt.rank[:, : values.shape[1]]
    if bool((own.any(2) & (rank < 0)).any()):
        raise DATInputError(
            "register_values are set at a token that is no word of the prompt; leave them at -100 there."
        )
    found = {}
    for index in asked:
        cells = torch.full((len(ids), prompt.symbols.shape[1] + 1), UNSET, dtype=torch.int64, device=ids.device)
        places = torch.where(rank >= 0, rank, prompt.symbols.shape[1])  # what is no word goes behind, and away
        found[index] = cells.scatter(1, places, values[:, :, index].long())[:, :-1]
    return found


def check_length(longest: int, limit: int) -> None:
    """Refuses more cells than there are positions.

    Raises:
        DATLengthError: says the limit and how to raise it.
    """
    if longest > limit:
        raise DATLengthError(
            f"A prompt and what follows it may have {limit} words, got {longest}. Compile the program with a larger "
            "max_position_embeddings, or ask for fewer max_new_tokens."
        )
