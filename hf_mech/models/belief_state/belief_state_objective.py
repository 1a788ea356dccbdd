"""The objective of the Belief State Transformer: Eq. 2 over all pairs of a prefix and a suffix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .belief_state_errors import PairError
from .belief_state_head import TextHead
from .belief_state_pairs import Sequences
from .belief_state_tiles import Block, Tiles


def belief_state_loss_reference(
    prefixes: Tensor, suffixes: Tensor | None, head: TextHead, sequences: Sequences, least_gap: int = 2
) -> tuple[Tensor, Tensor]:
    """Eq. 2 pair by pair.

    Args:
        prefixes: F(x_1:i) at every token i, [batch, length, size].
        suffixes: B(x_j:T) at every token j, [batch, length, size].
        head: T_n and T_p.
        sequences: tokens and labels.
        least_gap: 2, or 1 for pairs that meet, which predict the end token.

    Returns:
        The weighted sum of the pairs' losses, each the mean of the two cross-entropies, and the number of trained
        tokens of sequences with a pair. Their quotient is the loss.
    """
    total = prefixes.new_zeros(())
    weights = sequences.weights(least_gap)
    for row in range(len(prefixes)):
        for gap in sequences.gaps(least_gap):
            counts, nexts, prevs = (part[row] for part in sequences.pairs(gap))
            for i in counts.nonzero()[:, 0].tolist():
                suffix = None if suffixes is None else suffixes[row, i + gap]
                after, before = head(prefixes[row, i], suffix)
                losses = [functional.cross_entropy(after, nexts[i])]
                if before is not None:
                    losses.append(functional.cross_entropy(before, prevs[i]))
                total = total + weights[row, i].to(total.dtype) * torch.stack(losses).mean()
    return total, (sequences.trained & (weights > 0)).sum()


@torch.compiler.disable
def belief_state_loss(
    prefixes: Tensor,
    suffixes: Tensor | None,
    head: TextHead,
    sequences: Sequences,
    least_gap: int = 2,
    block_size: int = 4096,
    pairs_per_sequence: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The same, block by block: never are the logits of more than `block_size` pairs in memory.

    The gradients of the head and of the states are summed over the blocks at once, so one backward pass through each
    encoder follows (Section 2.1). It cannot be differentiated twice.

    Args:
        pairs_per_sequence: the number of random pairs of each sequence whose loss stands for that of all its pairs;
            the expectation is the same. None for all pairs.

    Raises:
        PairError: no pair counts.
    """
    tiles = Tiles(sequences, least_gap, block_size, pairs_per_sequence)
    if tiles.empty:
        raise PairError(
            "No prefix and suffix to train on: every sequence needs two trained tokens (labels other than -100) "
            "besides its first token; give longer sequences, or fewer labels of -100."
        )
    first = head.prefix(prefixes.flatten(0, 1)[tiles.prefix])  # [strips, side, width]
    second = None
    if head.suffix is not None and suffixes is not None:
        second = head.suffix(suffixes.flatten(0, 1)[tiles.suffix])
    last = head.last()
    tied = ("prefix.", "suffix.") if last is None else ("prefix.", "suffix.", "next.", "prev.")
    rest = [parameter for name, parameter in head.named_parameters() if not name.startswith(tied)]
    given = (first, second, *(last or (None, None)), *rest)
    wanted = [torch.is_grad_enabled() and part is not None and part.requires_grad for part in given]
    return _AllPairs.apply(head, tiles, wanted, *given), tiles.tokens


class _AllPairs(torch.autograd.Function):
    """The sum over the blocks. Gradients are computed in the forward pass, a block at a time, and kept."""

    @staticmethod
    def forward(ctx: Any, head: TextHead, tiles: Tiles, wanted: list[bool], *given: Tensor | None) -> Tensor:
        first, second, weight, bias, *rest = given
        assert first is not None
        exact = torch.promote_types(first.dtype, torch.float32)
        unit = tiles.largest.to(exact)  # the largest weight counts as 1, so that half precision holds the gradients
        total = unit.new_zeros(())
        # The leaves of each block's graph are its own strips of states, so its gradients are no larger than they.
        fixed = [
            None if part is None else part.detach().requires_grad_(want)
            for part, want in zip((weight, bias), wanted[2:4], strict=True)
        ]
        sums = [
            torch.zeros_like(part, dtype=exact) if want and part is not None else None
            for part, want in zip(given, wanted, strict=True)
        ]
        for block in tiles:
            with torch.set_grad_enabled(any(wanted)):
                start = first.detach()[block.prefix].requires_grad_(wanted[0])
                end = None if second is None else second.detach()[block.suffix].requires_grad_(wanted[1])
                states = head.tied(start[:, :, None] if end is None else start[:, :, None] + end[:, None])
                logits = _logits(head, states, *fixed)
            losses, gradients = _cross_entropies(logits, block, unit, any(wanted))
            total += losses
            if not any(wanted):
                continue
            inputs = [part for part, want in zip((start, end, *fixed, *rest), wanted, strict=True) if want]
            found = iter(torch.autograd.grad(logits, inputs, gradients, allow_unused=True, materialize_grads=True))
            for kept, strips in zip(sums, (block.prefix, block.suffix, *[None] * (len(sums) - 2)), strict=True):
                if kept is not None and strips is not None:
                    kept.index_add_(0, strips, next(found).to(exact))
                elif kept is not None:
                    kept.add_(next(found))
        ctx.save_for_backward(unit, *(part for part in sums if part is not None))
        ctx.dtypes = [
            None if kept is None or part is None else part.dtype for part, kept in zip(given, sums, strict=True)
        ]
        return total * unit

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        unit, *sums = ctx.saved_tensors
        kept = iter(sums)
        scaled = (None if dtype is None else (grad * unit * next(kept)).to(dtype) for dtype in ctx.dtypes)
        return (None, None, None, *scaled)


def _logits(head: TextHead, states: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    """Logits [tiles, side, side, heads, vocabulary], of both heads in one tensor if their last layers are one."""
    if weight is not None:
        return [functional.linear(states, weight, bias).unflatten(-1, (2, -1))]
    heads = [head.next] if head.prev is None else [head.next, head.prev]
    return [layer(states)[..., None, :] for layer in heads]


def _cross_entropies(logits: list[Tensor], block: Block, unit: Tensor, gradients: bool) -> tuple[Tensor, list[Tensor]]:
    """The weighted sum of a block's losses in units, and its gradients of the logits."""
    weights = block.weights.to(unit.dtype) / unit / sum(part.shape[3] for part in logits)
    labels = [block.nexts, block.prevs]
    total = torch.zeros_like(unit)
    found = []
    for scores in logits:
        taken, labels = labels[: scores.shape[3]], labels[scores.shape[3] :]
        picks = torch.stack(taken, -1)  # [tiles, side, side, heads]
        shares = weights[..., None].expand_as(picks)
        if scores.shape[2] == 1:  # without suffix states, all suffixes of a tile share their logits
            picks, shares = picks.transpose(2, 3), shares.transpose(2, 3)
        else:
            picks, shares = picks[..., None], shares[..., None]
        picks, shares = (part.reshape(-1, part.shape[-1]) for part in (picks, shares))
        flat = torch.log_softmax(scores.detach().flatten(0, -2), -1, dtype=unit.dtype)
        total -= (flat.gather(1, picks) * shares).sum()
        if gradients:
            flat.exp_().mul_(shares.sum(1, keepdim=True)).scatter_add_(1, picks, -shares)
            found.append(flat.view_as(scores).to(scores.dtype))
    return total, found
