"""Values that recur: what a position holds on the stack depends on what was popped there.

The paper's stack holds its layer's inputs, so that one layer reduces one level of nesting. Here a push is a call and a
pop a return. With h the sub-layer's input, alpha the stack attention (Eq. 19-23 of "A Transformer with Stack
Attention") and pop_i the probability of the pop at position i,

    r_i = (1 - alpha_{i-1}(i-1)) v_{i-1}             the running value; a push, alpha_{i-1}(i-1), moves it away
    p_i = pop_i sum_n alpha_{i-1}(n) v_n             the value on top before the pop
    v_i = LayerNorm(h_i + W_o relu(W_h h_i + W_r r_i + W_p p_i + b) + b_o)

and r, p are zero at position 0, the empty stack. Padding holds the running value: v_i = r_i. alpha depends on h alone,
so the values are computed after it, one position after another.

In training the values that are read may have noise (`noise`, a standard deviation): with g the scale of the layer norm,
every value v is read as v + noise g e, e normal. Noise on h would be outgrown by the weights; the size of the values is
the layer norm's, so that different ones have to stay apart, however deep the nesting.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import initialization as init

_NAMESPACE = f"hf_mech_{zlib.crc32(__name__.encode()):08x}"  # a checkpoint's copy of this file has its own operators
_EPS = 1e-5  # of the layer norm


class Cell(NamedTuple):
    """The weights of one step, without W_h, which all positions use at once.

    Attributes:
        state: W_r and W_p side by side, [inner, 2 hidden].
        out: W_o, [hidden, inner].
        out_bias: b_o, [hidden].
        scale: of the layer norm, [hidden].
        shift: of the layer norm, [hidden].
    """

    state: Tensor
    out: Tensor
    out_bias: Tensor
    scale: Tensor
    shift: Tensor

    def __call__(self, hidden: Tensor, own: Tensor, state: Tensor) -> Tensor:
        """v_i from h_i, W_h h_i + b and [r_i ; p_i], all [..., their size]."""
        inner = (own + nn.functional.linear(state, self.state)).relu()
        update = nn.functional.linear(inner, self.out, self.out_bias)
        return nn.functional.layer_norm(hidden + update, hidden.shape[-1:], self.scale, self.shift, _EPS)


def links(before: Tensor, pops: Tensor, places: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
    """What positions take over: the share of the previous value, and of all values on the stack.

    Args:
        before: alpha_{i-1} of each of these positions i, [batch, new, N].
        pops: pop_i, [batch, new].
        places: the columns of these positions, [new].
        start: the column of position 0 of their sequences, [batch] or [batch, new]; None means 0.

    Returns:
        1 - alpha_{i-1}(i-1) [batch, new] and pop_i alpha_{i-1}(n) [batch, new, N], both zero at position 0 and before.
    """
    if start is None:
        begins = (places <= 0).expand_as(pops)
    else:
        begins = places <= (start if start.dim() == 2 else start[:, None])
    previous = (places - 1).clamp(min=0)[None, :, None].expand(before.shape[0], -1, 1)
    pushed = before.gather(2, previous)[..., 0]
    return torch.where(begins, 0, 1 - pushed), torch.where(begins, 0, pops)[..., None] * before


class Inputs(NamedTuple):
    """What the values of new positions are computed from.

    Attributes:
        hidden: h, [batch, new, hidden].
        own: W_h h + b, [batch, new, inner].
        runs: the share of the previous value that runs on, [batch, new].
        popped: the share of every earlier value that is popped, [batch, new, N], zero from the own position on.
        past: the values of the positions before, [batch, N - new, hidden]; no gradient flows into them.
        real: False where the running value is held, [batch, new]; None: nowhere.
    """

    hidden: Tensor
    own: Tensor
    runs: Tensor
    popped: Tensor
    past: Tensor
    real: Tensor | None = None


def recurrent_values_reference(inputs: Inputs, cell: Cell) -> Tensor:
    """The equations above one position after the other, with PyTorch's own gradient: v, [batch, new, hidden]."""
    hidden, own, runs, popped, past, real = inputs
    values, nothing = [*past.unbind(1)], torch.zeros_like(hidden[:, 0])
    for i in range(hidden.shape[1]):
        running = runs[:, i, None] * (values[-1] if values else nothing)
        top = sum((popped[:, i, n, None] * value for n, value in enumerate(values)), nothing)
        value = cell(hidden[:, i], own[:, i], torch.cat([running, top], -1))
        values.append(value if real is None else torch.where(real[:, i, None], value, running))
    return torch.stack(values[past.shape[1] :], 1)


