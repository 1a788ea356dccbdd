"""From a batch as users give it to sequences that end with the end token."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .belief_state_errors import PackingError, PairError, PrefixError
from .belief_state_pairs import Sequences


def real_tokens(input_ids: Tensor, attention_mask: Tensor | None, name: str = "attention_mask") -> Tensor:
    """True at tokens that are not padding, [batch, length]; refuses a mask of another shape (PairError)."""
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    if attention_mask.shape != input_ids.shape:
        raise PairError(
            f"{name} must be {list(input_ids.shape)}, as the tokens, got {list(attention_mask.shape)}; it is 0 at "
            "padding, else 1."
        )
    return attention_mask.bool()


def numbered(real: Tensor, position_ids: Tensor | None) -> Tensor:
    """The number of each token's sequence in its row, [batch, length]; -1 at padding.

    A sequence begins where a position does not follow that of the token before, as in transformers' own packed rows.

    Args:
        real: True at tokens that are not padding, [batch, length].
        position_ids: [batch, length], or None for one sequence a row.

    Raises:
        PackingError: positions of several sequences in a row that do not begin with 0, or padding within a sequence.
    """
    if position_ids is None:
        return real.long() - 1
    position_ids = position_ids.expand_as(real)
    columns = torch.arange(real.shape[1], device=real.device)
    last = torch.where(real, columns, -1).cummax(1).values
    before = functional.pad(last[:, :-1], (1, 0), value=-1)  # the column of the real token before
    follows = (before >= 0) & (position_ids == position_ids.gather(1, before.clamp(min=0)) + 1)
    begins = real & ~follows
    sequence = torch.where(real, begins.cumsum(1) - 1, -1)
    if bool((begins.sum(1) > 1).any()):
        packed = (begins.sum(1) > 1)[:, None]
        if bool((packed & begins & (position_ids != 0)).any()):
            raise PackingError(
                "position_ids jump within a row. A row of one sequence has positions that rise by 1; in a row of "
                "several, each sequence has positions from 0."
            )
        if bool((packed & real & ~begins & (before != columns - 1)).any()):
            raise PackingError(
                "A packed row has padding within a sequence; put padding between sequences, or at the row's ends."
            )
    return sequence


def sequences_of(
    input_ids: Tensor,
    attention_mask: Tensor | None,
    labels: Tensor | None,
    end_token: int,
    position_ids: Tensor | None = None,
    trains_end: bool = False,
) -> tuple[Sequences, Tensor | None]:
    """The sequences of the rows, each with the end token behind it.

    A sequence that does not end with it gets it in a further column, so every suffix is read from its end, and the
    empty suffix is the end token alone. The first token of a sequence follows no prefix and never counts as trained.

    Args:
        input_ids: [batch, length].
        attention_mask: 0 at padding, [batch, length], on either side; None if there is none.
        labels: -100 at tokens that are not trained, else the tokens, [batch, length].
        end_token: the id of the end token.
        position_ids: [batch, length]; a sequence begins where they begin anew. None for one sequence a row.
        trains_end: whether an added end token counts as trained if the token before it does.

    Returns:
        The sequences, [batch, new length], and the column of the batch that each of theirs was, [batch, new length];
        None if it is the same. Columns of added end tokens and of padding have any column there.

    Raises:
        PackingError: as in [`numbered`], and padding within a sequence.
        PairError: labels or a mask that do not fit.
        PrefixError: a row of padding alone.
    """
    length = input_ids.shape[1]
    real = real_tokens(input_ids, attention_mask)
    if labels is not None and labels.shape != input_ids.shape:
        raise PairError(f"labels must be {list(input_ids.shape)}, as input_ids, got {list(labels.shape)}.")
    if labels is not None and bool((real & (labels != -100) & (labels != input_ids)).any()):
        raise PairError(
            "labels must be the tokens of input_ids, or -100 at tokens that are not trained: a pair's labels are "
            "tokens of the sequence itself. Do not shift them."
        )
    if not bool(real.any(1).all()):
        raise PrefixError("A row has no token: its attention_mask is 0 everywhere, or it is empty; leave it out.")
    sequence = numbered(real, position_ids)
    columns = torch.arange(length, device=input_ids.device)
    later = torch.where(real, columns, length).flip(1).cummin(1).values.flip(1)
    after = functional.pad(later[:, 1:], (0, 1), value=length)  # the column of the next real token
    ends = real & (functional.pad(sequence, (0, 1), value=-1).gather(1, after) != sequence)
    if bool((real & ~ends & (after != columns + 1)).any()):  # gaps are counted in columns
        raise PackingError("A row has padding within a sequence; put padding between sequences, or at the row's ends.")
    trained = real & ~_first_of_each(sequence)
    if labels is not None:
        trained = trained & (labels != -100)
    lacks = ends & (input_ids != end_token)
    if not bool(lacks.any()):
        return Sequences(input_ids, trained, sequence, end_token), None
    to = columns + lacks.cumsum(1) - lacks.long()
    more = int(lacks.sum(1).max())

    def moved(values: Tensor, otherwise: int, added: Tensor) -> Tensor:
        made = values.new_full((len(values), length + more), otherwise).scatter(1, to, values)
        row, column = lacks.nonzero().unbind(1)
        return made.index_put((row, to[row, column] + 1), added[row, column])

    sequences = Sequences(
        moved(input_ids, end_token, torch.full_like(input_ids, end_token)),
        moved(trained, False, trained & trains_end),
        moved(sequence, -1, sequence),
        end_token,
    )
    return sequences, moved(columns.expand_as(input_ids), 0, columns.expand_as(input_ids))


def _first_of_each(sequence: Tensor) -> Tensor:
    """True at the first token of every sequence, [batch, length]."""
    before = functional.pad(sequence.cummax(1).values[:, :-1], (1, 0), value=-1)
    return sequence > before


def suffixes_of(suffix_ids: Tensor, suffix_attention_mask: Tensor | None, end_token: int) -> Sequences:
    """The suffixes, each with the end token behind it; a row of padding alone is the empty suffix.

    Args:
        suffix_ids: [batch, length].
        suffix_attention_mask: 0 at padding, [batch, length]; None if there is none.

    Returns:
        [batch, length] or, if a row lacks the end token, [batch, length + 1].
    """
    real = real_tokens(suffix_ids, suffix_attention_mask, "suffix_attention_mask")
    suffix_ids, real = (functional.pad(part, (0, 1)) for part in (suffix_ids, real))
    suffix_ids[:, -1] = end_token
    columns = torch.arange(suffix_ids.shape[1], device=suffix_ids.device)
    last = torch.where(real, columns, -1).amax(1)
    real[:, -1] = (last < 0) | (suffix_ids.gather(1, last.clamp(min=0)[:, None])[:, 0] != end_token)
    if not bool(real[:, -1].any()):
        suffix_ids, real = suffix_ids[:, :-1], real[:, :-1]
    return Sequences(suffix_ids, real, real.long() - 1, end_token)


def reversed_rows(tokens: Tensor, sequence: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    """Every row from its last column to its first, with its mask and its positions from the end of each sequence.

    Args:
        tokens: [batch, length].
        sequence: the number of the sequence in its row, -1 at padding, [batch, length].

    Returns:
        Tokens, [batch, length]; the mask of [`encoder_mask`]; and positions, [batch, length].
    """
    tokens, sequence = tokens.flip(1), sequence.flip(1)
    real = sequence >= 0
    count = real.cumsum(1)
    begins = real & (sequence != functional.pad(sequence[:, :-1], (1, 0), value=-1))
    if not _packed(sequence):
        begins = begins & (count == 1)  # padding within a sequence does not divide it
    positions = count - torch.where(begins, count, 0).cummax(1).values
    return tokens, encoder_mask(sequence), torch.where(real, positions, 0)


def encoder_mask(sequence: Tensor) -> Tensor | None:
    """The attention mask with which an encoder of transformers tells the sequences of each row apart.

    One sequence a row: 0 at padding, [batch, length]. Several: None, for then their positions tell, which begin anew;
    padding with position 0 is a sequence of its own.
    """
    return None if _packed(sequence) else (sequence >= 0).long()


def _packed(sequence: Tensor) -> bool:
    return bool((sequence > 0).any())
