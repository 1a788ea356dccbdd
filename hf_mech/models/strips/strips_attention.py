"""Attention and loss of the STRIPS Transformer: the paper's quadratic form, an equal linear-time form, the focal loss.

Equations are those of "From Next Token Prediction to (STRIPS) World Models". The attention takes
`theta` [members, heads, actions, 3] and `input_ids` [batch, length], negative at padding. It returns the heads' outputs
y_p (Eq. 16) as [batch, length, members, heads] and the inapplicability y (Eq. 17) as [batch, length, members].
"""

from __future__ import annotations

import torch
from torch import Tensor

from .strips_domain import StripsError


def strips_attention_reference(theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eq. 11-17 exactly as in the paper: O(length^2) time and memory.

    Returns:
        y_p [batch, length, members, heads], y [batch, length, members] and the stick-breaking scores S' of Eq. 15
        [batch, members, heads, length, length].
    """
    real = (input_ids >= 0).to(theta.dtype)
    qkv = theta[:, :, input_ids.clamp(min=0)] * real[..., None]  # [members, heads, batch, length, 3]
    query, key, value = qkv.unbind(-1)  # Eq. 11-13
    scores = (query.unsqueeze(-1) * key.unsqueeze(-2)).tril(-1)  # Eq. 14 and the strict future mask
    later = (1 - scores).flip(-1).cumprod(-1).flip(-1)  # prod over k >= j of (1 - S(i, k))
    later = torch.cat([later[..., 1:], torch.ones_like(later[..., :1])], -1)  # prod over k >= j + 1
    attention = scores * later  # Eq. 15
    heads = (attention @ value.unsqueeze(-1)).squeeze(-1)  # Eq. 16
    heads = heads.permute(2, 3, 0, 1)
    return heads, _any(heads), attention.permute(2, 0, 1, 3, 4)


def strips_attention_linear(theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
    """The values of [`strips_attention_reference`] in O(length) time: stores the y_p of every possible next action.

    Args:
        theta: [members, heads, actions, 3].
        input_ids: actions, -1 at padding, [batch, length].

    Returns:
        y_p [batch, length, members, heads] and y [batch, length, members].
    """
    state = init_state(theta, input_ids.shape[0])
    outputs = []
    for action in input_ids.unbind(1):
        chosen = action.clamp(min=0)[:, None, None, None].expand(*state.shape[:3], 1)
        outputs.append(state.gather(3, chosen).squeeze(3) * (action >= 0)[:, None, None])
        state = advance(theta, state, action)
    heads = torch.stack(outputs, 1)
    return heads, _any(heads)


def init_state(theta: Tensor, batch: int) -> Tensor:
    """The state before any action, [batch, members, heads, actions]: no action is inapplicable yet."""
    members, heads, actions, _ = theta.shape
    return theta.new_zeros(batch, members, heads, actions)


def advance(theta: Tensor, state: Tensor, action: Tensor) -> Tensor:
    """The state [batch, members, heads, actions] after one more action [batch] (negative: padding, nothing changes).

    `state[b, e, l, m]` is y_{p_l}(i) if a_i = m; unrolling Eq. 15-16 from the left gives
    `r <- r * (1 - s) + s * v` with `s = theta(l, m, 1) * theta(l, a, 2)` and `v = theta(l, a, 3)`.
    """
    real = (action >= 0).to(theta.dtype)[:, None, None, None]
    key, value = theta[:, :, action.clamp(min=0), 1:].permute(2, 0, 1, 3).unsqueeze(-1).unbind(-2)
    share = theta[..., 0] * key * real
    return state * (1 - share) + share * value


def next_scores(state: Tensor) -> Tensor:
    """Eq. 17 of every possible next action: state [batch, members, heads, actions] to [batch, actions, members]."""
    return _any(state.permute(0, 3, 1, 2))


def failing(theta: Tensor, input_ids: Tensor, failed: Tensor) -> tuple[Tensor, Tensor]:
    """theta and actions of traces in which some actions are known to have failed: those change nothing.

    A failed action is one of its own: it needs the same, and has the key 0 (Eq. 12), so later actions do not see it.

    Args:
        theta: [members, heads, actions, 3].
        input_ids: [batch, length], negative at padding.
        failed: bool, [batch, length].

    Returns:
        theta with the failed actions behind the others, [members, heads, 2 actions, 3], and the ids in it.
    """
    query, key, value = theta.unbind(-1)
    idle = torch.stack([query, torch.zeros_like(key), value], -1)
    return torch.cat([theta, idle], 2), torch.where(failed & (input_ids >= 0), input_ids + theta.shape[2], input_ids)


def strips_attention(theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
    """The fast form: a compiled kernel on the CPU where numba is installed, else [`strips_attention_linear`].

    Values and gradients equal the reference's to rounding. Half precision is computed in float32.
    """
    from .strips_kernel import available

    if torch.compiler.is_exporting():
        return _exported(theta, input_ids)
    if theta.device.type == "cpu" and available:
        exact = theta if theta.dtype in (torch.float32, torch.float64) else theta.float()
        heads, scores = _compiled(exact, input_ids)
        return heads.to(theta.dtype), scores.to(theta.dtype)
    return strips_attention_linear(theta, input_ids)


def _exported(theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
    """[`strips_attention_linear`] as a loop that `torch.export` and ONNX know, for any length."""
    from torch._higher_order_ops import scan  # as PyTorch documents torch.scan

    if torch.onnx.is_in_onnx_export():
        theta = theta.detach()  # the exporter knows no loop that keeps what a gradient needs

    def step(state: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        chosen = action.clamp(min=0)[:, None, None, None].expand(*state.shape[:3], 1)
        heads = state.gather(3, chosen).squeeze(3) * (action >= 0)[:, None, None]
        return advance(theta, state, action), heads

    _, heads = scan(step, init_state(theta, input_ids.shape[0]), input_ids.transpose(0, 1))
    heads = heads.transpose(0, 1)
    return heads, _any(heads)


@torch.compiler.disable
def _compiled(theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
    return _CompiledAttention.apply(theta, input_ids)


class _CompiledAttention(torch.autograd.Function):
    """`strips_kernel` as an autograd function. Double backward is not implemented and is refused."""

    @staticmethod
    def forward(ctx, theta: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        from .strips_kernel import forward

        members, heads, actions, _ = theta.shape
        table = theta.detach().permute(2, 3, 0, 1).reshape(actions, 3, members * heads).contiguous().numpy()
        ids = input_ids.contiguous().numpy()
        if ids.size and ids.max() >= actions:  # the compiled loops check no bounds
            raise StripsError(
                f"Action index {ids.max()} is out of range; theta holds {actions} actions, 0 to {actions - 1}."
            )
        outputs, scores = forward(table, ids, members)
        ctx.arrays = table, ids, outputs
        ctx.shape = theta.shape
        ctx.set_materialize_grads(False)
        return torch.from_numpy(outputs).view(*input_ids.shape, members, heads), torch.from_numpy(scores)

    @staticmethod
    def backward(ctx, grad_heads: Tensor | None, grad_scores: Tensor | None):
        from .strips_kernel import backward

        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                "The compiled attention cannot be differentiated twice; use strips_attention_linear for "
                "create_graph=True."
            )

        table, ids, outputs = ctx.arrays
        members, heads, actions, _ = ctx.shape
        if grad_scores is None:
            grad_scores = torch.zeros(*ids.shape, members, dtype=torch.from_numpy(table).dtype)
        from_heads = None if grad_heads is None else grad_heads.contiguous().view(outputs.shape).numpy()
        grad = backward(table, ids, outputs, from_heads, grad_scores.contiguous().numpy())
        return torch.from_numpy(grad).view(actions, 3, members, heads).permute(2, 3, 0, 1), None


def _any(heads: Tensor) -> Tensor:
    """Eq. 17, the real-valued OR over the last dimension."""
    return 1 - (1 - heads).prod(-1)


def strips_focal_loss(
    inapplicability: Tensor,
    labels: Tensor,
    alpha: float = 0.9,
    gamma: float = 3.0,
    num_traces: int | Tensor | None = None,
) -> Tensor:
    """Eq. 20-22 for every ensemble member.

    A positive trace is a row of zeros; a negative one has a 1 at its inapplicable action (the paper trains on
    negatives with one, at the end; a row may hold any number).

    Args:
        inapplicability: y(i) of Eq. 17, [batch, length, members].
        labels: 1 where the action is inapplicable, 0 where it is applicable, -100 where there is no action,
            [batch, length].
        alpha: weight of the inapplicable class.
        gamma: focusing exponent.
        num_traces: `|T|` of Eq. 20; by default the size of this batch. For gradient accumulation, give the number of
            traces of the whole accumulated batch; the parts' losses then sum exactly to that batch's loss.

    Returns:
        [members]; the sum over members trains each member as if alone.
    """
    y = inapplicability.float() if inapplicability.dtype.itemsize < 4 else inapplicability
    target = labels.unsqueeze(-1)
    wrong = torch.where(target == 1, 1 - y, y)  # how far the prediction is from its label
    weight = (target == 1).to(y.dtype) * alpha + (target == 0).to(y.dtype) * (1 - alpha)
    # A clamped theta reaches wrong = 1 exactly, where log(1 - wrong) has no value.
    right = (1 - wrong).clamp(min=torch.finfo(y.dtype).eps)
    losses = -weight * wrong.pow(gamma) * right.log()
    lengths = (labels >= 0).sum(1).clamp(min=1).to(y.dtype)  # |tau|
    per_trace = losses.sum(1) / lengths.unsqueeze(-1)
    return per_trace.sum(0) / (labels.shape[0] if num_traces is None else num_traces)