def recurrent_values(inputs: Inputs, cell: Cell) -> Tensor:
    """The fast form: one position after the other with a backward pass of its own, whose weight gradients are products
    over all positions at once. Values and gradients equal [`recurrent_values_reference`]'s to rounding.

    Returns:
        v, [batch, new, hidden].

    Raises:
        RuntimeError: on differentiating twice.
    """
    if torch.compiler.is_exporting():
        return _exported_values(inputs, cell)
    *tensors, past, real = inputs
    return _scan(*tensors, *cell, past, real, _EPS)[0]


def _exported_values(inputs: Inputs, cell: Cell) -> Tensor:
    """The same as a loop that `torch.export` and ONNX know, for an exported model."""
    from torch._higher_order_ops import scan  # as PyTorch documents torch.scan

    hidden, own, runs, popped, past, real = inputs
    if torch.onnx.is_in_onnx_export():  # the exporter knows no loop that keeps what a gradient needs
        hidden, own, runs, popped, past = (tensor.detach() for tensor in (hidden, own, runs, popped, past))
        cell = Cell(*(weight.detach() for weight in cell))
    real = torch.ones_like(runs, dtype=torch.bool) if real is None else real
    values = torch.cat([past, torch.zeros_like(hidden)], 1)
    places = torch.arange(values.shape[1], device=hidden.device)

    def step(carried: tuple[Tensor, Tensor], given: tuple[Tensor, ...]) -> tuple[tuple[Tensor, Tensor], Tensor]:
        (values, previous), (given_hidden, given_own, run, pop, is_real, place) = carried, given
        running = run[:, None] * previous
        top = torch.bmm(pop[:, None], values)[:, 0]
        value = torch.where(is_real[:, None], cell(given_hidden, given_own, torch.cat([running, top], -1)), running)
        return (torch.where((places == place)[:, None], value[:, None], values), value), value.clone()

    previous = past[:, -1].clone() if past.shape[1] else torch.zeros_like(hidden.sum(1))
    first = [tensor.transpose(0, 1) for tensor in (hidden, own, runs, popped, real)]
    return scan(step, (values, previous), (*first, places[past.shape[1] :]))[1].transpose(0, 1)


def next_value(inputs: Inputs, cell: Cell, place: Tensor) -> Tensor:
    """v of one position, for generation, in operations that `torch.compile` supports: [batch, 1, hidden].

    Args:
        inputs: `past` may go on after the position; what stands there has no say.
        cell: the weights.
        place: the position's column, [1].
    """
    hidden, own, runs, popped, past, real = inputs
    running = runs[..., None] * past.index_select(1, place - 1)
    top = popped[..., : past.shape[1]] @ past
    value = cell(hidden, own, torch.cat([running, top], -1))
    return value if real is None else torch.where(real[..., None], value, running)


