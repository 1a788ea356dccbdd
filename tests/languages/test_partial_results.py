"""Partial results of expressions, checked by Python's own arithmetic."""

import re

import numpy as np
import pytest
import torch

from hf_mech.languages import (
    BRACKETED,
    TASKS,
    DataCollatorForFormalLanguages,
    LanguagesError,
    formal_language_tokenizer,
    fresh_batch,
    test_batch,
)
from hf_mech.languages.rows import partial_results_of


def by_python(text: str) -> list[str]:
    """The value of every bracket at its closing bracket, by `eval`, with the unknown as zero; and the unknown's sign,
    behind the operands that hold it."""
    results, opened = [""] * len(text), [0]
    for place, symbol in enumerate(text):
        if symbol == "(":
            opened.append(place + 1)
        elif symbol == ")":
            results[place] = str(eval(text[opened.pop() : place].replace("x", "0")) % 5)
        elif symbol == "=" or (symbol in "+-*" and text[place - 1] not in "(+-*" and place > 0):
            operand = text[opened[-1] : place]
            if "x" in operand:
                results[place] = "+" if eval(operand.replace("x", "1")) > eval(operand.replace("x", "0")) else "-"
    return results


@pytest.mark.parametrize("name", BRACKETED)
@pytest.mark.parametrize("length", [3, 4, 9, 24, 41])
def test_partial_results_are_what_python_says(name: str, length: int):
    tokenizer, symbols = formal_language_tokenizer(name), TASKS[name].inputs
    ids = test_batch(name, "mlm", seed=1, length=length, count=20)["input_ids"][:, 1 : 1 + length]
    texts = ["".join(tokenizer.convert_ids_to_tokens(row.tolist())) for row in ids]
    inputs = np.array([[symbols.index(symbol) for symbol in text] for text in texts])
    assert partial_results_of(name, inputs).tolist() == [by_python(text) for text in texts]


@pytest.mark.parametrize("layout", ["mlm", "alm"])
def test_labels_of_partial_results_are_those_of_the_answer_and_of_the_brackets(layout):
    name, tokenizer = "solve_equation", formal_language_tokenizer("solve_equation")
    settings = {"seed": 3, "step": 0, "batch_size": 7, "max_length": 30}
    plain, taught = (fresh_batch(name, layout, **settings, partial_results=taught) for taught in (False, True))
    assert torch.equal(plain["input_ids"], taught["input_ids"])
    answered = plain["labels"] >= 0
    assert torch.equal(plain["labels"][answered], taught["labels"][answered])
    said_at = 0 if layout == "mlm" else 1  # a causal model says a label one place earlier
    for ids, labels, answers in zip(taught["input_ids"], taught["labels"], answered, strict=True):
        text = "".join(tokenizer.convert_ids_to_tokens(ids.tolist()))
        text = re.sub(r"\[BOS\]", "", text).split("[")[0]
        shown = [tokenizer.convert_tokens_to_ids(result) if result else -100 for result in by_python(text)]
        assert labels[~answers][1 + said_at : 1 + said_at + len(text)].tolist() == shown


def test_the_collator_labels_them_too():
    tokenizer = formal_language_tokenizer("modular_arithmetic")
    row = {"inputs": [TASKS["modular_arithmetic"].inputs.index(s) for s in "((4)*2)"], "outputs": [3]}
    batch = DataCollatorForFormalLanguages(tokenizer, "mlm", partial_results=True)([row])
    at = {place: tokenizer.convert_ids_to_tokens(int(x)) for place, x in enumerate(batch["labels"][0]) if x >= 0}
    assert at == {4: "4", 7: "3", 8: "3"}


def test_tasks_without_brackets_are_refused():
    with pytest.raises(LanguagesError, match="modular_arithmetic and solve_equation, got 'reverse_string'"):
        fresh_batch("reverse_string", "mlm", seed=0, step=0, batch_size=1, partial_results=True)
    with pytest.raises(LanguagesError, match="got 'reverse_string'"):
        DataCollatorForFormalLanguages(formal_language_tokenizer("reverse_string"), partial_results=True)


@pytest.mark.parametrize(("text", "fault"), [("1)", "row 0 do not match: one closes"), ("((1)", "1 stay open")])
def test_brackets_that_do_not_match_are_refused(text: str, fault: str):
    symbols = TASKS["modular_arithmetic"].inputs
    with pytest.raises(LanguagesError, match=fault):
        partial_results_of("modular_arithmetic", np.array([[symbols.index(symbol) for symbol in text]]))
