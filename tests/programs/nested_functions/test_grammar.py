"""Samples: what each split promises, and that nothing but the key counts."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.nested_functions.calls import SPLITS, VOCABULARIES, Call, depth, split_named
from hf_mech.programs.nested_functions.grammar import bucket, generate, read_prompt


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("config", VOCABULARIES)
def test_every_split_is_as_described(config, name):
    lengths, split = set(), split_named(name, config)
    for example in generate(config, name, seed=1, stop=60):
        prompt = read_prompt(example.prompt)
        assert depth(prompt.expression) in split.depths
        assert len(prompt.definitions) in split.definitions
        assert {len(definition.parameters) for definition in prompt.definitions} <= set(split.arities)
        assert all(word.isupper() == split.held_out for word in re.findall(r"\w+", example.prompt))
        info = json.loads(example.info)
        assert info["depth"] == depth(prompt.expression)
        assert info["definitions"] == len(prompt.definitions)
        assert info["words"] == len(example.completion.split())
        assert len(example.prompt.split()) + info["words"] <= split.most_words
        lengths |= {len(argument) for argument in plain_arguments(prompt.expression)}
    assert lengths == set(split.lengths)


def test_a_split_departs_in_one_thing_from_the_training_of_its_configuration():
    train = split_named("train", "single")
    assert (train.definitions, train.lengths, train.depths) == ((1,), (1,), (1, 2))
    deep, several = split_named("ood_depth_4", "single"), split_named("ood_definitions_8", "single")
    assert replace(deep, depths=train.depths) == replace(train, name=deep.name, size=deep.size)
    assert replace(several, definitions=(1,)) == replace(train, name=several.name, size=several.size)
    assert split_named("train", "small") == SPLITS["train"]


def plain_arguments(text):
    for item in text:
        if isinstance(item, Call):
            for argument in item.arguments:
                if any(isinstance(part, Call) for part in argument):
                    yield from plain_arguments(argument)
                else:
                    yield argument


@pytest.mark.parametrize("config", ["rlw", "single"])
def test_only_the_bodies_of_one_split_have_calls(config):
    calls = {
        split: sum("(" in definition.partition("->")[2] for e in generate(config, split, stop=50)
                   for definition in e.prompt.split(" ; ")[:-1])
        for split in SPLITS
    }  # fmt: skip
    assert calls.pop("ood_bodies") > 20
    assert set(calls.values()) == {0}


def test_training_and_test_share_no_prompt_for_any_seeds():
    train = {example.prompt for seed in (0, 1) for example in generate("small", "train", seed, stop=3_000)}
    test = {example.prompt for seed in (0, 1) for example in generate("small", "test", seed, stop=300)}
    assert {bucket(prompt) for prompt in train} == set(range(9))
    assert {bucket(prompt) for prompt in test} == {9}
    assert len(train) > 5_900


def test_a_range_is_a_part_of_the_whole():
    whole = list(generate("rlw", "ood_depth_3", seed=2, stop=12))
    assert list(generate("rlw", "ood_depth_3", seed=2, start=5, stop=12)) == whole[5:]
    assert len({example.prompt for example in whole}) == 12
    assert next(generate("rlw", "ood_depth_3", seed=3)) != whole[0]


def test_the_stream_stays_the_same():
    """Published results depend on it."""
    text = "".join(f"{e.prompt}{e.completion}" for split in SPLITS for e in generate("rlw", split, stop=5))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "237887c73c0f0118"


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ProgramsError, match=r"split must be one of train, test, .*got 'dev'"):
        generate("rlw", "dev")
    with pytest.raises(ProgramsError, match="configuration must be one of rlw, small, single, got 'eng'"):
        generate("eng")
    with pytest.raises(ProgramsError, match="seed must be a whole number, 0 or more, got -1"):
        generate("rlw", "test", seed=-1)
