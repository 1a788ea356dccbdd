"""The operator: the reference by hand, every fast form against the reference, chunks, padding, and bad input."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from hf_mech.models.stack import StackError, read_stack, stack_attention, stack_attention_reference, stack_kernel_cpu

BATCH, LENGTH = 4, 13
STARTS = [None, (0, 3, 7, LENGTH - 1)]


@pytest.fixture(params=["compiled", "torch"])
def form(request, monkeypatch):
    """The two forms on the CPU."""
    assert stack_kernel_cpu.available, "numba is a dependency of the package"
    monkeypatch.setattr(stack_kernel_cpu, "available", request.param == "compiled")


@pytest.fixture
def threads():
    """Puts back the number of threads that a test changes."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def random_actions(pops=1, batch=BATCH, length=LENGTH, dtype=torch.float64, hardness=1.0):
    return (hardness * torch.randn(batch, length, 2 + pops, dtype=dtype)).softmax(-1)


def hard(operations, kinds=3):
    return torch.nn.functional.one_hot(torch.tensor([operations]), kinds).double()


def with_gradient(function, actions, grad):
    actions = actions.clone().requires_grad_()
    alpha = function(actions)
    return alpha.detach(), torch.autograd.grad(alpha, actions, grad)[0]


def positions(start):
    return None if start is None else torch.tensor(start)


def test_figure_1():
    """push a, push b, push c, pop, no-op, pop: the last column of the figure."""
    tops = stack_attention_reference(hard([2, 0, 0, 0, 1, 2, 1]))[0]
    assert tops.argmax(-1).tolist() == [0, 1, 2, 3, 2, 2, 1]
    assert (tops.sum(-1) == 1).all()


def test_three_soft_steps_by_hand():
    actions = torch.tensor([[[1.0, 0, 0], [0.5, 0.25, 0.25], [0.2, 0.5, 0.3], [0.1, 0.6, 0.3]]], dtype=torch.float64)
    # alpha_1 = .5 e_1 + (.25 + .25) e_0; alpha_1^POP = .5 alpha_0 + .5 e_0 = e_0;
    # alpha_2 = .2 e_2 + .5 e_0 + .3 alpha_1 = (.65, .15, .2);
    # alpha_2^POP = .65 e_0 + .15 alpha_0 + .2 alpha_1 = (.9, .1, 0); alpha_3 = .1 e_3 + .6 (.9, .1, 0) + .3 alpha_2.
    expected = torch.tensor(
        [[[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.65, 0.15, 0.2, 0], [0.735, 0.105, 0.06, 0.1]]], dtype=torch.float64
    )
    torch.testing.assert_close(stack_attention_reference(actions), expected)


