"""Samples of the grammar: every constraint of App. D, the property of every split, and that nothing but the key counts.

What a prompt is made of is read from its symbols here: words are letters, delimiters are special characters.
"""

import hashlib
import itertools
import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.data.random_numbers import Draws
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic import grammar
from hf_mech.programs.templatic.grammar import bucket, distinct, generate, is_echo, prompt_at, sample_template
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, words

ALL = [(task, split) for task in TASKS for split in SPLITS]

# App. D in terms of symbol classes: c a word, d a special character.
CONSTITUENT, DELIMITER = "c+", "d+"
CONSTITUENT_LIST = f"{CONSTITUENT}(?:{DELIMITER}{CONSTITUENT})*"
DC_SEQUENCE = f"{CONSTITUENT_LIST}(?:{DELIMITER})?"
TGT = re.compile(f"(?:Q{DC_SEQUENCE}A{DC_SEQUENCE}\\.)+Q{DC_SEQUENCE}A")


def classes(text):
    return "".join(s if s in ("Q", "A", ".") else "c" if s.isalpha() else "d" for s in text.split())


def split_regions(text):
    """Questions, the cue's last, and answers without their full stop, as lists of symbols."""
    parts = re.split(r"(?:^| )[QA](?: |$)", text)[1:-1]
    questions, answers = parts[::2], parts[1::2]
    return [q.split() for q in questions], [a.removesuffix(" .").split() for a in answers]


def constituents(region):
    """The runs of words of a region."""
    return [list(run) for is_word, run in itertools.groupby(region, str.isalpha) if is_word]


@pytest.mark.parametrize(("task", "split"), ALL)
def test_prompts_are_of_the_grammar(task, split):
    for example in generate(task, split, seed=1, stop=41):
        assert TGT.fullmatch(classes(example.prompt)), example
        assert re.fullmatch(DC_SEQUENCE + r"\.", classes(example.completion)), example
        assert example.prompt == " ".join(example.prompt.split())
        questions, answers = split_regions(example.prompt)
        answers.append(example.completion.removesuffix(" .").split())
        assert len(questions) == len(answers) == TASKS[task].shots + 1

        # No symbol is repeated within the <question>, within the <answer>, or within the <cue>.
        assert all(len(set(region)) == len(region) for region in (*questions, *answers))
        # Constituents of the <cue> and of the <question> share no symbol; here, no two examples do.
        used = [s for q in questions for c in constituents(q) for s in c]
        assert len(set(used)) == len(used)

        # (32): the same template in all; (32d-i, ii): an answer's constituents are the question's, whole, once.
        order = set()
        for question, answer in zip(questions, answers, strict=True):
            values, copies = constituents(question), constituents(answer)
            assert 1 <= len(copies) <= len(values)
            order.add(tuple(values.index(copy) for copy in copies))
        assert len(order) == 1
        for kind in (questions, answers):
            masked = {" ".join("*" if s.isalpha() else s for s in r) for r in kind}
            assert len({re.sub(r"\*( \*)*", "*", m) for m in masked}) == 1


@pytest.mark.parametrize(("task", "split"), ALL)
def test_a_split_has_its_counts_lengths_and_words(task, split):
    plan, shots = SPLITS[split], TASKS[task].shots
    counts, lengths, seen = Counter(), Counter(), set()
    for index, example in enumerate(generate(task, split, stop=41)):
        info = json.loads(example.info)
        questions, _ = split_regions(example.prompt)
        values = [constituents(q) for q in questions]
        assert {len(v) for v in values} == {len(values[0])}
        if is_echo(split, index):
            assert info == {"type": "echo"}
            continue
        assert info == {
            "type": "templatic",
            "cons_count": len(values[0]),
            "cons_len": [[len(c) for c in v] for v in values],
        }
        assert len(info["cons_len"]) == shots + 1
        counts[len(values[0])] += 1
        lengths.update(len(c) for v in values for c in v)
        seen.update(s for v in values for c in v for s in c)
    usual = {1, 2, 4}
    trained_counts, trained_lengths, own = {
        "1_shot_small": ({1, 2}, {1, 2}, 64),
        "1_shot_single": ({1}, usual, 80),
    }.get(task, (usual, usual, None))
    assert set(counts) == (trained_counts if len(plan.counts) > 1 else set(plan.counts))
    assert set(lengths) == (trained_lengths if len(plan.lengths) > 1 else set(plan.lengths))
    assert seen <= set(words(TASKS[task].vocabulary, plan.held_out)[:own])


