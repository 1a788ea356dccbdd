"""A learned domain for the eye: few predicates that refuse the same actions in the states of the log.

A learner keeps every predicate that the log supports. Several often say the same, such as "the hand is empty" and
"nothing is held"; a reader needs one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.models.strips.strips_lifted import LiftedAtom, LiftedDomain, ground_name, parse_action
from hf_mech.planning.problem import common_start

if TYPE_CHECKING:
    from hf_mech.planning.lifted.learning import LearnedLiftedDomain

_MOST_CELLS = 2_000_000
"""States times ground actions that are compared at most; of more states, some at equal distances."""


_MOST_CALLS = 50_000
"""Ground actions at most; with more, the domain stays as it is."""

_LEAST = 0.001
"""A predicate that adds a smaller share of the refusals is left out."""


@dataclass(frozen=True)
class BriefDomain:
    """A domain for reading.

    Attributes:
        domain: fewer predicates, preconditions and effects than `learned.domain`.
        refused: the share of the calls refused by `learned.domain` that this one refuses, too, over all calls in the
            states of the log.
    """

    domain: LiftedDomain
    refused: float


def brief_domain(learned: LearnedLiftedDomain) -> BriefDomain:
    """The domain with fewer predicates, for reading; plan and judge with `learned.domain`.

    The states of the log begin where the cases start (`common_start`). A greedy cover chooses the predicates that
    refuse most of what is refused there, and of them the preconditions that no others imply. An effect is left out if
    it never ends anything. With more than 50,000 calls over the objects of the log, the domain stays as it is.
    """
    domain = learned.domain
    sizes = {type_: len(own) for type_, own in learned.objects.items()}
    if sum(math.prod(sizes[type_] for type_ in action.parameters) for action in domain.actions) > _MOST_CALLS:
        return BriefDomain(domain, 1.0)
    ground = learned.ground()
    states = _states(learned, ground)
    truths = {action.name: _truths(action.name, domain, ground, states) for action in domain.actions}
    false = {
        (action.name, atom): ~truths[action.name][atom]
        for action in domain.actions
        for atom in sorted(action.pre)
        if atom.predicate not in domain.static
    }
    whole = _union(false, false)
    chosen = _needed(false, _cover(false, whole), whole, domain)
    kept = {atom.predicate for _, atom in chosen} | domain.static
    actions = []
    for action in domain.actions:
        truth, refused = truths[action.name], whole.get(action.name)
        pre = {atom for atom in action.pre if atom.predicate in domain.static or (action.name, atom) in chosen}
        ends = {
            atom for atom in action.delete - pre if refused is None or (truth[atom] & ~refused).any()
        } | (action.delete & pre)  # fmt: skip
        add, delete = (frozenset(atom for atom in own if atom.predicate in kept) for own in (action.add, ends))
        actions.append(replace(action, pre=frozenset(pre), add=add, delete=delete))
    predicates = {name: types for name, types in domain.predicates.items() if name in kept}
    every = sum(int(mask.sum()) for mask in whole.values())
    brief = sum(int(mask.sum()) for mask in _union(false, chosen).values())
    return BriefDomain(replace(domain, predicates=predicates, actions=tuple(actions)), brief / every if every else 1.0)


def _states(learned: LearnedLiftedDomain, ground: StripsDomain) -> NDArray[np.bool_]:
    """The states of the log, each once, [states, propositions]."""
    steps = learned.steps
    names = [
        ground_name(steps.names[action], [steps.objects[each] for each in row if each >= 0])
        for action, row in zip(steps.action.tolist(), steps.arguments.tolist(), strict=True)
    ]
    spans = list(zip(steps.starts[:-1].tolist(), steps.starts[1:].tolist(), strict=True))
    start = ground.mask(
        common_start(
            ground,
            [names[begin:end] for begin, end in spans],
            [steps.failed[begin:end].tolist() for begin, end in spans],
            noise=learned.epsilon,
        )
    )
    index = {name: number for number, name in enumerate(ground.action_names)}
    seen: dict[int, None] = {start: None}
    for begin, end in spans:
        state = start
        for step in range(begin, end):
            number = index.get(names[step])
            if number is not None and not steps.failed[step]:
                state = state & ~ground.delete_masks[number] | ground.add_masks[number]
                seen[state] = None
    every = list(seen)
    every = every[:: 1 + len(every) * len(ground.actions) // _MOST_CELLS]
    width = len(ground.propositions)
    rows = [[state >> bit & 1 for bit in range(width)] for state in every]
    return np.array(rows, bool).reshape(len(rows), width)


_Pre = tuple[str, LiftedAtom]
_Masks = Mapping[_Pre, NDArray[np.bool_]]
"""Where a precondition of an action is false: [states x groundings of the action]."""


def _truths(
    name: str, domain: LiftedDomain, ground: StripsDomain, states: NDArray[np.bool_]
) -> dict[LiftedAtom, NDArray[np.bool_]]:
    """Where each atom of an action is true, [states x groundings]."""
    column = {proposition: number for number, proposition in enumerate(ground.propositions)}
    calls = [each for each in map(parse_action, ground.action_names) if each.name == name]
    action = domain.by_name[name]
    atoms = [atom for atom in action.pre | action.delete if atom.predicate not in domain.static]
    return {a: states[:, [column[ground_name(*a.ground(each.objects))] for each in calls]].ravel() for a in atoms}


def _union(false: _Masks, chosen: Iterable[_Pre]) -> dict[str, NDArray[np.bool_]]:
    """Where some of the preconditions refuse an action, by action."""
    found: dict[str, NDArray[np.bool_]] = {}
    for pre in chosen:
        found[pre[0]] = found[pre[0]] | false[pre] if pre[0] in found else false[pre]
    return found


def _cover(false: _Masks, whole: Mapping[str, NDArray[np.bool_]]) -> list[_Pre]:
    """The preconditions with predicates that refuse what is refused, the predicate that refuses most first."""
    names = sorted({atom.predicate for _, atom in false})
    least = _LEAST * sum(int(mask.sum()) for mask in whole.values())
    chosen: list[_Pre] = []
    left = dict(whole)
    while names:
        parts = {name: [pre for pre in false if pre[1].predicate == name] for name in names}
        gains = {
            name: sum(int((left[action] & mask).sum()) for action, mask in _union(false, own).items())
            for name, own in parts.items()
        }
        best = max(names, key=lambda name: gains[name])
        if gains[best] <= least:
            break
        chosen += parts[best]
        names.remove(best)
        for action, mask in _union(false, parts[best]).items():
            left[action] = left[action] & ~mask
    return chosen


def _needed(
    false: _Masks, chosen: list[_Pre], whole: Mapping[str, NDArray[np.bool_]], domain: LiftedDomain
) -> list[_Pre]:
    """The preconditions without those that refuse next to nothing more; those that their action ends go last."""
    sizes = {action: _LEAST * mask.sum() for action, mask in whole.items()}
    for pre in sorted(chosen, key=lambda pre: (pre[1] in domain.by_name[pre[0]].delete, pre)):
        others = [other for other in chosen if other[0] == pre[0] and other != pre]
        extra = false[pre] & ~_union(false, others).get(pre[0], np.zeros_like(false[pre]))
        if extra.sum() <= sizes[pre[0]]:
            chosen = [other for other in chosen if other != pre]
    return chosen
