"""Attentions, hidden states, hooks and further arguments: answered as in transformers, or refused by name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor, nn

from hf_mech.models.dat import DATEmbeddingError, DATError, DATForCausalLM, DATModel
from hf_mech.models.dat.dat_layer import DATProjection
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import compile_program, load_program
from hf_mech.programs.psl.library import program_text
from hf_mech.programs.psl.machine import Block, Layer
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import LIMIT, programs, prompts

EXACT = ("gather", "dense")  # at temperature 0 `relaxed` is `dense`, see test_backends.py
SWAP = "Q B V D E A D E V B . Q F G H V K L A"


def compiled(program: Program | str, backend: str = "gather", **config: Any) -> tuple[DATForCausalLM, Any]:
    config = {"max_position_embeddings": LIMIT, "num_open_values": 6, "relaxation_temperature": 0, **config}
    return compile_program(program, backend=backend, **config)


# ----------------------------------------------------------------------------------------------------------- attentions


class Watched(PSM):
    """The symbolic machine, with the cell that each cell read in each layer, in its last repetition."""

    def __init__(self, program: Program):
        super().__init__(program)
        self.reads: dict[tuple[int, int], int | None] = {}  # production from 0, N -> n
        self.numbers: dict[int, int] = {}
        self._number(self.block)

    def _number(self, block: Block) -> None:
        for statement in block:
            if isinstance(statement, Layer):
                self.numbers[id(statement.rule)] = statement.production - 1
            else:
                self._number(statement.body)

    def query(self, rule: Any, of_N: Any, functions: Any) -> Any:
        if id(rule) in self.numbers:  # not the condition of a block
            self.reads[self.numbers[id(rule)], self._cell(of_N)] = None
        return super().query(rule, of_N, functions)

    def update(self, rule: Any, of_N: Any, of_n: Any, functions: Any) -> Any:
        self.reads[self.numbers[id(rule)], self._cell(of_N)] = self._cell(of_n)
        return super().update(rule, of_N, of_n, functions)

    def _cell(self, state: Any) -> int:
        return int(state[self.system["position"]]) - 1


def expected_attentions(program: Program, prompt: list[str], limit: int) -> tuple[list[str], Tensor]:
    """The completion, and [layers, tokens, tokens]: the words, the end of the prompt, the completion but its last."""
    machine = Watched(program)
    completion = machine.run(prompt, max_new_tokens=3, max_position_embeddings=limit).completion
    cells = 1 + max(N for _, N in machine.reads)
    token_of = [cell + (cell >= len(prompt)) for cell in range(cells)]
    rows = torch.zeros(len(machine.numbers), cells + 1, cells + 1)
    for (layer, N), n in machine.reads.items():
        if n is not None:
            rows[layer, token_of[N], token_of[n]] = 1
    rows[:, len(prompt)] = rows[:, len(prompt) - 1]  # the end of the prompt has the state of its last word
    return completion[: cells - len(prompt)], rows


def check_attentions(program: Program, prompt: list[str], limit: int = LIMIT) -> None:
    try:
        completion, expected = expected_attentions(program, prompt, limit)
    except ProgramsError:
        return
    for backend in EXACT:
        model, tokenizer = compiled(program, backend, max_position_embeddings=limit, num_open_values=15)
        ids = tokenizer(" ".join(prompt), return_tensors="pt")["input_ids"]
        if completion:
            words = torch.tensor([tokenizer.convert_tokens_to_ids(completion)])
            ids = torch.cat([ids, words], 1)
        attentions = model(ids, output_attentions=True).attentions
        assert len(attentions) == model.config.num_hidden_layers
        assert torch.equal(torch.stack(attentions)[:, 0, 0], expected), backend


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(), prompts())
def test_attentions_are_the_cells_that_the_symbolic_machine_reads(program: Program, prompt: list[str]) -> None:
    check_attentions(program, prompt)


def test_attentions_of_pargen() -> None:
    """In P5b the Q and the V of the cue read those of the example."""
    program = load_program(program_text("pargen"))
    check_attentions(program, SWAP.split(), limit=24)
    model, tokenizer = compiled(program, max_position_embeddings=24, num_open_values=15)
    attention = model(**tokenizer(SWAP, return_tensors="pt"), output_attentions=True).attentions[13]
    assert attention.shape == (1, 1, 20, 20)
    assert attention[0, 0].nonzero().tolist() == [[11, 0], [15, 2]]


# -------------------------------------------------------------------------------------------- batches, caches, backends


@pytest.fixture(params=EXACT)
def pargen(request: pytest.FixtureRequest) -> tuple[DATForCausalLM, Any]:
    return compiled(program_text("pargen"), request.param, max_position_embeddings=18, num_open_values=7)


PROMPTS = ["Q a b A b . Q c b A", "Q a x b A b x a Q c d x e A", "Q a A a . Q b A"]


def outputs(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Attentions [layers, batch, length, length] and hidden states [layers + 1, batch, length, hidden]."""
    made = model(**batch, output_attentions=True, output_hidden_states=True)
    return torch.stack(made.attentions)[:, :, 0], torch.stack(made.hidden_states)


