"""The learner `locm`: macq's LOCM as a peer."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from hf_mech.models.strips import StripsAction, StripsDomain
from hf_mech.planning import find_distinguishing_trace
from training.engine import SettingsError
from training.strips.locm import locm_domain
from training.strips.settings import Cell

ACTIONS = ("light(x)", "douse(x)", "light(y)", "douse(y)", "light(z)", "douse(z)")


def lamps() -> StripsDomain:
    """Each lamp is lit or dark."""
    kinds = [(a, a.partition("(")[2].rstrip(")"), a.startswith("light")) for a in ACTIONS]
    return StripsDomain(
        tuple(f"{state} {lamp}" for lamp in "xyz" for state in ("dark", "lit")),
        tuple(
            StripsAction(
                name,
                frozenset({f"{'dark' if lights else 'lit'} {lamp}"}),
                frozenset({f"{'lit' if lights else 'dark'} {lamp}"}),
                frozenset({f"{'dark' if lights else 'lit'} {lamp}"}),
            )
            for name, lamp, lights in kinds
        ),
    )


def test_two_states_of_an_object_are_found_and_generalise_to_one_never_seen():
    walks = [[0, 1, 0], [2, 0, 3, 2], [3, 1]]  # z is in none of them
    learned = locm_domain(walks, ACTIONS)
    assert find_distinguishing_trace(learned, lamps()).equivalent


def test_an_action_seen_in_no_walk_is_free():
    learned = locm_domain([[0, 1, 0]], (*ACTIONS, "paint(x)"))
    assert learned.actions[-1] == StripsAction("paint(x)", frozenset(), frozenset(), frozenset())


def test_its_cells_have_no_options_of_other_learners():
    axes = {"domain": "simple", "num_train": 50, "head_factor": 1.0, "data_seed": 0}
    assert Cell.of("locm", **axes).name == "simple-50-locm"
    with pytest.raises(SettingsError, match="--sweeps is an option of --learner two_part_code, not of locm"):
        Cell.of("locm", {"sweeps": 7}, **axes)


def test_without_macq_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "macq.extract.locm", None)
    with pytest.raises(SettingsError, match="pip install macq"):
        locm_domain([[0]], ACTIONS)


def test_an_error_of_macqs_own_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise TypeError("expected str instance, NoneType found")

    monkeypatch.setitem(sys.modules, "macq.extract.locm", SimpleNamespace(LOCM=fails))
    with pytest.raises(SettingsError, match=r"macq's LOCM fails on these traces, with TypeError\('expected str"):
        locm_domain([[0]], ACTIONS)
