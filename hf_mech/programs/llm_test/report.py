"""From answers to scores, tables and the report of a test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from hf_mech.hub.results import Measurement, PaperFigure, Results, measurement
from hf_mech.probing.language_models import Reply
from hf_mech.programs.llm_test.variants import SHIFTED_LENGTH, Variant
from hf_mech.programs.templatic.grammar import Prompt
from hf_mech.programs.templatic.tasks import TRAINED, split_named

# ----------------------------------------------------------------------------------------------------------------------
# Right and wrong replies, and the figures of a variant (Sec. 4.2.2, App. H).


@dataclass(frozen=True)
class Record:
    """One line of a file of answers.

    Attributes:
        index: the prompt's number, from 0.
        prompt: the prompt of the task, without the system prompt.
        completion: the right answer.
        reply: the model's text.
        finish_reason: the reason of the reply's end, if known; see [`~hf_mech.probing.language_models.Reply`].
        correct: whether the reply has the completion's symbols, all of them in the same order and no others. White
            space separates symbols. The paper does not give its comparison.
        con_count: number of constituents of the question.
        con_length: number of symbols of the cue's longest constituent.
        constituents: number of constituents of the right answer.
        constituents_right: number of those that the reply contains complete and in order.
        seconds: time between the previous reply and this one.
    """

    index: int
    prompt: str
    completion: str
    reply: str
    finish_reason: str | None
    correct: bool
    con_count: int
    con_length: int
    constituents: int
    constituents_right: int
    seconds: float


@dataclass(frozen=True)
class Score:
    """The figures of one variant.

    Attributes:
        variant: the variant of the task.
        prompts: number of prompts.
        accuracy: the share of replies that are right, the paper's "Accuracy".
        constituent_accuracy: the share of the right answers' constituents that the replies contain complete and in
            order. Our own metric; it separates lost delimiters from lost constituents. None if no answer has any.
        by_count: number of constituents in the question -> (prompts, accuracy).
        by_length: symbols of the cue's longest constituent -> (prompts, accuracy).
        cut_off: number of replies that ended at the limit of tokens, as reported by the model.
        seconds: the sum over all replies, those of interrupted runs included.
    """

    variant: Variant
    prompts: int
    accuracy: float
    constituent_accuracy: float | None
    by_count: dict[int, tuple[int, float]] = field(default_factory=dict)
    by_length: dict[int, tuple[int, float]] = field(default_factory=dict)
    cut_off: int = 0
    seconds: float = 0.0


def judge(index: int, prompt: Prompt, reply: Reply, seconds: float = 0.0) -> Record:
    """Compare a reply with the right answer."""
    said = reply.text.split()
    cue = prompt.cue
    wanted = [cue[field] for field in prompt.template.answer if isinstance(field, int)]
    return Record(
        index=index,
        prompt=prompt.text,
        completion=prompt.completion,
        reply=reply.text,
        finish_reason=reply.finish_reason,
        correct=said == prompt.completion.split(),
        con_count=len(cue),
        con_length=max(map(len, cue)),
        constituents=len(wanted),
        constituents_right=_found_in_order(wanted, said),
        seconds=seconds,
    )


def score(variant: Variant, records: Sequence[Record]) -> Score:
    """The figures of one or more records."""
    constituents = sum(record.constituents for record in records)
    return Score(
        variant=variant,
        prompts=len(records),
        accuracy=accuracy(records),
        constituent_accuracy=sum(r.constituents_right for r in records) / constituents if constituents else None,
        by_count=_grouped(records, "con_count"),
        by_length=_grouped(records, "con_length"),
        cut_off=sum(record.finish_reason == "length" for record in records),
        seconds=sum(record.seconds for record in records),
    )


def _found_in_order(wanted: Sequence[Sequence[str]], said: Sequence[str]) -> int:
    """The largest number of constituents that `said` contains unbroken, in the order of `wanted`."""
    # best[at]: the maximum number of constituents so far that end at or before position `at`.
    best = [0] * (len(said) + 1)
    for symbols in wanted:
        size, with_it = len(symbols), best.copy()
        for end in range(1, len(said) + 1):
            found = end >= size and tuple(said[end - size : end]) == tuple(symbols)
            with_it[end] = max(best[end], with_it[end - 1], best[end - size] + 1 if found else 0)
        best = with_it
    return best[-1]


def _grouped(records: Sequence[Record], attribute: str) -> dict[int, tuple[int, float]]:
    groups: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        groups[getattr(record, attribute)].append(record)
    return {key: (len(groups[key]), accuracy(groups[key])) for key in sorted(groups)}


def accuracy(records: Sequence[Record]) -> float:
    return sum(record.correct for record in records) / len(records)


# ----------------------------------------------------------------------------------------------------------------------
# The rows of Tables 2 and 6 to 10: variant of the task, and GPT-4's accuracy in the paper.


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


# ----------------------------------------------------------------------------------------------------------------------
# Results of the test of a language model: a table for the terminal, and results.json.


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
