"""The rows of Tables 2 and 6 to 10: variant of the task, and GPT-4's accuracy in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hf_mech.programs.llm_test.variants import Variant

PAPER_MODEL = "gpt-4"
"""The model of Tables 6 to 10: gpt-4-0613, asked in September 2024 (Sec. 4.2.2, App. H)."""

PAPER_PROMPTS = 100
"""Number of prompts for each of the paper's figures."""


@dataclass(frozen=True)
class Row:
    """One row of one table.

    Attributes:
        table: its name, such as "Table 6".
        variant: prompts and system prompt.
        paper: GPT-4's accuracy in that row; None without a row in the paper.
    """

    table: str
    variant: Variant
    paper: float | None


_CORE, _FIVE = "1_shot_rlw", "5_shot_rlw"


def _rows(table: str, *rows: tuple[Variant, float]) -> tuple[Row, ...]:
    return tuple(Row(table, variant, paper) for variant, paper in rows)


TABLES: Mapping[str, tuple[Row, ...]] = {
    "2": _rows("Table 2", (Variant(_CORE), 0.75)),
    "6": _rows(
        "Table 6",
        (Variant(_CORE, con_count=1, con_length=1), 0.96),
        (Variant(_CORE, con_count=2, con_length=1), 0.97),
        (Variant(_CORE, "ood_cons_count_3"), 0.62),
        (Variant(_CORE, "ood_cons_count_5"), 0.35),
        (Variant(_CORE, "ood_cons_count_7"), 0.26),
        (Variant(_CORE, "ood_cons_count_10"), 0.23),
    ),
    "7": _rows(
        "Table 7",
        (Variant(_CORE, con_count=1, con_length=1), 0.96),
        (Variant(_CORE, con_count=1, con_length=2), 1.00),
        (Variant(_CORE, "ood_cons_len_3"), 1.00),
        (Variant(_CORE, "ood_cons_len_5"), 0.98),
        (Variant(_CORE, "ood_cons_len_7"), 0.96),
        (Variant(_CORE, "ood_cons_len_10"), 0.89),
    ),
    "8": _rows(
        "Table 8",
        (Variant(_CORE), 0.75),
        (Variant("3_shot_rlw"), 0.86),
        (Variant("4_shot_rlw"), 0.96),
        (Variant(_FIVE), 0.95),
        (Variant("7_shot_rlw"), 0.93),
        (Variant("10_shot_rlw"), 0.92),
    ),
    "9": _rows(
        "Table 9",
        (Variant(_CORE), 0.75),
        (Variant("1_shot_eng"), 0.88),
        (Variant(_CORE, grammar=True), 0.80),
        (Variant(_CORE, "ood_lexical"), 0.54),
    ),
    # The third row reads 5_shot_eng in the paper; no such task is in Table 1, and the text says that all rows used
    # 5_shot_rlw.
    "10": _rows(
        "Table 10",
        (Variant(_FIVE), 0.95),
        (Variant(_FIVE, "dyn_ood_lexical"), 0.85),
        (Variant(_FIVE, "dyn_ood_cons_len"), 0.84),
        (Variant(_FIVE, "dyn_rev_cons_len"), 0.71),
    ),
}
"""Number of a table -> its rows. Table 2 has only the row of GPT-4; its other rows are of other models."""
