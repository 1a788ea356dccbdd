"""The vocabularies and splits, as data. The paper proposes the task and names no sizes: these are ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hf_mech.programs.nested_functions.errors import SplitError
from hf_mech.programs.templatic.words import words as templatic_words

VOCABULARIES: Mapping[str, int | None] = {"rlw": None, "small": 32}
"""Configurations: how many of the 676 two-letter words; None: all. `small` is for small models."""


@dataclass(frozen=True)
class Split:
    """How the prompts of a split are drawn.

    Args:
        name: of the split.
        size: the number of prompts.
        depths: how deep calls stand in one another, each as likely.
        definitions: how many functions are defined.
        arities: how many arguments a function has.
        lengths: how many words an argument without a call has.
        body_calls: whether bodies call functions defined before.
        held_out: whether the words are those that training never shows.
        most_words: of a prompt and its completion.
    """

    name: str
    size: int = 2_000
    depths: tuple[int, ...] = (1, 2)
    definitions: tuple[int, ...] = (2, 3)
    arities: tuple[int, ...] = (1, 2)
    lengths: tuple[int, ...] = (1, 2)
    body_calls: bool = False
    held_out: bool = False
    most_words: int = 500

    @property
    def short_name(self) -> str:
        """The head of its column in a table.

        >>> [split_named(name).short_name for name in ("test", "ood_lexical", "ood_depth_4")]
        ['test', 'lexical', 'depth 4']
        """
        return self.name.removeprefix("ood_").replace("_", " ")


SPLITS: Mapping[str, Split] = {
    split.name: split
    for split in (
        Split("train", 200_000),
        Split("test", 5_000),
        Split("ood_lexical", held_out=True),
        *(Split(f"ood_depth_{depth}", depths=(depth,)) for depth in (3, 4, 6)),
        *(Split(f"ood_length_{length}", lengths=(length,)) for length in (3, 6)),
        Split("ood_arguments_4", arities=(3, 4)),
        Split("ood_definitions_8", definitions=(8,)),
        Split("ood_bodies", body_calls=True),
    )
}


def split_named(name: str) -> Split:
    """The split of that name. Raises SplitError: there is none."""
    if name not in SPLITS:
        raise SplitError(f"The split must be one of {', '.join(SPLITS)}, got {name!r}.")
    return SPLITS[name]


def vocabulary(config: str, held_out: bool) -> tuple[str, ...]:
    """The words of prompts. Raises SplitError: there is no such configuration."""
    if config not in VOCABULARIES:
        raise SplitError(f"The configuration must be one of {', '.join(VOCABULARIES)}, got {config!r}.")
    return templatic_words("rlw", held_out)[: VOCABULARIES[config]]
