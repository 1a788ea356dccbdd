"""The Semi-formal Transformer: its biased heads are the program, its unbiased part is learned; the two stay apart."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hf_mech.models.dat import SemiFormalConfig, SemiFormalForSequenceClassification, SemiFormalModel
from hf_mech.models.dat.dat_embedding import Embedding, LocalFillers
from hf_mech.models.dat.dat_program import DATError, DATLengthError, DATRepeatError
from hf_mech.models.dat.semi_formal_heads import attention_entropy, biased_head_reference
from hf_mech.programs.rules.formulas import SPLITS, Example, generate
from hf_mech.programs.rules.program import rule_config, rule_tokenizer
from tests.models.dat.semi_formal_contract import PROGRAM, config, inputs


class Truths(nn.Module):
    """In the place of an estimate: the truth values of the examples' properties."""

    def __init__(self, ids: Tensor, examples: list[Example], properties: list[int]):
        super().__init__()
        logits = torch.zeros(*ids.shape, 2)
        for row, example in enumerate(examples):
            for index, truth in zip(properties, example.truths, strict=True):
                logits[row][ids[row] == index] = torch.tensor([99.0, -99.0] if truth else [-99.0, 99.0])
        self.logits = logits

    def forward(self, stream: Tensor) -> Tensor:
        return self.logits


def rule_model(**options: object) -> SemiFormalForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return SemiFormalForSequenceClassification(rule_config(**sizes, **options)).eval()


@pytest.mark.parametrize(
    ("split", "temperature"),
    [
        pytest.param(split, temperature, marks=[] if temperature == number % 2 else pytest.mark.slow)
        for number, split in enumerate(SPLITS)
        for temperature in (0, 1)
    ],
)
def test_with_true_properties_every_rule_is_evaluated(split: str, temperature: int) -> None:
    """At temperature 0 that is the program; at 1 the structure is as exact, whatever V_u holds."""
    model = rule_model(relaxation_temperature=temperature)
    tokenizer = rule_tokenizer(model.config)
    examples = list(generate(split, stop=6))
    batch = tokenizer([example.prompt for example in examples], padding=True, return_tensors="pt")
    properties = tokenizer.convert_tokens_to_ids(["A", "B", "C", "D"])
    estimates = model.semi_formal.heads[1].estimates
    assert len(estimates) == 1
    for name in estimates:
        estimates[name] = Truths(batch["input_ids"], examples, properties)
    with torch.no_grad():
        logits = model(**batch).logits
    assert logits.argmax(-1).tolist() == [example.label for example in examples]
    assert logits.amax(-1).min() > -1e-3


def test_an_uncertain_property_makes_the_rule_as_uncertain_as_probability_says() -> None:
    model = rule_model()
    tokenizer = rule_tokenizer(model.config)
    batch = tokenizer("dan : ( A and not ( B or not C ) )", return_tensors="pt")
    chances = {"A": 0.9, "B": 0.2, "C": 0.7}
    logits = torch.zeros(1, batch["input_ids"].shape[1], 2)
    for name, chance in chances.items():
        place = batch["input_ids"] == tokenizer.convert_tokens_to_ids(name)
        logits[place] = torch.tensor([chance, 1 - chance]).log()

    class Given(nn.Module):
        def forward(self, stream: Tensor) -> Tensor:
            return logits

    model.semi_formal.heads[1].steer_query.weight.data.zero_()
    for head in model.semi_formal.heads:
        head.steer_query.weight.data.zero_()
    for name in model.semi_formal.heads[1].estimates:
        model.semi_formal.heads[1].estimates[name] = Given()
    with torch.no_grad():
        said = model(**batch).logits.exp()[0, 1]
    assert float(said) == pytest.approx(0.9 * (0.8 * 0.7), abs=1e-3)


@pytest.mark.parametrize("index", range(4))
def test_a_biased_head_is_its_reference(index: int) -> None:
    """Registers that are distributions, all kinds of productions, in value and gradient."""
    torch.manual_seed(index)
    model = SemiFormalModel(config()).double()
    head, size = model.heads[index], model.config.vocab_size
    registers = [torch.rand(2, 5, size, dtype=torch.float64) for _ in model.program.registers]
    position = model.program.parts["position"]
    registers = [register / register.sum(-1, keepdim=True) for register in registers]
    registers = [register.clone().requires_grad_() for register in registers]
    registers[position] = nn.functional.one_hot(torch.arange(3, 8), size).double().expand(2, -1, -1)  # never written
    stream = torch.randn(2, 5, model.config.hidden_size, dtype=torch.float64, requires_grad=True)
    allowed = torch.ones(2, 5, 5, dtype=torch.bool)
    allowed[1, :, 4] = allowed[1, 4] = False
    cpu = torch.device("cpu")
    fillers = LocalFillers(size, model._functions(cpu), cpu, torch.float64)
    embedding = Embedding(fillers, len(registers))
    mixture = torch.randn(len(registers), 2, 5, size, dtype=torch.float64)
    found = []
    for outputs in (
        head(tuple(registers), allowed, fillers, 1, stream)[0],
        biased_head_reference(head, tuple(registers), allowed, embedding, stream),
    ):
        value = (torch.stack(outputs) * mixture).sum()
        learned = [*(own for own in registers if own.requires_grad), stream, head.steer_query.weight]
        found.append([torch.stack(outputs), *torch.autograd.grad(value, learned, allow_unused=True)])
    for fast, reference in zip(*found, strict=True):
        assert (fast is None) == (reference is None)
        if fast is not None:
            assert_close(fast, reference, rtol=1e-6, atol=1e-8)


