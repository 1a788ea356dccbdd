"""The table of compiled programs on templatic generation: a row a program and task, a column a split."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from templatic_table import METRIC, SPLITS

from hf_mech.hub import Measurement, Results
from hf_mech.templatic.tasks import TASKS


def markdown(cards: Path) -> str:
    """The table of all cards of programs that are there; empty if there is none."""
    found = [Results.load(file).results for file in sorted(cards.glob("dat-*/results.json"))]
    return program_table([entry for results in found for entry in results if entry.metric == METRIC])


def program_table(measured: Iterable[Measurement]) -> str:
    """In Markdown: per cent of the prompts of each split whose completion is exactly right, never rounded up."""
    rows: dict[tuple[str, str], dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            rows.setdefault((entry.setting["program"], entry.config or ""), {})[entry.setting["split"]] = entry
    if not rows:
        return ""
    lines = [
        f"| program | task | prompts | wrong | {' | '.join(SPLITS.values())} |",
        f"|---|---|---:|---:|{'---:|' * len(SPLITS)}",
    ]
    tasks = list(TASKS)
    for (program, task), row in sorted(rows.items(), key=lambda item: (item[0][0], tasks.index(item[0][1]))):
        prompts = sum(entry.setting["prompts"] for entry in row.values())
        wrong = sum(_wrong(entry) for entry in row.values())
        cells = [_percent(row[split]) if split in row else "" for split in SPLITS]
        lines.append(f"| {program} | {task} | {prompts:,} | {wrong:,} | {' | '.join(cells)} |")
    return "\n".join([*lines, *_reduced(rows)])


def _reduced(rows: dict[tuple[str, str], dict[str, Measurement]]) -> list[str]:
    """Says of which splits not every prompt was run."""
    parts: dict[tuple[str, str], list[str]] = {}
    for (program, task), row in rows.items():
        counts = {split: row[split].setting["prompts"] for split in SPLITS if split in row}
        less = {split: ran for split, ran in counts.items() if ran < TASKS[task].size(split)}
        if less == counts and len(counts) > 1 and len(set(less.values())) == 1:
            parts.setdefault((program, f"the first {min(less.values()):,} of every split"), []).append(task)
            continue
        for split, ran in less.items():
            what = f"the first {ran:,} of {TASKS[task].size(split):,} of {split}"
            parts.setdefault((program, what), []).append(task)
    said = [f"{program}: {what} ({', '.join(tasks)})" for (program, what), tasks in parts.items()]
    return ["", f"Whole splits, but for {'; '.join(said)}." if said else "Every prompt of every split shown."]


def _wrong(entry: Measurement) -> int:
    return round(entry.setting["prompts"] * (1 - entry.mean))


def _percent(entry: Measurement) -> str:
    """100 if all are right; else two digits, cut off and not rounded."""
    prompts, wrong = entry.setting["prompts"], _wrong(entry)
    return "100" if not wrong else f"{(prompts - wrong) * 10_000 // prompts / 100:.2f}"
