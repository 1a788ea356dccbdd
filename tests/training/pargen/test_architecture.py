"""The comparison of embeddings and heads: what is counted, and the tables of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hf_mech.hub import Results
from hf_mech.programs.psl.machine import Path as LayerPath
from hf_mech.programs.psl.machine import Step
from training.pargen import architecture
from training.pargen.architecture import FILE, measure, tables


def test_a_program_is_measured_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "program_names", lambda: ("universal",))
    monkeypatch.setitem(architecture.SIZES, "max_position_embeddings", 20)
    said: list[str] = []
    found = measure(1, said.append)
    assert len(said) == 5
    equal = [entry for entry in found if entry.metric == "equal_register_values"]
    assert [entry.values for entry in equal] == [[1.0]] * 5
    (tmp_path / FILE).parent.mkdir()
    Results.collect("dat-pargen", seconds=1.0, results=found).save(tmp_path / FILE)
    shown = tables(tmp_path)
    rows = [row.split(" | ") for row in shown["embeddings"].splitlines()[2:]]
    assert [row[1] for row in rows] == ["local", "semi_local", "distributed", "distributed"]
    assert [row[5] for row in rows] == [row[6] for row in rows]
    assert "| universal | 5 | 5 | 1 |" in shown["heads"]
    assert set(tables(tmp_path / "none").values()) == {""}


def test_a_value_that_differs_is_counted() -> None:
    one = [[Step(LayerPath(0), ({"x": "a", "y": None}, {"x": "b", "y": None}))]]
    other = [[Step(LayerPath(0), ({"x": "a", "y": None}, {"x": "a", "y": None}))]]
    assert list(architecture._values(one, other)) == [True, True, False, True]
