"""From a batch as users give it to sequences that end with the end token."""

from __future__ import annotations

import torch
from torch import Tensor

from .belief_state_errors import PairError
from .belief_state_pairs import Sequences


def sequences_of(
    input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor | None, end_token: int
) -> tuple[Sequences, Tensor]:
    """One sequence a row, with the end token behind it.

    A row that does not end with it gets it in a further column, so every suffix is read from its end, and the empty
    suffix is the end token alone.

    Args:
        input_ids: [batch, length].
        attention_mask: 0 at padding, [batch, length], on either side; None if there is none.
        labels: -100 at tokens that are not trained, else the tokens, [batch, length].
        end_token: the id of the end token.

    Returns:
        The sequences, [batch, length] or [batch, length + 1], and the column of each row's end token, [batch].

    Raises:
        PairError: labels that do not fit, or a row of padding alone.
    """
    batch, length = input_ids.shape
    real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    if real.shape != input_ids.shape:
        raise PairError(f"attention_mask must be {list(input_ids.shape)}, as input_ids, got {list(real.shape)}.")
    if labels is not None and labels.shape != input_ids.shape:
        raise PairError(f"labels must be {list(input_ids.shape)}, as input_ids, got {list(labels.shape)}.")
    if not bool(real.any(1).all()):
        raise PairError("A row is padding alone: its attention_mask is 0 everywhere; leave it out.")
    trained = real if labels is None else real & (labels != -100)
    columns = torch.arange(length, device=input_ids.device)
    last = (columns * real).amax(1)
    rows = torch.arange(batch, device=input_ids.device)
    ended = input_ids[rows, last] == end_token
    if bool(ended.all()):
        return Sequences(input_ids, trained, real.long() - 1, end_token), last
    input_ids, real, trained = (torch.nn.functional.pad(part, (0, 1)) for part in (input_ids, real, trained))
    end = torch.where(ended, last, last + 1)
    trained = trained.index_put((rows, end), trained[rows, last])
    return Sequences(
        input_ids.index_put((rows, end), input_ids.new_tensor(end_token)),
        trained,
        real.index_put((rows, end), real.new_tensor(True)).long() - 1,
        end_token,
    ), end
