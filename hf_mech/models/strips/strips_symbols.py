"""Weights as symbols and back, for the propositional model (`strips_cells.py` has the lifted one's), and grounding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from .strips_cells import Cells
from .strips_domain import StripsAction, StripsDomain, StripsError
from .strips_lifted import LiftedDomain, ground_name
from .strips_lifted_attention import unroll

#: A grounded theta may not have more numbers.
MOST_GROUND = 200_000_000


def theta_of(domain: StripsDomain) -> Tensor:
    """Eq. 8-10, [propositions, actions, 3]."""
    bits = [
        [[p in action.pre, p in action.add or p in action.delete, p in action.delete] for action in domain.actions]
        for p in domain.propositions
    ]
    return torch.tensor(bits, dtype=torch.float32).view(len(domain.propositions), len(domain.actions), 3)


def domain_of(bits: Tensor, config: Any, name: str) -> StripsDomain:
    """Definition 5: the domain of a binarized theta, bool [propositions, actions, 3]."""
    pre, affected, deleted = bits.unbind(-1)

    def chosen(column: Tensor) -> frozenset[str]:
        return frozenset(p for p, here in zip(config.propositions, column.tolist(), strict=True) if here)

    add, delete = affected & ~deleted, affected & deleted
    actions = tuple(
        StripsAction(action, chosen(pre[:, m]), chosen(add[:, m]), chosen(delete[:, m]))
        for m, action in enumerate(config.actions)
    )
    return StripsDomain(tuple(config.propositions), actions, name)


def ground_theta(
    theta: Tensor, cells: Cells, domain: LiftedDomain, objects: Mapping[str, Iterable[str]], facts: Iterable[Any] | None
) -> tuple[Tensor, list[str], list[str]]:
    """The propositional theta of a lifted one, over some objects.

    Args:
        theta: [members, cells, 3].
        cells: what theta's cells stand for.
        domain, objects, facts: as for `LiftedDomain.ground_actions`.

    Returns:
        [members, propositions, actions, 3], see `unroll`, and the names of the propositions and of the actions.

    Raises:
        StripsError: there are no such actions, or too many.
    """
    actions = list(domain.ground_actions({type_: list(own) for type_, own in objects.items()}, facts))
    names = list(dict.fromkeys(name for action in actions for name in action.objects))
    number = {name: place for place, name in enumerate(names)}
    schemas = {name: m for m, name in enumerate(cells.parameters)}
    ids = [schemas[action.name] for action in actions]
    taken = [[number[name] for name in action.objects] for action in actions]
    atoms = list(cells.atoms(ids, taken))
    size = len(atoms) * len(actions) * 3 * len(theta)
    if not 0 < size <= MOST_GROUND:
        raise StripsError(
            f"ground: {len(actions)} actions and {len(atoms)} atoms over the objects {dict(objects)} make a theta of "
            f"{size} numbers, expected 1 to {MOST_GROUND}; give objects for the actions' types, or fewer."
        )
    ground, _ = unroll(theta, cells, ids, taken)
    predicates = list(cells.predicates)
    propositions = [ground_name(predicates[predicate], [names[one] for one in own]) for predicate, *own in atoms]
    return ground, propositions, [str(action) for action in actions]
