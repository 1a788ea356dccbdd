"""The small programs in plain Python: what each should say, and random prompts of its form."""

from __future__ import annotations

import random
from collections.abc import Callable

Words = list[str]

INDUCTION_WORDS = 8
"""How many words the induction head is asked for; it never ends by itself."""


# ------------------------------------------------------------------------------------------------ what each should say


def reverse(words: Words) -> Words:
    return words[::-1]


def sort(words: Words) -> Words:
    bar = words.index("|")
    return sorted(words[bar + 1 :], key=words[:bar].index)


def count(words: Words) -> Words:
    return [str(words[:-1].count(words[-1]))]


def majority(words: Words) -> Words:
    most = max(words.count(word) for word in words)
    reached = (word for place, word in enumerate(words) if words[: place + 1].count(word) == most)
    return [next(reached)]


def balanced(words: Words) -> Words:
    opened: Words = []
    for word in words:
        if word in "([{":
            opened.append(word)
        elif word in ")]}" and (not opened or opened.pop() + word not in ("()", "[]", "{}")):
            return ["unbalanced"]
    return ["unbalanced" if opened else "balanced"]


def binary_addition(words: Words) -> Words:
    plus = words.index("+")
    numbers = words[:plus], words[plus + 1 :]
    total = sum(int("".join(number), 2) for number in numbers)
    return list(f"{total:0{max(map(len, numbers))}b}")


def induction(words: Words) -> Words:
    words, said = list(words), Words()
    while len(said) < INDUCTION_WORDS:
        earlier = [place for place, word in enumerate(words[:-1]) if word == words[-1]]
        if not earlier:
            break
        said.append(words[earlier[-1] + 1])
        words.append(said[-1])
    return said


# --------------------------------------------------------------------------------------------- prompts of their forms


def any_words(draw: random.Random, most: int) -> Words:
    """Words that come again, among them numbers, constants of the programs, and other programs' marks."""
    pool = ["a", "b", "c", "0", "1", "7", "nil", "NO", "ORDER", "|", "+", "(", "s", "EOP"]
    return draw.choices(draw.sample(pool, draw.randint(1, 6)), k=draw.randint(1, most))


def an_order_and_items(draw: random.Random, most: int) -> Words:
    order = draw.sample(["a", "b", "c", "d", "3", "1", "2", "ITEM", "0"], draw.randint(1, 6))
    return [*order, "|", *draw.choices(order, k=draw.randint(0, most - 7))]


def brackets(draw: random.Random, most: int) -> Words:
    """Balanced ones around a word that is none; in half of the prompts, one bracket is left out, changed or moved."""
    words = Words()
    for _ in range(draw.randint(0, most // 2)):
        opens = draw.randint(0, len(words))
        ends = range(opens, len(words) + 1)
        closes = draw.choice([end for end in ends if balanced(words[opens:end]) == ["balanced"]])
        pair = draw.choice(["()", "[]", "{}"])
        words[closes:closes] = [pair[1]]
        words[opens:opens] = [pair[0]]
    if words and draw.random() < 0.5:
        place = draw.randrange(len(words))
        words[place : place + 1] = draw.choice([[], [draw.choice("([{)]}")], words[place : place + 2][::-1]])
    place = draw.randint(0, len(words))
    return [*words[:place], draw.choice(["a", "OPEN", "balanced"]), *words[place:]]


def two_numbers(draw: random.Random, most: int) -> Words:
    def digits() -> Words:
        return draw.choices("01", k=draw.randint(1, (most - 1) // 2))

    return [*digits(), "+", *digits()]


FORMS: dict[str, tuple[Callable[[Words], Words], Callable[[random.Random, int], Words]]] = {
    "reverse": (reverse, any_words),
    "induction": (induction, any_words),
    "count": (count, any_words),
    "majority": (majority, any_words),
    "sort": (sort, an_order_and_items),
    "balanced": (balanced, brackets),
    "binary_addition": (binary_addition, two_numbers),
}
"""By program: the function, and the prompts, of which the second argument is the most words."""
