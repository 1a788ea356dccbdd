"""Puts the tables of results into README.md, from model_cards; `--check` only says whether they are up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from formal_words import steps_in_words
from lm_table import table3
from pargen_table import markdown as programs_table
from templatic_table import markdown as baselines_table

from hf_mech.hub import Measurement, Results
from hf_mech.hub.files import write_text_atomically

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- table 1: rendered by training/render_readme.py from model_cards/strips-*/results.json -->"
END = "<!-- end of table 1 -->"
STACK_BEGIN = "<!-- stack attention: rendered by training/render_readme.py from model_cards/stack-*/results.json -->"
STACK_END = "<!-- end of stack attention -->"
LM_BEGIN = "<!-- language models: rendered by training/render_readme.py from model_cards/stack-lm/results.json -->"
LM_END = "<!-- end of language models -->"
PROGRAMS_BEGIN = "<!-- programs: rendered by training/render_readme.py from model_cards/dat-*/results.json -->"
PROGRAMS_END = "<!-- end of programs -->"
BASELINES_BEGIN = (
    "<!-- learned baselines: rendered by training/render_readme.py from model_cards/templatic-baselines/ -->"
)
BASELINES_END = "<!-- end of learned baselines -->"
_STACK_ORDER = (
    *("reverse_string", "stack_manipulation", "modular_arithmetic", "solve_equation"),
    *("mlm", "alm", "cpu", "paper"),
)


def table1(cards: Path) -> str:
    """The table in Markdown: a row a cell, ours beside the paper's."""
    lines = [
        "| domain | traces | train | test | paper's train | paper's test | proved: instances | all sequences | steps |",
        "|---|---:|---|---|---|---|---:|---:|---:|",
    ]
    above: list[str] = []
    below: list[str] = []
    for file in sorted(cards.glob("strips-*/results.json")):
        cells: dict[tuple[str, int], dict[str, Measurement]] = {}
        for entry in Results.load(file).results:
            if entry.setting["preset"] == "redraw" and entry.setting["head_factor"] == 1:
                cells.setdefault((entry.config or "", entry.setting["num_train"]), {})[entry.metric] = entry
        for (domain, size), cell in sorted(cells.items()):
            lines.append(_row(domain, size, cell))
            test = cell["test_trace_accuracy"]
            if test.paper and test.paper.std is not None:
                (below if test.mean < test.paper.mean - test.paper.std else above).append(f"{domain} {size}")
    lines += [
        "",
        f"At least the paper's test mean less one of its standard deviations: {len(above)} cells. Below: {len(below)}",
    ]
    lines[-1] += f" ({', '.join(below)})." if below else "."
    return "\n".join(lines)


def _row(domain: str, size: int, cell: dict[str, Measurement]) -> str:
    train, test = cell["train_trace_accuracy"], cell["test_trace_accuracy"]
    best = cell["test_trace_accuracy_of_best_training_seed"]
    proofs = [cell["proved_on_instances"], cell["proved_on_all_sequences"]]
    figures = [
        domain,
        str(size),
        f"{train.mean:.3f} ± {train.std:.3f}",
        f"{test.mean:.3f} ± {test.std:.3f} ({best.mean:.3f})",
        f"{train.paper.mean:.3f} ± {train.paper.std:.3f}" if train.paper else "",
        f"{test.paper.mean:.3f} ± {test.paper.std:.3f} ({best.paper.mean:.3f})" if test.paper and best.paper else "",
        *(f"{sum(proved.values):.0f} of {proved.n}" for proved in proofs),
        f"{cell['steps'].mean:,.0f}",
    ]
    return f"| {' | '.join(figures)} |"


def stack_table(cards: Path) -> str:
    """Table 1 of the stack attention paper in Markdown: a row a task and layout, ours beside the paper's in per cent.

    Transformers as the paper has them, without positional encodings; empty if there is no card of a task.
    """
    rows: dict[tuple[int, ...], dict[str, Measurement]] = {}
    for file in sorted(cards.glob("stack-*/results.json")):
        for entry in Results.load(file).results:
            own = entry.metric == "token_accuracy" and entry.paper and entry.setting["encoding"] == "none"
            if own and entry.setting["model"] in ("vanilla", "stack"):
                names = (entry.config, entry.setting["layout"], entry.setting["preset"])
                place = (*(_STACK_ORDER.index(name) for name in names), entry.setting["steps"])
                models = rows.setdefault(place, {})
                if entry.setting["model"] in models:
                    raise ValueError(
                        f"{file} has two figures for {names} after {place[-1]} steps; keep one in the cards."
                    )
                models[entry.setting["model"]] = entry
    if not rows:
        return ""
    lines = [
        "| task | layout | stack | paper's stack | vanilla | paper's vanilla | seeds | preset | steps |",
        "|---|---|---|---|---|---|---:|---|---:|",
    ]
    for (task, layout, preset, _), models in sorted(rows.items()):
        figures = [text for name in ("stack", "vanilla") for text in _beside_paper(models.get(name))]
        seeds = "/".join(dict.fromkeys(str(entry.n) for entry in models.values()))
        names = [_STACK_ORDER[task], _STACK_ORDER[layout]]
        done = "; ".join(dict.fromkeys(steps_in_words(entry.setting["steps_done"]) for entry in models.values()))
        lines.append(f"| {' | '.join([*names, *figures, seeds, _STACK_ORDER[preset], done])} |")
    return "\n".join(lines)


def _beside_paper(entry: Measurement | None) -> list[str]:
    if entry is None or entry.paper is None:
        return ["", ""]
    return [f"{100 * figure.mean:.1f} ± {100 * (figure.std or 0):.1f}" for figure in (entry, entry.paper)]


def render(text: str, table: str, begin: str = BEGIN, end: str = END) -> str:
    """The README with the table between its marks. Raises ValueError if the marks are not there."""
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"README.md must hold the lines {begin!r} and {end!r}; put them where the table belongs.")
    return f"{before}{begin}\n{table}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if README.md is out of date")
    check = parser.parse_args().check
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    rendered = render(text, table1(ROOT / "model_cards"))
    if stacks := stack_table(ROOT / "model_cards"):
        rendered = render(rendered, stacks, STACK_BEGIN, STACK_END)
    if (models := ROOT / "model_cards" / "stack-lm" / "results.json").exists():
        rendered = render(rendered, table3(Results.load(models).results), LM_BEGIN, LM_END)
    # The marks stand in the README from the first table on.
    if PROGRAMS_BEGIN in text and (programs := programs_table(ROOT / "model_cards")):
        rendered = render(rendered, programs, PROGRAMS_BEGIN, PROGRAMS_END)
    if BASELINES_BEGIN in text and (baselines := baselines_table(ROOT / "model_cards")):
        rendered = render(rendered, baselines, BASELINES_BEGIN, BASELINES_END)
    if not check:
        write_text_atomically(readme, rendered)
    return int(check and text != rendered)


if __name__ == "__main__":
    sys.exit(main())
