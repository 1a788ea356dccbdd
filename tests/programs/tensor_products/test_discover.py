"""DISCOVER on states that are a TPR by construction, on states that are nothing, and on what it must refuse."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import PSM, compile_program, load_program
from hf_mech.programs.tensor_products import Discovery, Hypothesis, discover

PROGRAM = """
registers: {symbol: 's', position: 'p', before: 'b'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    before[N] = symbol[n]
where_rm before[n] == symbol[N]:
    symbol[N] = symbol[n]
"""
LENGTH = 7


def random_cells(count: int, seed: int, **roles: int) -> list[dict[str, str | None]]:
    """States of roles with so many fillers, each drawn by itself."""
    generator = torch.Generator().manual_seed(seed)
    drawn = {role: torch.randint(size, (count,), generator=generator).tolist() for role, size in roles.items()}
    return [{role: f"{role}{values[i]}" for role, values in drawn.items()} for i in range(count)]


@pytest.fixture(scope="module")
def compiled() -> tuple[Tensor, Hypothesis, Tensor]:
    """The hidden states of a compiled program behind its first layer, its registers in the PSM, and the prompts."""
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(5, (80, LENGTH), generator=generator).tolist()
    texts = [" ".join("abcde"[word] for word in row) for row in words]
    model, tokenizer = compile_program(PROGRAM, max_position_embeddings=LENGTH, num_open_values=6)
    with torch.no_grad():
        states = model.dat(**tokenizer(texts, return_tensors="pt"), output_hidden_states=True).hidden_states[1]
    machine = PSM(load_program(PROGRAM))
    cells = [cell for text in texts for cell in machine.run(text, max_new_tokens=0).trace[0][1].cells]
    hypothesis = Hypothesis.of(cells, share=[("symbol", "before")])
    return states[:, :LENGTH].flatten(0, 1), hypothesis, torch.arange(len(texts)).repeat_interleave(LENGTH)


@pytest.fixture(scope="module")
def found(compiled: tuple[Tensor, Hypothesis, Tensor]) -> Discovery:
    hidden, hypothesis, prompts = compiled
    return discover(hidden, hypothesis, prompts=prompts)


def test_the_states_of_a_compiled_program_are_its_registers(found: Discovery) -> None:
    assert found.unseen == 0
    assert found.hypothesis.explained == pytest.approx(1.0, abs=1e-6)
    assert found.hypothesis.accuracy == {"symbol": 1.0, "position": 1.0, "before": 1.0}
    assert found.control.explained < 0.05
    for role, accuracy in found.control.accuracy.items():
        assert accuracy < found.majority[role] + 0.1


def test_another_filler_can_be_put_into_a_state(compiled: tuple[Tensor, Hypothesis, Tensor], found: Discovery) -> None:
    """In a compiled program the changed state is that of a cell with the other word, to the last neuron."""
    hidden, hypothesis, _ = compiled
    read = found.hypothesis
    fillers = hypothesis.fillers[hypothesis.groups[0]]
    old, new = fillers.index("a"), fillers.index("b")
    rows = hypothesis.bindings[:, 0] == old
    assert rows.sum() > 50
    changed = read.contributions.replace(hidden[rows], "symbol", "a", "b")
    bindings = hypothesis.bindings[rows].clone()
    assert (read.product.read(changed)[:, 0] == new).all()
    assert torch.equal(read.product.read(changed)[:, 1:], bindings[:, 1:])
    assert changed.round().sum(-1).eq(hidden[rows].sum(-1)).all()
    torch.testing.assert_close(changed, changed.round(), rtol=0, atol=1e-5)


def test_in_random_vectors_there_is_nothing() -> None:
    cells = random_cells(800, 0, colour=4, shape=3)
    hidden = torch.randn(800, 24, generator=torch.Generator().manual_seed(1))
    found = discover(hidden, Hypothesis.of(cells))
    assert found.hypothesis.explained < 0.01
    for role, accuracy in found.hypothesis.accuracy.items():
        assert abs(accuracy - found.control.accuracy[role]) < 0.1
        assert accuracy < found.majority[role] + 0.1


def test_a_distributed_representation_is_recovered() -> None:
    """Dense roles and fillers through a dense map, with noise: no neuron belongs to a role."""
    generator = torch.Generator().manual_seed(2)
    cells = random_cells(1200, 3, subject=9, object=9, tense=3)
    cells = [{**cell, "object": str(cell["object"]).replace("object", "subject")} for cell in cells]
    hypothesis = Hypothesis.of(cells, share=[("subject", "object")])
    assert len(hypothesis.fillers) == 2
    roles = torch.linalg.qr(torch.randn(3, 3, generator=generator)).Q
    fillers = [torch.randn(len(own), 6, generator=generator) for own in hypothesis.fillers]
    bound = torch.stack([fillers[g][hypothesis.bindings[:, i]] for i, g in enumerate(hypothesis.groups)], 1)
    clean = torch.einsum("ir,cif->crf", roles, bound).flatten(1) @ torch.randn(18, 40, generator=generator)
    noise = 0.3 * clean.std() * torch.randn(clean.shape, generator=generator)
    found = discover(clean + noise, hypothesis)
    expected = clean.var(0).sum() / (clean + noise).var(0).sum()
    assert found.hypothesis.explained == pytest.approx(float(expected), abs=0.03)
    assert min(found.hypothesis.accuracy.values()) > 0.97
    assert max(found.control.accuracy.values()) < 0.5
    assert found.control.explained < 0.01


def test_a_role_that_is_not_there_is_not_found() -> None:
    """One of two roles in the vectors: the other is read no better than by its most frequent filler."""
    cells = random_cells(900, 4, there=5, absent=5)
    hypothesis = Hypothesis.of(cells)
    hidden = hypothesis.one_hot()[:, :5].float() @ torch.randn(5, 12, generator=torch.Generator().manual_seed(5))
    found = discover(hidden, hypothesis).hypothesis
    assert found.accuracy["there"] == 1.0
    assert found.accuracy["absent"] < 0.3


def test_unbinding_inverts_binding() -> None:
    cells = random_cells(300, 6, colour=4, shape=4)
    product = discover(torch.randn(300, 8), hypothesis := Hypothesis.of(cells)).hypothesis.product
    unbound = product.unbind(product.bind(hypothesis.bindings))
    for i, group in enumerate(product.groups):
        torch.testing.assert_close(unbound[:, i], product.fillers[group][hypothesis.bindings[:, i]], rtol=0, atol=1e-4)


def test_prompts_are_not_divided_and_unseen_fillers_are_counted() -> None:
    cells: list[dict[str, str | None]] = [{"word": str(i // 10)} for i in range(200)]
    prompts = torch.arange(200) // 10
    found = discover(torch.randn(200, 4), Hypothesis.of(cells), prompts=prompts, held_out=0.25)
    assert (found.fitted, found.held_out, found.unseen) == (150, 50, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Hypothesis.of([]), "states of some cells, got none"),
        (lambda: Hypothesis.of([{"a": "1"}, {"b": "1"}]), "some bind no a"),
        (lambda: Hypothesis.of([{"a": "1", "b": "2"}], share=[("a", "b"), ("a",)]), "in one group"),
        (lambda: discover(torch.zeros(2, 3, 4), Hypothesis.of([{"a": "1"}])), r"1 cells, got \[2, 3, 4\]"),
        (lambda: discover(torch.zeros(2, 3), Hypothesis.of([{"a": "1"}] * 2), held_out=0.1), "0.1 of 2 prompts"),
    ],
)
def test_wrong_input_is_refused(call: object, message: str) -> None:
    with pytest.raises(ProgramsError, match=message):
        call()  # type: ignore[operator]
