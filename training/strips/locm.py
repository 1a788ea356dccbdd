"""A cell by LOCM, as macq has it: a peer that learns lifted actions from positive traces and the names of objects.

LOCM sees more than the other learners, that `pick(b1,a,left)` and `pick(b2,a,left)` are one action on different
objects, and less: it takes no labels. It gets every positive trace, and every negative one without its last action.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from accelerate import Accelerator
from torch import Tensor

from hf_mech.models.strips import StripsAction, StripsDomain, StripsTransformer
from hf_mech.models.strips.strips_lifted import ground_name, parse_action
from hf_mech.planning.locm import learn_with_locm
from hf_mech.planning.problem import PlanningError

from ..engine import Job, SettingsError
from ..engine.settings import parse_seeds
from .fit import Fit
from .settings import Cell


def fit(
    cell: Cell, job: Job, accelerator: Accelerator, model: StripsTransformer, train: tuple[Tensor, Tensor]
) -> Fit | None:
    """Learns in one go; LOCM draws no random numbers, so that every seed has the same domain. As `gradient.fit`.

    Raises:
        SettingsError: macq is not installed, or its LOCM cannot read these traces.
    """
    seeds, began = len(parse_seeds([cell.seeds])), time.perf_counter()
    input_ids, labels = train
    walks = [ids[told == 0].tolist() for ids, told in zip(input_ids, labels, strict=True)]
    domain = locm_domain(walks, model.config.actions)
    return Fit(
        model=StripsTransformer.from_domain(domain, ensemble=seeds),
        steps=0,
        seconds=time.perf_counter() - began,
        settled_at=[None] * seeds,
        redraws=[0] * seeds,
    )


def locm_domain(walks: Iterable[Sequence[int]], actions: Sequence[str]) -> StripsDomain:
    """What LOCM learns, grounded; an action seen in no walk is always possible and changes nothing.

    Args:
        walks: positive traces, actions by index.
        actions: their names, `name(object,object)`.

    Raises:
        SettingsError: macq is not installed, or its LOCM cannot read these traces.
    """
    ground = [parse_action(name) for name in actions]
    try:
        lifted = learn_with_locm([ground[action] for action in walk] for walk in walks)
    except PlanningError as error:
        raise SettingsError(f"--learner locm: {error}") from error
    grounded = []
    for whole, (name, objects) in zip(actions, ground, strict=True):
        schema = lifted.by_name.get(name)
        needs, adds, deletes = (
            frozenset(ground_name(*atom.ground(objects)) for atom in part)
            for part in ((schema.pre, schema.add, schema.delete) if schema else ((), (), ()))
        )
        grounded.append(StripsAction(whole, needs, adds, deletes - adds))
    atoms = sorted({atom for action in grounded for atom in action.pre | action.add | action.delete})
    return StripsDomain(tuple(atoms), tuple(grounded), "locm")
