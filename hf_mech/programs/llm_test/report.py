"""Results of the test of a language model: a table for the terminal, and results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from hf_mech.hub.measurements import Measurement, PaperFigure, measurement
from hf_mech.hub.results import Results
from hf_mech.programs.llm_test.scores import Score
from hf_mech.programs.llm_test.tables import PAPER_MODEL, PAPER_PROMPTS, TABLES, Row
from hf_mech.programs.llm_test.variants import SHIFTED_LENGTH, Variant
from hf_mech.programs.templatic.tasks import TRAINED, split_named

DATASET = "hf_mech/templatic_generation"


def score_tables(model: str, scores: Sequence[Score], rows: Sequence[Row] = ()) -> list[Table]:
    """The scores beside those of GPT-4 in the paper.

    Args:
        model: its name.
        scores: one a variant.
        rows: the rows of the paper's tables to show, in their order; by default one table of all scores.
    """
    of = {score.variant: score for score in scores}
    rows = rows or [Row("", variant, _paper_accuracy(variant)) for variant in of]
    return [
        _table(f"{model}, {name}" if name else model, [(row, of[row.variant]) for row in rows if row.table == name])
        for name in dict.fromkeys(row.table for row in rows)
    ]


def _table(title: str, lines: Sequence[tuple[Row, Score]]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, collapse_padding=True)
    for heading in ("Task", "Split"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Con Count", "Con Length", "Notes"):
        table.add_column(heading)
    for heading in ("Prompts", "Accuracy", "Constituents right", f"Paper, {PAPER_MODEL}"):
        table.add_column(heading, justify="right")
    for row, score in lines:
        table.add_row(
            score.variant.task,
            score.variant.split,
            ",".join(map(str, score.by_count)),
            _lengths(score.variant),
            _notes(score),
            str(score.prompts),
            f"{score.accuracy:.2f}",
            "" if score.constituent_accuracy is None else f"{score.constituent_accuracy:.2f}",
            "" if row.paper is None else f"{row.paper:.2f}",
        )
    return table


def save_results(path: Path, model: str, scores: Sequence[Score], setting: Mapping[str, Any]) -> Path:
    """Write the scores in the form of all results of hf_mech, with the paper's figures beside them.

    Args:
        path: results.json.
        model: its name.
        scores: one a variant.
        setting: the other settings of the run, such as seed and system prompt; JSON values.
    """
    measurements = [entry for score in scores for entry in _measurements(score, setting)]
    seconds = sum(score.seconds for score in scores)
    return Results.collect(f"test-llm {model}", seconds=seconds, results=measurements).save(path)


def _measurements(score: Score, setting: Mapping[str, Any]) -> list[Measurement]:
    variant = score.variant
    chosen = {"con_count": variant.con_count, "con_length": variant.con_length}
    asked = {
        "split": variant.split,
        **{name: value for name, value in chosen.items() if value is not None},
        "grammar": variant.grammar,
        **setting,
    }
    figure = _paper_accuracy(variant)
    paper = None
    if figure is not None:
        paper = PaperFigure(figure, where=f"{_where(variant)}, {PAPER_MODEL}, {PAPER_PROMPTS} prompts")

    whole = asked | {"prompts": score.prompts}
    entries = [measurement(DATASET, variant.task, whole, "exact_match", [score.accuracy], paper)]
    if score.constituent_accuracy is not None:
        share = [score.constituent_accuracy]
        entries.append(measurement(DATASET, variant.task, whole, "constituent_accuracy", share))
    for name, groups in (("of_con_count", score.by_count), ("of_longest_con_length", score.by_length)):
        for key, (prompts, accuracy) in groups.items() if len(groups) > 1 else ():
            part = asked | {name: key, "prompts": prompts}
            entries.append(measurement(DATASET, variant.task, part, "exact_match", [accuracy]))
    return entries


def _paper_rows(variant: Variant) -> list[Row]:
    return [row for rows in TABLES.values() for row in rows if row.variant == variant]


def _where(variant: Variant) -> str:
    return " and ".join(row.table for row in _paper_rows(variant))


def _paper_accuracy(variant: Variant) -> float | None:
    """The paper's figure for the variant. Tables that share a variant agree."""
    return next((row.paper for row in _paper_rows(variant)), None)


def _lengths(variant: Variant) -> str:
    """The column "Con Length" of Tables 6 and 7."""
    trained = ",".join(map(str, TRAINED))
    if variant.split == "dyn_ood_cons_len":
        return f"{trained}; cue {SHIFTED_LENGTH}"
    if variant.split == "dyn_rev_cons_len":
        return f"{SHIFTED_LENGTH}; cue {trained}"
    if variant.con_length is not None or variant.split == "dyn_ood_lexical":
        return str(variant.con_length or trained)
    return ",".join(map(str, split_named(variant.split).lengths))


def _notes(score: Score) -> str:
    notes = ["grammar"] if score.variant.grammar else []
    return ", ".join([*notes, f"{score.cut_off} cut off"] if score.cut_off else notes)
