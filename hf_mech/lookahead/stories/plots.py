"""The words and sentences of the story grammar: a beginning, four conflicts, and ends that depend on both.

A sentence is a template: `{colour}` stands for a fact of the story. A slot is a place in the story with several
sentences to choose from; an optional slot may stay empty. Only `grammar`, which draws and
reads stories, knows how the parts are put together.
"""

from __future__ import annotations

from dataclasses import dataclass

GIRLS = ("Anna", "Emma", "Lily", "Lucy", "Mia", "Nora", "Rosa", "Sara", "Tina", "Zoe")
BOYS = ("Ben", "Finn", "Jack", "Leo", "Max", "Noah", "Paul", "Sam", "Tim", "Tom")

WORDS: dict[str, tuple[str, ...]] = {
    "hero": GIRLS + BOYS,
    "trait": ("brave", "cheerful", "clever", "gentle", "kind", "little", "polite", "quiet"),
    "giver": ("aunt", "brother", "dad", "grandma", "grandpa", "mom", "sister", "uncle"),
    "colour": ("blue", "brown", "green", "pink", "purple", "red", "white", "yellow"),
    "thing": (
        *("ball", "balloon", "boat", "book", "car", "cup", "doll", "drum"),
        *("flute", "hat", "kite", "puppet", "ring", "robot", "scarf", "teddy bear"),
    ),
    "place": (
        *("beach", "castle", "farm", "harbor", "lake", "market"),
        *("mill", "park", "playground", "river", "school", "zoo"),
    ),
    "weather": ("bright", "cold", "lovely", "misty", "sunny", "warm"),
    "snack": ("bread", "cake", "cheese", "cherries", "cookies", "grapes", "nuts", "pie"),
    "meal": ("breakfast", "dinner", "lunch", "supper", "tea time"),
    "feeling": ("lonely", "sad", "scared", "unhappy", "upset", "worried"),
    "mood": ("big", "fluffy", "friendly", "funny", "nice", "small", "spotted", "tiny", "wise", "young"),
    "helper": (
        *("bear", "bee", "cat", "deer", "dog", "duck", "fox", "goat"),
        *("hen", "horse", "mouse", "pig", "rabbit", "sheep", "turtle", "wolf"),
    ),
}
"""The values of every fact but `trouble`, whose values depend on the plot."""


def pronouns(hero: str) -> dict[str, str]:
    """The words that depend on the hero's name alone."""
    kind, he, his, him = ("girl", "she", "her", "her") if hero in GIRLS else ("boy", "he", "his", "him")
    return {"kind": kind, "he": he, "his": his, "him": him, "He": he.capitalize(), "His": his.capitalize()}


@dataclass(frozen=True)
class Slot:
    """A place in a story.

    Attributes:
        sentences: the templates to choose from.
        optional: whether the story may go on without any of them.
        short: whether short stories have it, too.
    """

    sentences: tuple[str, ...]
    optional: bool = False
    short: bool = False

    @property
    def choices(self) -> int:
        """The number of ways to fill it."""
        return len(self.sentences) + self.optional


@dataclass(frozen=True)
class Plot:
    """A conflict and its end.

    Attributes:
        troubles: the values of the fact `trouble`: a spot, a height, a thief or a dirty place.
        conflict: the slots from the loss to the helper's offer.
        solution: the slots in which the helper solves it.
        lesson: the last slot of the story.
    """

    troubles: tuple[str, ...]
    conflict: tuple[Slot, ...]
    solution: tuple[Slot, ...]
    lesson: Slot


BEGINNING = (
    Slot(
        (
            "Once upon a time, there was a {trait} {kind} named {hero}.",
            "There once lived a {trait} {kind} whose name was {hero}.",
            "{hero} was a {trait} {kind}.",
        ),
        short=True,
    ),
    Slot(
        (
            "{His} {giver} gave {him} a {colour} {thing}.",
            "{He} had a {colour} {thing} that came from {his} {giver}.",
            "For {his} birthday, {he} got a {colour} {thing} from {his} {giver}.",
        ),
        short=True,
    ),
    Slot(
        (
            "{hero} loved the {thing} very much.",
            "It was the best {thing} in the world.",
            "{He} played with the {thing} every day.",
        ),
        optional=True,
    ),
    Slot(
        (
            "One {weather} day, {hero} took the {thing} to the {place}.",
            "On a {weather} morning, {he} wanted to play at the {place} with the {thing}.",
        )
    ),
    Slot(
        (
            "{He} put some {snack} in {his} bag.",
            "{He} had some {snack} with {him}, too.",
        )
    ),
    Slot(
        (
            '"Please be home before {meal}," said {his} {giver}.',
            "{His} {giver} asked {him} to be home before {meal}.",
        )
    ),
)

_HELP = (
    Slot(
        (
            "{hero} was very {feeling}.",
            "{hero} felt {feeling} and began to cry.",
            "Now {hero} was so {feeling} that {he} sat down.",
        )
    ),
    Slot(("{He} did not know what to do.", "Nobody was there to help {him}."), optional=True),
    Slot(
        (
            "Then a {mood} {helper} came along.",
            "Just then, {he} met a {mood} {helper}.",
            "A {mood} {helper} heard {him} and came to see.",
        ),
        short=True,
    ),
    Slot(
        (
            '"Why are you {feeling}?" asked the {helper}.',
            '"You look {feeling}," said the {helper}.',
        )
    ),
)
_OFFER = Slot(
    (
        '"Do not be {feeling}, I will help you," said the {helper}.',
        'The {helper} said, "Come, {hero}, I know what to do."',
    )
)