@pytest.mark.parametrize(("task", "split"), ALL)
def test_a_task_has_words_enough_for_its_longest_prompt(task, split):
    own, plan = TASKS[task], SPLITS[split]
    most = (own.shots + 1) * max(own.counts(plan)) * max(own.lengths(plan))
    assert len(own.words(plan.held_out)) >= most


def test_the_splits_of_table_1():
    assert list(SPLITS) == [
        *("train", "dev", "test", "ood_lexical"),
        *(f"ood_cons_len_{n}" for n in (3, 5, 7, 10)),
        *(f"ood_cons_count_{n}" for n in (3, 5, 7, 10)),
    ]
    assert [SPLITS[s].lengths for s in list(SPLITS)[4:8]] == [(3,), (5,), (7,), (10,)]
    assert [SPLITS[s].counts for s in list(SPLITS)[8:]] == [(3,), (5,), (7,), (10,)]
    sizes = {name: task.size("train") for name, task in TASKS.items()}
    assert sizes.pop("1_shot_rlw_10x") == 2_800_000
    of_table = {"1_shot_rlw", "2_shot_rlw", "3_shot_rlw", "5_shot_rlw", "10_shot_rlw", "1_shot_eng"}
    assert set(sizes) == of_table | {"1_shot_small", "1_shot_single"}
    assert set(sizes.values()) == {280_000}
    assert {TASKS["1_shot_rlw_10x"].size(s) for s in ("dev", "test")} == {35_000}
    assert {TASKS["5_shot_rlw"].size(s) for s in SPLITS if s.startswith("ood")} == {8_400}


@pytest.mark.parametrize("task", ["1_shot_rlw", "1_shot_eng", "3_shot_rlw"])
def test_no_prompt_is_in_two_splits(task):
    """For any seeds and sizes: a rule on the text gives each prompt to one split alone."""
    allowed = {"train": range(8), "dev": [8], "test": [9], "ood_lexical": [9]}
    drawn = {}
    for split in SPLITS:
        prompts = [e.prompt for e in generate(task, split, seed=2, stop=120)]
        drawn[split] = set(prompts)
        for prompt in prompts:
            questions, _ = split_regions(prompt)
            assert bucket(questions[0][0], questions[-1][0]) in allowed.get(split, range(10))
    for one, other in itertools.combinations(SPLITS, 2):
        assert not drawn[one] & drawn[other]


def test_the_shortest_prompts_are_kept_apart_too():
    """The whole of the split that could meet echo prompts: one word a constituent, and no delimiter."""
    shortest = re.compile(r"Q \w+ A \w+ \. Q \w+ A")
    ood = {e.prompt for e in generate("1_shot_rlw", "ood_lexical") if shortest.fullmatch(e.prompt)}
    echo = {grammar.prompt_at("1_shot_rlw", "train", 0, i).text for i in range(280_000) if is_echo("train", i)}
    assert len(ood) > 50
    assert len(echo) > 6_900
    assert all(shortest.fullmatch(e) for e in echo)
    assert not ood & echo


@pytest.mark.parametrize(("task", "vocabulary"), [("1_shot_rlw", "rlw"), ("1_shot_eng", "eng"), ("5_shot_rlw", "rlw")])
def test_echo_prompts_bring_in_every_held_out_word_and_no_other_training_prompt_does(task, vocabulary):
    held_out = words(vocabulary, held_out=True)
    step = grammar.ECHO_EVERY
    echo = [prompt_at(task, "train", 0, i) for i in range(step - 1, step * len(held_out), step)]
    assert [p.cue for p in echo] == [((w,),) for w in held_out]
    for prompt in echo:
        assert len(prompt.shots) == TASKS[task].shots
        assert {s for ((s,),) in prompt.shots} <= set(held_out)
        assert prompt.completion == f"{prompt.cue[0][0]} ."
    assert not any(is_echo(split, i) for split in SPLITS if split != "train" for i in range(200))
    for example in generate(task, "train", stop=step - 1):
        assert not set(example.prompt.split()) & set(held_out)


