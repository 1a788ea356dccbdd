"""The exact completer, on the paper's prompts and against a second solver; and the check of a prompt."""

import itertools
import random
import warnings

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import generate
from hf_mech.programs.templatic.parse import check_prompt, complete, violations
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, GrammarWarning
from tests.programs.templatic.paper_prompts import BOX_2, NINE, OUTSIDE
from tests.programs.templatic.regex_solver import solve

PROMPTS = {**NINE, **BOX_2, **OUTSIDE}
BREAK_APP_D = {"(7)"}  # "log" twice in an answer; the "a" of (1) has its place in both questions, as a delimiter has


@pytest.mark.parametrize("name", PROMPTS)
def test_the_prompts_of_the_paper(name):
    prompt, completion = PROMPTS[name]
    assert complete(prompt) == completion


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_two_solvers_find_the_data_sets_answers(task, split):
    for example in generate(task, split, seed=3, stop=20):
        assert complete(example.prompt) == solve(example.prompt) == example.completion


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_every_answer_of_the_one_shot_task(split):
    for example in generate("1_shot_rlw", split):
        assert solve(example.prompt) == example.completion


@pytest.mark.parametrize("task", TASKS)
def test_the_data_set_passes_the_check(task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for split in SPLITS:
            for example in generate(task, split, stop=10):
                assert check_prompt(example.prompt).text == example.prompt


@pytest.mark.parametrize("name", PROMPTS)
def test_of_the_papers_prompts_the_check_warns_of_one(name):
    prompt, completion = PROMPTS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert check_prompt(prompt).completion == completion
    assert bool(caught) == (name in BREAK_APP_D)
    assert all(w.category is GrammarWarning for w in caught)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("Q a - b b A a . Q c - d A", "'b': no symbol can be repeated within the <question> of example 1"),
        ("Q a - b A b . b Q c - d A", "'b': no symbol can be repeated within the <answer> of example 1"),
        ("Q a A ! a ! . Q b A", "'!': no symbol can be repeated within the <answer> of example 1"),
        ("Q a - b A b . Q c c - d A", "'c': no symbol can be repeated within the <cue>"),
        ("Q twice x A x x Q twice a b A", "'x': no symbol can be repeated within the <answer>"),
        ("Q a - b A b . Q c - d A d . Q a - e A", r"'a': .*<cue> cannot overlap .*<question> \(of example 1\)"),
    ],
)
def test_the_check_names_the_constraint(prompt, message):
    with pytest.warns(GrammarWarning, match=message):
        assert check_prompt(prompt).completion == complete(prompt)


def test_a_cue_with_the_examples_constituents_in_other_places_has_no_answer():
    """App. D forbids it for this reason: nothing tells constituents from delimiters."""
    prompt = "Q a - b A b . Q b - a A"
    with pytest.warns(GrammarWarning, match=r"'a', 'b': .*cannot overlap"), pytest.raises(ProgramsError):
        check_prompt(prompt)


def test_a_prompt_without_a_cue_is_no_warning_but_an_error():
    with pytest.raises(ProgramsError, match="ends with a cue"):
        check_prompt("Q a - a A a .")


def test_several_violations_are_all_listed():
    found = violations("Q a - a A b b . Q c c - d A")
    assert len(found) == 3
    for (number, name), text in zip(itertools.product([1], ["<question>", "<answer>"]), found, strict=False):
        assert f"{name} of example {number}" in text


def spoilt(prompts, seed):
    """Prompts with up to three changes: symbols dropped, doubled, swapped or put in from elsewhere."""
    dice = random.Random(seed)
    for text in prompts:
        symbols = text.split()
        for _ in range(dice.randint(1, 3)):
            at, other = dice.randrange(len(symbols)), dice.randrange(len(symbols))
            match dice.randrange(5):
                case 0:
                    symbols[at:other] = []
                case 1:
                    symbols[at], symbols[other] = symbols[other], symbols[at]
                case 2:
                    symbols.insert(at, symbols[other])
                case 3:
                    symbols[at] = dice.choice(["Q", "A", ".", "?", "", "q", "\0", "é", "Q" * 99])
                case 4:
                    symbols[at:at] = symbols[other:]
            symbols = symbols or [""]
        yield " ".join(symbols)


def check_spoilt_prompts(count):
    refused = 0
    tasks = itertools.cycle(("1_shot_rlw", "3_shot_rlw", "1_shot_eng"))
    prompts = (
        next(generate(task, "train", seed=4, start=i)).prompt for i, task in zip(range(count), tasks, strict=False)
    )
    for text in spoilt(prompts, seed=4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrammarWarning)
            try:
                completion = check_prompt(text).completion
            except ProgramsError:
                refused += 1
            else:
                assert completion == complete(text)
    assert count / 4 < refused < count


def test_spoilt_prompts_are_read_or_refused_by_a_typed_error():
    check_spoilt_prompts(2_000)


@pytest.mark.slow
def test_a_hundred_thousand_spoilt_prompts():
    check_spoilt_prompts(100_000)
