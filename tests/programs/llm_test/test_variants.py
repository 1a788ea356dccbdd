"""The prompts of Tables 2 and 6 to 10 are what the paper says of them, and every one has the answer it comes with."""

from itertools import chain, islice

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.llm_test.report import TABLES
from hf_mech.programs.llm_test.variants import ALL_SPLITS, GRAMMAR, SYSTEM_PROMPT, Variant, prompts_of, system_prompt
from hf_mech.programs.templatic.grammar import generate, prompt_at
from hf_mech.programs.templatic.tasks import TASKS
from tests.programs.templatic.regex_solver import solve

ROWS = [row for rows in TABLES.values() for row in rows]
VARIANTS = list(dict.fromkeys(row.variant for row in ROWS))


def lengths(values):
    return {len(value) for value in values}


def symbols(prompt):
    return list(chain.from_iterable(chain(*prompt.shots, prompt.cue)))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_answer_is_right_and_prompts_depend_on_the_seed_alone(variant):
    prompts = prompts_of(variant, seed=3, count=40)
    assert [solve(prompt.text) for prompt in prompts] == [prompt.completion for prompt in prompts]
    assert len({prompt.text for prompt in prompts}) > 35  # short ones may come twice
    assert prompts_of(variant, seed=3, count=7) == prompts[:7]
    assert prompts_of(variant, seed=4, count=40) != prompts


@pytest.mark.parametrize("task", TASKS)
def test_a_split_as_it_is(task):
    rows = list(generate(task, "ood_lexical", seed=1, stop=5))
    ours = prompts_of(Variant(task, "ood_lexical"), seed=1, count=5)
    assert [(prompt.text, prompt.completion) for prompt in ours] == [(row.prompt, row.completion) for row in rows]


@pytest.mark.parametrize(("count", "length"), [(1, 1), (2, 1), (1, 2), (None, 2), (4, None)])
def test_prompts_of_one_count_and_length_are_those_of_the_split(count, length):
    ours = prompts_of(Variant(con_count=count, con_length=length), seed=5, count=10)
    split = (prompt_at("1_shot_rlw", "test", 5, index) for index in range(35_000))
    fitting = (
        prompt
        for prompt in split
        if count in (None, len(prompt.cue))
        and (length is None or all(len(v) == length for v in chain(*prompt.shots, prompt.cue)))
    )
    assert ours == list(islice(fitting, 10))


@pytest.mark.parametrize(("k", "source"), [(4, 5), (7, 10), (6, 10), (1, 1), (10, 10)])
def test_fewer_shots_are_the_last_ones_of_the_next_larger_task(k, source):
    cut = prompts_of(Variant(f"{k}_shot_rlw"), count=10)
    for prompt, whole in zip(cut, prompts_of(Variant(f"{source}_shot_rlw"), count=10), strict=True):
        assert whole.text.endswith(prompt.text)
        assert prompt.text.split().count("Q") == k + 1
        assert prompt.completion == whole.completion


def test_lexical_shift_changes_the_letters_of_the_cue_alone():
    pairs = zip(
        prompts_of(Variant("5_shot_rlw", "dyn_ood_lexical"), count=20),
        prompts_of(Variant("5_shot_rlw"), count=20),
        strict=True,
    )
    for shifted, baseline in pairs:
        assert (shifted.template, shifted.shots) == (baseline.template, baseline.shots)
        assert all(symbol.isupper() for value in shifted.cue for symbol in value)
        assert shifted.text.lower() == baseline.text.lower()
        assert shifted.completion.lower() == baseline.completion


@pytest.mark.parametrize(
    ("split", "in_shots", "in_cue"),
    [("dyn_ood_cons_len", {1, 2, 4}, {7}), ("dyn_rev_cons_len", {7}, {1, 2, 4})],
)
def test_length_shift_changes_the_shots_or_the_cue(split, in_shots, in_cue):
    shifted, baseline = (prompts_of(Variant("5_shot_rlw", name), count=60) for name in (split, "test"))
    assert lengths(chain(*(shot for prompt in shifted for shot in prompt.shots))) == in_shots
    assert lengths(chain(*(prompt.cue for prompt in shifted))) == in_cue
    for ours, theirs in zip(shifted, baseline, strict=True):
        assert ours.template == theirs.template
        assert (ours.cue == theirs.cue) == (split == "dyn_rev_cons_len")
        assert (ours.shots == theirs.shots) == (split == "dyn_ood_cons_len")
        assert len(set(symbols(ours))) == len(symbols(ours))


def test_the_most_shots_and_constituents_find_words_enough():
    (prompt,) = prompts_of(Variant("10_shot_rlw", "dyn_rev_cons_len", con_count=4), count=1)
    assert len(prompt.shots) == 10
    assert solve(prompt.text) == prompt.completion


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"task": "11_shot_rlw"}, "11_shot_rlw"),
        ({"task": "0_shot_rlw"}, "got '0_shot_rlw'"),
        ({"task": "4_shot_eng"}, "k_shot_rlw with k from 1 to 10"),
        ({"split": "dyn"}, "dyn_ood_lexical, dyn_ood_cons_len, dyn_rev_cons_len"),
        ({"con_count": 3}, "con_count must be one of 1, 2, 4 in the split test, got 3"),
        ({"split": "ood_cons_len_7", "con_length": 2}, "con_length must be one of 7"),
        ({"split": "dyn_rev_cons_len", "con_length": 7}, "con_length must be left out"),
        ({"task": "1_shot_eng", "split": "dyn_ood_lexical"}, "two-letter words"),
    ],
)
def test_variants_that_there_are_not(settings, said):
    with pytest.raises(ProgramsError, match=said):
        Variant(**settings)


@pytest.mark.parametrize(
    ("seed", "count", "said"),
    [
        (-1, 1, "seed must be a whole number, 0 or more, got -1"),
        (0, 0, "count must be a whole number, 1 or more, got 0"),
        (0, True, "got True"),
        (0, 10_000, r"has \d+ prompts as 1_shot_rlw.ood_lexical.count-1 asks for, 10000 were asked for"),
    ],
)
def test_prompts_that_there_are_not(seed, count, said):
    with pytest.raises(ProgramsError, match=said):
        prompts_of(Variant(split="ood_lexical", con_count=1), seed, count)


def test_the_tables_agree_with_one_another():
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)
    for variant in VARIANTS:
        assert len({row.paper for row in ROWS if row.variant == variant}) == 1
    assert {row.variant.split for row in ROWS} == set(ALL_SPLITS) - {"train", "dev"}


def test_system_prompt_and_grammar():
    assert system_prompt() == SYSTEM_PROMPT
    assert system_prompt(grammar=True).startswith(SYSTEM_PROMPT + "\n\nThe grammar for these patterns")
    assert system_prompt(grammar=True).endswith(GRAMMAR)
    rules = [line.split(" ::= ") for line in GRAMMAR.splitlines()]
    used = {name for _, right in rules for name in right.replace("> ", ">\n").replace(" <", "\n<").split("\n")}
    used = {name for name in used if name.startswith("<")}
    assert used - {left for left, _ in rules} == {"<symbol>"}
    assert len(rules) == 9