def test_two_pops_in_a_step_are_two_steps():
    """pop 2 at once, against pop and pop."""
    together = stack_attention_reference(hard([3, 0, 0, 0, 2], kinds=4))[0, -1]
    apart = stack_attention_reference(hard([3, 0, 0, 0, 1, 1], kinds=4))[0, -1]
    assert together.argmax() == apart.argmax() == 1


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("pops", [1, 2, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_values_and_gradients_of_the_reference(pops, start, dtype, tolerance):
    actions, start = random_actions(pops, dtype=dtype), positions(start)
    grad = torch.randn(BATCH, LENGTH, LENGTH, dtype=dtype)
    fast = with_gradient(lambda a: stack_attention(a, start=start), actions, grad)
    slow = with_gradient(lambda a: stack_attention_reference(a, start=start), actions, grad)
    torch.testing.assert_close(fast, slow, rtol=0, atol=tolerance)
    assert fast[0].dtype == dtype


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("length", [2, 3, 33])
def test_any_length(length):
    actions, grad = random_actions(2, 2, length), torch.randn(2, length, length, dtype=torch.float64)
    fast = with_gradient(stack_attention, actions, grad)
    torch.testing.assert_close(fast, with_gradient(stack_attention_reference, actions, grad), rtol=0, atol=1e-11)


@pytest.mark.usefixtures("form")
def test_the_bos_alone():
    alpha, gradient = with_gradient(stack_attention, random_actions(length=1), torch.ones(BATCH, 1, 1))
    assert (alpha == 1).all()
    assert not gradient.any()


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("pops", [1, 2])
def test_gradcheck(pops):
    actions = random_actions(pops, 2, 5).requires_grad_()
    start = torch.tensor([0, 2])

    def function(actions):
        return stack_attention(actions, start=start, validate=False)  # small steps leave the simplex

    assert torch.autograd.gradcheck(function, (actions,))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("hardness", [30.0, 300.0])
def test_almost_hard_actions(hardness):
    """Weights that are skipped because they round to nothing change nothing, and neither do exact zeros."""
    actions = random_actions(2, 4, 40, torch.float32, hardness)
    grad = torch.randn(4, 40, 40)
    fast = with_gradient(stack_attention, actions, grad)
    slow = with_gradient(stack_attention_reference, actions, grad)
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("form")
def test_padding_on_the_left_only_shifts():
    actions = random_actions(2, 1)
    padded = torch.cat([random_actions(2, 1, 4), actions], 1)
    alpha = stack_attention(padded, start=torch.tensor([4]))
    torch.testing.assert_close(alpha[:, 4:, 4:], stack_attention(actions))
    assert not alpha[:, :4].any()
    assert not alpha[:, :, :4].any()


@pytest.mark.usefixtures("form")
def test_what_stands_at_the_bos_and_before_is_ignored():
    actions, start = random_actions(), torch.tensor([0, 2, 5, 9])
    other = random_actions()
    places = torch.arange(LENGTH) <= start[:, None]
    mixed = torch.where(places[:, :, None], other, actions)
    assert torch.equal(stack_attention(mixed, start=start), stack_attention(actions, start=start))
    grad = torch.randn(BATCH, LENGTH, LENGTH, dtype=torch.float64)
    _, gradient = with_gradient(lambda a: stack_attention(a, start=start), actions, grad)
    assert not gradient[places].any()
    assert gradient[~places].abs().min() > 0


@pytest.mark.usefixtures("form")
def test_a_row_of_padding_alone_is_zero():
    alpha = stack_attention(random_actions(), start=torch.tensor([0, LENGTH, LENGTH + 5, 1]))
    assert not alpha[1:3].any()
    assert (alpha[0].sum(-1) - 1).abs().max() < 1e-12


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype):
    actions = random_actions(dtype=torch.float32).to(dtype)
    alpha = stack_attention(actions)
    assert alpha.dtype == dtype
    assert torch.equal(alpha, stack_attention(actions.float(), validate=False).to(dtype))


@pytest.mark.usefixtures("form")
def test_a_view_of_other_strides():
    actions = random_actions(dtype=torch.float32)
    strided = actions.transpose(0, 2).contiguous().transpose(0, 2)
    grad = torch.randn(LENGTH, LENGTH, BATCH).permute(2, 1, 0)
    expected = with_gradient(stack_attention, actions, grad.contiguous())
    torch.testing.assert_close(with_gradient(stack_attention, strided, grad), expected)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.usefixtures("threads")
def test_threads_change_nothing(batch):
    actions, grad = random_actions(2, batch), torch.randn(batch, LENGTH, LENGTH, dtype=torch.float64)
    torch.set_num_threads(1)
    one = with_gradient(stack_attention, actions, grad)
    torch.set_num_threads(3)
    for mine, theirs in zip(with_gradient(stack_attention, actions, grad), one, strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.usefixtures("form")
def test_differentiating_twice_is_refused():
    actions = random_actions().requires_grad_()
    (first,) = torch.autograd.grad(stack_attention(actions).square().sum(), actions, create_graph=True)
    with pytest.raises(RuntimeError, match=r"differentiated twice.*stack_attention_reference"):
        first.sum().backward()


def test_no_graph_without_need():
    with torch.no_grad():
        assert not stack_attention(random_actions().requires_grad_()).requires_grad
    assert not stack_attention(random_actions()).requires_grad


@pytest.mark.parametrize("start", [(0, 1, 2, 3), pytest.param(None, marks=pytest.mark.slow)])
def test_the_operator_meets_pytorchs_own_checks(start):
    """Schema, fake tensors, autograd registration and tracing."""
    operator, start = sys.modules[stack_attention.__module__]._forward, positions(start)
    actions = random_actions(dtype=torch.float32).requires_grad_()
    torch.library.opcheck(operator, (actions, start))


@pytest.mark.parametrize("start", [pytest.param(None, marks=pytest.mark.slow), STARTS[1]])
def test_compiles_as_one_graph(start):
    def loss(actions):
        return stack_attention(actions, start=positions(start)).square().sum()

    actions = random_actions(dtype=torch.float32).requires_grad_()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (fast,) = torch.autograd.grad(compiled(actions), actions)
    (slow,) = torch.autograd.grad(loss(actions), actions)
    torch.testing.assert_close(fast, slow)


def test_two_copies_of_the_code_live_in_one_process():
    """As when a checkpoint brings its own copy along: both work, and so does one that is loaded again."""
    folder = Path(sys.modules[stack_attention.__module__].__file__).parent
    spec = importlib.util.spec_from_file_location(
        "stack_copy", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    actions, grad = random_actions(), torch.randn(BATCH, LENGTH, LENGTH, dtype=torch.float64)
    expected = with_gradient(stack_attention, actions, grad)
    sys.modules["stack_copy"] = importlib.util.module_from_spec(spec)
    try:
        for _ in range(2):
            sys.modules.pop("stack_copy.stack_attention", None)
            copy = importlib.import_module("stack_copy.stack_attention").stack_attention
            assert copy is not stack_attention
            torch.testing.assert_close(with_gradient(copy, actions, grad), expected)
        torch.testing.assert_close(with_gradient(stack_attention, actions, grad), expected)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "stack_copy"]:
            del sys.modules[name]


def test_read_stack():
    alpha, hidden = stack_attention(random_actions()), torch.randn(BATCH, LENGTH, 6, dtype=torch.float64)
    expected = torch.einsum("bin,bnd->bid", alpha, hidden)  # Eq. 25
    torch.testing.assert_close(read_stack(alpha, hidden), expected)
    assert read_stack(alpha, hidden.bfloat16()).dtype == torch.bfloat16


good = random_actions()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": good[0]}, r"\[batch, length, 2 \+ K\].*\[13, 3\]"),
        ({"actions": good[..., :2]}, r"\[4, 13, 2\]"),
        ({"actions": good[:, :0]}, "length and K at least 1"),
        ({"actions": good.long()}, r"floating point.*int64.*stack_attention_from_operations"),
        ({"actions": good * 1.1}, "sum to one; row 0, position 0.*softmax"),
        ({"actions": good.log()}, "sum to one"),
        ({"actions": torch.tensor([[[1.5, -0.5, 0.0]]])}, r"row 0, position 0 holds \[1.5, -0.5, 0.0\]"),
        ({"actions": good * torch.nan}, "nan"),
        ({"start": torch.zeros(3, dtype=torch.long)}, r"each of the 4 rows.*\[3\]"),
        ({"start": torch.zeros(4)}, "integer.*float32"),
        ({"start": torch.tensor([0, 0, -1, 0])}, r"negative.*\[0, 0, -1, 0\]"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(StackError, match=message):
        stack_attention(**({"actions": good} | arguments))


def test_one_bad_row_is_named():
    actions = random_actions()
    actions[2, 5, 1] += 0.5
    with pytest.raises(StackError, match="row 2, position 5"):
        stack_attention(actions)
    assert stack_attention(actions, validate=False).isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("pops", [1, 2, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_on_a_gpu(pops, start, dtype, tolerance):
    from hf_mech.models.stack import stack_kernel_triton

    assert stack_kernel_triton.available, "torch for CUDA brings Triton"
    actions, start = random_actions(pops, dtype=dtype), positions(start)
    grad = torch.randn(BATCH, LENGTH, LENGTH, dtype=dtype)
    slow = with_gradient(lambda a: stack_attention_reference(a, start=start), actions, grad)
    fast = with_gradient(lambda a: stack_attention(a, start=start), actions.cuda(), grad.cuda())
    torch.testing.assert_close(tuple(t.cpu() for t in fast), slow, rtol=0, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [128, 1000, 2100])
def test_long_rows_on_a_gpu(length):
    """Longer rows than the kernel takes go to PyTorch."""
    actions, grad = random_actions(1, 2, length, torch.float32), torch.randn(2, length, length)
    expected = with_gradient(stack_attention, actions, grad)
    found = with_gradient(stack_attention, actions.cuda(), grad.cuda())
    torch.testing.assert_close(tuple(t.cpu() for t in found), expected, rtol=1e-3, atol=1e-3)


def test_autocast_does_not_round_the_recursion():
    """A row's rounding would go into all later ones."""
    actions = torch.rand(2, 25, 3, generator=torch.Generator().manual_seed(0)).softmax(-1)
    expected = stack_attention(actions)
    with torch.autocast("cpu", torch.bfloat16):
        alpha = stack_attention(actions)
    torch.testing.assert_close(alpha, expected)
