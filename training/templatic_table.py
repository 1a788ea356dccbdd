"""The paper's Table 3 with our baselines in it, and with every split of Table 1."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from formal_words import steps_in_words
from templatic_presets import MODELS

from hf_mech.hub import Measurement, Results

METRIC = "exact_match"
SPLITS = {
    **{"train": "train", "dev": "dev", "test": "test", "ood_lexical": "lexical"},
    **{f"ood_cons_len_{n}": f"length {n}" for n in (3, 5, 7, 10)},
    **{f"ood_cons_count_{n}": f"count {n}" for n in (3, 5, 7, 10)},
}
"""The splits of Table 1 in its order, and how a table heads them."""

CARD = "templatic-baselines"


def markdown(cards: Path) -> str:
    """The table of `cards/templatic-baselines/results.json`, see [`table3`]; empty if there is no such card."""
    file = cards / CARD / "results.json"
    return table3(Results.load(file).results) if file.exists() else ""


def table3(measured: Iterable[Measurement]) -> str:
    """Two rows a model in Markdown: what ours completes exactly, in per cent of each split, and what the paper's did.

    Models come in the order of Table 3. Settings of one model that differ have rows of their own.
    """
    rows: dict[tuple[int, str], dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            own = {name: value for name, value in entry.setting.items() if name != "split"}
            rows.setdefault((MODELS.index(own["model"]), repr(own)), {})[entry.setting["split"]] = entry
    lines = [
        f"| model | {' | '.join(SPLITS.values())} | steps |",
        f"|---|{'---:|' * len(SPLITS)}---:|",
    ]
    for (number, _), cells in sorted(rows.items(), key=lambda row: row[0][0]):
        done = steps_in_words(next(iter(cells.values())).setting["steps_done"])
        ours = [_percent(cells.get(split)) for split in SPLITS]
        lines.append(f"| {MODELS[number]} | {' | '.join(ours)} | {done} |")
        paper = [_percent(cells[split].paper) if split in cells else "" for split in SPLITS]
        if any(paper):
            lines.append(f"| *in the paper* | {' | '.join(paper)} | |")
    return "\n".join(lines)


def _percent(figure: object) -> str:
    mean, std = getattr(figure, "mean", None), getattr(figure, "std", None)
    if mean is None:
        return ""
    return f"{100 * mean:.1f}" + (f" ± {100 * std:.1f}" if std and getattr(figure, "n", 1) > 1 else "")


if __name__ == "__main__":
    print(markdown(Path(sys.argv[1] if len(sys.argv) > 1 else "model_cards")))
