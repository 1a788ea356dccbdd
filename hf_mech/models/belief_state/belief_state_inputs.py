"""Batches as users give them: the checks, the sequences in their rows, and the models' outputs.

Under `torch.compile` values are not checked, only shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.cache_utils import Cache
from transformers.utils import ModelOutput

from .belief_state_pairs import Sequences
from .configuration_belief_state import BeliefStateError


@dataclass
class BeliefStateModelOutput(ModelOutput):
    """The output of [`BeliefStateModel`].

    Args:
        last_hidden_state (`Tensor` of shape `[batch, length, hidden_size]`): F(x_1:i) after every token i, the belief
            states (Theorem 2).
        suffix_hidden_state (`Tensor` of shape `[batch, suffix length, hidden_size]`, when `suffix_ids` are given):
            B(x_j:T) at every token j of the suffix.
        past_key_values (`Cache`): the forward encoder's.
        hidden_states, attentions: the forward encoder's, as in transformers.
    """

    last_hidden_state: Tensor | None = None
    suffix_hidden_state: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class BeliefStateCausalLMOutput(ModelOutput):
    """The output of [`BeliefStateForCausalLM`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): Eq. 2.
        logits (`Tensor` of shape `[batch, length, vocab_size]`): of the next token after every prefix, given the
            suffix.
        prev_logits (`Tensor` of the same shape, with `suffix_ids` or `output_prev_logits=True`): of the token before
            the suffix.
        past_key_values, hidden_states, attentions: the forward encoder's.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    prev_logits: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


def check_prefixes(
    input_ids: Tensor | None, inputs_embeds: Tensor | None, attention_mask: Any, position_ids: Any, past: int | None
) -> None:
    """Refuses neither or both of the inputs, masks and positions that do not fit them, and rows without any token.

    Args:
        past: the number of tokens read before these; None if it is known to the device only.
    """
    if (input_ids is None) == (inputs_embeds is None):
        raise BeliefStateError("Give either input_ids or inputs_embeds, the tokens of the prefix.")
    given = input_ids if inputs_embeds is None else inputs_embeds
    assert given is not None
    wanted = 2 if inputs_embeds is None else 3
    if given.dim() != wanted:
        raise BeliefStateError(
            f"input_ids must be [batch, length] and inputs_embeds [batch, length, hidden], got {list(given.shape)}."
        )
    if given.shape[1] == 0:
        raise BeliefStateError(
            "The prefix is empty: input_ids has no column. Begin with bos_token_id, or with the first token of a text."
        )
    batch, columns = given.shape[:2]
    if isinstance(position_ids, Tensor) and (
        position_ids.is_floating_point() or position_ids.shape not in ((columns,), (1, columns), (batch, columns))
    ):
        raise BeliefStateError(
            f"position_ids must be whole numbers, [{batch}, {columns}] as the tokens, got "
            f"{list(position_ids.shape)} of {position_ids.dtype}."
        )
    if isinstance(attention_mask, Tensor) and attention_mask.dim() not in (2, 4):
        raise BeliefStateError(
            f"attention_mask must be [batch, length], or four-dimensional, got {list(attention_mask.shape)}."
        )
    if attention_mask is None or past is None or not is_flat(attention_mask):
        return
    if attention_mask.shape != (batch, past + columns):
        raise BeliefStateError(
            f"attention_mask must be {[batch, past + columns]}, a number for each token, those of the cache included, "
            f"got {list(attention_mask.shape)}."
        )
    if past > 0 or torch.compiler.is_compiling():
        return
    if not bool(((attention_mask == 0) | (attention_mask == 1)).all()):
        raise BeliefStateError(
            f"attention_mask must be 0 at padding, else 1, got numbers from {attention_mask.min()} to "
            f"{attention_mask.max()}. For several sequences in a row give position_ids that begin anew."
        )
    if not bool(attention_mask.any(1).all()):
        raise BeliefStateError(
            "A row has an empty prefix: its attention_mask is 0 everywhere. Leave it out, or begin it with "
            "bos_token_id."
        )