class RecurrentValues(nn.Module):
    """The weights of the equations above, and their computation; the inner layer is four times as wide as h.

    The weights are the module's own: it uses them in products of its own, which peft's and accelerate's wrappers of a
    `Linear` would not see.

    Args:
        hidden_size: of h and v.
        initializer_range: the standard deviation of new matrices.
        noise: that of the noise on values that are read, in training.
    """

    def __init__(self, hidden_size: int, initializer_range: float, noise: float = 0.0) -> None:
        super().__init__()
        inner_size, self.initializer_range, self.noise = 4 * hidden_size, initializer_range, noise
        self.input_weight = nn.Parameter(torch.empty(inner_size, hidden_size))  # W_h
        self.input_bias = nn.Parameter(torch.empty(inner_size))  # b
        self.state_weight = nn.Parameter(torch.empty(inner_size, 2 * hidden_size))  # W_r and W_p
        self.output_weight = nn.Parameter(torch.empty(hidden_size, inner_size))  # W_o
        self.output_bias = nn.Parameter(torch.empty(hidden_size))  # b_o
        self.norm_weight = nn.Parameter(torch.empty(hidden_size))
        self.norm_bias = nn.Parameter(torch.empty(hidden_size))

    def init_weights(self) -> None:
        """Draws the matrices anew; biases are zero, and the layer norm changes nothing."""
        for matrix in (self.input_weight, self.state_weight, self.output_weight):
            init.normal_(matrix, std=self.initializer_range)
        for bias in (self.input_bias, self.output_bias, self.norm_bias):
            init.zeros_(bias)
        init.ones_(self.norm_weight)

    def forward(
        self, hidden: Tensor, runs: Tensor, popped: Tensor, past: Tensor, places: Tensor, real: Tensor | None = None
    ) -> Tensor:
        """v of [batch, new, hidden], computed in float32 at least.

        Args:
            hidden: h, [batch, new, hidden].
            runs: from [`links`], [batch, new].
            popped: from [`links`], [batch, new, N].
            past: the values of the positions before, [batch, past, hidden]; of one new position, others may follow.
            places: the columns of the new positions, [new].
            real: False at padding, [batch, new].
        """
        exact = torch.promote_types(hidden.dtype, torch.float32)
        with torch.autocast(hidden.device.type, enabled=False):
            given, runs, popped, past = (tensor.to(exact) for tensor in (hidden, runs, popped, past))
            own = nn.functional.linear(given, self.input_weight.to(exact), self.input_bias.to(exact))
            if self.training and self.noise:
                own = own + nn.functional.linear(self._drawn(runs, popped), self.state_weight.to(exact))
            weights = (self.state_weight, self.output_weight, self.output_bias, self.norm_weight, self.norm_bias)
            cell, inputs = Cell(*(weight.to(exact) for weight in weights)), Inputs(given, own, runs, popped, past, real)
            alone = past.shape[1] > 0 and places.shape[0] == 1  # not len(), which an export takes for fixed
            values = next_value(inputs, cell, places) if alone else recurrent_values(inputs, cell)
        return values.to(hidden.dtype)

    def _drawn(self, runs: Tensor, popped: Tensor) -> Tensor:
        """The noise in [r ; p] of every position, [batch, new, 2 hidden]."""
        scale = self.noise * self.norm_weight.to(runs.dtype)
        shares = torch.stack([runs, popped.sum(-1)], -1)[..., None]
        return (shares * scale * torch.randn_like(shares.expand(*shares.shape[:-1], scale.shape[0]))).flatten(2)


def _positions_first(given: Tensor) -> Tensor:
    """A copy that steps can write to, [batch, new, size] to [new, batch, size]."""
    return given.transpose(0, 1).clone(memory_format=torch.contiguous_format)


