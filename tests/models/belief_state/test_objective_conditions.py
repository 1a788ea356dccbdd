"""The objective in blocks under the conditions of training: frozen parts, adapters, half precision, compiling."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from hf_mech.models.belief_state import belief_state_objective, belief_state_pairs
from hf_mech.models.belief_state.belief_state_objective import TextHead, belief_state_loss, belief_state_loss_reference
from hf_mech.models.belief_state.belief_state_pairs import PairWeights, Sequences, Tiles
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateError

END, SIZE, LENGTH = 6, 5, 16


def batch(dtype: torch.dtype = torch.float64) -> tuple[Sequences, Tensor, Tensor]:
    """Padding on the left, on the right, two packed sequences, an untrained prompt, and a hole in the middle."""
    torch.manual_seed(3)
    sequence = torch.zeros(5, LENGTH, dtype=torch.long)
    sequence[0, :4], sequence[1, 12:], sequence[2, 6:], sequence[4, 7:9] = -1, -1, 1, -1
    tokens = torch.randint(0, END, sequence.shape)
    trained = sequence >= 0
    trained[3, :9] = False
    tokens[2, 5] = tokens[[0, 2, 3, 4], -1] = tokens[1, 11] = END
    prefixes, suffixes = (torch.randn(5, LENGTH, SIZE, dtype=dtype, requires_grad=True) for _ in range(2))
    return Sequences(tokens, trained, sequence, END), prefixes, suffixes


def head(dtype: torch.dtype = torch.float64, layers: int = 3, **parts: bool) -> TextHead:
    torch.manual_seed(4)
    return TextHead(SIZE, 8, layers, END + 1, **parts).to(dtype)


def both(
    made: TextHead,
    scale: float = 1.0,
    gap: int = 2,
    weights: PairWeights = "sequence",
    sizes: tuple[int, ...] = (4096,),
) -> Iterator[tuple[Tensor, list[Tensor | None]]]:
    """Value and gradients of the reference, and of blocks of each size."""
    for size in (None, *sizes):
        sequences, prefixes, suffixes = batch(made.prefix.weight.dtype)
        with_suffix = suffixes if made.suffix is not None else None
        loss, how = (belief_state_loss, {"block_size": size}) if size else (belief_state_loss_reference, {})
        total, _ = loss(prefixes, with_suffix, made, sequences, gap, pair_weights=weights, **how)
        made.zero_grad()
        (scale * total).backward()
        yield total.detach(), [prefixes.grad, suffixes.grad, *(part.grad for part in made.parameters())]


def assert_same(made: TextHead, **options) -> None:
    (value, gradients), *blocks = both(made, **options)
    for ours, found in blocks:
        assert_close(ours, value)
        for theirs, mine in zip(gradients, found, strict=True):
            assert (theirs is None) == (mine is None)
            if theirs is not None:
                assert_close(mine, theirs)


@pytest.mark.parametrize(
    ("full", "gap", "weights"),
    [
        (0.0, 1, "sequence"),
        (0.0, 2, "gap"),
        (1.0, 1, "gap"),
        (1.0, 2, "sequence"),
        pytest.param(0.0, 1, "gap", marks=pytest.mark.slow),
        pytest.param(0.0, 2, "sequence", marks=pytest.mark.slow),
        pytest.param(1.0, 1, "sequence", marks=pytest.mark.slow),
        pytest.param(1.0, 2, "gap", marks=pytest.mark.slow),
    ],
)
def test_rows_of_every_kind(monkeypatch: pytest.MonkeyPatch, full: float, weights: PairWeights, gap: int):
    """Empty places are computed at `full` 0 and skipped at 1."""
    monkeypatch.setitem(belief_state_pairs.FULL, "cpu", full)
    assert_same(head(), gap=gap, weights=weights, sizes=(7, 100, 10_000))


@pytest.mark.parametrize(
    ("parts", "weights", "gap", "layers"),
    [
        ({"suffix": False}, "sequence", 2, 4),
        ({"prev": False}, "gap", 1, 2),
        ({"suffix": False, "prev": False}, "sequence", 2, 4),
        pytest.param({"suffix": False}, "gap", 1, 2, marks=pytest.mark.slow),
        pytest.param({"prev": False}, "sequence", 2, 4, marks=pytest.mark.slow),
        pytest.param({"suffix": False, "prev": False}, "gap", 1, 2, marks=pytest.mark.slow),
    ],
)
def test_ablations(parts: dict, weights: PairWeights, gap: int, layers: int):
    assert_same(head(layers=layers, **parts), gap=gap, weights=weights, sizes=(50,))


def test_the_gradient_is_scaled_from_outside():
    assert_same(head(), scale=1 / 37)


@pytest.mark.parametrize(
    "frozen",
    [
        "prefix",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("suffix", "hidden")),
        "next",
        "next.weight",
        "prev",
        "",
    ],
)
def test_frozen_parameters(frozen: str):
    made = head()
    for name, parameter in made.named_parameters():
        parameter.requires_grad_(not name.startswith(frozen))
    assert_same(made)


@pytest.mark.parametrize("targets", [["next"], ["next", "prev"], ["prefix", "suffix", "hidden.0"]])
def test_adapters(targets: list[str]):
    """Low-rank adapters stand where the layers stood: the last layers are called, not multiplied as one."""
    made = inject_adapter_in_model(LoraConfig(r=2, target_modules=targets, init_lora_weights=False), head())
    assert any("lora" in name for name, _ in made.named_parameters())
    assert_same(made.double())


def test_a_hook_of_a_last_layer_is_called():
    made, calls = head(), []
    made.prev.register_forward_hook(lambda *_: calls.append(1))
    assert made.last() is None
    assert_same(made)
    assert len(calls) > 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_states_have_exact_statistics(dtype: torch.dtype):
    """The loss and the sums of gradients are in single precision; one value a place is rounded."""
    exact = copy.deepcopy(half := head(dtype)).double()
    sequences, prefixes, suffixes = batch(dtype)
    total, tokens = belief_state_loss(prefixes, suffixes, half, sequences)
    assert total.dtype == torch.float32
    (total / tokens).backward()
    twins = [part.detach().double().requires_grad_() for part in (prefixes, suffixes)]
    value, _ = belief_state_loss_reference(*twins, exact, sequences)
    (value / tokens).backward()
    assert_close(total.double(), value, rtol=5e-3, atol=0)
    ours = [prefixes, suffixes, *half.parameters()]
    for mine, theirs in zip(ours, [*twins, *exact.parameters()], strict=True):
        assert mine.grad.dtype == dtype
        assert (mine.grad - theirs.grad).norm() < 0.03 * theirs.grad.norm()


def test_small_gradients_survive_float16():
    """A pair of a long sequence weighs little; its gradient is not rounded to zero."""
    tokens = torch.arange(14)[None] % 5
    sequences = Sequences(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens), END)
    made = TextHead(SIZE, 8, 3, 40_000)
    torch.nn.init.zeros_(made.next.weight)  # every token is as likely: 1 / 40,000 times half of 2 / 14 is 2e-6
    torch.nn.init.zeros_(made.next.bias)
    states = torch.randn(2, 1, 14, SIZE)
    gradients = []
    for dtype in (torch.float32, torch.float16):
        loss, _ = belief_state_loss(*states.to(dtype), copied := copy.deepcopy(made).to(dtype), sequences)
        loss.backward()
        gradients.append(copied.next.bias.grad[10].float())
    assert_close(gradients[1], gradients[0], rtol=0.01, atol=0)


def test_autocast():
    made = head(torch.float32)
    (value, gradients), _ = both(made)
    with torch.autocast("cpu", torch.bfloat16):
        _, (ours, found) = both(made)
    assert_close(ours, value, rtol=0.01, atol=0)
    for mine, theirs in zip(found, gradients, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - theirs).norm() < 0.03 * theirs.norm()


def test_autocast_after_an_evaluation():
    """Autocast's cache of weights from an evaluation does not cost the gradients."""
    made = head(torch.float32)
    sequences, prefixes, suffixes = batch(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad():
            belief_state_loss(prefixes, suffixes, made, sequences)
        loss, _ = belief_state_loss(prefixes, suffixes, made, sequences)
    loss.backward()
    assert all(part.grad is not None and part.grad.any() for part in (prefixes, suffixes, *made.parameters()))


def test_evaluation_computes_no_gradients(monkeypatch: pytest.MonkeyPatch):
    sequences, prefixes, suffixes = batch()
    expected, _ = belief_state_loss(prefixes, suffixes, head(), sequences)
    monkeypatch.setattr(torch.autograd, "grad", lambda *_, **__: pytest.fail("gradients in an evaluation"))
    with torch.no_grad():
        loss, _ = belief_state_loss(prefixes, suffixes, head(), sequences)
    assert_close(loss, expected.detach())
    assert not loss.requires_grad


@pytest.mark.slow  # as all compiling of models
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own, at every break of a graph
def test_a_compiled_model_around_it():
    """Compiled code calls the objective as it is."""
    made = head()
    encoder = torch.nn.Linear(SIZE, SIZE).double()
    sequences, prefixes, suffixes = (part if isinstance(part, Sequences) else part.detach() for part in batch())

    def step(prefixes: Tensor, suffixes: Tensor) -> Tensor:
        total, tokens = belief_state_loss(encoder(prefixes).tanh(), encoder(suffixes).tanh(), made, sequences)
        return total / tokens

    results = []
    for run in (step, torch.compile(step, backend="aot_eager")):
        encoder.zero_grad()
        loss = run(prefixes, suffixes)
        loss.backward()
        results.append((loss.detach(), encoder.weight.grad.clone()))
    assert_close(results[0], results[1])


def test_a_second_derivative_is_refused():
    sequences, prefixes, suffixes = batch()
    loss, _ = belief_state_loss(prefixes, suffixes, head(), sequences)
    with pytest.raises(BeliefStateError, match="create_graph=True"):
        torch.autograd.grad(loss, prefixes, create_graph=True)


@pytest.mark.parametrize("gap", [1, 2])
def test_no_block_has_more_pairs_than_allowed(gap: int):
    sequences, _, _ = batch()
    for size in (1, 3, 4, 30, 1000):
        blocks = list(Tiles(sequences, gap, size))
        assert max(len(block.prefix) * block.side**2 for block in blocks) <= size
        pairs = sum(int(sequences.pairs(k)[0].sum()) for k in sequences.gaps(gap))
        assert sum(int((block.weights > 0).sum()) for block in blocks) == pairs


def test_the_pairs_of_a_batch_of_star_graphs_are_two_blocks_of_equal_size():
    tokens = torch.randint(0, 50, (64, 33))
    trained = (torch.arange(33) >= 27).expand(64, -1)
    blocks = list(Tiles(Sequences(tokens, trained, torch.zeros_like(tokens), 55), 2, 4096))
    assert [len(block.weights) for block in blocks] == [64 * 15 // 2] * 2


def bytes_of(length: int, vocabulary: int = END + 1) -> int:
    """The bytes of the largest tensor of a loss and its gradients."""
    most = 0

    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal most
            out = function(*args, **(kwargs or {}))
            for part in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(part, Tensor):
                    most = max(most, part.untyped_storage().nbytes())
            return out

    tokens = torch.randint(0, END, (2, length))
    sequences = Sequences(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens), END)
    states = torch.randn(2, 2, length, SIZE, requires_grad=True)
    made = TextHead(SIZE, 8, 3, vocabulary)
    with Largest():
        loss, _ = belief_state_loss(states[0], states[1], made, sequences, 2, 256)
        loss.backward()
    return most


def test_no_tensor_grows_faster_than_the_length():
    assert bytes_of(192) <= 4 * bytes_of(48)


def test_the_logits_of_a_large_vocabulary_are_cut_too(monkeypatch: pytest.MonkeyPatch):
    """The largest tensor is one last layer's weight, as no copy of both is made."""
    monkeypatch.setattr(belief_state_objective, "MOST_LOGITS", 50_000)
    monkeypatch.setattr(belief_state_objective, "ONE_PRODUCT", 1_000)
    assert bytes_of(64, 5_000) == 4 * 5_000 * 8


@pytest.mark.parametrize("logits", [1, 14, 100])
@pytest.mark.parametrize("vocabulary", [1, 8192])
def test_pieces_for_a_large_vocabulary_are_the_reference(monkeypatch: pytest.MonkeyPatch, logits: int, vocabulary: int):
    monkeypatch.setattr(belief_state_objective, "MOST_LOGITS", logits)
    monkeypatch.setattr(belief_state_objective, "ONE_PRODUCT", vocabulary)
    assert_same(head(), gap=1)
    assert_same(head(prev=False), gap=2, weights="gap")
