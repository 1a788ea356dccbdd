"""The text head, and the objective: Eq. 2 over all pairs of a prefix and a suffix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .belief_state_pairs import Block, PairWeights, Sequences, Tiles
from .configuration_belief_state import BeliefStateError

MOST_LOGITS = 2**25  # of a block, whatever its size; with their gradients some 400 MB in float32
ONE_PRODUCT = 8192  # the largest vocabulary whose last layers are joined to one matrix, which is a copy of both


class TextHead(nn.Module):
    """T_n and T_p: an MLP on the two states, tied but for its last layer (Section 2.1, Appendix D.1).

    The first layer acts on both states side by side. It is stored as a part for each state, whose results are added, so
    T prefixes and T suffixes cost 2T products instead of T^2.

    Args:
        size: of a state.
        width: of the hidden layers.
        layers: all linear layers, 2 or more; the paper has 3.
        vocabulary: the number of tokens.
        suffix: False for the head without a backward encoder (Section 3.6).
        prev: False for the head without the previous token (Section 3.6).
    """

    def __init__(
        self, size: int, width: int, layers: int, vocabulary: int, *, suffix: bool = True, prev: bool = True
    ) -> None:
        super().__init__()
        self.prefix = nn.Linear(size, width)
        self.suffix = nn.Linear(size, width, bias=False) if suffix else None
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(layers - 2))
        self.next = nn.Linear(width, vocabulary)
        self.prev = nn.Linear(width, vocabulary) if prev else None

    def forward(self, prefix: Tensor, suffix: Tensor | None, *, previous: bool = True) -> tuple[Tensor, Tensor | None]:
        """Logits of the next token after a prefix and of the token before a suffix.

        Args:
            prefix: F's states, [..., size].
            suffix: B's states, [..., size], that can be broadcast with them; None without a backward encoder.
            previous: False if only the next token is asked for.

        Returns:
            Both [..., vocabulary]; the second is None without `prev` or `previous`.
        """
        first = self.prefix(prefix)
        if self.suffix is not None and suffix is not None:
            first = first + self.suffix(suffix)
        states = self.tied(first)
        return self.next(states), self.prev(states) if self.prev is not None and previous else None

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return self.next.out_features

    def tied(self, first: Tensor) -> Tensor:
        """The layers between the first and the last, from the first one's sums [..., width]."""
        states = first.relu()
        for layer in self.hidden:
            states = layer(states).relu()
        return states

    def last(self) -> tuple[Tensor, Tensor] | None:
        """Weights [2 vocabulary, width] and biases of both last layers as one, for one product instead of two.

        None if there is one layer, if one of them is more than `nn.Linear`, for example an adapter of peft, or if they
        are large.
        """
        if self.prev is None or not (_plain(self.next) and _plain(self.prev)) or self.vocabulary > ONE_PRODUCT:
            return None
        return torch.cat([self.next.weight, self.prev.weight]), torch.cat([self.next.bias, self.prev.bias])


