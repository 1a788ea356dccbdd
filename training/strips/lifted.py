"""A cell by `learn_lifted_domain`, which learns lifted actions from all traces, their labels and the names of objects.

It sees more than the paper's learners: that `board(f1,p1)` and `board(f1,p2)` are one action on different objects, as
LOCM does. Unlike LOCM it also sees the labels: an action labelled 1 has failed. Where the walks of a cell are not
uniform it is told so, and that failures are drawn evenly from the forbidden actions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from accelerate import Accelerator
from torch import Tensor

from hf_mech.models.strips import StripsAction, StripsDomain, StripsTransformer
from hf_mech.models.strips.strips_lifted import LiftedAtom, LiftedDomain, ground_name, parse_action
from hf_mech.planning.lifted.learning import LiftedCode, learn_lifted_domain

from ..engine import Job
from ..engine.settings import parse_seeds
from .fit import Fit
from .settings import Cell

PLANS = LiftedCode(walks=0.01, failures="uniform", most_steps=100_000)
"""For plans: what was done says little, which actions failed says more. Chosen on data seeds 1 to 8."""

BIASED = LiftedCode(walks=0.1, failures="uniform", most_steps=100_000)
"""For walks that prefer some of the actions. Chosen on data seeds 1 to 11."""


def fit(
    cell: Cell, job: Job, accelerator: Accelerator, model: StripsTransformer, train: tuple[Tensor, Tensor]
) -> Fit | None:
    """Learns in one go, without random numbers, so that every seed has the same domain. As `gradient.fit`."""
    seeds, began = len(parse_seeds([cell.seeds])), time.perf_counter()
    rows = [(ids[told >= 0].tolist(), told[told >= 0].tolist()) for ids, told in zip(*train, strict=True)]
    code = PLANS if cell.policy == "expert" else BIASED if cell.walk_bias else None
    domain = lifted_domain([ids for ids, _ in rows], [told for _, told in rows], model.config.actions, code)
    return Fit(
        model=StripsTransformer.from_domain(domain, ensemble=seeds),
        steps=0,
        seconds=time.perf_counter() - began,
        settled_at=[None] * seeds,
        redraws=[0] * seeds,
    )


def lifted_domain(
    traces: Iterable[Sequence[int]],
    labels: Iterable[Sequence[int]],
    actions: Sequence[str],
    code: LiftedCode | None = None,
) -> StripsDomain:
    """The learned lifted domain, grounded.

    Args:
        traces: actions by index.
        labels: 1 where an action failed and changed nothing.
        actions: their names, `name(object,object)`; one whose name is in no trace needs and changes nothing.
        code: how the domain is chosen; None: the defaults.

    Raises:
        PlanningError: traces that cannot be read, see `learn_lifted_domain`.
    """
    named = [[actions[action] for action in trace] for trace in traces]
    learned = learn_lifted_domain(named, labels, code=code, progress=False).domain
    grounded = [_grounded(learned, action) for action in actions]
    atoms = sorted({atom for action in grounded for atom in action.pre | action.add | action.delete})
    return StripsDomain(tuple(atoms), tuple(grounded), "lifted")


def _grounded(learned: LiftedDomain, action: str) -> StripsAction:
    """One action without static preconditions: all actions of a cell have theirs."""
    schema, objects = learned.by_name.get(parse_action(action).name), parse_action(action).objects

    def named(atoms: Iterable[LiftedAtom]) -> frozenset[str]:
        return frozenset(ground_name(*atom.ground(objects)) for atom in atoms if atom.predicate not in learned.static)

    pre, add, delete = (named(own) for own in ((schema.pre, schema.add, schema.delete) if schema else ((), (), ())))
    return StripsAction(action, pre, add, delete - add)
