"""From the outcomes of `train_templatic.py` to results.json, figures, a card, and Table 3 with ours in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.markdown import Markdown
from run_folder import common_origin
from templatic_data import DATASET
from templatic_figure import losses_figure, splits_figure
from templatic_presets import MODELS
from templatic_run import Outcome, Run
from templatic_table import CARD, METRIC, SPLITS, table3

from hf_mech.hub import Measurement, PaperFigure, Results, measurement, render_folder
from hf_mech.hub.files import write_text_atomically

PAPER = json.loads(Path(__file__).with_name("templatic_table3_paper.json").read_text())

_NOT_THE_PAPERS = ("hidden", "layers", "filter", "heads", "state", "kernel", "data")
"""Departures that make another model, or another task, of a run: it stands beside no figure of the paper."""

_SHOWN = (
    *("batch_size", "layers", "hidden", "filter", "heads", "initializer_range", "learning_rate"),
    *("scheduler", "warmup_steps", "max_grad_norm", "dropout", "mixed_precision", "eval_prompts"),
)
_FIGURES = {
    "exact_match_by_split.png": "Completions that are right in every word, in per cent of each split; in small print "
    "the paper's figure for a model of full size. To the right of the gap: out of distribution",
    "training_loss.png": "Training loss by step, over the words of the completion",
}
_TITLE = "Templatic generation: learned baselines ({task})"
_SUMMARY = """\
The six learned models of Table 3 on `load_dataset("hf_mech/templatic_generation", "{task}")`, trained from nothing, and
how many completions each gets right in every word. {preset}

{table}

Per cent of the prompts measured, with greedy generation: {prompts}. `train` is measured on prompts that were trained
on, echo prompts among them. {seeds} Out of distribution are: `lexical`, words that training has shown in echo prompts
alone; `length n`, constituents of n words; `count n`, templates of n constituents (training has 1, 2 and 4 of both).
The paper reports five of the splits, for models of full size.

- `transformer`: transformers' BART, encoder and decoder. `nano_gpt`: transformers' GPT-2. `nano_gpt_attn_only`: the
  same without MLP layers and the layer norms before them. `mamba`: transformers' Mamba.
- `cnn`: convolutional sequence to sequence (Gehring et al., 2017). `lstm_attn`: two LSTMs in one direction with Luong
  attention. Plain PyTorch; the paper says no more of them than their sizes.
- The loss is over the completion and its end alone; words are tokens; words not in the training split are `<unk>`, and
  an answer with one counts as wrong.
"""
_PRESETS = {
    "paper": "Sizes and training: Tables 11 and 12 of the paper (preset `paper`).",
    "cpu": "**Reduced** (preset `cpu`): models of width {hidden} where the paper's have 512, fewer layers, {steps} "
    "steps of {batches} prompts where the paper has 120,000 of 128 or 256. They compare with each other under these "
    "means, and say little of what models of the paper's size learn. Each model's steps follow from its time, minutes "
    "of one core; one that has learned nothing in them has not shown that it cannot. Width, batch and learning rate "
    "were fixed after short trial runs of transformer, nano_gpt and lstm_attn on this seed, accuracies in sight.",
}
_SEEDS = "{seeds} where the paper's figures are the means of three runs."
_USAGE = """\
```bash
python training/train_templatic.py --model all                  # this table: preset cpu, on one core
python training/train_templatic.py --model nano_gpt,nano_gpt_attn_only --preset paper --mixed_precision bf16 \\
  --max_minutes 240 --data_workers 8 --jobs 1 --eval_prompts 2000 --eval_batch 500         # for a GPU
```
"""
_LIMITATIONS = """\
Models of one artificial task, with a closed vocabulary. Mamba runs in transformers' reference code where the
`mamba_ssm` kernels are missing, which is slow. The paper says neither how the constituents of an answer are drawn nor
how many echo prompts there are: our data set has an answer of its own, so figures stand beside the paper's, not against
them.
"""
_CITATION = """\
@article{smolensky2024mechanisms,
  title   = {Mechanisms of Symbol Processing for In-Context Learning in Transformer Networks},
  author  = {Smolensky, Paul and Fernandez, Roland and Zhou, Zhenghao Herbert and Opper, Mattia and Davies, Adam and
             Gao, Jianfeng},
  journal = {arXiv preprint arXiv:2410.17498},
  year    = {2024}
}"""


def finished_runs(output_dir: Path, task: str, preset: str) -> list[Outcome]:
    """Every run of the task and preset that has ended, in the order of Table 3, seeds together."""
    found = [Outcome.load(file.parent) for file in sorted(output_dir.glob("*/outcome.json"))]
    return sorted((o for o in found if (o.run["task"], o.run["preset"]) == (task, preset)), key=_order)


def measurements(outcomes: Iterable[Outcome]) -> list[Measurement]:
    """Every setting's figures over its seeds, in the order of Table 3."""
    groups: dict[tuple[Any, ...], list[Outcome]] = {}
    for outcome in sorted(outcomes, key=_order):
        groups.setdefault(_order(outcome)[:-1], []).append(outcome)
    return [entry for members in groups.values() for entry in _of_group(members)]


