"""The objective of the Belief State Transformer: Eq. 2 over all pairs of a prefix and a suffix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .belief_state_errors import PairError
from .belief_state_head import TextHead
from .belief_state_pairs import Sequences


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
    return total, trained_tokens(sequences, weights)


def belief_state_loss(
    prefixes: Tensor,
    suffixes: Tensor | None,
    head: TextHead,
    sequences: Sequences,
    least_gap: int = 2,
    block_size: int = 4096,
) -> tuple[Tensor, Tensor]:
    """The same, block by block: never are the logits of more than `block_size` pairs in memory.

    The gradients of the head and of the states are summed over the blocks at once, so one backward pass through each
    encoder follows (Section 2.1). It cannot be differentiated twice.

    Raises:
        PairError: no pair counts.
    """
    weights = sequences.weights(least_gap)
    if not bool(weights.any()):
        raise PairError(
            "No prefix and suffix to train on: every sequence needs two trained tokens (labels other than -100) "
            "besides its first token; give longer sequences, or fewer labels of -100."
        )
    first = head.prefix(prefixes)
    second = None if head.suffix is None or suffixes is None else head.suffix(suffixes)
    rest = [parameter for name, parameter in head.named_parameters() if not name.startswith(("prefix.", "suffix."))]
    blocks = _Blocks(head, sequences, weights, least_gap, block_size)
    return _AllPairs.apply(blocks, first, second, *rest), trained_tokens(sequences, weights)


def trained_tokens(sequences: Sequences, weights: Tensor) -> Tensor:
    """The number of trained tokens of sequences that have a pair."""
    return (sequences.trained & (weights > 0)).sum()


class _Blocks:
    """The pairs of a batch in blocks: slices of the states of equal gap, one after the other."""

    def __init__(self, head: TextHead, sequences: Sequences, weights: Tensor, least_gap: int, size: int) -> None:
        self.head, self.sequences, self.weights, self.size = head, sequences, weights, size
        self.least_gap = least_gap

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """Yields row, prefix and suffix of at most `size` pairs, their labels and weights, each [pairs]."""
        waiting: list[tuple[Tensor, ...]] = []
        count = 0
        for gap in self.sequences.gaps(self.least_gap):
            counts, nexts, prevs = self.sequences.pairs(gap)
            row, i = counts.nonzero().unbind(1)
            parts = (row, i, i + gap, nexts[row, i], prevs[row, i], self.weights[row, i])
            for begin in range(0, len(row), self.size):
                waiting.append(tuple(part[begin : begin + self.size] for part in parts))
                count += len(waiting[-1][0])
                if count >= self.size:
                    joined = [torch.cat(column) for column in zip(*waiting, strict=True)]
                    yield tuple(part[: self.size] for part in joined)
                    waiting = [tuple(part[self.size :] for part in joined)]
                    count -= self.size
        if count:
            yield tuple(torch.cat(column) for column in zip(*waiting, strict=True))

    def loss(self, first: Tensor, second: Tensor | None, block: tuple[Tensor, ...]) -> Tensor:
        """The weighted sum of a block's losses."""
        row, i, j, nexts, prevs, weights = block
        sums = first[row, i] if second is None else first[row, i] + second[row, j]
        after, before = self.head.rest(sums)
        losses = functional.cross_entropy(after.float() if after.element_size() < 4 else after, nexts, reduction="none")
        if before is not None:
            exact = before.float() if before.element_size() < 4 else before
            losses = (losses + functional.cross_entropy(exact, prevs, reduction="none")) / 2
        return (losses * weights.to(losses.dtype)).sum()


class _AllPairs(torch.autograd.Function):
    """The sum over the blocks. Gradients are computed in the forward pass, a block at a time, and kept."""

    @staticmethod
    def forward(ctx: Any, blocks: _Blocks, first: Tensor, second: Tensor | None, *rest: nn.Parameter) -> Tensor:
        given = [first, second, *rest]
        wanted = [part is not None and part.requires_grad for part in given]
        start = first.detach().requires_grad_(True)
        end = None if second is None else second.detach().requires_grad_(True)
        total = None
        gradients: list[Tensor | None] = [None] * len(given)
        for block in blocks:
            with torch.set_grad_enabled(any(wanted)):
                loss = blocks.loss(start, end, block)
            total = loss.detach() if total is None else total + loss.detach()
            if any(wanted):
                inputs = {k: part for k, part in enumerate([start, end, *rest]) if part is not None and wanted[k]}
                for k, found in zip(inputs, torch.autograd.grad(loss, list(inputs.values())), strict=True):
                    kept = gradients[k]
                    gradients[k] = found if kept is None else kept.add_(found)
        assert total is not None
        ctx.save_for_backward(*(gradient for gradient in gradients if gradient is not None))
        ctx.which = [gradient is not None for gradient in gradients]
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        kept = iter(ctx.saved_tensors)
        return (None, *(grad * next(kept) if which else None for which in ctx.which))