def test_an_example_is_the_same_in_any_part_of_any_split():
    whole = list(generate("2_shot_rlw", "train", seed=7, stop=90))
    assert whole == [e for a in range(0, 90, 7) for e in generate("2_shot_rlw", "train", 7, a, min(a + 7, 90))]
    assert [prompt_at("2_shot_rlw", "train", 7, i).text for i in range(90)] == [e.prompt for e in whole]
    assert list(generate("2_shot_rlw", "train", seed=7, start=3, stop=3)) == []


def test_seeds_tasks_and_splits_have_their_own_examples():
    keys = [
        ("1_shot_rlw", "train", 0),
        ("1_shot_rlw", "train", 1),
        ("1_shot_rlw", "dev", 0),
        ("2_shot_rlw", "train", 0),
    ]
    texts = [tuple(e.prompt for e in generate(*key, stop=5)) for key in (*keys, ("1_shot_rlw_10x", "train", 0))]
    assert len(set(texts)) == 5


def test_the_examples_never_change():
    """Other prompts are another data set: results on this one would no longer be comparable."""
    table, small, single = (hashlib.sha256() for _ in range(3))
    for task, split in ALL:
        digest = {"1_shot_small": small, "1_shot_single": single}.get(task, table)
        for example in generate(task, split, stop=41):
            digest.update(f"{example.prompt}\t{example.completion}\t{example.info}\n".encode())
    assert table.hexdigest()[:16] == "9fe1bcf21d5c2334"
    assert small.hexdigest()[:16] == "45d3f89cb131b614"
    assert single.hexdigest()[:16] == "7242358b6ea4071f"


def test_templates_come_as_likely_as_the_docstring_says():
    drawn = [sample_template(Draws(f"template {i}"), (1, 2, 4)) for i in range(3000)]
    counts = Counter(t.count for t in drawn)
    assert all(abs(counts[n] - 1000) < 130 for n in (1, 2, 4))  # five standard deviations
    used = Counter(sum(isinstance(f, int) for f in t.answer) for t in drawn if t.count == 4)
    assert all(abs(used[n] - counts[4] / 4) < 80 for n in (1, 2, 3, 4))
    swapped = [t.answer for t in drawn if t.count == 2 and {0, 1} <= set(t.answer)]
    first = sum(answer.index(0) < answer.index(1) for answer in swapped)
    assert abs(first - len(swapped) / 2) < 5 * (len(swapped) / 4) ** 0.5
    last = sum(isinstance(t.question[-1], tuple) for t in drawn)
    assert abs(last - 1500) < 140
    lengths = Counter(len(f) for t in drawn for f in t.question if isinstance(f, tuple))
    assert set(lengths) == {1, 2}
    assert abs(lengths[1] - lengths[2]) < 5 * lengths.total() ** 0.5


@settings(max_examples=30)
@given(st.text(), st.integers(1, 50), st.data())
def test_draws_are_in_range_and_distinct(key, n, data):
    draws = Draws(key)
    assert all(0 <= draws.below(n) < n for _ in range(100))
    count = data.draw(st.integers(0, n))
    chosen = distinct(draws, n, count)
    assert len(chosen) == len(set(chosen)) == count
    assert all(0 <= i < n for i in chosen)
    again = Draws(key)
    assert [again.below(1 << 32) for _ in range(300)][:3] == [Draws(key).below(1 << 32), *_skip(Draws(key), 1, 2)]


def _skip(draws, skipped, taken):
    for _ in range(skipped):
        draws.below(2)
    return [draws.below(1 << 32) for _ in range(taken)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generate("4_shot_rlw"), r"task must be one of 1_shot_rlw, .*got '4_shot_rlw'"),
        (lambda: generate("1_shot_rlw", "valid"), r"split must be one of train, dev, .*got 'valid'"),
        (lambda: generate("1_shot_rlw", "dev", -1), "seed must be a whole number, 0 or more, got -1"),
        (lambda: generate("1_shot_rlw", "dev", 0, -1), "start must be .*got -1"),
        (lambda: generate("1_shot_rlw", "dev", stop=2.5), r"stop must be .*got 2\.5"),
        (lambda: TASKS["1_shot_rlw"].size("valid"), "split must be one of"),
        (lambda: distinct(Draws(""), 3, 4), "No 4 different symbols can be drawn out of 3"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(call, message):
    with pytest.raises(ProgramsError, match=message):
        call()