def test_only_biased_heads_write_the_registers() -> None:
    """(92c): without estimates and steering, V_b is the same whatever V_u holds; V_u reads V_b, (92d)."""
    model = SemiFormalModel(config(estimates={})).eval()
    for head in model.heads:
        head.steer_query.weight.data.zero_()
    batch = inputs(2, 6, 0)
    with torch.no_grad():
        before = model(**batch)
        model.embeddings.weight.mul_(-2)
        changed = model(**batch)
        model.layers[0].read.weight.mul_(-2)
        read = model(**batch)
    assert torch.equal(before.biased_state, changed.biased_state)
    assert not torch.allclose(before.last_hidden_state, changed.last_hidden_state)
    assert torch.equal(before.biased_state, read.biased_state)
    assert not torch.allclose(changed.last_hidden_state, read.last_hidden_state)


def test_the_registers_stay_distributions() -> None:
    model = SemiFormalModel(config())
    state = model(**inputs(3, 7, 1)).biased_state.unflatten(-1, (len(model.program.registers), -1))
    assert (state > -1e-6).all()
    assert_close(state.sum(-1), torch.ones(3, 7, len(model.program.registers)))


def test_the_entropy_is_that_of_the_cell_that_is_read() -> None:
    weights = torch.tensor([[[1.0, 0, 0], [0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0]]])
    expected = torch.tensor([[0, 0, 2, 2]]) ** 0.5 / 2**0.5 * torch.tensor(2.0).log()
    assert_close(attention_entropy(weights), expected, atol=1e-6, rtol=0)


def test_the_loss_has_the_entropy_by_its_weight() -> None:
    batch = {**inputs(4, 6, 0), "labels": torch.tensor([0, 1, 0, 1])}
    torch.manual_seed(0)
    model = SemiFormalForSequenceClassification(config(attention_entropy_weight=0.5))
    entropy = model.semi_formal(batch["input_ids"]).attention_entropy.mean()
    assert entropy > 0.01
    with_it = model(**batch).loss
    model.config.attention_entropy_weight = 0
    assert_close(with_it - model(**batch).loss, 0.5 * entropy)


def test_the_program_is_not_trained_unless_asked_for() -> None:
    frozen, trained = (SemiFormalModel(config(train_program=own)) for own in (False, True))
    names = {name for name, parameter in trained.named_parameters() if not parameter.is_leaf}
    assert not names
    fixed = {name for name, parameter in frozen.named_parameters() if not parameter.requires_grad}
    assert fixed == {
        name for name, _ in frozen.named_parameters() if ".query." in name or ".key." in name or ".value." in name
    }
    assert all(parameter.requires_grad for parameter in trained.parameters())
    trained.load_state_dict(frozen.state_dict())
    batch = inputs(2, 6, 2)
    assert_close(frozen(**batch).biased_state, trained(**batch).biased_state)


@pytest.mark.parametrize("until", [{}, {"q": {"v": "v"}, "k": {"v": "3"}}], ids=["NO_CHANGE", "a condition"])
def test_a_block_that_does_not_end_is_an_error(until: dict[str, dict[str, str]]) -> None:
    flip = {"layer_comment": "flip", "causal_attn": False, "right_match": False}
    swap = {"q": {"p": "p"}, "k": {"p": "p"}, "v": {"v": "b", "b": "v"}}
    block = {"layer_comment": "for ever", "until": until, "bound": 5, "weights": [{**flip, "weights": swap}]}
    program = {**PROGRAM, "weights": [block], "initial": {"v": "no", "b": "yes"}}
    model = SemiFormalModel(SemiFormalConfig(qkvl=program, max_position_embeddings=9, num_open_values=9))
    with pytest.raises(DATRepeatError, match="'for ever' has not ended after 5 repetitions"):
        model(torch.tensor([[13, 14]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 15}, "multiple of num_attention_heads, got 15 and 2"),
        ({"estimates": {"perhaps": ["no"]}}, "estimates must name values of the program.*got 'perhaps'"),
        ({"label_values": ["nein", "yes"]}, "label_values must name values.*got 'nein'"),
        ({"relaxation_temperature": -1}, "relaxation_temperature must be 0 or more"),
        ({"pad_token_id": 3}, "pad_token_id is nil"),
    ],
)
def test_wrong_configurations_are_refused(options: dict[str, object], message: str) -> None:
    usual = {"qkvl": PROGRAM, "constants": ["no", "yes", "JUDGED"], "num_attention_heads": 2}
    with pytest.raises(DATError, match=message):
        SemiFormalConfig(**{**usual, **options})


def test_wrong_texts_are_refused() -> None:
    model = SemiFormalModel(config())
    with pytest.raises(DATError, match=r"rows \[1\] have none"):
        model(torch.tensor([[46, 47], [0, 0]]))
    with pytest.raises(DATLengthError):
        model(torch.full((1, 41), 46))
