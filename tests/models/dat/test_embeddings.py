"""Dense vectors of values and registers, (69), App. L: every form computes what the one-hot form does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hf_mech.models.dat import DATConfig, DATError, DATForCausalLM, DATModel, DATRepeatError
from hf_mech.models.dat.dat_embedding import coherence, filler_vectors, narrowest, orthonormal, weakest_match
from hf_mech.programs.psl import compile_program, program_text
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.turing import TuringMachine, run_turing
from tests.models.dat.literal import Literal
from tests.models.dat.tensor_products import TensorProducts
from tests.models.dat.test_backends import BY_HAND, COMPLETIONS, PROMPTS, SPREAD, by_hand, tokens
from tests.programs.psl.random_programs import LIMIT, assert_same_runs, programs, prompts

FORMS = ("semi_local", "distributed")
PRECISION = {torch.float32: 1e-4, torch.float64: 1e-12}
"""The largest difference of a component of a state; the vectors have norm 1."""


def compiled(program: Program | str | dict[str, Any], **config: Any) -> tuple[DATForCausalLM, Any]:
    config = {"max_position_embeddings": LIMIT, "num_open_values": 6, "backend": "dense", **config}
    return compile_program(program, **config)


# ----------------------------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize(("number", "width"), [(40, 40), (40, 47), (40, 25), (600, 121), (600, 170)])
def test_the_vectors_are_dense_units_whose_products_are_bounded(number: int, width: int) -> None:
    vectors, ones = filler_vectors(number, width, seed=3)
    assert vectors.shape == (number, width)
    products = vectors @ vectors.T
    others = products - torch.eye(number)
    assert float(others.diagonal().abs().max()) < 1e-14
    assert float(others.min()) > -1e-14
    assert float(others.max()) == pytest.approx(coherence(number, width), abs=1e-14)
    assert torch.allclose(vectors @ ones, torch.ones(number).double(), atol=1e-13)
    assert float((vectors.abs() > 1e-6).double().mean()) > 0.99
    assert torch.equal(vectors, filler_vectors(number, width, seed=3)[0])
    assert not torch.allclose(vectors, filler_vectors(number, width, seed=4)[0])


@pytest.mark.parametrize("size", [1, 2, 7, 16, 81])
def test_orthonormal_vectors_have_no_zero(size: int) -> None:
    vectors = orthonormal(size, seed=1)
    assert torch.allclose(vectors @ vectors.T, torch.eye(size).double(), atol=1e-14)
    assert bool((vectors != 0).all())


# ------------------------------------------------------------------------------------- the same states in every form


def check_states(program: Program | str, rows: list[list[int]], config: dict[str, Any], dtype: torch.dtype) -> None:
    """Every register of every cell after every layer is that of the integers; every state is their embedding."""
    model, _ = compiled(program, **config)
    model = model.to(dtype)
    for row in rows:
        ids = torch.tensor([row])
        with torch.no_grad():
            model.config.backend = "gather"
            try:
                expected = model.dat.trace(ids)
            except DATRepeatError:
                model.config.backend = "dense"
                with pytest.raises(DATRepeatError):
                    model.dat.trace(ids)
                continue
            by_integers = model(ids, output_hidden_states=True, output_attentions=True)
            model.config.backend = "dense"
            found = model.dat.trace(ids)
            by_vectors = model(ids, output_hidden_states=True, output_attentions=True)
        assert len(found) == len(expected)
        for group, states in zip(found, expected, strict=True):
            for new, old in zip(group, states, strict=True):
                assert (new.layer, new.repetitions) == (old.layer, old.repetitions)
                assert torch.equal(new.values, old.values), (new.layer, new.repetitions)
        assert torch.equal(by_vectors.logits, by_integers.logits)
        assert torch.equal(torch.stack(by_vectors.attentions), torch.stack(by_integers.attentions))
        hidden = torch.stack(by_vectors.hidden_states)
        assert hidden.shape[-1] == model.config.hidden_size
        assert float((hidden - torch.stack(by_integers.hidden_states)).abs().max()) < PRECISION[dtype]


COMPLETION = st.lists(st.sampled_from(("A", "1", "s", "C")), max_size=2)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), COMPLETION, st.sampled_from(FORMS), st.sampled_from([*PRECISION]), st.integers(0, 9))
def test_random_programs(
    program: Program, prompt: list[str], completion: list[str], form: str, dtype: torch.dtype, seed: int
) -> None:
    _, tokenizer = compiled(program)
    row = tokens(tokenizer, " ".join(prompt), " ".join(completion))
    check_states(program, [row], {"embedding": form, "embedding_seed": seed}, dtype)


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), COMPLETION, st.sampled_from(FORMS), st.sampled_from([*PRECISION]), st.booleans())
def test_many_random_programs(
    program: Program, prompt: list[str], completion: list[str], form: str, dtype: torch.dtype, narrow: bool
) -> None:
    model, tokenizer = compiled(program, num_open_values=200)
    row = tokens(tokenizer, " ".join(prompt), " ".join(completion))
    config: dict[str, Any] = {"embedding": form, "num_open_values": 200}
    if narrow:
        config["filler_dim"] = narrowest_for(model)
    check_states(program, [row], config, dtype)


def narrowest_for(model: DATForCausalLM) -> int:
    return narrowest(model.config.vocab_size, 0.49 / weakest_match(model.dat.program))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), COMPLETION, st.sampled_from(FORMS))
def test_random_programs_with_fewer_dimensions_than_values(
    program: Program, prompt: list[str], completion: list[str], form: str
) -> None:
    model, tokenizer = compiled(program, num_open_values=200)
    row = tokens(tokenizer, " ".join(prompt), " ".join(completion))
    config = {"embedding": form, "num_open_values": 200, "filler_dim": narrowest_for(model)}
    check_states(program, [row], config, torch.float32)


@pytest.mark.parametrize(
    ("form", "dtype"),
    [pytest.param("semi_local", torch.float64, marks=pytest.mark.slow), ("distributed", torch.float32)],
)
def test_nested_blocks(form: str, dtype: torch.dtype) -> None:
    _, tokenizer = compiled(SPREAD)
    rows = [tokens(tokenizer, *texts) for texts in zip(PROMPTS, COMPLETIONS, strict=True)]
    check_states(SPREAD, rows, {"embedding": form}, dtype)


@pytest.mark.parametrize(
    ("name", "text", "form", "narrow"),
    [
        ("pargen", "Q B V D E A D E V B . Q F G H V K L A", "distributed", True),
        pytest.param("pargen", "Q B V A V B . Q F V K A", "semi_local", False, marks=pytest.mark.slow),
        pytest.param(
            "pargen_k_shot", "Q a b A b a . Q c d A d c . Q e f A", "distributed", False, marks=pytest.mark.slow
        ),
        ("pargen_k_shot", "Q a b A b a . Q c d A d c . Q e f A", "semi_local", True),
    ],
)
def test_programs_of_the_package(name: str, text: str, form: str, narrow: bool) -> None:
    config: dict[str, Any] = {"max_position_embeddings": 30, "num_open_values": 300 if narrow else 20}
    model, tokenizer = compiled(program_text(name), **config)
    config |= {"embedding": form, "filler_dim": narrowest_for(model) if narrow else None}
    assert not narrow or config["filler_dim"] < model.config.vocab_size / 2
    check_states(program_text(name), [tokenizer(text)["input_ids"]], config, torch.float32)


INCREMENT = TuringMachine.parse("r 0 -> r 0 R\nr 1 -> r 1 R\nr _ -> c _ L\nc 1 -> c 0 L\nc 0 -> d 1 L\nc _ -> d 1 L\n")


@pytest.mark.parametrize(
    ("form", "universal", "dim"),
    [
        ("semi_local", False, None),
        ("distributed", True, None),
        pytest.param("semi_local", True, 169, marks=pytest.mark.slow),
    ],
)
def test_turing_machines(form: str, universal: bool, dim: int | None) -> None:
    """The first values of registers that the prompt sets, and a state that a long block passes on."""
    config: dict[str, Any] = {"max_position_embeddings": 50, "num_open_values": 200, "backend": "dense"}
    config |= {"embedding": form, "filler_dim": dim}

    def network(program: Program) -> DAT:
        return DAT(*compile_program(program, **config))

    plain = run_turing(INCREMENT, "1 0 1 1", left=3, right=3, universal=universal)
    ended = run_turing(INCREMENT, "1 0 1 1", left=3, right=3, universal=universal, runner=network)
    assert ended.written == ["1", "1", "0", "0"]
    assert_same_runs(plain.run, ended.run)


@pytest.mark.parametrize(
    ("q", "k", "marks", "dim"),
    [
        pytest.param(*case, dim, marks=pytest.mark.slow if (number + place) % 2 else [])
        for number, case in enumerate(BY_HAND)
        for place, dim in enumerate((None, 400))
    ],
)
def test_queries_and_keys_by_hand(
    q: dict[str, Any], k: dict[str, Any], marks: list[int | None], dim: int | None
) -> None:
    """`!=`, `in`, `not in`, functions without a value, nil; with 500 values in 400 dimensions, and with few values."""
    size = 3 if dim is None else 480
    model, tokenizer = compiled(by_hand(q, k), num_open_values=size, embedding="distributed", filler_dim=dim)
    ids = torch.tensor([tokenizer("A B 7 A")["input_ids"]])
    marked = list(model.config.qkvl["register_map"].values()).index("m")
    expected = [0 if mark is None else tokenizer.convert_tokens_to_ids(str(mark)) for mark in marks]
    assert model.dat.trace(ids)[0][-1].values[0, :, marked].tolist() == expected


# ------------------------------------------------------------------------------------------------- App. L and (72)


def check_reference(reference: Literal, model: DATForCausalLM, row: list[int]) -> None:
    end = row.index(1)
    expected = reference.run(row[:end], row[end + 1 :])
    found = model.dat.trace(torch.tensor([row]))
    for group, states in zip(found, expected, strict=True):
        for new, (layer, repetitions, values) in zip(group, states, strict=True):
            assert (new.layer, new.repetitions) == (layer, repetitions)
            assert torch.equal(new.values[0], values)


@pytest.mark.parametrize(
    ("form", "dim"),
    [
        ("distributed", 169),
        pytest.param("distributed", None, marks=pytest.mark.slow),
        pytest.param("semi_local", 169, marks=pytest.mark.slow),
    ],
)
def test_app_l_word_by_word(form: str, dim: int | None) -> None:
    values = 6 if dim is None else 200
    for prompt, completion in zip(PROMPTS[:2], COMPLETIONS, strict=False):
        model, tokenizer = compiled(SPREAD, embedding=form, filler_dim=dim, num_open_values=values)
        check_reference(TensorProducts(model.dat), model, tokens(tokenizer, prompt, completion))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), st.sampled_from(FORMS))
def test_app_l_word_by_word_on_random_programs(program: Program, prompt: list[str], form: str) -> None:
    model, tokenizer = compiled(program, embedding=form)
    try:
        check_reference(TensorProducts(model.dat), model, tokens(tokenizer, " ".join(prompt), ""))
    except (RecursionError, DATRepeatError):
        with pytest.raises(DATRepeatError):
            model.dat.trace(torch.tensor([tokens(tokenizer, " ".join(prompt), "")]))


def test_the_streams_of_app_l() -> None:
    """Not only the values: the residual stream itself, after every layer."""
    program = by_hand({"s": "s", "p": ["!=", "p"]}, {"s": ["in", "A", "B"], "p": "p"})
    model, tokenizer = compiled(program, embedding="distributed", embedding_seed=5)
    row = tokenizer("A B 7 A")["input_ids"]
    reference = TensorProducts(model.dat)
    reference.run(row[:-1], [])
    hidden = model(torch.tensor([row]), output_hidden_states=True).hidden_states
    assert len(hidden) == 1 + len(reference.streams)
    for found, stream in zip(hidden[1:], reference.streams, strict=True):
        assert torch.allclose(found[0, :-1], stream, atol=1e-12)


class Matrices(Literal):
    """(70) with the whole matrices of (72) in another basis, applied in it; the values are read in the old one."""

    def __init__(self, model: DATModel):
        super().__init__(model)
        vectors = model.embedding(torch.device("cpu"))
        self.fillers = vectors.fillers.vectors
        roles = torch.eye(len(self.registers)).double() if vectors.roles is None else vectors.roles
        self.basis = torch.kron(roles, self.fillers)  # one-hot -> this embedding

    def production(self, block: Any, weights: Any, cells: Tensor, readable: Tensor) -> Tensor:
        query, key, value = (weights[name] for name in ("query", "key", "value"))
        targets, size, outputs = len(block["weights"]["q"]), self.fillers.shape[1], []
        cells, readable = cells.double() @ self.basis, readable.double() @ self.basis
        for N, cell in enumerate(cells, start=len(readable) - len(cells)):
            products = (readable @ key[0] + key[1]) @ (cell @ query[0] + query[1]) / targets
            near = [n for n, x in enumerate(products) if abs(x - 1) < 1e-9 and not (block["causal_attn"] and n > N)]
            if near:
                n = near[-1] if block["right_match"] else near[0]
                cell = cell + 2 * (readable[n] @ value[0] + value[1])
            outputs.append(self.dat_norm(cell @ self.basis.T))
        assert products.shape == (len(readable),)
        assert query[0].shape == (len(self.registers) * size, targets * size)
        return torch.stack(outputs)


@pytest.mark.parametrize("form", [pytest.param("semi_local", marks=pytest.mark.slow), "distributed"])
def test_the_matrices_of_72_in_the_basis_of_the_embedding(form: str) -> None:
    model, tokenizer = compiled(SPREAD, embedding=form)
    model = model.to(torch.float64)
    for prompt, completion in zip(PROMPTS[:2], COMPLETIONS, strict=False):
        check_reference(Matrices(model.dat), model, tokens(tokenizer, prompt, completion))


def test_the_sizes_of_the_residual_stream() -> None:
    """PARGEN: 16 registers of 4,624 values; products below 1/2 are enough, which 121 dimensions give."""
    sizes = {}
    for form, dim in [("local", None), ("semi_local", None), ("distributed", None), ("distributed", 121)]:
        model, _ = compile_program(program_text("pargen"), embedding=form, filler_dim=dim)
        sizes[form, dim] = model.config.hidden_size
    assert set(sizes.values()) == {16 * 4624, 16 * 121}
    assert sizes["distributed", 121] == 1936


# -------------------------------------------------------------------------------------------------- stock behaviour


@pytest.fixture(
    scope="module",
    params=[("semi_local", None), ("distributed", 25), pytest.param(("distributed", None), marks=pytest.mark.slow)],
)
def pargen(request: pytest.FixtureRequest) -> tuple[DATForCausalLM, Any]:
    form, dim = request.param
    sizes = {"max_position_embeddings": 16, "num_open_values": 7}
    return compiled(program_text("pargen"), embedding=form, filler_dim=dim, **sizes)


TEXTS = ["Q a b A b . Q c b A", "Q a x b A b x a Q c d x e A", "Q a A a . Q b A"]


def test_padding_and_generation_with_and_without_a_cache(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    model.config.backend = "dense"
    texts = TEXTS[::2]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    made = model.generate(**batch, max_new_tokens=3)
    assert torch.equal(made, model.generate(**batch, max_new_tokens=3, use_cache=False))
    whole = model.dat(**batch).last_hidden_state
    assert whole.shape[-1] == model.config.hidden_size
    model.config.backend = "gather"
    assert torch.equal(made, model.generate(**batch, max_new_tokens=3))
    assert torch.allclose(whole, model.dat(**batch).last_hidden_state, atol=1e-5)
    for row, text in enumerate(texts):
        alone = model.dat(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert torch.allclose(whole[row, -len(alone) :], alone, atol=1e-5)
        assert not whole[row, : -len(alone)].any()


def test_hooks_see_the_stream(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    model.config.backend = "dense"
    seen: list[Any] = []
    handle = model.dat.layers[3].register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        out = model(**tokenizer(TEXTS[0], return_tensors="pt"), output_hidden_states=True)
    finally:
        handle.remove()
    registers, reads = seen[0]
    assert len(registers) == (1 if model.config.embedding == "distributed" else model.config.num_registers)
    assert torch.equal(torch.cat(registers, -1)[0], out.hidden_states[4][0, :-1])
    assert reads.shape == (1, 1, len(TEXTS[0].split()), len(TEXTS[0].split()))


def test_save_and_load(pargen: tuple[DATForCausalLM, Any], tmp_path: Path) -> None:
    model, tokenizer = pargen
    model.config.backend = "dense"
    model.save_pretrained(tmp_path)
    loaded = DATForCausalLM.from_pretrained(tmp_path)
    batch = tokenizer(TEXTS[2], return_tensors="pt")
    expected = model(**batch, output_hidden_states=True).hidden_states
    for other in (loaded, copy.deepcopy(model)):
        found = other(**batch, output_hidden_states=True).hidden_states
        assert all(torch.equal(new, old) for new, old in zip(found, expected, strict=True))
    assert (tmp_path / "model.safetensors").stat().st_size < 100_000  # no vector is in it


def test_half_precision() -> None:
    model, tokenizer = compiled(SPREAD, embedding="distributed")
    ids = torch.tensor([tokens(tokenizer, PROMPTS[0], "a")])
    expected = model.dat(ids)
    found = model.to(torch.bfloat16).dat(ids)
    assert found.last_hidden_state.dtype == torch.bfloat16
    assert torch.equal(found.register_values, expected.register_values)


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"filler_dim": 25}, "embedding='local'"),
        ({"embedding": "semi_local", "backend": "relaxed"}, "relaxed"),
        ({"embedding": "distributed", "filler_dim": 8, "num_open_values": 500}, "smallest filler_dim for it is 169"),
        ({"embedding": "distributed", "num_open_values": 20_000}, "smaller filler_dim"),
        ({"embedding": "dense"}, "embedding"),
        ({"embedding": "semi_local", "filler_dim": 2}, "at least 4"),
    ],
)
def test_configurations_that_are_refused(config: dict[str, Any], says: str) -> None:
    with pytest.raises(DATError, match=says):
        compiled(SPREAD, **{"num_open_values": 60, **config})


def test_the_relaxed_backend_is_refused_also_when_it_is_set_later() -> None:
    model, tokenizer = compiled(SPREAD, embedding="distributed")
    model.config.backend = "relaxed"
    with pytest.raises(DATError, match="one-hot"):
        model(torch.tensor([tokens(tokenizer, PROMPTS[0], "")]))


def test_the_bound_counts_the_constants_of_a_layer() -> None:
    """A match of `in` may have other constants' products too much, one of `not in` too little."""
    many = [f"c{i}" for i in range(5)]
    plain, _ = compiled(by_hand({"s": "s", "p": "p"}, {"s": "s", "p": "p"}))
    among, _ = compiled(by_hand({"s": "s", "p": "p"}, {"s": ["in", *many], "p": "p"}))
    none, _ = compiled(by_hand({"s": "s", "p": ["!=", "p"]}, {"s": ["not in", *many], "p": "p"}))
    assert [weakest_match(model.dat.program) for model in (plain, among, none)] == [1, 5, 6]


def test_no_matrix_maps_a_function_in_fewer_dimensions() -> None:
    model, _ = compiled(
        by_hand({"p": "p@pos_increment"}, {"p": "p"}), num_open_values=60, embedding="semi_local", filler_dim=25
    )
    with pytest.raises(DATError, match="pos_increment"):
        model.dat.to_dense(0)
    assert DATConfig().hidden_size == DATConfig(embedding="distributed").hidden_size
