"""The papers' figures, one schema for all: tables whose rows say to which setting a figure belongs.

    {"tables": [{"where": "Table 1", "metric": "test_trace_accuracy", "out_of": 1, "fixed": {"encoding": "none"},
                 "columns": ["domain", "num_train", "mean", "std"], "rows": [["simple", 50, 1.0, 0.0], ...]}]}

The columns before `mean` (and `std`, where the paper has one) are settings, as `fixed` holds those that a whole table
shares. A figure is its number divided by `out_of`, so that it is in the metric's own unit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mech.hub import PaperFigure


@dataclass(frozen=True)
class Row:
    """One figure of a paper, and the setting to which it belongs."""

    metric: str
    setting: dict[str, Any]
    figure: PaperFigure


class Paper:
    """The figures of `paper.json`.

    Args:
        file: such a file.

    Raises:
        ValueError: a row that is longer or shorter than its table's columns, or two rows of one setting.
    """

    def __init__(self, file: Path) -> None:
        self.rows: list[Row] = []
        for table in json.loads(file.read_text(encoding="utf-8"))["tables"]:
            for row in table["rows"]:
                setting = table.get("fixed", {}) | dict(zip(table["columns"], row, strict=True))
                mean, std = setting.pop("mean"), setting.pop("std", None)
                out_of = table["out_of"]
                figure = PaperFigure(mean / out_of, None if std is None else std / out_of, table["where"])
                self.rows.append(Row(table["metric"], setting, figure))

    def figures(self, metric: str, **setting: Any) -> list[PaperFigure]:
        """Every figure of a metric in a setting, in the order of the paper's tables."""
        return [row.figure for row in self.rows if row.metric == metric and row.setting == setting]

    def figure(self, metric: str, **setting: Any) -> PaperFigure | None:
        """The paper's first figure of a metric in a setting, or None."""
        return next(iter(self.figures(metric, **setting)), None)

    def values(self, name: str, **setting: Any) -> list[Any]:
        """The values that a setting takes in the paper's tables, in their order."""
        found = (row.setting for row in self.rows if setting.items() <= row.setting.items())
        return list(dict.fromkeys(own[name] for own in found if name in own))