@torch.library.custom_op(
    f"{_NAMESPACE}::scan",
    mutates_args=(),
    schema="(Tensor hidden, Tensor own, Tensor runs, Tensor popped, Tensor state, Tensor out, Tensor out_bias, "
    "Tensor scale, Tensor shift, Tensor past, Tensor? real, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _scan(hidden, own, runs, popped, state, out, out_bias, scale, shift, past, real, eps):
    """v; and for the backward pass, with the positions first: [r ; p], the inner layer, and the layer norm's input."""
    batch, new, size = hidden.shape
    length = past.shape[1]
    values = hidden.new_empty(batch, length + new, size)
    values[:, :length] = past
    states = hidden.new_zeros(new, batch, 2 * size)
    inners, sums = (_positions_first(given) for given in (own, hidden))
    weight, back = state.t(), out.t()
    for i in range(new):
        at, linked = length + i, states[i]
        if at > 0:
            torch.mul(values[:, at - 1], runs[:, i, None], out=linked[:, :size])
            linked[:, size:] = torch.bmm(popped[:, i, None, :at], values[:, :at])[:, 0]
        inner = inners[i].addmm_(linked, weight).relu_()
        total = sums[i].addmm_(inner, back).add_(out_bias)
        value = nn.functional.layer_norm(total, (size,), scale, shift, eps)
        values[:, at] = value if real is None else torch.where(real[:, i, None], value, linked[:, :size])
    return values[:, length:].contiguous() if length else values, states, inners, sums


@_scan.register_fake
def _(hidden, own, runs, popped, state, out, out_bias, scale, shift, past, real, eps):
    batch, new, size = hidden.shape
    shapes = [(batch, new, size), (new, batch, 2 * size), (new, batch, own.shape[2]), (new, batch, size)]
    return tuple(hidden.new_empty(shape) for shape in shapes)


@torch.library.custom_op(
    f"{_NAMESPACE}::scan_backward",
    mutates_args=(),
    schema="(Tensor grad, Tensor values, Tensor states, Tensor inners, Tensor sums, Tensor runs, Tensor popped, "
    "Tensor state, Tensor out, Tensor scale, Tensor past, Tensor? real, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _scan_backward(grad, values, states, inners, sums, runs, popped, state, out, scale, past, real, eps):
    """With the positions first, the gradients of the layer norm's input, own, [r ; p] and v; and the norm's output."""
    new, size = values.shape[1:]
    length = past.shape[1]
    later = popped[:, :, length:].transpose(1, 2).contiguous()  # row n: who pops the new position n
    reached = _positions_first(grad)
    through, grad_own, grad_states = (torch.empty_like(given) for given in (sums, inners, states))
    tops = torch.empty_like(values)  # of grad_states, with the batch first
    variance, mean = torch.var_mean(sums, -1, correction=0, keepdim=True)
    deviation = (variance + eps).rsqrt()
    normed = (sums - mean) * deviation
    scaled = deviation / size
    for i in reversed(range(new)):
        own = reached[i]
        if i + 1 < new:
            own.addcmul_(grad_states[i + 1, :, :size], runs[:, i + 1, None])
            own += torch.bmm(later[:, i, None, i + 1 :], tops[:, i + 1 :])[:, 0]
        inward = (own if real is None else torch.where(real[:, i, None], own, 0)) * scale
        unit = normed[i]
        both = inward.sum(-1, keepdim=True) + unit * (inward * unit).sum(-1, keepdim=True)
        into = torch.mul(inward * size - both, scaled[i], out=through[i])  # what leaves mean and length as they are
        inner = torch.mm(into, out, out=grad_own[i])
        inner.masked_fill_(inners[i] == 0, 0)
        linked = torch.mm(inner, state, out=grad_states[i])
        if real is not None:
            linked[:, :size] += torch.where(real[:, i, None], 0, own)
        tops[:, i] = linked[:, size:]
    return through, grad_own, grad_states, reached, normed


@_scan_backward.register_fake
def _(grad, values, states, inners, sums, runs, popped, state, out, scale, past, real, eps):
    return tuple(torch.empty_like(given) for given in (sums, inners, states, sums, sums))


def _save(ctx, inputs, output):
    _, _, runs, popped, state, out, _, scale, _, past, real, eps = inputs
    values, states, inners, sums = output
    ctx.mark_non_differentiable(states, inners, sums)
    ctx.save_for_backward(values, states, inners, sums, runs, popped, state, out, scale, past, real)
    ctx.eps = eps


def _differentiate(ctx, grad, *_):
    values, states, inners, sums, runs, popped, state, out, scale, past, real = ctx.saved_tensors
    own_arguments = (values, states, inners, sums, runs, popped, state, out, scale, past, real, ctx.eps)
    through, grad_own, grad_states, reached, normed = _scan_backward(grad, *own_arguments)
    size = values.shape[2]
    everything = torch.cat([past, values], 1)
    previous = pad(everything, (0, 0, 1, 0))[:, -values.shape[1] - 1 : -1]
    running, top = grad_states.transpose(0, 1).split(size, -1)
    grad_runs = (running * previous).sum(-1)
    grad_popped = (top @ everything.transpose(1, 2)).tril(everything.shape[1] - values.shape[1] - 1)
    if real is not None:
        reached = torch.where(real.t()[..., None], reached, 0)
    flat = [tensor.flatten(0, 1) for tensor in (grad_own, states, through, inners)]
    grad_state, grad_out = flat[0].t() @ flat[1], flat[2].t() @ flat[3]
    sums_of = [tensor.sum((0, 1)) for tensor in (through, reached * normed, reached)]
    of_inputs = (through.transpose(0, 1), grad_own.transpose(0, 1), grad_runs, grad_popped)
    return *of_inputs, grad_state, grad_out, *sums_of, None, None, None


def _refuse(ctx, *grads):
    raise RuntimeError(
        "Recurrent stack values cannot be differentiated twice by their own backward; use recurrent_values_reference."
    )


_scan.register_autograd(_differentiate, setup_context=_save)
_scan_backward.register_autograd(_refuse)
