"""Registers that a prompt sets in its cells, in the three machines and in the model: `prompt: [...]`."""

from __future__ import annotations

import pytest
import torch

from hf_mech.models.dat import DATForCausalLM, DATTokenizer
from hf_mech.models.dat.dat_program import DATError
from hf_mech.programs.errors import ProgramsError, PSLError
from hf_mech.programs.psl import PSM, QKVM, QKVLProgram, compile_program, load_program, lower_program
from hf_mech.programs.psl.network import DAT

CHOOSE = """
registers: {symbol: 's', position: 'p', marked: 'm', to: 't', seen: 'e'}
system: {symbol: symbol, position: position, output: symbol}
initial: {marked: "no"}
prompt: [marked, to]
values: {marked: ["no", "yes"]}
where marked[n] == "yes":
    seen[N] = symbol[n]
where position[n] == to[N]:
    symbol[N] = symbol[n]
"""
WORDS = "red green blue"
REGISTERS = {"marked": [None, "yes", None], "to": ["3", None, "1"]}


def network(**config) -> tuple[DATForCausalLM, DATTokenizer]:
    return compile_program(CHOOSE, max_position_embeddings=8, num_open_values=16, **config)


@pytest.mark.parametrize("backend", ["gather", "dense"])
def test_the_three_machines_begin_with_them(backend):
    program = load_program(CHOOSE)
    run = PSM(program).run(WORDS, registers=REGISTERS, max_new_tokens=1)
    assert [cell["symbol"] for cell in run.final] == ["blue", "green", "red"]
    assert {cell["seen"] for cell in run.final} == {"green"}
    assert [cell["marked"] for cell in run.final] == ["no", "yes", "no"]
    lowered = QKVLProgram.from_json(lower_program(program).to_json())
    assert lowered.prompt == ("m", "t")
    assert QKVM(lowered).run(WORDS, registers=REGISTERS, max_new_tokens=1) == run
    assert DAT(*network(backend=backend)).run(WORDS, 1, registers=REGISTERS) == run


def test_a_batch_with_padding_and_a_completion_has_those_of_each_text_alone():
    model, tokenizer = network()
    texts, registers = ["red green blue", "green"], [REGISTERS, {"to": ["1"]}]
    batch = tokenizer(texts, registers=registers, padding=True, return_tensors="pt")
    assert batch["register_values"].shape == (*batch["input_ids"].shape, 5)
    said = model.generate(**batch, max_new_tokens=2)
    for row, text, own in zip(said, texts, registers, strict=True):
        alone = tokenizer(text, registers=own, return_tensors="pt")
        assert alone["register_values"].shape[0] == 1
        expected = model.generate(**alone, max_new_tokens=2)[0]
        assert row.tolist()[-len(expected) :] == expected.tolist()
        torch.testing.assert_close(model.generate(**alone, max_new_tokens=2, use_cache=False)[0], expected)
        words = PSM(load_program(CHOOSE)).run(text, registers=own, max_new_tokens=2).completion
        assert tokenizer.decode(expected[-2:]).split() == words


def test_a_saved_model_and_tokenizer_take_them(tmp_path):
    for part in network():
        part.save_pretrained(tmp_path)
    model, tokenizer = DATForCausalLM.from_pretrained(tmp_path), DATTokenizer.from_pretrained(tmp_path)
    batch = tokenizer(WORDS, registers=REGISTERS, return_tensors="pt")
    values = model.dat(**batch).register_values[0, :3]
    symbol = tokenizer.registers.index("symbol")
    assert tokenizer.decode(values[:, symbol]) == "blue green red"


@pytest.mark.parametrize(
    ("registers", "said"),
    [
        ({"seen": ["red"] * 3}, "may set the registers marked, to, got 'seen'"),
        ({"to": ["1"]}, "a value or None for each of 3 words"),
        ({"to": "123"}, "a value or None for each of 3 words"),
        ({"to": ["", None, None]}, "at least one character"),
        ({"marked": ["maybe", None, None]}, "'marked' may hold no, yes, got 'maybe'"),
    ],
)
def test_what_cannot_be_set_is_refused(registers, said):
    for machine in (PSM(load_program(CHOOSE)), QKVM(lower_program(load_program(CHOOSE))), DAT(*network())):
        with pytest.raises(ProgramsError, match=said):
            machine.run(WORDS, registers=registers)


def test_the_model_and_the_tokenizer_refuse_them_too():
    model, tokenizer = network()
    with pytest.raises(DATError, match=r"registers are .*got 'colour'"):
        tokenizer(WORDS, registers={"colour": ["red"] * 3})
    with pytest.raises(DATError, match="each of 3 words"):
        tokenizer(WORDS, registers={"to": ["1"]})
    with pytest.raises(DATError, match="those of 2 texts, got 1"):
        tokenizer([WORDS, WORDS], registers=[REGISTERS])
    batch = tokenizer(WORDS, registers=REGISTERS, return_tensors="pt")
    values = batch.pop("register_values")
    wrong = values.clone()
    wrong[0, 0, tokenizer.registers.index("seen")] = 1
    with pytest.raises(DATError, match=r"may set the registers m, t, got values of e"):
        model(**batch, register_values=wrong)
    with pytest.raises(DATError, match=r"integers \(1, 4, 5\)"):
        model(**batch, register_values=values[..., 0])
    with pytest.raises(DATError, match="between 0 and"):
        model(**batch, register_values=values.masked_fill(values != -100, 10_000))
    wrong = values.clone()
    wrong[0, -1] = values[0, 0]
    with pytest.raises(DATError, match="no word of the prompt"):
        model(**batch, register_values=wrong)
    cache = model(**batch, register_values=values, use_cache=True).past_key_values
    with pytest.raises(DATError, match="the cache has read the prompt"):
        model(torch.tensor([[2]]), past_key_values=cache, register_values=values[:, :1])


@pytest.mark.parametrize(
    ("section", "said"),
    [("[position]", "has the role `position`"), ("[hue]", "hue"), ("[symbol]", "the role `symbol`")],
)
def test_a_program_that_lets_a_prompt_set_another_register_is_refused(section, said):
    with pytest.raises(PSLError, match=said):
        load_program(CHOOSE.replace("[marked, to]", section))
