"""`learn_domain`: from labelled traces to a domain in one call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.two_part_code.code import TwoPartCode, TwoPartCodeError, check_whole, positions_of
from hf_mech.planning.two_part_code.search import Search, complete, domain_of, inapplicable

_STRIDE = 10  # sweeps between two looks at the progress bar


@dataclass(frozen=True)
class LearnedDomain:
    """A domain, and what its code costs.

    Attributes:
        domain: the domain; its propositions are named p0, p1, ...; those that can forbid nothing are left out.
        bits: the length of the shortest code, before what the walks support besides is added to the domain.
        wrong_labels: positions whose label the domain gets wrong by Definition 1, whatever the initial state.
        restart_bits: the code length of every restart.
    """

    domain: StripsDomain
    bits: float
    wrong_labels: int
    restart_bits: tuple[float, ...]


def learn_domain(
    traces: Iterable[Sequence[int | str]],
    labels: Iterable[Sequence[int]],
    actions: Sequence[str],
    *,
    num_propositions: int | None = None,
    seed: int = 0,
    restarts: int = 4,
    code: TwoPartCode | None = None,
    jobs: int = 1,
    progress: bool = True,
) -> LearnedDomain:
    """The domain with the shortest two-part code that annealing finds, and what the walks support besides.

    See `code.py` for the code, and `completion.py` for the rest. The same arguments give the same domain, with any
    number of jobs.

    Args:
        traces: actions by index or by name.
        labels: of each position, 1: inapplicable, as in `hf_mech/strips_traces`.
        actions: the names of all actions.
        num_propositions: the largest number of propositions; those that explain too little stay empty. None: as many as
            there are actions.
        seed: 0 or more.
        restarts: how many chains; the shortest code wins.
        code: prices and schedule; None: the defaults.
        jobs: chains at a time, each a thread.
        progress: whether to show a progress bar.

    Raises:
        TwoPartCodeError: no traces, an unknown action, a label that is neither 0 nor 1, or a number out of range.
        DomainError: a name that no action can have.
    """
    code = TwoPartCode() if code is None else code
    if not isinstance(code, TwoPartCode):
        raise TwoPartCodeError(f"code must be a TwoPartCode, got {code!r}.")
    data = positions_of(traces, labels, actions)
    StripsDomain((), tuple(StripsAction(name) for name in actions), "learned")  # refuses names before the search
    atoms = len(actions) if num_propositions is None else num_propositions
    check_whole("seed", seed, 0)
    for name, count in (("restarts", restarts), ("jobs", jobs), ("num_propositions", atoms)):
        check_whole(name, count, 1)
    search = Search(data, atoms, [(seed, restart) for restart in range(restarts)], code)
    with tqdm(total=search.sweeps, desc="two-part code", unit="sweep", disable=not progress) as bar:
        while search.sweep < search.sweeps:
            done = search.advance(_STRIDE, jobs)
            bar.update(done)
            if (bits := min(search.bits)) < math.inf:
                bar.set_postfix_str(f"{bits:,.0f} bits")
    best = int(np.argmin(search.bits))
    found = complete(search.best(best), data, code)
    wrong = int((inapplicable(found, data) != data.labels).sum())
    return LearnedDomain(domain_of(found, actions, "learned"), search.bits[best], wrong, tuple(search.bits))
