"""A cell by LOCM, as macq has it: a peer that learns lifted actions from positive traces and the names of objects.

LOCM (Cresswell, McCluskey and West 2013) sees more than the other learners, that `pick(b1,a,left)` and
`pick(b2,a,left)` are one action on different objects, and less: it takes no labels. It gets every positive trace, and
every negative one without its last action. macq reads a single trace, so they stand one behind another, with objects of
their own.
"""

from __future__ import annotations

import contextlib
import io
import re
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from accelerate import Accelerator
from torch import Tensor

from hf_mech.models.strips import StripsAction, StripsDomain, StripsTransformer

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
    """What LOCM learns, grounded.

    Args:
        walks: positive traces, actions by index.
        actions: their names, `name(object,object)`.

    Raises:
        SettingsError: macq is not installed, or its LOCM cannot read these traces.
    """
    parts = [_parts(name) for name in actions]
    schemas = {schema.name: schema for schema in locm_schemas([parts[action] for action in ids] for ids in walks)}
    grounded = []
    for whole, (name, objects) in zip(actions, parts, strict=True):
        schema = schemas.get(name)  # None: seen in no walk, so that nothing is known of it
        needs, adds, deletes = (
            frozenset(_grounded(fluent, objects) for fluent in part)
            for part in ((schema.precond, schema.add, schema.delete) if schema else ((), (), ()))
        )
        grounded.append(StripsAction(whole, needs, adds, deletes - adds))
    atoms = sorted({atom for action in grounded for atom in action.pre | action.add | action.delete})
    return StripsDomain(tuple(atoms), tuple(grounded), "locm")


def locm_schemas(walks: Iterable[Iterable[tuple[str, Sequence[str]]]]) -> list[Any]:
    """The action schemas that LOCM learns, as macq has them.

    Args:
        walks: positive traces, actions by name and objects.

    Raises:
        SettingsError: macq is not installed, or its LOCM cannot read these traces.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes in macq's sources
            from macq.extract.locm import LOCM
            from macq.observation import ActionObservation
            from macq.trace import Action, PlanningObject, State, Step
    except ImportError:
        raise SettingsError("--learner locm needs macq: pip install macq.") from None

    class OneTrace(list[Any]):
        type = ActionObservation

    observed: list[Any] = []
    for walk, actions in enumerate(walks):
        for name, objects in actions:
            own = [PlanningObject("object", f"{each}@{walk}") for each in objects]
            observed.append(ActionObservation(Step(State({}), Action(name, own), len(observed) + 1)))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            learned = LOCM(OneTrace([observed]))
    except SystemExit:  # macq's way to say so
        raise SettingsError(f"LOCM cannot read these traces. {' '.join(said.getvalue().split())}") from None
    except TimeoutError:  # the caller's own limit
        raise
    except Exception as error:  # a bug of macq's: on some traces it raises what it never meant to
        raise SettingsError(f"macq's LOCM fails on these traces, with {error!r}; leave --learner locm out.") from error
    return list(learned.actions)


def _parts(name: str) -> tuple[str, list[str]]:
    """`pick(b1,a,left)` as `pick` and `[b1, a, left]`."""
    head, _, rest = name.partition("(")
    return head, re.findall(r"[^,()]+", rest)


def _grounded(fluent: Any, objects: Sequence[str]) -> str:
    """A fluent of macq's with objects for the places of its action; place -1 is LOCM's zero object."""
    return f"{fluent.name}({','.join(objects[place] for place in fluent.param_act_inds if place >= 0)})"
