"""From the parts' outcomes to the figures of results.json, a card for each program, and the table of programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.programs.psl.library import read_program
from hf_mech.programs.templatic.tasks import SPLITS, TASKS

from ..engine import SettingsError
from ..engine.card import Card, Checkpoint
from ..engine.tables import Table
from .architecture import tables
from .figures import parse_figure
from .run import PartOutcome, compiled

DATASET = "hf_mech/templatic_generation"
METRIC = "exact_match"
_PAPERS_SPLITS = ("test", "ood_lexical", "ood_cons_len_7", "ood_cons_count_7")
_PAPERS = PaperFigure(1.0, None, "Sec. 7.2.4, the first 1,000 prompts")
_CAPTION = (
    "Swap, the paper's example, in all layers. Above, its cells when they are parsed, as (36) of the paper has them, "
    "and those of the completion, coloured by field; below, what each production wrote into which cell"
)


def check_parts(outcomes: Sequence[PartOutcome]) -> None:
    """Checks that the parts of a program, in their order, can share a card.

    Raises:
        SettingsError: they are of different texts of the program or of different seeds, or two share a prompt.
    """
    parts = [outcome.settings for outcome in outcomes]
    for name, values in (
        ("texts of the program", {part.program_digest for part in parts}),
        ("seeds", {part.seed for part in parts}),
    ):
        if len(values) > 1:
            raise SettingsError(
                f"The parts of {parts[0].program} are of {len(values)} {name}; keep one in --output_dir."
            )
    for before, after in pairwise(parts):
        if (before.task, before.split) == (after.task, after.split) and after.start < before.stop:
            raise SettingsError(f"Two parts share prompts: {before} and {after}; remove one from --output_dir.")


def order(outcome: PartOutcome) -> tuple[object, ...]:
    """The order of Table 1."""
    part = outcome.settings
    return part.program, list(TASKS).index(part.task), list(SPLITS).index(part.split), part.start


def measurements(outcomes: Iterable[PartOutcome]) -> list[Measurement]:
    """One figure a task and split, over all of its prompts that were run."""
    cells: dict[tuple[str, str], list[PartOutcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.settings.task, outcome.settings.split), []).append(outcome)
    measured = []
    for (task, split), parts in cells.items():
        program = parts[0].settings.program
        prompts, exact = sum(part.prompts for part in parts), sum(part.exact for part in parts)
        paper = _PAPERS if (program, task) == ("pargen", "1_shot_rlw") and split in _PAPERS_SPLITS else None
        setting = {"program": program, "split": split, "prompts": prompts}
        measured.append(measurement(DATASET, task, setting, METRIC, [exact / prompts], paper))
    return measured


def card(finished: Mapping[Path, PartOutcome]) -> Card:
    """The card of a program; its checkpoint is the compiled program."""
    outcomes = list(finished.values())
    program = outcomes[0].settings.program
    check_parts(outcomes)
    parts, measured = [outcome.settings for outcome in outcomes], measurements(outcomes)
    positions = max(part.positions for part in parts)
    model, tokenizer = compiled(program, positions, max(part.num_open_values for part in parts))
    tokenizer.forget()
    return Card(
        name=f"dat-{program.replace('_', '-')}",
        outcomes=outcomes,
        measured=measured,
        text={
            "program": program,
            "productions": len(list(read_program(program).productions)),
            "seed": parts[0].seed,
            "table": table_of(measured).markdown(),
            "longest": max(outcome.longest for outcome in outcomes),
            "batch": f"{max(part.batch_size for part in parts):,}",
            "positions": f"{positions:,}",
            "words": f"{max(part.num_open_values for part in parts):,}",
        },
        model_class="DATForCausalLM",
        task="text-generation",
        tags=["templatic-generation", "in-context-learning", "compiled-program"],
        headline=[METRIC],
        figures={"swap.png": (parse_figure(program), _CAPTION)},
        checkpoint=Checkpoint(model, tokenizer),
    )


def table(finished: Sequence[PartOutcome]) -> str:
    """The table in Markdown, and the first wrong completions if there are any."""
    programs = dict.fromkeys(outcome.settings.program for outcome in finished)
    own = [[outcome for outcome in finished if outcome.settings.program == program] for program in programs]
    shown = table_of(entry for outcomes in own for entry in measurements(outcomes)).markdown()
    wrong = [
        f"{outcome.settings.task} {outcome.settings.split} {completion['index']}: `{completion['prompt']}`, expected "
        f"`{completion['expected']}`, got `{completion['got']}`"
        for outcome in finished
        for completion in outcome.wrong
    ]
    return "\n\n".join([shown, *wrong])


def table_of(measured: Iterable[Measurement]) -> Table:
    """Per cent of the prompts of each split whose completion is exactly right, never rounded up: a row a task."""
    rows: dict[tuple[str, str], dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            rows.setdefault((entry.setting["program"], entry.config or ""), {})[entry.setting["split"]] = entry
    shown = Table(["program", "task", ">prompts", ">wrong", *(f">{split.short_name}" for split in SPLITS.values())])
    tasks = list(TASKS)
    for (program, task), row in sorted(rows.items(), key=lambda item: (item[0][0], tasks.index(item[0][1]))):
        prompts = sum(entry.setting["prompts"] for entry in row.values())
        wrong = sum(_wrong(entry) for entry in row.values())
        cells = [_percent(row[split]) if split in row else "" for split in SPLITS]
        shown.rows.append([program, task, f"{prompts:,}", f"{wrong:,}", *cells])
    shown.notes += _reduced(rows) if rows else []
    return shown


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results: that of all programs that have a card, and those of the DAT's options."""
    found = [Results.load(file).results for file in sorted(cards.glob("dat-*/results.json"))]
    return {"programs": table_of(entry for entries in found for entry in entries).markdown(), **tables(cards)}


def summary(cards: Path) -> list[list[str]]:
    """One row: all prompts that were run, of all programs."""
    found = [Results.load(file).results for file in sorted(cards.glob("dat-*/results.json"))]
    entries = [entry for results in found for entry in results if entry.metric == METRIC]
    if not entries:
        return []
    prompts, wrong = sum(entry.setting["prompts"] for entry in entries), sum(map(_wrong, entries))
    whole = all(entry.setting["prompts"] == TASKS[entry.config or ""].size(entry.setting["split"]) for entry in entries)
    programs = ", ".join(f"`{program}`" for program in dict.fromkeys(entry.setting["program"] for entry in entries))
    paper = "all of the first 1,000" if any(entry.paper for entry in entries) else ""
    name = f"[Programs as attention](docs/results/programs.md), {programs}"
    reduced = "no" if whole else "some train splits"
    return [[name, "prompts completed exactly", f"{prompts - wrong:,} of {prompts:,}", paper, reduced]]


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
    return [f"Whole splits, but for {'; '.join(said)}." if said else "Every prompt of every split shown."]


def _wrong(entry: Measurement) -> int:
    return round(entry.setting["prompts"] * (1 - entry.mean))


def _percent(entry: Measurement) -> str:
    """100 if all are right; else two digits, cut off and not rounded."""
    prompts, wrong = entry.setting["prompts"], _wrong(entry)
    return "100" if not wrong else f"{(prompts - wrong) * 10_000 // prompts / 100:.2f}"