def _plain(layer: nn.Module) -> bool:
    """A call of the layer is `functional.linear` and nothing else."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    return type(layer) is nn.Linear and "forward" not in vars(layer) and not any(hooks)


def belief_state_loss_reference(
    prefixes: Tensor,
    suffixes: Tensor | None,
    head: TextHead,
    sequences: Sequences,
    least_gap: int = 2,
    pair_weights: PairWeights = "sequence",
) -> tuple[Tensor, Tensor]:
    """Eq. 2 pair by pair.

    Args:
        prefixes: F(x_1:i) at every token i, [batch, length, size].
        suffixes: B(x_j:T) at every token j, [batch, length, size].
        head: T_n and T_p.
        sequences: tokens and labels.
        least_gap: 2, or 1 for pairs that meet, which predict the end token.
        pair_weights: how pairs weigh, see [`Sequences.weights`].

    Returns:
        The weighted sum of the pairs' losses, each the mean of the two cross-entropies, and the number of trained
        tokens of sequences with a pair. Their quotient is the loss; see [`Sequences.weights`] for the formula.
    """
    total = prefixes.new_zeros(())
    weights = sequences.weights(least_gap, pair_weights)
    for row in range(len(prefixes)):
        for gap in sequences.gaps(least_gap):
            counts, nexts, prevs = (part[row] for part in sequences.pairs(gap))
            for i in counts.nonzero()[:, 0].tolist():
                suffix = None if suffixes is None else suffixes[row, i + gap]
                after, before = head(prefixes[row, i], suffix)
                losses = [functional.cross_entropy(after, nexts[i])]
                if before is not None:
                    losses.append(functional.cross_entropy(before, prevs[i]))
                total = total + weights[row, i, i + gap].to(total.dtype) * torch.stack(losses).mean()
    used = (weights > 0).any(2).unsqueeze(1) & (sequences.sequence[:, :, None] == sequences.sequence[:, None])
    return total, (sequences.trained & used.any(2)).sum()


@torch.compiler.disable
def belief_state_loss(
    prefixes: Tensor,
    suffixes: Tensor | None,
    head: TextHead,
    sequences: Sequences,
    least_gap: int = 2,
    block_size: int = 4096,
    pairs_per_sequence: int | None = None,
    pair_weights: PairWeights = "sequence",
) -> tuple[Tensor, Tensor]:
    """Eq. 2 block by block: never are the logits of more than `block_size` pairs, or of `MOST_LOGITS`, in memory.

    Arguments and results are those of [`belief_state_loss_reference`], and these besides.

    The gradients of the head and of the states are summed over the blocks at once, so one backward pass through each
    encoder follows (Section 2.1).

    Args:
        pairs_per_sequence: the number of random pairs of each sequence whose loss stands for that of all its pairs;
            the expectation is the same. None for all pairs.

    Raises:
        BeliefStateError: no pair counts; or a second derivative, when it is taken.
    """
    conditioned = head.suffix is not None and suffixes is not None
    block_size = max(1, min(block_size, MOST_LOGITS // (head.vocabulary * (1 if head.prev is None else 2))))
    tiles = Tiles(sequences, least_gap, block_size, pairs_per_sequence, conditioned, pair_weights)
    if tiles.empty:
        raise BeliefStateError(
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
        first, second, *rest = (None if part is None else part.detach() for part in given)
        assert first is not None
        weight, bias = rest[:2]
        parameters = [weight, bias, *given[4:]]  # the head's own: its modules use them
        exact = torch.promote_types(first.dtype, torch.float32)
        unit = tiles.unit.to(exact)  # the mean weight counts as 1, so half precision holds the gradients
        total = torch.zeros_like(unit)
        sums = [
            torch.zeros_like(part, dtype=exact) if part is not None and want else None
            for part, want in zip(given, wanted, strict=True)
        ]
        for part, want in zip((weight, bias), wanted[2:4], strict=True):
            if part is not None:
                part.requires_grad_(want)
        leaves = [part for part, want in zip(parameters, wanted[2:], strict=True) if part is not None and want]
        gradients = any(wanted)
        for block in tiles:
            states = _sums(block, first, second).requires_grad_(wanted[0] or wanted[1])
            with torch.set_grad_enabled(gradients):
                logits = _logits(head, states, weight, bias)
            loss, of_logits = _losses(block, logits, unit, gradients)
            total += loss
            if not gradients:
                continue
            inputs = [states, *leaves] if states.requires_grad else leaves
            found = torch.autograd.grad(logits, inputs, of_logits, allow_unused=True, materialize_grads=True)
            if states.requires_grad:
                _add_gradients(block, found[0], *sums[:2])
            kept = [part for part in sums[2:] if part is not None]
            for part, more in zip(kept, found[len(found) - len(kept) :], strict=True):
                part.add_(more)
        ctx.save_for_backward(unit, *(part for part in sums if part is not None))
        ctx.dtypes = [
            part.dtype if part is not None and want else None for part, want in zip(given, wanted, strict=True)
        ]
        return total * unit

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise BeliefStateError(
                "The belief state loss has first derivatives only, got create_graph=True; leave it out, or "
                "differentiate belief_state_loss_reference."
            )
        unit, *sums = ctx.saved_tensors
        kept = iter(sums)
        scaled = (None if dtype is None else (next(kept) * (grad * unit)).to(dtype) for dtype in ctx.dtypes)
        return (None, None, None, *scaled)


def _logits(head: TextHead, sums: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    """Logits [rows, heads, vocabulary], of both heads in one tensor if their last layers are one."""
    states = head.tied(sums)
    if weight is not None:
        return [functional.linear(states, weight, bias).unflatten(-1, (2, -1))]
    heads = [head.next] if head.prev is None else [head.next, head.prev]
    return [layer(states)[:, None] for layer in heads]


def _sums(block: Block, first: Tensor, second: Tensor | None) -> Tensor:
    """The first layer's sums, [rows, width], from its parts at all strips, [strips, side, width]."""
    if second is None:
        return first[block.prefix].flatten(0, 1)
    sums = (first[block.prefix][:, :, None] + second[block.suffix][:, None]).flatten(0, 2)
    return sums if block.places is None else sums[block.places]


def _add_gradients(block: Block, gradients: Tensor, first: Tensor | None, second: Tensor | None) -> None:
    """Adds the gradients of the sums, [rows, width], to those of the first layer's parts; None: not wanted."""
    tiles, width = len(block.prefix), gradients.shape[-1]
    if block.places is not None:
        empty = gradients.new_zeros(tiles * block.side**2, width)
        gradients = empty.index_copy_(0, block.places, gradients)
    gradients = gradients.view(tiles, block.side, -1, width)
    if first is not None:
        first.index_add_(0, block.prefix, gradients.sum(2, dtype=first.dtype))
    if second is not None:
        second.index_add_(0, block.suffix, gradients.sum(1, dtype=second.dtype))


def _losses(block: Block, logits: list[Tensor], unit: Tensor, gradients: bool) -> tuple[Tensor, list[Tensor]]:
    """The weighted sum of the losses (Eq. 2) in units, and its gradients of the logits: softmax less the labels.

    Args:
        logits: the heads' in order, [rows, heads, vocabulary], in one tensor or in two.
        unit: the weight that counts as 1, [], in the precision of the loss.
        gradients: False for the loss alone.
    """
    labels = [block.nexts, block.prevs]
    weights = block.weights.to(unit.dtype) / unit / sum(scores.shape[1] for scores in logits)
    total = torch.zeros_like(unit)
    found = []
    for scores in logits:
        heads = scores.shape[1]
        picks = torch.stack(labels[:heads], 1).flatten(0, 1)  # [rows x heads, labels]
        shares = weights.repeat_interleave(heads, 0)
        labels = labels[heads:]
        flat = torch.log_softmax(scores.detach().flatten(0, 1), -1, dtype=unit.dtype)
        total -= (flat.gather(1, picks) * shares).sum()
        if gradients:
            flat.exp_().mul_(shares.sum(1, keepdim=True)).scatter_add_(1, picks, -shares)
            found.append(flat.view_as(scores).to(scores.dtype))
    return total, found