PLOTS: dict[str, Plot] = {
    "lost": Plot(
        tuple(
            f"{where} the {what}"
            for where in ("behind", "near", "under")
            for what in ("bench", "big tree", "bridge", "bushes", "fence", "old wall", "rocks", "shed")
        ),
        (
            Slot(
                (
                    "At the {place}, {hero} ran and jumped, and soon the {thing} was gone.",
                    "{hero} played at the {place} for a long time, but then {he} could not find the {thing}.",
                ),
                short=True,
            ),
            *_HELP,
            Slot(('"I lost my {thing}," said {hero}.', '{hero} said, "My {thing} is lost."')),
            _OFFER,
        ),
        (
            Slot(("They looked and looked.", "They went all around the {place}."), optional=True),
            Slot(
                (
                    "At last the {helper} found the {colour} {thing} {trouble}.",
                    "The {helper} looked {trouble}, and there was the {colour} {thing}.",
                ),
                short=True,
            ),
        ),
        Slot(
            (
                "From that day on, {hero} always looked {trouble} first when {he} lost something.",
                "After that, {hero} took good care of the {colour} {thing} and never lost it again.",
            ),
            short=True,
        ),
    ),
    "stuck": Plot(
        tuple(
            f"on top of the {what}"
            for what in ("apple tree", "barn", "church", "gate", "lamp", "oak tree", "roof", "slide", "tower", "tent")
        ),
        (
            Slot(
                (
                    "At the {place}, {hero} threw the {thing} up high, and it got stuck {trouble}.",
                    "A strong wind blew at the {place}, and it took the {thing} away and left it {trouble}.",
                ),
                short=True,
            ),
            *_HELP,
            Slot(('"My {thing} is up there," said {hero}.', '{hero} said, "I cannot reach my {thing}."')),
            _OFFER,
        ),
        (
            Slot(("{hero} held {his} breath.", "It was very high."), optional=True),
            Slot(
                (
                    "The {helper} climbed up and got the {colour} {thing} that was {trouble}.",
                    "The {helper} used a long stick, and the {colour} {thing} that was {trouble} fell down.",
                ),
                short=True,
            ),
        ),
        Slot(
            (
                "From that day on, {hero} never let the {colour} {thing} fly so high.",
                "After that, {hero} smiled whenever {he} saw a bird {trouble}.",
            ),
            short=True,
        ),
    ),
    "taken": Plot(
        ("crow", "frog", "goose", "monkey", "parrot", "puppy", "raccoon", "rat", "snake", "squirrel"),
        (
            Slot(
                (
                    "At the {place}, a {trouble} took the {thing} and ran away with it.",
                    "{hero} put the {thing} down at the {place}, and a {trouble} came and took it.",
                ),
                short=True,
            ),
            *_HELP,
            Slot(('"The {trouble} has my {thing}," said {hero}.', '{hero} said, "I want my {thing} back."')),
            _OFFER,
        ),
        (
            Slot(("They walked to the home of the {trouble}.", "The {trouble} was not far away."), optional=True),
            Slot(
                (
                    "The {helper} talked to the {trouble}, and the {trouble} gave the {colour} {thing} back.",
                    'The {trouble} said, "I am sorry," and gave the {colour} {thing} to the {helper}.',
                ),
                short=True,
            ),
        ),
        Slot(
            (
                "From that day on, the {trouble} always asked before it played with the {colour} {thing}.",
                "After that, {hero} and the {trouble} shared the {colour} {thing}.",
            ),
            short=True,
        ),
    ),
    "dirty": Plot(
        ("ditch", "hole", "mud", "paint", "pond", "puddle", "sand", "swamp"),
        (
            Slot(
                (
                    "At the {place}, {hero} slipped, and the {thing} fell into the {trouble}.",
                    "{hero} ran too fast at the {place} and dropped the {thing} in the {trouble}.",
                ),
                short=True,
            ),
            *_HELP,
            Slot(('"My {thing} is so dirty," said {hero}.', '{hero} said, "I have spoiled my {thing}."')),
            _OFFER,
        ),
        (
            Slot(("They went to get some water.", "The {helper} had some soap."), optional=True),
            Slot(
                (
                    "The {helper} pulled the {thing} out of the {trouble} and washed it until it was {colour} again.",
                    "Together they got the {colour} {thing} out of the {trouble} and made it clean.",
                ),
                short=True,
            ),
        ),
        Slot(
            (
                "From that day on, {hero} walked slowly near the {trouble}.",
                "After that, {hero} kept the {colour} {thing} away from the {trouble}.",
            ),
            short=True,
        ),
    ),
}

END = (
    Slot(
        (
            "{hero} was so happy that {he} hugged the {mood} {helper}.",
            "{hero} smiled at the {mood} {helper} and was not {feeling} any more.",
        ),
        short=True,
    ),
    Slot(
        (
            '"Thank you, {helper}!" said {hero}.',
            '"You are a good friend, {helper}," {hero} said.',
        )
    ),
    Slot(
        (
            "{He} opened {his} bag and gave the {helper} some of the {snack}.",
            "They sat down and ate the {snack} together.",
        )
    ),
    Slot(
        (
            "They played at the {place} until it was time to go.",
            "Then they sang a song about the {colour} {thing}.",
        ),
        optional=True,
    ),
    Slot(
        (
            "{hero} ran home with the {thing} and was there before {meal}.",
            "It was almost time for {meal}, so {hero} carried the {thing} home.",
        )
    ),
    Slot(
        (
            "{He} told {his} {giver} all about the {mood} {helper} at the {place}.",
            "{His} {giver} was glad and wanted to meet the {mood} {helper}.",
        )
    ),
)