def check_ids(ids: Tensor, vocabulary: int | None, name: str) -> None:
    """Refuses tokens outside the vocabulary; a lookup on a GPU would end the process."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise BeliefStateError(f"{name} must be whole numbers, torch.int64 or torch.int32, got {ids.dtype}.")
    if vocabulary is None or torch.compiler.is_compiling() or not ids.numel():
        return
    least, most = (int(bound) for bound in ids.aminmax())
    if least < 0 or most >= vocabulary:
        raise BeliefStateError(
            f"{name} must be tokens from 0 to {vocabulary - 1}, got {least if least < 0 else most}; use the tokenizer "
            "that the model was trained with, or call model.resize_token_embeddings(len(tokenizer))."
        )


def check_labels(labels: Tensor | None, num_items_in_batch: Any) -> None:
    """Refuses a trained batch without its labels: `Trainer` keeps them for a loss of its own on `logits`.

    Such a loss trains the next token after the empty suffix alone.
    """
    if labels is None and num_items_in_batch is not None:
        raise BeliefStateError(
            "num_items_in_batch is given without labels, so the loss over all pairs cannot be computed. Trainer keeps "
            "the labels with label_smoothing_factor or compute_loss_func, whose losses see the next token alone; leave "
            "both out. For a loss of your own, override Trainer.compute_loss."
        )


def check_suffixes(suffix_ids: Tensor | None, mask: Tensor | None, batch: int, reads: bool) -> None:
    """Refuses suffixes of another number of rows, a mask without suffixes, and suffixes that no encoder reads.

    Args:
        reads: the model has a backward encoder.
    """
    if suffix_ids is None:
        if mask is not None:
            raise BeliefStateError("suffix_attention_mask is given without suffix_ids; give both, or none.")
        return
    check_backward(reads, "suffix_ids")
    if suffix_ids.dim() != 2 or suffix_ids.shape[0] != batch:
        raise BeliefStateError(
            f"suffix_ids must be [batch, suffix length] with {batch} rows, one for each prefix, got "
            f"{list(suffix_ids.shape)}; repeat a common suffix with suffix_ids.expand({batch}, -1)."
        )


def check_suffix(config: Any, suffix_ids: Tensor, mask: Tensor | None, limit: int | None) -> None:
    """Refuses suffixes that cannot be read.

    Args:
        limit: the number of positions that the backward encoder has learned; None without a limit.

    Raises:
        BeliefStateError: see [`BeliefStateGeneration.suffix_state`].
    """
    check_backward(config.use_backward, "suffix_ids")
    if suffix_ids.dim() != 2:
        raise BeliefStateError(f"suffix_ids must be [batch, suffix length], got {list(suffix_ids.shape)}.")
    if mask is not None and mask.shape != suffix_ids.shape:
        raise BeliefStateError(f"suffix_attention_mask must be {list(suffix_ids.shape)}, got {list(mask.shape)}.")
    if suffix_ids.shape[1] == 0 or (mask is not None and not bool(mask.bool().any(1).all())):
        raise BeliefStateError("A suffix has no token; for the empty suffix give none, or the end token alone.")
    longest = suffix_ids.shape[1] if mask is None else int(mask.bool().sum(1).max())
    if limit is not None and longest + 1 > limit:  # with its end token
        raise BeliefStateError(
            f"The backward encoder reads {limit} tokens with the end token, got {longest}; shorten it."
        )


def check_suffix_state(state: Tensor | None, batch: int, size: int, reads: bool, other: bool) -> None:
    """Refuses states that do not fit the prefixes, or beside what they would replace.

    Args:
        size: of a state.
        reads: the model has a backward encoder.
        other: there are suffix_ids or labels too.
    """
    if state is None:
        return
    check_backward(reads, "suffix_state")
    if other:
        raise BeliefStateError("suffix_state stands in place of suffix_ids, and labels need none; give one of them.")
    if state.shape not in ((1, 1, size), (batch, 1, size)):
        raise BeliefStateError(
            f"suffix_state must be [{batch}, 1, {size}] or [1, 1, {size}], as model.suffix_state(suffix_ids) gives it, "
            f"got {list(state.shape)}."
        )


def check_backward(reads: bool, name: str) -> None:
    """Refuses an argument that only a backward encoder reads."""
    if not reads:
        raise BeliefStateError(
            f"This model has no backward encoder (use_backward=False), so no suffix can condition it; leave {name} "
            "out, or load a model with one."
        )


def check_length(positions: Tensor | None, columns: int, limit: int | None, text: str) -> None:
    """Refuses positions that an encoder has not learned.

    Args:
        positions: of the tokens, from 0; None if they count the columns.
        columns: all that the encoder has read with these.
        limit: the number of its learned positions; None without any.
        text: "prefix" or "suffix".
    """
    if limit is None or torch.compiler.is_compiling():
        return
    last = columns - 1
    if positions is not None:
        least, last = (int(bound) for bound in positions.aminmax()) if positions.numel() else (0, 0)
        if least < 0:
            raise BeliefStateError(f"position_ids must be 0 or more, got {least}.")
    if last >= limit:
        whole = "With labels, the whole text and its end token are a suffix. " if text == "suffix" else ""
        raise BeliefStateError(
            f"A {text} has {last + 1} positions, but its encoder has learned {limit}. Each encoder counts from its own "
            f"end of the text, so prefix and suffix may have {limit} each, the end token included. {whole}Cut the "
            f"{text}, or use an encoder with rotary positions."
        )


def check_packing(config: Any, batch: int, use_cache: bool | None = None, suffix_ids: Tensor | None = None) -> None:
    """Refuses several sequences in a row with a cache, with suffixes, or with attention that takes one row only.

    Args:
        config: the encoder's.
        batch: the number of rows.
    """
    said = "position_ids begin anew within a row, so it holds several sequences"
    if suffix_ids is not None:
        raise BeliefStateError(f"{said}, and suffix_ids are one a row; give one sequence a row.")
    if use_cache:
        raise BeliefStateError(f"{said}, and a cache holds one; use_cache=False.")
    if batch > 1 and "flash" in (config._attn_implementation or ""):
        raise BeliefStateError(
            f"{said}. With attn_implementation={config._attn_implementation!r} that needs a batch of one row; put all "
            "sequences into it, or use 'sdpa'."
        )


def is_flat(attention_mask: Any) -> bool:
    """Whether a mask is [batch, length] or None; for a static cache, transformers makes masks of four dimensions."""
    return attention_mask is None or (isinstance(attention_mask, Tensor) and attention_mask.dim() == 2)


def seen(past_key_values: Cache | None) -> int | None:
    """The number of tokens that a cache holds; None if it is known to the device only."""
    if past_key_values is None:
        return 0
    length = past_key_values.get_seq_length()
    return length if isinstance(length, int) else None


def real_tokens(input_ids: Tensor, attention_mask: Tensor | None, name: str = "attention_mask") -> Tensor:
    """True at tokens that are not padding, [batch, length]; refuses a mask of another shape."""
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    if attention_mask.shape != input_ids.shape:
        raise BeliefStateError(
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
        BeliefStateError: positions of several sequences in a row that do not begin with 0, or padding within one.
    """
    if position_ids is None:
        return real.long() - 1
    position_ids = position_ids.expand_as(real)
    columns = torch.arange(real.shape[1], device=real.device)
    last = largest_so_far(torch.where(real, columns, -1))
    before = functional.pad(last[:, :-1], (1, 0), value=-1)  # the column of the real token before
    follows = (before >= 0) & (position_ids == position_ids.gather(1, before.clamp(min=0)) + 1)
    begins = real & ~follows
    sequence = torch.where(real, begins.cumsum(1) - 1, -1)
    if bool((begins.sum(1) > 1).any()):
        packed = (begins.sum(1) > 1)[:, None]
        if bool((packed & begins & (position_ids != 0)).any()):
            raise BeliefStateError(
                "position_ids jump within a row. A row of one sequence has positions that rise by 1; in a row of "
                "several, each sequence has positions from 0."
            )
        if bool((packed & real & ~begins & (before != columns - 1)).any()):
            raise BeliefStateError(
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
        BeliefStateError: as in [`numbered`]; padding within a sequence, or a row of it alone; labels or a mask that do
            not fit.
    """
    length = input_ids.shape[1]
    real = real_tokens(input_ids, attention_mask)
    if labels is not None and labels.shape != input_ids.shape:
        raise BeliefStateError(f"labels must be {list(input_ids.shape)}, as input_ids, got {list(labels.shape)}.")
    if labels is not None and bool((real & (labels != -100) & (labels != input_ids)).any()):
        raise BeliefStateError(
            "labels must be the tokens of input_ids, or -100 at tokens that are not trained: a pair's labels are "
            "tokens of the sequence itself. Do not shift them."
        )
    if not bool(real.any(1).all()):
        raise BeliefStateError("A row has no token: its attention_mask is 0 everywhere, or it is empty; leave it out.")
    sequence = numbered(real, position_ids)
    columns = torch.arange(length, device=input_ids.device)
    later = -largest_so_far(-torch.where(real, columns, length).flip(1)).flip(1)
    after = functional.pad(later[:, 1:], (0, 1), value=length)  # the column of the next real token
    ends = real & (functional.pad(sequence, (0, 1), value=-1).gather(1, after) != sequence)
    if bool((real & ~ends & (after != columns + 1)).any()):  # gaps are counted in columns
        raise BeliefStateError(
            "A row has padding within a sequence; put padding between sequences, or at the row's ends."
        )
    trained = real & ~_first_of_each(sequence)
    if labels is not None:
        trained = trained & (labels != -100)
    lacks = ends & (input_ids != end_token)
    if not bool(lacks.any()):
        return Sequences(input_ids, trained, sequence, end_token), None
    to = columns + lacks.cumsum(1) - lacks.long()
    more = int(lacks.sum(1).max())

    def moved(values: Tensor, otherwise: int, added: Tensor) -> Tensor:
        made = values.new_full((values.shape[0], length + more), otherwise).scatter(1, to, values)
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
    before = functional.pad(largest_so_far(sequence)[:, :-1], (1, 0), value=-1)
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
    if not torch.compiler.is_exporting() and not bool(real[:, -1].any()):  # an exported model keeps the column
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
    positions = count - largest_so_far(torch.where(begins, count, 0))
    return tokens, encoder_mask(sequence), torch.where(real, positions, 0)


def encoder_mask(sequence: Tensor) -> Tensor | None:
    """The attention mask with which an encoder of transformers tells the sequences of each row apart.

    One sequence a row: 0 at padding, [batch, length]. Several: None, for then their positions tell, which begin anew;
    padding with position 0 is a sequence of its own.
    """
    return None if _packed(sequence) else (sequence >= 0).long()


def _packed(sequence: Tensor) -> bool:
    return not torch.compiler.is_exporting() and bool((sequence > 0).any())  # an exported model reads one a row


def largest_so_far(values: Tensor) -> Tensor:
    """The largest of each column and those before it, [batch, length]; ONNX has no cummax."""
    if not torch.compiler.is_exporting():
        return values.cummax(1).values
    columns = torch.arange(values.shape[1], device=values.device)
    lowest = torch.iinfo(values.dtype).min
    return torch.where(columns <= columns[:, None], values[:, None], lowest).amax(2)
