"""Texts that are judged by rules: the formulas, the splits, and the program that evaluates the rules."""

from __future__ import annotations

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data.random_numbers import Draws
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import PSM, load_program
from hf_mech.programs.rules.formulas import (
    DEEPEST,
    DEPTHS,
    EXCEPTIONS,
    PROPERTIES,
    RULE,
    SPLITS,
    TRIGGERS_OF,
    WORDS,
    RuleSettings,
    draw_formula,
    generate,
    generate_rows,
    read_formula,
    truths_of,
)
from hf_mech.programs.rules.program import POSITIONS, rule_config, rule_program, rule_tokenizer


def test_a_formula_is_what_is_written() -> None:
    for index in range(200):
        formula = draw_formula(Draws(f"test/{index}"), index % (DEEPEST + 1))
        assert formula.depth == index % (DEEPEST + 1)
        assert read_formula(formula.words) == formula
        own = " ".join(formula.words).replace("(", "( ").replace(")", " )")
        truths = {name: bool(index >> i & 1) for i, name in enumerate(PROPERTIES)}
        assert formula.holds(truths) == eval(own, dict(truths))


@pytest.mark.parametrize("text", ["", "( A and B", "A B", "not not A", "( A xor B )", "E"])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(ProgramsError):
        read_formula(text.split())


@pytest.mark.parametrize("split", SPLITS)
def test_the_rows_of_a_split(split: str) -> None:
    examples = list(generate(split, stop=300))
    assert 110 < sum(example.label for example in examples) < 190
    assert {example.depth for example in examples} == set(DEPTHS[split])
    for example in examples:
        text, rule = (part.split() for part in example.prompt.split(f" {RULE} "))
        formula, truths = read_formula(rule), truths_of(text)
        assert set(text) <= set(WORDS)
        assert (int(formula.holds(truths)), tuple(truths.values())) == (example.label, example.truths)
        if example.depth <= 2:
            assert formula.joins_held_out == (split == "combinations")
        assert len(example.prompt.split()) <= POSITIONS


def test_no_prompt_is_in_two_splits() -> None:
    prompts = {split: {example.prompt for example in generate(split, stop=2_000)} for split in SPLITS}
    for split, own in prompts.items():
        others = set().union(*(texts for name, texts in prompts.items() if name != split))
        assert own.isdisjoint(others)


def test_words_have_one_meaning_at_most() -> None:
    assert len(set(WORDS)) == len(WORDS)
    triggers = [word for own in TRIGGERS_OF.values() for word in own]
    assert len(set(triggers)) == len(triggers)


def test_exceptions_take_a_property_away() -> None:
    splits = load_dataset("hf_mech/rules", "comments", num_train=2_000, num_eval=8, exceptions=True)
    given = taken = 0
    for row in splits["train"]:
        text, rule = row["prompt"].split(f" {RULE} ")
        words = text.split()
        for name, has in zip(PROPERTIES, row["truths"], strict=True):
            trigger = any(word in TRIGGERS_OF[name] for word in words)
            assert has == (trigger and EXCEPTIONS[name] not in words)
            given, taken = given + trigger, taken + (trigger and not has)
        assert row["label"] == read_formula(rule.split()).holds(dict(zip(PROPERTIES, row["truths"], strict=True)))
    assert 0.1 < taken / given < 0.3


def test_load_dataset_gives_the_generators_rows() -> None:
    splits = load_dataset("hf_mech/rules", "comments", num_train=40, num_eval=8)
    assert {split: len(rows) for split, rows in splits.items()} == {s: 40 if s == "train" else 8 for s in SPLITS}
    for split, rows in splits.items():
        wanted = generate(split, stop=len(rows))
        assert [(row["prompt"], row["label"], tuple(row["truths"])) for row in rows] == [
            (example.prompt, example.label, example.truths) for example in wanted
        ]
    shards = [table for shard in range(16) for table in generate_rows(RuleSettings(num_train=40), "train", shard)]
    assert [text for table in shards for text in table["prompt"].to_pylist()] == splits["train"]["prompt"][:]


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ProgramsError, match="num_train must be a whole number, 1 or more, got 0"):
        RuleSettings(num_train=0)
    with pytest.raises(ProgramsError, match="one of train, test"):
        next(generate("dev"))


@pytest.mark.parametrize("split", SPLITS)
def test_the_program_evaluates_rules_in_the_symbolic_machine(split: str) -> None:
    """With its estimate replaced by a copy of the symbol, and the symbol by the truth value."""
    text = rule_program().replace("symbol[N] in [A, B, C, D]", "symbol[N] in [TRUE, FALSE]")
    machine = PSM(load_program(text.replace("value[N] = JUDGED", "value[N] = symbol[N]")))
    for example in generate(split, stop=15):
        names = dict(zip(PROPERTIES, ("T" if truth else "F" for truth in example.truths), strict=True))
        rule = example.prompt.split(f" {RULE} ")[1].split()
        words = " ".join(names.get(word, word) for word in rule)
        (steps,) = machine.run(words, max_new_tokens=0).trace[:1]
        assert steps[-1].cells[-1]["value"] == ("T" if example.label else "F")


def test_a_tokens_id_is_the_neuron_of_its_value() -> None:
    config = rule_config()
    tokenizer = rule_tokenizer(config)
    assert len(tokenizer) == config.vocab_size
    for value in ("A", "and", "(", "T", "7"):
        assert tokenizer.convert_tokens_to_ids(value) == config.values.index(value)
    ids = tokenizer("dan : A")["input_ids"]
    assert tokenizer.unk_token_id not in tokenizer(" ".join(WORDS))["input_ids"]
    assert len(ids) == 3
