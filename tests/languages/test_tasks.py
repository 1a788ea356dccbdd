"""The tasks against solvers that read the text, their distributions against the rules, and batches in both layouts."""

import hashlib
import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from hf_mech.data.random_numbers import Dice
from hf_mech.languages import TASKS, LanguagesError, formal_language_tokenizer, fresh_batch, test_batch

FOUR = ("reverse_string", "stack_manipulation", "modular_arithmetic", "solve_equation")

# -------------------------------------------------------------------------------------------- solvers, by the words


def reverse_string(x):
    return x[::-1]


def stack_manipulation(x):
    stack = []
    for symbol in x:
        if symbol == "POP":
            stack = stack[:-1]
        else:
            stack.append(symbol.removeprefix("PUSH"))
    return [*stack[::-1], "[END]"]


def modular_arithmetic(x):
    return [str(eval("".join(x)) % 5)]


def solve_equation(x):
    """Every value of the unknown is tried: one, and no other, solves the equation."""
    left, right = "".join(x).split("=")
    (solution,) = (d for d in "01234" if eval(left.replace("x", d)) % 5 == int(right))
    return [solution]


def even_pairs(x):
    pairs = ["".join(pair) for pair in itertools.pairwise(x)]
    return ["odd" if (pairs.count("ab") + pairs.count("ba")) % 2 else "even"]


def parity_check(x):
    return ["odd" if x.count("b") % 2 else "even"]


def cycle_navigation(x):
    place = 0
    for step in x:
        place = {"LEFT": [4, 0, 1, 2, 3], "STAY": [0, 1, 2, 3, 4], "RIGHT": [1, 2, 3, 4, 0]}[step][place]
    return [str(place)]


def duplicate_string(x):
    return [*x, *x]


def missing_duplicate(x):
    """Only one symbol in the gap makes the halves alike."""
    at, half = x.index("_"), len(x) // 2
    filled = {s: [*x[:at], s, *x[at + 1 :]] for s in "ab"}
    (missing,) = (s for s, text in filled.items() if text[:half] == text[half:])
    return [missing]


def odds_first(x):
    return [s for i, s in enumerate(x, 1) if i % 2] + [s for i, s in enumerate(x, 1) if not i % 2]


def two_numbers(x, sign):
    first, second = "".join(x).split(sign)
    return int(first[::-1], 2), int(second[::-1], 2)


def binary_addition(x):
    return [*reversed(f"{sum(two_numbers(x, '+')):b}"), "[END]"]


def binary_multiplication(x):
    return [*reversed(f"{math.prod(two_numbers(x, '*')):b}"), "[END]"]


def compute_sqrt(x):
    return list(f"{math.isqrt(int(''.join(x), 2)):0{math.ceil(len(x) / 2)}b}")


SOLVERS = {
    **{f.__name__: f for f in (reverse_string, stack_manipulation, modular_arithmetic, solve_equation)},
    **{f.__name__: f for f in (even_pairs, parity_check, cycle_navigation, duplicate_string, missing_duplicate)},
    **{f.__name__: f for f in (odds_first, binary_addition, binary_multiplication, compute_sqrt)},
    "modular_arithmetic_simple": modular_arithmetic,
    "bucket_sort": sorted,
}


def texts(name, length, count, seed=0):
    """Examples as symbols: (input, scored output) pairs."""
    task = TASKS[name]
    inputs, outputs, scored = task.sample(Dice(seed, (length,)), length, count)
    for x, y, keep in zip(inputs, outputs, scored, strict=True):
        yield [task.inputs[i] for i in x], [task.outputs[i] for i in y[keep]]


@pytest.mark.parametrize("name", TASKS)
def test_outputs_are_what_a_solver_finds_in_every_length(name):
    for length in TASKS[name].lengths(1, 60):
        for x, y in texts(name, length, 8):
            assert len(x) == length
            assert y == SOLVERS[name](x), x


@pytest.mark.parametrize("name", TASKS)
def test_long_examples_are_right_too(name):
    (length,) = TASKS[name].lengths(1, 301)[-1:]
    for x, y in texts(name, length, 5):
        assert y == SOLVERS[name](x)


def test_there_are_the_fifteen_tasks_and_their_shapes():
    assert set(SOLVERS) == set(TASKS)
    assert Counter(task.level for task in TASKS.values()) == {
        "regular": 4,
        "deterministic context-free": 4,
        "context-sensitive": 7,
    }
    for name, task in TASKS.items():
        assert task.name == name
        inputs, outputs, scored = task.sample(Dice(0), task.lengths(9, 10)[0], 3)
        assert inputs.dtype == outputs.dtype == np.int64
        assert scored.dtype == bool
        assert scored.shape == outputs.shape
    assert TASKS["stack_manipulation"].sample(Dice(0), 7, 2).outputs.shape == (2, 8)  # |y| = |x| + 1