def write_card(outcomes: Sequence[Outcome], cards_dir: Path) -> Path:
    """Writes the card's folder whole: figures, results.json, card.yaml, README.md.

    Args:
        outcomes: of one task and preset.
        cards_dir: the folder of all cards. A task or preset that is not the usual one has a folder of its own.
    """
    task, preset = outcomes[0].run["task"], outcomes[0].run["preset"]
    folder = cards_dir / card_name(task, preset)
    folder.mkdir(parents=True, exist_ok=True)
    measured = measurements(outcomes)
    Results(
        name=folder.name,
        **common_origin(outcome.origin for outcome in outcomes),
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in outcomes),  # one core a run
        results=measured,
    ).save(folder / "results.json")
    for name, figure in zip(_FIGURES, (_splits_figure(measured), _losses_figure(outcomes)), strict=True):
        figure.savefig(folder / name, dpi=110)
    text = {
        "title": _TITLE.format(task=task),
        "model_class": "six of them, see below",
        "summary": _SUMMARY.format(
            task=task,
            preset=_preset(outcomes),
            table=table3(measured),
            prompts=_prompts(outcomes),
            seeds=_SEEDS.format(seeds=_seeds(outcomes)),
        ),
        "usage": _USAGE,
        "limitations": _LIMITATIONS,
        "citation": _CITATION,
        "tags": ["hf_mech", "templatic-generation", "in-context-learning", "out-of-distribution"],
        "task": "text-generation",
        "captions": _FIGURES,
    }
    write_text_atomically(folder / "card.yaml", yaml.safe_dump(text, sort_keys=False, allow_unicode=True, width=116))
    render_folder(folder)
    return folder


def card_name(task: str, preset: str) -> str:
    """`templatic-baselines`, with the task behind it if it is not Table 3's, and the preset if it is not `cpu`."""
    parts = [CARD, *([task.replace("_", "-")] if task != PAPER["task"] else []), *([preset] if preset != "cpu" else [])]
    return "-".join(parts)


def print_table(outcomes: Iterable[Outcome]) -> None:
    """Table 3 in the terminal."""
    Console(width=160).print(Markdown(table3(measurements(outcomes))))


def _order(outcome: Outcome) -> tuple[Any, ...]:
    run = outcome.run
    departures = Run(**run).departures
    return MODELS.index(run["model"]), bool(departures), json.dumps(departures, sort_keys=True), run["seed"]


def _label(model: str, departures: dict[str, Any]) -> str:
    """How a picture names a setting: by its model, and what departs from the preset."""
    parts = (f"{value:,} {name}" if name == "steps" else f"{name} {value}" for name, value in departures.items())
    return "\n".join([model, *parts])


def _of_group(members: list[Outcome]) -> list[Measurement]:
    run = members[0].run
    departures = Run(**run).departures
    setting = {
        "model": run["model"],
        "preset": run["preset"],
        **{name: run[name] for name in _SHOWN},
        "departures": departures,  # from the preset
        "parameters": members[0].parameters,
        "seeds": [outcome.run["seed"] for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
    }

    def measure(metric: str, split: str | None, values: list[float], paper: PaperFigure | None = None) -> Measurement:
        own = setting | ({"split": split} if split else {})
        return measurement(DATASET, run["task"], own, metric, values, paper)

    of_splits = [
        measure(METRIC, split, [outcome.exact_match[split] for outcome in members], _paper(run, departures, split))
        for split in members[0].measured
    ]
    return [*of_splits, measure("training_seconds", None, [outcome.seconds for outcome in members])]


def _paper(run: dict[str, Any], departures: dict[str, Any], split: str) -> PaperFigure | None:
    """The paper's figure for the model and split, if it has one."""
    if run["task"] != PAPER["task"] or split not in PAPER["splits"] or departures.keys() & set(_NOT_THE_PAPERS):
        return None
    return PaperFigure(PAPER["models"][run["model"]][PAPER["splits"].index(split)], where=PAPER["where"])


def _splits_figure(measured: list[Measurement]) -> Any:
    ours: dict[str, dict[str, float]] = {}
    paper: dict[str, dict[str, float]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            setting, split = entry.setting, entry.setting["split"]
            label = _label(setting["model"], setting["departures"])
            ours.setdefault(label, {})[split] = entry.mean
            if entry.paper is not None:
                paper.setdefault(label, {})[split] = entry.paper.mean
    return splits_figure(ours, paper, SPLITS)


def _losses_figure(outcomes: Iterable[Outcome]) -> Any:
    losses: dict[str, list[tuple[Any, list[float]]]] = {}
    for outcome in outcomes:
        every = max(outcome.run["steps"] // 100, 1)
        steps = every * np.arange(1, len(outcome.losses) + 1)
        label = _label(outcome.run["model"], Run(**outcome.run).departures)
        losses.setdefault(label, []).append((steps, outcome.losses))
    return losses_figure(losses)


def _preset(outcomes: Sequence[Outcome]) -> str:
    def values(name: str) -> str:
        found = sorted({outcome.run[name] for outcome in outcomes})
        return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"

    return _PRESETS[outcomes[0].run["preset"]].format(
        hidden=values("hidden"), steps=values("steps"), batches=values("batch_size")
    )


def _prompts(outcomes: Sequence[Outcome]) -> str:
    counts = sorted({count for outcome in outcomes for count in outcome.measured.values()})
    one = f"{counts[0]:,} of each split, the same for every model but for `train`" if len(counts) == 1 else ""
    return one or f"{counts[0]:,} to {counts[-1]:,} of each split"


def _seeds(outcomes: Sequence[Outcome]) -> str:
    counts = sorted({entry.n for entry in measurements(outcomes)})
    return "One seed," if counts == [1] else f"{' or '.join(map(str, counts))} seeds, mean ± standard deviation,"
