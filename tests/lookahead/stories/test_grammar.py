"""The story grammar: pure, fast, varied; and its reader, which tells a right end from a wrong one."""

import re
import time
from itertools import product

import pytest

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories import grammar, plots
from hf_mech.lookahead.stories.grammar import (
    consistent,
    distinct_stories,
    facts_of,
    read,
    slots_of,
    split_of,
    stories,
    story_at,
)
from hf_mech.lookahead.stories.plots import PLOTS, WORDS, Plot, Slot


def test_a_story_is_a_function_of_seed_index_and_split():
    again = story_at(3, 7, "test")
    assert again == story_at(3, 7, "test") == list(stories(3, 5, 9, "test"))[2]
    assert len({story_at(0, 7).text, story_at(3, 7).text, story_at(3, 8).text, again.text}) == 4
    assert story_at(0, 0).text.startswith(
        "There once lived a polite boy whose name was Finn. For his birthday, he got a green doll from his dad."
    )  # published data sets depend on it


def test_a_story_is_read_with_its_plot_and_its_facts():
    for split, index in product(("train", "test"), range(300)):
        story = story_at(1, index, split)
        reading = read(story.text)
        assert (reading.plot, reading.consistent, reading.contradictions) == (story.plot, True, ())
        assert reading.read == len(story.text)
        assert reading.facts.items() <= story.facts.items()
        assert {"hero", "thing", "place", "helper", "mood", "meal", "feeling"} <= reading.facts.keys()


def test_short_stories_are_read_too_and_tell_what_they_say_they_tell():
    told = set()
    for split, index in product(("train", "test"), range(300)):
        story = story_at(1, index, split, "short")
        reading = read(story.text)
        assert (reading.plot, reading.consistent, len(story.sentences)) == (story.plot, True, 7)
        assert split_of(story.facts) == split
        told |= reading.facts.keys()
    assert told == {*facts_of("short"), "trouble"}
    assert set(facts_of()) == set(WORDS)
    assert min(len(story.sentences) for story in stories(1, 0, 300)) >= 18


@pytest.mark.parametrize("fact", ["hero", "thing", "colour", "helper", "mood", "meal", "giver"])
def test_an_end_with_another_fact_is_found(fact):
    """The last occurrence is replaced, so only the end changes."""
    found = 0
    for story in stories(2, 0, 60):
        other = next(word for word in WORDS[fact] if word != story.facts[fact])
        head, word, tail = re.split(rf"(.*)\b({story.facts[fact]})\b", story.text, flags=re.DOTALL)[1:4]
        assert word == story.facts[fact]
        changed = read(f"{head}{other}{tail}")
        if changed.complete and len(re.findall(rf"\b{word}\b", story.text)) > 1:
            found += 1
            assert not changed.consistent
            assert any(fact in wrong for wrong in changed.contradictions), (story.text, changed)
    assert found > 30


def test_a_wrong_pronoun_is_found():
    story = next(s for s in stories(0, 0, 50) if s.facts["hero"] in plots.BOYS and "gave him" in s.text)
    assert read(story.text.replace("gave him", "gave her")).contradictions == ("him is 'her' after 'him'",)


def test_the_end_of_another_story_does_not_join():
    texts = [story.text for story in stories(4, 0, 200)]
    halves = [
        (text[: text.index('"Thank you')], text[text.index('"Thank you') :]) for text in texts if '"Thank' in text
    ]
    assert len(halves) > 50
    assert all(consistent(first + second) for first, second in halves)
    crossed = [consistent(first + halves[i - 1][1]) for i, (first, _) in enumerate(halves)]
    assert not any(crossed)


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        (lambda text: text, True),
        (lambda text: text.replace(" ", "\n", 3), True),
        (lambda text: text + " The end.", False),
        (lambda text: text[:-1], False),
        (lambda text: text.replace(" very ", " quite ", 1) if " very " in text else text[5:], False),
        (lambda text: "", False),
        (lambda text: "No story at all.", False),
    ],
)
def test_only_a_whole_story_is_one(change, complete):
    assert read(change(story_at(0, 0).text)).complete is complete


def test_a_text_that_leaves_the_grammar_says_where():
    text = story_at(0, 1).text
    cut = text.index('"Why') if '"Why' in text else text.index('"You look')
    reading = read(text[:cut] + "Then it rained.")
    assert reading.read == cut
    assert not reading.complete
    assert read("It rained.") == read("")
    assert read("").plot is None


def test_the_splits_share_no_hero_thing_and_place():
    def marks(split):
        return {tuple(s.facts[f] for f in ("hero", "thing", "place")) for s in stories(0, 0, 3_000, split)}

    assert not marks("train") & marks("test")
    assert {split_of(s.facts) for s in stories(5, 0, 500)} == {"train"}
    assert {split_of(s.facts) for s in stories(5, 0, 500, "test")} == {"test"}


def test_a_hundred_thousand_stories_take_less_than_a_minute():
    before = time.process_time()
    assert len({story.text for story in stories(0, 0, 10_000)}) == 10_000
    assert time.process_time() - before < 6


def test_the_number_of_distinct_stories(monkeypatch):
    """Of the grammar, as its README has it, and of one that is small enough to write out."""
    assert f"{distinct_stories():.1e}" == "3.4e+21"
    assert f"{distinct_stories('short'):.1e}" == "2.5e+13"
    slots = (Slot(("{hero} sat.", "{hero} saw a {thing}.")), Slot(("A {thing}!", "{trouble}."), optional=True))
    monkeypatch.setattr(grammar, "PLOTS", {"p": Plot(("x", "y"), (), (), slots[0])})
    monkeypatch.setattr(grammar, "WORDS", {"hero": ("A", "B", "C"), "thing": ("cup", "hat", "car", "toy")})
    monkeypatch.setattr(grammar, "_SLOTS", {"p": slots})
    every = set()
    for hero, thing, trouble in product("ABC", ("cup", "hat", "car", "toy"), "xy"):
        for first, second in product(slots[0].sentences, (*slots[1].sentences, "")):
            every.add(f"{first} {second}".format(hero=hero, thing=thing, trouble=trouble))
    assert distinct_stories() == len(every)


def test_sentences_are_read_in_one_way():
    """No sentence of a slot is read as another one of it, and an optional one never as one of the next slot."""
    for name in PLOTS:
        slots = slots_of(name)
        for slot, following in zip(slots, (*slots[1:], None), strict=True):
            rivals = slot.sentences + (following.sentences if following and slot.optional else ())
            assert len({re.sub(r"{\w+}", "{}", sentence) for sentence in rivals}) == len(rivals)


def test_articles_fit():
    for name in ("trait", "colour", "mood", "thing", "weather"):
        assert not any(word[0] in "aeiou" for word in WORDS[name])
    assert not any(word[0] in "aeiou" for word in PLOTS["taken"].troubles)


@pytest.mark.parametrize("arguments", [(-1, 0), (0, -1), (0.5, 0), (0, True), (0, 0, "dev"), (0, 0, "test", "long")])
def test_numbers_that_make_no_story(arguments):
    with pytest.raises(LookaheadError, match="must be"):
        story_at(*arguments)
