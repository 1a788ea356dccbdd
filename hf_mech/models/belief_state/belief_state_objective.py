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
    rest = [parameter for name, parameter in head.named_parameters() if not name.startswith(("prefix.", "suffix."))]
    wanted = [torch.is_grad_enabled() and part is not None and part.requires_grad for part in (first, second, *rest)]
    return _AllPairs.apply(head, tiles, wanted, first, second, *rest), tiles.tokens


class _AllPairs(torch.autograd.Function):
    """The sum over the blocks. Gradients are computed in the forward pass, a block at a time, and kept."""

    @staticmethod
    def forward(
        ctx: Any,
        head: TextHead,
        tiles: Tiles,
        wanted: list[bool],
        first: Tensor,
        second: Tensor | None,
        *rest: nn.Parameter,
    ) -> Tensor:
        exact = torch.promote_types(first.dtype, torch.float32)
        total = first.new_zeros((), dtype=exact)
        given = (first, second, *rest)
        sums = [torch.zeros_like(part, dtype=exact) if want else None for part, want in zip(given, wanted, strict=True)]
        for block in tiles:
            with torch.set_grad_enabled(any(wanted)):
                # Leaves of the block's own graph: their gradients are small, not as large as the whole batch's states.
                start = first.detach()[block.prefix].requires_grad_(wanted[0])
                end = None if second is None else second.detach()[block.suffix].requires_grad_(wanted[1])
                logits = head.rest(start[:, :, None] if end is None else start[:, :, None] + end[:, None])
            losses, gradients = _cross_entropies(logits, block, exact, any(wanted))
            total += losses
            if any(wanted):
                outputs = [part for part in logits if part is not None]
                inputs = [part for part, want in zip((start, end, *rest), wanted, strict=True) if want]
                found = iter(torch.autograd.grad(outputs, inputs, gradients))
                for k, kept in enumerate(sums):
                    if kept is None:
                        continue
                    if k < 2:
                        kept.index_add_(0, (block.prefix, block.suffix)[k], next(found).to(exact))
                    else:
                        kept.add_(next(found))
        ctx.save_for_backward(*(part for part in sums if part is not None))
        ctx.dtypes = [None if kept is None else part.dtype for part, kept in zip(given, sums, strict=True)]
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        kept = iter(ctx.saved_tensors)
        scaled = (None if dtype is None else (grad * next(kept)).to(dtype) for dtype in ctx.dtypes)
        return (None, None, None, *scaled)


def _cross_entropies(
    logits: tuple[Tensor, Tensor | None], block: Block, exact: torch.dtype, gradients: bool
) -> tuple[Tensor, list[Tensor]]:
    """The weighted sum of a block's losses, and its gradients of the logits."""
    after, before = logits
    heads = [(after, block.nexts)] if before is None else [(after, block.nexts), (before, block.prevs)]
    weights = block.weights.to(exact) / len(heads)
    total = weights.new_zeros(())
    found = []
    for scores, labels in heads:
        size = scores.shape[2]  # of a tile's suffixes; without suffix states, 1 for all of them
        picks = labels if size == 1 else labels[..., None]
        shares = weights if size == 1 else weights[..., None]
        picks, shares = (part.reshape(-1, part.shape[-1]) for part in (picks, shares))
        flat = torch.log_softmax(scores.detach().flatten(0, -2), -1, dtype=exact)
        total = total - (flat.gather(1, picks) * shares).sum()
        if gradients:
            flat.exp_().mul_(shares.sum(1, keepdim=True)).scatter_add_(1, picks, -shares)
            found.append(flat.view_as(scores).to(scores.dtype))
    return total, found