def test_a_row_of_a_padded_batch_has_the_outputs_of_that_row_alone(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    batch = tokenizer(PROMPTS, padding=True, return_tensors="pt")
    attentions, hidden = outputs(model, batch)
    for row, prompt in enumerate(PROMPTS):
        alone_attentions, alone_hidden = outputs(model, tokenizer(prompt, return_tensors="pt"))
        size = alone_attentions.shape[2]
        assert torch.equal(attentions[:, row, -size:, -size:], alone_attentions[:, 0])
        assert torch.equal(hidden[:, row, -size:], alone_hidden[:, 0])
        assert not attentions[:, row, :-size].any()
        assert not attentions[:, row, :, :-size].any()
        assert not hidden[:, row, :-size].any()


def test_generate_gives_the_outputs_of_every_step(pargen: tuple[DATForCausalLM, Any]) -> None:
    """With the cache a row for each new word, over all tokens so far: those of the whole text."""
    model, tokenizer = pargen
    batch = tokenizer(PROMPTS, padding=True, return_tensors="pt")
    length = batch["input_ids"].shape[1]
    options = {"return_dict_in_generate": True, "output_attentions": True, "output_hidden_states": True}
    made = model.generate(**batch, max_new_tokens=3, **options)
    steps = len(made.attentions)
    assert steps == made.sequences.shape[1] - length > 2
    mask = torch.cat([batch["attention_mask"], torch.ones(3, steps - 1)], 1)
    attentions, hidden = outputs(model, {"input_ids": made.sequences[:, :-1], "attention_mask": mask})
    for step in range(steps):
        rows = slice(0, length) if step == 0 else slice(length + step - 1, length + step)
        for found, expected in (
            (torch.stack(made.attentions[step])[:, :, 0], attentions[:, :, rows, : length + step]),
            (torch.stack(made.hidden_states[step]), hidden[:, :, rows]),
        ):
            assert torch.equal(found, expected)
    beams = model.generate(**batch, max_new_tokens=3, num_beams=2, **options)
    assert torch.equal(beams.sequences, made.sequences)
    assert beams.attentions[-1][0].shape == (6, 1, 1, length + steps - 1)


def test_hidden_states_are_the_states_of_the_trace(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    batch = tokenizer(PROMPTS[1], "e", return_tensors="pt")
    made = model.dat(**batch, output_hidden_states=True)
    assert len(made.hidden_states) == model.config.num_hidden_layers + 1
    assert torch.equal(made.hidden_states[-1], made.last_hidden_state)
    shape = (model.config.num_registers, model.config.vocab_size)
    found = torch.stack([states.unflatten(-1, shape).argmax(-1) for states in made.hidden_states])[:, 0]
    prompt, word = ({s.layer: s.values[0] for s in group} for group in model.dat.trace(batch["input_ids"]))
    end = found.shape[1] - 2
    for index, layer in enumerate([None, *range(model.config.num_hidden_layers)]):
        assert torch.equal(found[index, :end], prompt[layer])
        assert torch.equal(found[index, end], prompt[layer][-1])
        assert torch.equal(found[index, end + 1 :], word[layer])


def test_outputs_that_the_configuration_wants(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    batch = tokenizer(PROMPTS, padding=True, return_tensors="pt")
    plain = model(**batch)
    assert (plain.attentions, plain.hidden_states) == (None, None)
    model.config.output_attentions = model.config.output_hidden_states = True
    made = model(**batch, logits_to_keep=1)
    assert torch.equal(made.logits, plain.logits[:, -1:])
    assert made.attentions[0].shape == (3, 1, *batch["input_ids"].shape[1:] * 2)
    assert made.hidden_states[0].shape == (*batch["input_ids"].shape, model.config.hidden_size)
    assert len(model(**batch, return_dict=False, use_cache=False)) == 3
    none = model.dat(**batch, output_attentions=False, output_hidden_states=False)
    assert (none.attentions, none.hidden_states) == (None, None)


def test_padding_alone_reads_nothing(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    cache = model(**tokenizer(PROMPTS[0], return_tensors="pt")).past_key_values
    made = model(torch.tensor([[0]]), past_key_values=cache, output_attentions=True, output_hidden_states=True)
    assert not torch.stack(made.attentions).any()
    assert made.attentions[0].shape == (1, 1, 1, cache.get_seq_length())
    assert not torch.stack(made.hidden_states).any()


def test_soft_attentions_of_the_relaxed_backend() -> None:
    """(footnote 13): they sum to the probability of a match, and have gradients."""
    model, tokenizer = compiled(
        program_text("pargen"), "relaxed", relaxation_temperature=0.2, max_position_embeddings=24, num_open_values=12
    )
    made = model(**tokenizer(PROMPTS, padding=True, return_tensors="pt"), output_attentions=True)
    sums = torch.stack(made.attentions).detach().sum(-1)
    assert 0 < sums.max().item() <= 1 + 1e-5
    made.attentions[13].sum().backward()
    assert model.dat.layers[13].query.weight.grad is not None


# ---------------------------------------------------------------------------------------------------------------- hooks


def layers_of(model: DATForCausalLM) -> list[nn.Module]:
    return [model.dat.layers[3], model.dat.layers[5].query]


@pytest.mark.parametrize(("which", "register"), [(0, "register_forward_pre_hook"), (1, "register_forward_hook")])
def test_a_hook_on_a_layer_fires_or_is_refused(pargen: tuple[DATForCausalLM, Any], which: int, register: str) -> None:
    model, tokenizer = pargen
    batch, fired = tokenizer(PROMPTS[0], return_tensors="pt"), []
    handle = getattr(layers_of(model)[which], register)(lambda *arguments: fired.append(1))
    if model.config.backend == "gather":
        for run in (model, model.dat, partial(model.generate, max_new_tokens=2)):
            with pytest.raises(DATError, match=r"'[35].*hooks.*'dense'.*output_hidden_states"):
                run(**batch)
    else:
        model(**batch)
        assert fired
    handle.remove()
    fired.clear()
    model(**batch)
    assert not fired


def test_a_hook_on_the_base_model_fires_or_is_refused(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    batch, fired = tokenizer(PROMPTS[0], return_tensors="pt"), []
    model.dat.register_forward_hook(lambda *arguments: fired.append(1))
    model.dat(**batch)
    assert fired == [1]
    with pytest.raises(DATError, match="would never run"):
        model(**batch)


# ------------------------------------------------------------------------------------------------ arguments, embeddings


@pytest.mark.parametrize("name", ["position_ids", "inputs_embeds", "token_type_ids", "outptu_attentions"])
def test_an_unknown_argument_is_refused_by_name(name: str) -> None:
    model, tokenizer = compiled(program_text("pargen"), max_position_embeddings=24)
    batch = tokenizer(PROMPTS[2], return_tensors="pt")
    given = torch.zeros(1, 9, 4) if name == "inputs_embeds" else torch.arange(9)[None]
    generate = partial(model.generate, max_new_tokens=2)
    for call, error in ((model, TypeError), (model.dat, TypeError), (generate, (TypeError, ValueError))):
        with pytest.raises(error, match=name):
            call(**batch, **{name: given})


def test_the_loss_is_divided_by_num_items_in_batch() -> None:
    model, tokenizer = compiled(program_text("pargen"), "relaxed", max_position_embeddings=24)
    batch = tokenizer(PROMPTS[2], return_tensors="pt")
    mean = model(**batch, labels=batch["input_ids"]).loss
    total = model(**batch, labels=batch["input_ids"], num_items_in_batch=torch.tensor(1)).loss
    assert mean > 0
    assert torch.allclose(total, mean * (batch["input_ids"].shape[1] - 1))


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.get_input_embeddings(),
        lambda model: model.set_input_embeddings(nn.Embedding(3, 3)),
        lambda model: model.resize_token_embeddings(99),
        lambda model: model.resize_token_embeddings(99, pad_to_multiple_of=8),
    ],
)
def test_there_are_no_embeddings(ask: Callable[[Any], Any]) -> None:
    model, _ = compiled(program_text("pargen"), max_position_embeddings=24)
    for asked in (model, model.dat):
        with pytest.raises(DATEmbeddingError, match=r"A DAT has no embeddings: .* num_open_values"):
            ask(asked)
    assert model.get_output_embeddings() is None


# ------------------------------------------------------------------------------------------------- weights that changed


def other_weights(model: DATModel) -> list[Callable[[], None]]:
    """Ways of changing a weight: in place, another parameter, another state."""
    projection = model.layers[2].value
    state = {name: weight + 1 for name, weight in model.state_dict().items()}

    def assign() -> None:
        projection.weight = nn.Parameter(projection.weight.detach() + 1)

    def in_place() -> None:
        with torch.no_grad():
            projection.weight.add_(1)

    return [in_place, assign, lambda: model.load_state_dict(state) and None, lambda: load_assigned(model, state)]


def load_assigned(model: DATModel, state: dict[str, Tensor]) -> None:
    model.load_state_dict(state, assign=True)


@pytest.mark.parametrize("way", range(4))
def test_every_change_of_the_weights_is_noticed(way: int) -> None:
    model, tokenizer = compiled(program_text("pargen"), max_position_embeddings=24)
    batch = tokenizer(PROMPTS[2], return_tensors="pt")
    model(**batch)
    other_weights(model.dat)[way]()
    for changed in (model, copy.deepcopy(model)):
        with pytest.raises(DATError, match="others now"):
            changed(**batch)
    model.dat.recompile()
    model(**batch)


def test_unchanged_weights_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls compare versions, without a walk over the parameters or a look at their values."""
    model, tokenizer = compiled(program_text("pargen"), max_position_embeddings=24)
    batch = tokenizer(PROMPTS[2], return_tensors="pt")
    model(**batch)
    for owner, name in ((nn.Module, "named_modules"), (nn.Module, "named_parameters"), (DATProjection, "is_compiled")):
        monkeypatch.setattr(owner, name, lambda *arguments, **options: pytest.fail("a walk"))
    model.dat._check_compiled()
