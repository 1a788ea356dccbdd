"""The rules that make the code of a log shortest, one by one, and those that the chosen ones support."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.code import Code, Universe, forbidden_cells
from hf_mech.planning.lifted.learning.events import Kind, Steps, Touches
from hf_mech.planning.lifted.learning.gaps import Gaps
from hf_mech.planning.lifted.learning.rules import Evidence, Rule, Search, candidates, name_bits, relatives

STRONG = 200.0
"""The bits that a rule needs to stand by itself, though the chosen ones imply it in this log."""

RELATED = 6.0
"""The bits that a rule needs if it shares its adds and both patterns with chosen ones."""

LEAST_SHARE = 0.15
"""What actions keep of their weight in a habit, at least; what is rarer is a rule with errors in the log."""

HABIT_PRICE = 20.0
"""The bits of a habit besides the names of its patterns."""

FOREVER_PRICE = 8.0
"""The bits of a rule without adds, where failures are even: in plans much is done only once."""

_LOOSE = 0.03


Heads = dict[tuple[int, int], tuple[set[int], set[int]]]
"""The deletes and needs of the chosen rules, by their kind and adds."""


def _put(rule: Rule, heads: Heads) -> None:
    deletes, needs = heads.setdefault((rule.kind, rule.adds), (set(), set()))
    deletes.add(rule.delete)
    needs.add(rule.need)


def heads_of(rules: Iterable[Rule]) -> Heads:
    heads: Heads = {}
    for rule in rules:
        _put(rule, heads)
    return heads


@dataclass
class Chosen:
    """A domain as rules.

    Attributes:
        epsilon, walks: the chance of an exception, and the worth of choices, under which they were chosen.
        rules: with their evidence, in the order of choice.
        bits: of the steps that the choice was made on, and of the rules.
        right: the steps that are no exceptions, [N].
        habits: what a log does rarely, though it is possible.
    """

    epsilon: float
    walks: float = 1.0
    rules: dict[Rule, Evidence] = field(default_factory=dict)
    bits: float = math.inf
    right: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    habits: dict[Rule, Evidence] = field(default_factory=dict)


class Choice:
    """The log, its candidates, and the search.

    Args:
        steps: those that the code is counted on.
        kinds: all kinds.
        touches: the events of these steps.
        gaps: the statistics of all steps, these among them.
        universe: the cells of these steps.
        search: how to look for candidates.
    """

    uniform = False
    """Whether failed actions are drawn evenly from the forbidden ones."""

    def __init__(
        self,
        steps: Steps,
        kinds: Sequence[Kind],
        touches: Sequence[Touches],
        gaps: Sequence[Gaps],
        universe: Universe,
        search: Search,
    ) -> None:
        self.steps, self.kinds, self.touches, self.gaps = steps, kinds, touches, gaps
        self.universe, self.search = universe, search
        self._cells: dict[Rule, NDArray[np.int64]] = {}

    def cells(self, rule: Rule) -> NDArray[np.int64]:
        """The cells that a rule forbids; kept."""
        if rule not in self._cells:
            patterns, touches = len(self.kinds[rule.kind].patterns), self.touches[rule.kind]
            self._cells[rule] = forbidden_cells(rule, patterns, touches, self.steps, self.universe)
        return self._cells[rule]

    def price(self, rule: Rule, heads: Heads) -> float:
        """The bits of a rule's description, where patterns and adds that are known already cost little."""
        name, head = name_bits(self.kinds[rule.kind]), heads.get((rule.kind, rule.adds))
        if head is None:
            forever = FOREVER_PRICE * (self.uniform and not rule.adds)
            return forever + self.search.price + name * (rule.adds.bit_count() + 2)
        return 1 + name * ((rule.delete not in head[0]) + (rule.need not in head[1]))

    def description(self, chosen: Chosen) -> float:
        """The bits of the rules and habits."""
        heads: Heads = {}
        total = 0.0
        for rule in chosen.rules:
            total += self.price(rule, heads)
            _put(rule, heads)
        return total + sum(self.price(habit, heads) + HABIT_PRICE for habit in chosen.habits)

    def choose(self, epsilon: float, walks: float = 1.0) -> Chosen:
        """The rules by greed, then what they support.

        Args:
            epsilon: the chance of an exception.
            walks: what the choice of an allowed action is worth, see `Code`.
        """
        found: dict[Rule, Evidence] = {}
        for number, (kind, gaps) in enumerate(zip(self.kinds, self.gaps, strict=True)):
            found |= candidates(number, kind, gaps, epsilon, self.search)
            if epsilon == 0:  # habits
                found = candidates(number, kind, gaps, _LOOSE, self.search) | found
        code = Code(self.steps, self.universe, epsilon, walks, self.uniform)
        chosen = Chosen(epsilon, walks)
        self.take(code, chosen, found)
        self.reconsider(code, chosen)
        self.improve(code, chosen, found)
        description = self.description(chosen)
        self._complete(code, chosen, found)
        self.check(code, chosen)
        exceptions = int((~code.right & ~self.steps.failed).sum())
        code.epsilon = (exceptions + 0.5) / (len(code.right) + 1)
        if failed := int(self.steps.failed.sum()):
            code.unexplained = ((~code.right & self.steps.failed).sum() + 0.5) / (failed + 1)
        code.fit()
        chosen.bits, chosen.right = code.bits + description, code.right
        return chosen

    def alternatives(self, rule: Rule) -> Iterable[Rule]:
        """Rules that may take the place of a chosen one."""
        return ()

    def improve(self, code: Code, chosen: Chosen, found: Mapping[Rule, Evidence]) -> None:
        """Changes the rules that greed has found."""

    def check(self, code: Code, chosen: Chosen) -> None:
        """Leaves out rules at the end."""

    def take(self, code: Code, chosen: Chosen, found: Mapping[Rule, Evidence]) -> None:
        """Takes the rule that saves most besides the chosen ones, again and again."""
        heads = heads_of(chosen.rules)
        known = chosen.rules.keys() | chosen.habits.keys()
        left = {rule: evidence.bits for rule, evidence in found.items() if rule not in known}  # an upper bound, nearly
        while left:
            best: tuple[float, Rule, float, float] | None = None
            for rule in sorted(left, key=lambda rule: left[rule] - self.price(rule, heads), reverse=True):
                price = self.price(rule, heads)
                if left[rule] - price <= (best[0] if best else 0.0):
                    break
                left[rule], _ = code.gain(self.cells(rule))
                worth, share = left[rule] - price, 0.0
                if found[rule].broken and chosen.epsilon == 0:  # no rule, but perhaps a habit
                    worth = 0.0
                    habit, share_then = code.habit(self.cells(rule))
                    habit -= HABIT_PRICE + price
                    if habit > worth and share_then >= LEAST_SHARE:
                        worth, share = habit, share_then
                        left[rule] = max(left[rule], habit + price)
                if worth > (best[0] if best else 0.0):
                    best = worth, rule, price, share
            if best is None:
                break
            _, rule, _, share = best
            del left[rule]
            if share:
                code.add_habit(self.cells(rule), share)
                chosen.habits[rule] = found[rule]
                continue
            code.add(self.cells(rule))
            chosen.rules[rule] = found[rule]
            _put(rule, heads)

    def reconsider(self, code: Code, chosen: Chosen) -> None:
        """Leaves out rules that the later ones have made needless, or takes alternatives."""
        for rule, evidence in list(chosen.rules.items()):
            code.add(self.cells(rule), -1)
            del chosen.rules[rule]
            heads = heads_of(chosen.rules)
            options = [rule, *self.alternatives(rule)]
            worth = {own: code.gain(self.cells(own))[0] - self.price(own, heads) for own in options}
            best = max(worth, key=lambda own: worth[own])  # the rule itself, if others are as good
            if worth[best] >= 0 and best not in chosen.rules:
                code.add(self.cells(best))
                chosen.rules[best] = evidence

    def support(self, chosen: Chosen, found: Mapping[Rule, Evidence]) -> dict[Rule, Evidence]:
        """The candidates, and all rules that share their adds with a chosen one."""
        support, heads = dict(found), heads_of(chosen.rules)
        for number, (kind, gaps) in enumerate(zip(self.kinds, self.gaps, strict=True)):
            own = [adds for kind_number, adds in heads if kind_number == number]
            if own:
                support |= relatives(number, kind, gaps, chosen.epsilon, own, undone=self.uniform)
        return support

    def _complete(self, code: Code, chosen: Chosen, found: Mapping[Rule, Evidence]) -> None:
        """Adds rules that follow from the chosen ones in this log, but need not elsewhere.

        Such a rule saves nothing, and is right if its evidence by itself is strong; a rule that shares its adds and one
        of its patterns with a chosen one needs less of it.
        """
        support, heads = self.support(chosen, found), heads_of(chosen.rules)
        left = [rule for rule in support if rule not in chosen.rules and rule not in chosen.habits]
        while True:
            before = len(left)

            def shared(rule: Rule) -> int:
                head = heads.get((rule.kind, rule.adds))
                return -1 if head is None else (rule.delete in head[0]) + (rule.need in head[1])

            for rule in sorted(left, key=lambda rule: (-shared(rule), -support[rule].bits)):
                evidence, common = support[rule], shared(rule)
                told = chosen.walks * evidence.expected / math.log(2)  # failures have other reasons already
                gain, broken = code.gain(self.cells(rule))
                if chosen.epsilon == 0 and evidence.broken:
                    continue
                name = name_bits(self.kinds[rule.kind])
                strong = (
                    (common == 2 and told > RELATED)
                    or (common == 1 and told > name + RELATED)
                    or (common == -1 and len(self.kinds[rule.kind].types) < 3 and told > STRONG)
                )
                if gain > self.price(rule, heads) or (broken == 0 and strong):
                    left.remove(rule)
                    code.add(self.cells(rule))
                    chosen.rules[rule] = evidence
                    _put(rule, heads)
            if len(left) == before:
                return
