"""Moves that exchange rules, for logs whose failed actions are drawn evenly from the forbidden ones.

There a rule that is too strong can be told from the right one: actions that it alone forbids should be among the
failures, in proportion. In plans the actions that were done cannot tell: an expert does little twice, and never goes
back. Greed alone takes strong rules first and then has no need for the right ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from hf_mech.planning.lifted.learning.choose import Choice, Chosen
from hf_mech.planning.lifted.learning.code import Code
from hf_mech.planning.lifted.learning.events import Kind, bits_of
from hf_mech.planning.lifted.learning.rules import Evidence, Rule

LEAST = 1.0
"""The bits that an exchange must save."""


def weaker(rule: Rule, kinds: Sequence[Kind]) -> Iterator[Rule]:
    """The same two actions with one pattern more that ends it: for the tuple of a rule, and for parts of the tuple."""
    numbers = {
        (pattern.action, pattern.places): (number, index)
        for number, kind in enumerate(kinds)
        for index, pattern in enumerate(kind.patterns)
    }
    kind = kinds[rule.kind]
    for size in range(1, len(kind.types) + 1):
        for part in combinations(range(len(kind.types)), size):

            def of_part(index: int, part: tuple[int, ...] = part) -> tuple[int, int] | None:
                pattern = kind.patterns[index]
                return numbers.get((pattern.action, tuple(pattern.places[place] for place in part)))

            delete, need = of_part(rule.delete), of_part(rule.need)
            if delete is None or need is None or delete[0] != need[0]:
                continue
            number = delete[0]
            adds = 0
            for own in map(of_part, bits_of(rule.adds)):
                if own is not None and own[0] == number:
                    adds |= 1 << own[1]
            for pattern in range(len(kinds[number].patterns)):
                other = Rule(number, adds | 1 << pattern, delete[1], need[1])
                if pattern not in (delete[1], need[1]) and other != rule:
                    yield other


class Exchange(Choice):
    """The search for even failures; as [`Choice`], which it makes longer."""

    uniform = True

    def alternatives(self, rule: Rule) -> Iterable[Rule]:
        """Weaker rules."""
        return weaker(rule, self.kinds)

    def improve(self, code: Code, chosen: Chosen, found: Mapping[Rule, Evidence]) -> None:
        """Leaves out one rule after another, looks for others instead, and keeps them if the code is shorter.

        The first look is for rules about other actions than the one that the rule forbids, as its like would come back.
        """
        tried: set[Rule] = set()
        length = code.bits + self.description(chosen)
        while left := [rule for rule in chosen.rules if rule not in tried]:
            rule, before, habits, share = left[-1], dict(chosen.rules), dict(chosen.habits), code.share.copy()
            tried.add(rule)
            code.add(self.cells(rule), -1)
            del chosen.rules[rule]
            support = self.support(chosen, found)
            for some in (
                {other: own for other, own in support.items() if self._needs(other) != self._needs(rule)},
                {other: own for other, own in support.items() if other != rule},
            ):
                self.take(code, chosen, some)
                self.reconsider(code, chosen)
            now = code.bits + self.description(chosen)
            if now < length - LEAST:
                length, tried = now, set()
                continue
            chosen.rules, taken, chosen.habits, code.share = before, chosen.rules, habits, share
            for other in taken.keys() - before.keys():
                code.add(self.cells(other), -1)
            for other in before.keys() - taken.keys():
                code.add(self.cells(other))
            code.fit()

    def check(self, code: Code, chosen: Chosen) -> None:
        """Leaves out rules that failures refute: without them the code is shorter, descriptions not counted."""
        for rule in list(chosen.rules):
            code.add(self.cells(rule), -1)
            if code.gain(self.cells(rule))[0] < -LEAST:
                del chosen.rules[rule]
            else:
                code.add(self.cells(rule))

    def _needs(self, rule: Rule) -> int:
        return self.kinds[rule.kind].patterns[rule.need].action