def test_what_is_not_scored_comes_after_the_terminator():
    for name in ("stack_manipulation", "binary_addition", "binary_multiplication"):
        _, outputs, scored = TASKS[name].sample(Dice(0), 20, 200)
        ends = (outputs == 2).argmax(axis=1)
        assert (scored == (np.arange(outputs.shape[1]) <= ends[:, None])).all()
        assert (outputs[~scored] == 0).all()
        assert not scored.all()


# ------------------------------------------------------------------------------------------------- distributions


def close(counts, shares, sigmas=5.0):
    """Whether each count is within some standard deviations of its share of all; a fixed seed makes it no gamble."""
    total = sum(counts.values())
    assert set(counts) <= {k for k, p in shares.items() if p > 0}
    return all(abs(counts[k] - total * p) <= sigmas * math.sqrt(total * p * (1 - p)) + 1e-9 for k, p in shares.items())


def uniform(keys):
    return {k: 1 / len(keys) for k in keys}


def test_training_lengths_are_uniform():
    for name, lengths in (("reverse_string", range(1, 41)), ("solve_equation", range(3, 41))):
        batches = (fresh_batch(name, "alm", seed=3, step=s, batch_size=1) for s in range(1000))
        width = {"reverse_string": lambda n: n // 2 - 1, "solve_equation": lambda n: n - 3}[name]
        counts = Counter(width(b["input_ids"].shape[1]) for b in batches)
        assert close(counts, uniform(lengths))


def test_symbols_are_uniform_and_independent():
    inputs = TASKS["reverse_string"].sample(Dice(1), 8, 64_000).inputs
    assert close(Counter((inputs @ (1 << np.arange(8))).tolist()), uniform(range(256)))
    digits = TASKS["bucket_sort"].sample(Dice(1), 3, 62_500).inputs @ [1, 5, 25]
    assert close(Counter(digits.tolist()), uniform(range(125)))


def test_the_first_stack_is_uniform_in_length_and_the_actions_uniform():
    inputs = TASKS["stack_manipulation"].sample(Dice(2), 11, 50_000).inputs
    starts = (inputs < 2).sum(axis=1)
    assert (np.sort(inputs >= 2, axis=1) == (inputs >= 2)).all()  # no symbol after the first action
    assert close(Counter(starts.tolist()), uniform(range(1, 11)))
    assert close(Counter(inputs[inputs >= 2].tolist()), uniform((2, 3, 4)))
    assert close(Counter(inputs[inputs < 2].tolist()), uniform((0, 1)))
    assert (TASKS["stack_manipulation"].sample(Dice(2), 1, 100).inputs < 2).all()  # one symbol, no action


def sides(expression):
    """`(left op right)` in its three parts, by counting brackets; a sign that follows nothing is no operator."""
    depth = 0
    for at, symbol in enumerate(expression):
        depth += (symbol == "(") - (symbol == ")")
        if depth == 1 and symbol in "+-*" and at > 1:
            return expression[1:at], symbol, expression[at + 1 : -1]
    raise AssertionError(expression)


@pytest.mark.parametrize(("name", "operators"), [("modular_arithmetic", "+-*"), ("solve_equation", "+-")])
def test_expressions_split_as_the_rules_say(name, operators):
    extra = 2 if name == "solve_equation" else 0
    expressions = ["".join(x[: len(x) - extra]) for x, _ in texts(name, 17 + extra, 20_000)]
    parts = [sides(e) for e in expressions]
    assert close(Counter(len(left) for left, _, _ in parts), uniform(range(1, 14)))
    assert close(Counter(operator for _, operator, _ in parts), uniform(operators))
    assert all(len(left) + len(right) == 14 for left, _, right in parts)
    inner = [sides(left) for left, _, _ in parts if len(left) == 9]
    assert close(Counter(len(left) for left, _, _ in inner), uniform(range(1, 6)))


@pytest.mark.parametrize(("length", "form"), [(1, "d"), (2, "-d"), (3, "(d)"), (4, "(-d)"), (5, "(dod)")])
def test_short_expressions_have_the_form_of_the_rules(length, form):
    for x, _ in texts("modular_arithmetic", length, 500):
        assert "".join("d" if s.isdigit() else "o" if s in "+*" else s for s in x).replace("(d-d", "(dod") == form


@cache
def value_shares(length):
    """The exact distribution of an expression's value, by the grammar."""
    if length <= 4:
        return (Fraction(1, 5),) * 5
    shares = [Fraction(0)] * 5
    for left in range(1, length - 3):
        for a, p in enumerate(value_shares(left)):
            for b, q in enumerate(value_shares(length - left - 3)):
                for value in (a + b, a - b, a * b):
                    shares[value % 5] += p * q / 3 / (length - 4)
    return tuple(shares)


@pytest.mark.parametrize("length", [5, 14, 40])
def test_values_are_distributed_as_the_grammar_says(length):
    outputs = TASKS["modular_arithmetic"].sample(Dice(4), length, 100_000).outputs
    assert close(Counter(outputs[:, 0].tolist()), {v: float(p) for v, p in enumerate(value_shares(length))})


def test_the_unknown_is_the_first_digit_from_a_random_cell_on():
    """In `(d+d)` the cells 0, 1 and 4 lead to the first digit, 2 and 3 to the second."""
    unknowns = Counter(x.index("x") for x, _ in texts("solve_equation", 7, 20_000))
    assert close(unknowns, {1: 0.6, 3: 0.4})
    solutions = TASKS["solve_equation"].sample(Dice(4), 30, 20_000).outputs
    assert close(Counter(solutions[:, 0].tolist()), uniform(range(5)))


def test_numbers_are_uniform_and_never_zero():
    counts = Counter("".join(x) for x, _ in texts("binary_addition", 4, 18_000))
    assert close(
        counts, {**{f"1+{b}": 1 / 6 for b in ("10", "01", "11")}, **{f"{b}+1": 1 / 6 for b in ("10", "01", "11")}}
    )
    squares = Counter(int("".join(x), 2) for x, _ in texts("compute_sqrt", 5, 31_000))
    assert close(squares, uniform(range(1, 32)))


def test_the_gap_is_uniform():
    assert close(Counter(x.index("_") for x, _ in texts("missing_duplicate", 10, 20_000)), uniform(range(10)))


# ----------------------------------------------------------------------------------------------- a pure function


DIGESTS = {
    "reverse_string": "11edd8f3c38f097f",
    "stack_manipulation": "bf0fa519fc72d451",
    "modular_arithmetic": "e153a1f39e3a1773",
    "solve_equation": "e5b35f1be35c7944",
    "even_pairs": "2d8aabba0a0450d7",
    "parity_check": "5da1ebf5c32d5534",
    "cycle_navigation": "07b3b94aa64c766f",
    "modular_arithmetic_simple": "c3e533a9348f0ece",
    "duplicate_string": "f65f311b3f2bfc26",
    "missing_duplicate": "4244ea0dc7826eca",
    "odds_first": "583cb151479ac54d",
    "binary_addition": "f073c62d602750b0",
    "binary_multiplication": "f68242005199b5eb",
    "compute_sqrt": "6a86eac025982853",
    "bucket_sort": "d84317001d15a08b",
}


@pytest.mark.parametrize("name", TASKS)
def test_the_examples_never_change(name):
    """The same on every machine, and after every change of numpy, Python or the package."""
    task = TASKS[name]
    digest = hashlib.sha256()
    for length in task.lengths(1, 45):
        for array in task.sample(Dice(7, (length,)), length, 3):
            digest.update(np.ascontiguousarray(array, np.uint8).tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", FOUR)
def test_a_batch_is_a_function_of_its_arguments_and_of_all_of_them(name):
    def fresh(**changes):
        arguments = {"task_name": name, "layout": "mlm", "seed": 0, "step": 5, "batch_size": 64, **changes}
        return fresh_batch(**arguments)["input_ids"]

    assert torch.equal(fresh(), fresh())
    assert not torch.equal(fresh(step=6), fresh())
    assert not torch.equal(fresh(seed=1), fresh())
    one, two = (test_batch(name, "mlm", seed=s, length=41, count=64)["input_ids"] for s in (0, 1))
    assert not torch.equal(one, two)
    assert torch.equal(one, test_batch(name, "mlm", seed=0, length=41, count=64)["input_ids"])


def test_no_two_tasks_share_their_random_numbers():
    reversed_, duplicated = (
        test_batch(name, "mlm", seed=0, length=41, count=8)["input_ids"][:, :42]
        for name in ("reverse_string", "duplicate_string")
    )
    assert not torch.equal(reversed_, duplicated)


# ------------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("name", TASKS)
def test_both_layouts_hold_the_same_examples_as_text(name):
    task, tokenizer = TASKS[name], formal_language_tokenizer(name)
    length = task.lengths(8, 9)[0]
    mlm, alm = (test_batch(name, layout, seed=0, length=length, count=30) for layout in ("mlm", "alm"))
    assert all(t.dtype == torch.int64 and t.shape == b["input_ids"].shape for b in (mlm, alm) for t in b.values())
    assert mlm["attention_mask"].all()
    assert alm["attention_mask"].all()
    for masked, causal, labels, causal_labels in zip(
        mlm["input_ids"], alm["input_ids"], mlm["labels"], alm["labels"], strict=True
    ):
        bos, *x = tokenizer.decode(masked[: length + 1]).split()
        assert bos == "[BOS]"
        assert set(tokenizer.decode(masked[length + 1 :]).split()) == {"[MASK]"}
        assert tokenizer.decode(causal[: length + 2]).split() == ["[BOS]", *x, "[SEP]"]
        assert (labels[: length + 1] == -100).all()
        assert (causal_labels[: length + 2] == -100).all()
        assert torch.equal(labels[length + 1 :], causal_labels[length + 2 :])

        kept = causal_labels != -100
        assert torch.equal(causal_labels[kept], causal[kept])  # y stands at its own labels: the model shifts them
        y = tokenizer.decode(labels[labels != -100]).split()
        assert y == SOLVERS[name](x)
        pair = tokenizer(" ".join(x), " ".join(y))["input_ids"]
        assert pair == causal[: len(pair)].tolist()


def test_the_lengths_of_a_batch_end_at_max_length():
    widths = {
        fresh_batch("reverse_string", "mlm", seed=0, step=s, batch_size=1, max_length=3)["input_ids"].shape[1]
        for s in range(60)
    }
    assert widths == {3, 5, 7}


# ----------------------------------------------------------------------------------------------------- tokenizer


@pytest.mark.parametrize("name", ["stack_manipulation", "solve_equation"])
def test_the_tokenizer_comes_back_from_a_folder(name, tmp_path):
    ours = formal_language_tokenizer(name)
    ours.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    symbols = TASKS[name].symbols
    assert loaded.get_vocab() == ours.get_vocab()
    assert len(loaded) == 4 + len(symbols)
    assert [loaded.bos_token_id, loaded.pad_token_id, loaded.sep_token_id, loaded.mask_token_id] == [0, 1, 2, 3]
    text = " ".join(symbols)
    assert loaded(text)["input_ids"] == [0, *range(4, 4 + len(symbols))]
    assert set(loaded(text)) == {"input_ids", "attention_mask"}
    assert loaded.decode(loaded(text)["input_ids"], skip_special_tokens=True) == text
    assert loaded([text, symbols[0]], padding=True)["input_ids"][1] == [0, 4] + [1] * (len(symbols) - 1)


def test_the_tokenizer_refuses_an_unknown_symbol():
    with pytest.raises(Exception, match="UNK"):
        formal_language_tokenizer("reverse_string")("a b c")


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fresh_batch("reverse", "mlm", seed=0, step=0, batch_size=1), r"no task 'reverse'.*reverse_string"),
        (lambda: formal_language_tokenizer("RS"), r"no task 'RS'"),
        (lambda: test_batch("reverse_string", "mlm", seed=-1, length=4, count=1), r"seed must be .*0 or more, got -1"),
        (lambda: test_batch("reverse_string", "mlm", seed=0, length=0, count=1), r"length must be .*1 or more, got 0"),
        (lambda: test_batch("reverse_string", "mlm", seed=0, length=4, count=0), r"count must be .*1 or more, got 0"),
        (lambda: test_batch("reverse_string", "mlm", seed=0, length=4.5, count=1), r"length must be .*got 4\.5"),
        (lambda: test_batch("reverse_string", "mlm", seed=True, length=4, count=1), r"seed must be .*got True"),
        (lambda: test_batch("solve_equation", "mlm", seed=0, length=2, count=1), r"no examples of length 2 to 2.*at 3"),
        (lambda: test_batch("missing_duplicate", "mlm", seed=0, length=7, count=1), r"begin at 2 in steps of 2"),
        (lambda: fresh_batch("reverse_string", "mlm", seed=0, step=-1, batch_size=1), r"step must be .*got -1"),
        (lambda: fresh_batch("reverse_string", "mlm", seed=0, step=0, batch_size=0), r"count must be .*got 0"),
        (lambda: fresh_batch("solve_equation", "mlm", seed=0, step=0, batch_size=1, max_length=2), r"length 1 to 2"),
    ],
)
def test_what_no_task_can_give_is_refused(call, message):
    with pytest.raises(LanguagesError, match=message):
        call()


def test_an_unknown_layout_is_refused():
    with pytest.raises(LanguagesError, match=r"one of mlm, alm, got 'clm'"):
        test_batch("reverse_string", "clm", seed=0, length=4, count=1)


def test_lengths_are_those_the_task_has():
    assert list(TASKS["modular_arithmetic_simple"].lengths(4, 9)) == [5, 7, 9]
    assert list(TASKS["missing_duplicate"].lengths(1, 7)) == [2, 4, 6]
    assert list(TASKS["solve_equation"].lengths(1, 5)) == [3, 4, 5]
    assert list(TASKS["reverse_string"].lengths(41, 43)) == [41, 42, 43]
