"""Turing machines whose results are known, and random tapes for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from hf_mech.programs.psl.turing import Tape, TuringMachine

INCREMENT = """
# binary increment
start: right
right 0 -> right 0 R
right 1 -> right 1 R
right _ -> carry _ L
carry 1 -> carry 0 L
carry 0 -> done 1 L
carry _ -> done 1 L
"""
ADDITION = """
first 1 -> first 1 R
first + -> second 1 R
second 1 -> second 1 R
second _ -> erase _ L
erase 1 -> done _ L
"""
PALINDROME = """
look a -> take-a _ R
look b -> take-b _ R
look _ -> yes _ R
take-a a -> take-a a R
take-a b -> take-a b R
take-a _ -> match-a _ L
take-b a -> take-b a R
take-b b -> take-b b R
take-b _ -> match-b _ L
match-a a -> back _ L
match-a b -> no b L
match-a _ -> yes _ R
match-b b -> back _ L
match-b a -> no a L
match-b _ -> yes _ R
back a -> back a L
back b -> back b L
back _ -> look _ R
"""
# Two, three and four states: the ones written and the steps are those of the proofs (Rado 1962, Lin 1963, Brady 1983).
BUSY_BEAVERS = {
    (4, 6): "A 0 -> B 1 R\nA 1 -> B 1 L\nB 0 -> A 1 L\nB 1 -> H 1 R",
    (6, 14): "A 0 -> B 1 R\nA 1 -> H 1 R\nB 0 -> C 0 R\nB 1 -> B 1 R\nC 0 -> C 1 L\nC 1 -> A 1 L",
    (13, 107): "A 0 -> B 1 R\nA 1 -> B 1 L\nB 0 -> A 1 L\nB 1 -> C 0 L\nC 0 -> H 1 R\nC 1 -> D 1 L\nD 0 -> D 1 R\n"
    "D 1 -> A 0 R",
}


@dataclass(frozen=True)
class Start:
    """A tape, the blanks on its two sides, and whether the end of a run is right."""

    tape: list[str]
    left: int
    right: int
    is_right: Callable[[Tape], bool]


def increment(draw: random.Random) -> Start:
    """A binary number of up to 8 digits."""
    number = draw.randrange(256)
    return Start(list(f"{number:b}"), 2, 1, lambda ended: "".join(ended.written) == f"{number + 1:b}")


def addition(draw: random.Random) -> Start:
    """Two unary numbers of 1 to 6."""
    a, b = draw.randint(1, 6), draw.randint(1, 6)
    return Start(list("1" * a + "+" + "1" * b), 1, 1, lambda ended: ended.written == ["1"] * (a + b))


def palindrome(draw: random.Random) -> Start:
    """A word of up to 7 letters; half of them are palindromes for certain."""
    word = draw.choices("ab", k=draw.randint(1, 7))
    if draw.random() < 0.5:
        word[len(word) - len(word) // 2 :] = word[: len(word) // 2][::-1]
    verdict = "yes" if word == word[::-1] else "no"
    return Start(word, 1, 1, lambda ended: ended.state == verdict)


def busy_beaver(ones: int, steps: int) -> Callable[[random.Random], Start]:
    """An empty tape with blanks enough, of different lengths."""

    def drawn(draw: random.Random) -> Start:
        left, right = ones + draw.randint(1, 4), ones + draw.randint(1, 4)
        return Start(["0"], left, right, lambda e: (e.symbols.count("1"), e.steps, e.state) == (ones, steps, "H"))

    return drawn


TABLES: dict[str, tuple[TuringMachine, Callable[[random.Random], Start]]] = {
    "increment": (TuringMachine.parse(INCREMENT), increment),
    "unary_addition": (TuringMachine.parse(ADDITION), addition),
    "palindrome": (TuringMachine.parse(PALINDROME), palindrome),
    **{
        f"busy_beaver_{states}": (TuringMachine.parse(f"blank: 0\n{BUSY_BEAVERS[known]}"), busy_beaver(*known))
        for states, known in zip((2, 3, 4), BUSY_BEAVERS, strict=True)
    },
}
"""By name: the machine, and random starts of it."""
