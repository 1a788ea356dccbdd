"""From the outcomes of `train_formal_languages.py` to results.json, figures, a card a task, and Tables 1 and 2."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import yaml
from formal_models import ENCODINGS, LAYOUTS, MODELS, TRANSFORMERS
from formal_nesting import NESTED, accuracy_of_levels
from formal_pictures import example_of, stack_picture
from formal_presets import TASKS
from formal_run import TEST_LENGTHS, Outcome, Run
from formal_words import steps_in_words
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from run_folder import common_origin
from transformers import PreTrainedModel

from hf_mech.hub import Measurement, PaperFigure, Results, measurement, render_folder
from hf_mech.hub.files import write_text_atomically
from hf_mech.viz.stack_curves import LengthCurve, length_curves_figure

DATASET = "hf_mech/formal_languages"
PAPER = json.loads(Path(__file__).with_name("stack_paper_tables.json").read_text())

Group = tuple[str, str, str, str]
"""Layout, model, encoding, and what departs from the preset, as JSON: runs that differ in their seeds alone."""

_NOT_THE_PAPERS = ("multi_pop", "stack_gate", "num_hidden_layers", "max_train_length")
"""Departures that make another model, or another task, of a run: it stands beside no figure of the paper."""

_SHOWN = (
    "steps",
    "batch_size",
    "learning_rate",
    "scheduler",
    "warmup_steps",
    "dropout",
    "attention_dropout",
    "initializer_range",
    "learned_loss",
    "steps_after",
    "restart_after",
    "test_samples",
)
_OF_TRANSFORMERS = ("dropout", "attention_dropout", "initializer_range")

_TITLE = "Stack attention: {task}"
_SUMMARY = """\
Small transformers with stack attention on the task `{task}` of `load_dataset("hf_mech/formal_languages", "{task}")`,
beside the same transformers without a stack. Trained on lengths up to {trained}; the score is the accuracy per scored
symbol, mean over the lengths {shortest} to {longest}. This checkpoint: {checkpoint}.

{table}

Per cent, mean ± population standard deviation over the seeds. `mlm`: the answer is read at |y| mask tokens behind x.
`alm`: each symbol of the answer is said after x and the true symbols before it. Stack attention: Eq. 19 to 26 of the
paper. {preset}{restarts}
{nesting}"""
_NESTING = """
What levels of brackets are worth: a layer finds the operands of a bracket with its stack, which holds the layer's
inputs and not what the layer makes of them, so one would expect a layer to evaluate one level. Who is right on the
expressions of the test lengths that are nested up to three, four, five and six levels deep, and says the most frequent
answer to all others, scores {scores} %.
"""
_PRESETS = {
    "paper": "Training: App. B.1 of the paper (preset `paper`).",
    "cpu": "Training is reduced (preset `cpu`): far fewer steps than the paper's; the settings stand below. Earlier "
    "forms of the preset were run on some of these seeds before it was fixed, and the most steps and the rule by which "
    "a run begins anew were set after some had been seen stuck.",
}
_USAGE = """\
```python
import torch
from transformers import AutoModelFor{head}, AutoTokenizer

model = AutoModelFor{head}.from_pretrained("{name}", trust_remote_code=True)  # or a local folder
tokenizer = AutoTokenizer.from_pretrained("{name}")
text = tokenizer({text!r}, return_tensors="pt")
with torch.no_grad():
    output = model(**text, output_stack_attentions=True)
print(tokenizer.decode(output.logits[0].argmax(-1)))
print([alpha.shape for alpha in output.stack_attentions])  # where each layer's stack has its top
```
"""
_LIMITATIONS = """\
A model of one artificial language. What becomes of its accuracy at lengths that were not trained, the curves show.
The stack is computed position by position: time grows with the cube of the length, memory with its square.
"""
_CITATION = """\
@article{li2024stack,
  title   = {A Transformer with Stack Attention},
  author  = {Li, Jiaoda and White, Jennifer C. and Sachan, Mrinmaya and Cotterell, Ryan},
  journal = {arXiv:2405.04515},
  year    = {2024}
}"""


def finished_runs(output_dir: Path, preset: str) -> dict[Path, Outcome]:
    """Every run of the preset that has ended, by its folder, in the order of the tables."""
    found = {file.parent: Outcome.load(file.parent) for file in sorted(output_dir.glob("*/outcome.json"))}
    own = [(folder, outcome) for folder, outcome in found.items() if outcome.run["preset"] == preset]
    return dict(sorted(own, key=lambda pair: _order(pair[1])))


def choose(outcomes: Mapping[Path, Outcome]) -> Path | None:
    """The run whose model goes with the card: of the paper's stack transformers the one best on the trained lengths.

    `mlm` before `alm`. Nothing of the test lengths has a say in it.

    Returns:
        Its folder, or None if there is no stack transformer among the runs.
    """
    stacks = {f: o for f, o in outcomes.items() if o.run["model"] == "stack"}

    def merit(folder: Path) -> tuple[Any, ...]:
        outcome = stacks[folder]
        as_in_paper = outcome.run["encoding"] == "none" and not Run(**outcome.run).departures
        return outcome.run["layout"] == "mlm", as_in_paper, outcome.trained_length_accuracy, -outcome.losses[-1]

    return max(stacks, key=merit, default=None)


def write_card(
    task: str, outcomes: Mapping[Path, Outcome], chosen: Path | None, model: PreTrainedModel | None, cards_dir: Path
) -> Path:
    """Writes `cards_dir/stack-<task>/` whole: figures, results.json, accuracy_by_length.json, card.yaml, README.md.

    Args:
        task: the data set's configuration.
        outcomes: all of its runs, of one preset.
        chosen: the folder of the run whose model is the checkpoint; None: there is none.
        model: that model.
        cards_dir: the folder of all cards.
    """
    preset = next(iter(outcomes.values())).run["preset"]
    folder = cards_dir / f"stack-{task.replace('_', '-')}{'' if preset == 'cpu' else f'-{preset}'}"
    folder.mkdir(parents=True, exist_ok=True)
    groups = grouped(outcomes)
    measured = [m for group, members in groups.items() for m in _measurements(task, group, members)]
    results = Results(
        name=folder.name,
        **common_origin(outcome.origin for outcome in outcomes.values()),
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in outcomes.values()),  # one core a run
        results=measured,
    )
    results.save(folder / "results.json")
    by_length = [
        {"setting": _setting(group, members), "accuracy": _accuracy_by_length(members)}
        for group, members in groups.items()
    ]
    write_text_atomically(folder / "accuracy_by_length.json", json.dumps(by_length) + "\n")
    captions = _figures(folder, task, groups, model)
    trained = max(outcome.run["max_train_length"] for outcome in outcomes.values())
    text = {
        "title": _TITLE.format(task=task),
        "model_class": "none" if model is None else type(model).__name__,
        "summary": _SUMMARY.format(
            task=task,
            trained=trained,
            shortest=TEST_LENGTHS[0],
            longest=TEST_LENGTHS[1],
            checkpoint="none" if chosen is None else _described(outcomes[chosen]),
            table=table(measured),
            preset=_PRESETS[preset],
            restarts=_restarts(outcomes.values()),
            nesting=_nesting(task),
        ),
        "usage": "" if chosen is None or model is None else _usage(task, folder.name, outcomes[chosen]),
        "limitations": _LIMITATIONS,
        "citation": _CITATION,
        "tags": ["hf_mech", "stack-attention", "formal-languages", "length-generalization", "interpretability"],
        "task": "fill-mask" if chosen is None or outcomes[chosen].run["layout"] == "mlm" else "text-generation",
        "captions": captions,
    }
    write_text_atomically(folder / "card.yaml", yaml.safe_dump(text, sort_keys=False, allow_unicode=True, width=116))
    render_folder(folder)
    return folder


def grouped(outcomes: Mapping[Path, Outcome]) -> dict[Group, list[Outcome]]:
    """The runs that differ in their seeds alone, together, in the order of the tables."""
    groups: dict[Group, list[Outcome]] = {}
    for outcome in sorted(outcomes.values(), key=_order):
        run = outcome.run
        departures = json.dumps(Run(**run).departures, sort_keys=True)
        groups.setdefault((run["layout"], run["model"], run["encoding"], departures), []).append(outcome)
    return groups


def _order(outcome: Outcome) -> tuple[Any, ...]:
    run = outcome.run
    task = TASKS.index(run["task"]) if run["task"] in TASKS else len(TASKS)
    encoding = ENCODINGS.index(run["encoding"]) if run["encoding"] in ENCODINGS else len(ENCODINGS)
    departures = json.dumps(Run(**run).departures, sort_keys=True) if Run(**run).departures else ""
    return (
        *(task, run["task"], encoding, departures, LAYOUTS.index(run["layout"]), MODELS.index(run["model"])),
        run["seed"],
    )


def paper_figure(task: str, group: Group) -> PaperFigure | None:
    """The paper's figure, as a share: of Table 1 where there is no encoding, else of Table 2.

    Where Table 2 says otherwise of a cell of Table 1, `where` says so.
    """
    layout, model, encoding, departures = group
    if any(name in json.loads(departures) for name in _NOT_THE_PAPERS):
        return None
    second = PAPER["table2"]
    rows = second["cells"].get(task, {}).get(layout, {}).get(model)
    in_second = rows[second["encodings"].index(encoding)] if rows and encoding in second["encodings"] else None
    where = second["where"][layout]
    if encoding != "none":
        return PaperFigure(in_second[0] / 100, in_second[1] / 100, where) if in_second else None
    in_first = PAPER["table1"]["cells"].get(task, {}).get(layout, {}).get(model)
    if in_first is None:
        return None
    other = f"; {where}: {in_second[0]} ± {in_second[1]} %" if in_second and in_second != in_first else ""
    return PaperFigure(in_first[0] / 100, in_first[1] / 100, PAPER["table1"]["where"] + other)


def _measurements(task: str, group: Group, members: list[Outcome]) -> list[Measurement]:
    def measure(metric: str, values: list[float], paper: PaperFigure | None = None) -> Measurement:
        return measurement(DATASET, task, _setting(group, members), metric, values, paper)

    return [
        measure("token_accuracy", [outcome.accuracy for outcome in members], paper_figure(task, group)),
        measure("token_accuracy_at_trained_lengths", [outcome.trained_length_accuracy for outcome in members]),
        measure("training_seconds", [outcome.seconds for outcome in members]),
    ]


def _setting(group: Group, members: list[Outcome]) -> dict[str, Any]:
    layout, model, encoding, departures = group
    run = members[0].run
    shown = {name: run[name] for name in _SHOWN if name not in _OF_TRANSFORMERS or model in TRANSFORMERS}
    return {
        **{"layout": layout, "model": model, "encoding": encoding, "preset": run["preset"]},
        **(shown | json.loads(departures)),
        "parameters": members[0].parameters,
        "seeds": [outcome.run["seed"] for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
        "restarts": [outcome.restarts for outcome in members],
    }


def _accuracy_by_length(members: list[Outcome]) -> dict[str, list[float]]:
    return {length: [o.accuracy_by_length[length] for o in members] for length in members[0].accuracy_by_length}


def table(measured: list[Measurement]) -> str:
    """Tables 1 and 2 of one task in Markdown: a row a model, ours beside the paper's."""
    lines = ["| layout | model | encoding | ours | paper | steps | seeds |", "|---|---|---|---|---|---:|---:|"]
    for entry in measured:
        if entry.metric == "token_accuracy":
            setting = entry.setting
            model = " ".join([setting["model"], *(f"{k}={setting[k]}" for k in _NOT_THE_PAPERS if k in setting)])
            ours, paper = _percent(entry), _percent(entry.paper)
            steps = steps_in_words(setting["steps_done"])
            cells = [setting["layout"], model, setting["encoding"], ours, paper, steps, str(entry.n)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(figure: Measurement | PaperFigure | None) -> str:
    return "" if figure is None else f"{100 * figure.mean:.1f} ± {100 * (figure.std or 0):.1f}"


def _described(outcome: Outcome) -> str:
    run = outcome.run
    departures = "".join(f", {name} {value}" for name, value in Run(**run).departures.items())
    return (
        f"{run['model']}, {run['layout']}, encoding {run['encoding']}, seed {run['seed']}{departures}, the one of its "
        "kind that is best on the trained lengths"
    )


def _restarts(outcomes: Collection[Outcome]) -> str:
    """A sentence on the runs that drew their weights anew; empty if there are none."""
    anew = [outcome for outcome in outcomes if outcome.restarts]
    if not anew:
        return ""
    learned = sum(min(outcome.losses) < outcome.run["learned_loss"] for outcome in anew)
    return (
        f" {len(anew)} of the {len(outcomes)} runs drew their weights anew, once or more, because as many steps as "
        f"`restart_after` says had not brought the training loss below `learned_loss`; {learned} of them then did. The "
        "steps are those of all attempts; what is measured is the last one, so of a run that never learned a model of "
        "`restart_after` steps."
    )


def _nesting(task: str) -> str:
    """A paragraph on the levels of brackets; empty for a task without any."""
    if task not in NESTED:
        return ""
    *scores, last = (f"{100 * accuracy_of_levels(task, levels):.1f}" for levels in (3, 4, 5, 6))
    return _NESTING.format(scores=f"{', '.join(scores)} and {last}")


def _usage(task: str, name: str, outcome: Outcome) -> str:
    causal = outcome.run["layout"] == "alm"
    symbols, answers = example_of(task)
    end = "[SEP]" if causal else " ".join(["[MASK]"] * answers)
    return _USAGE.format(head="CausalLM" if causal else "MaskedLM", name=name, text=f"{' '.join(symbols)} {end}")


def _figures(
    folder: Path, task: str, groups: Mapping[Group, list[Outcome]], model: PreTrainedModel | None
) -> dict[str, str]:
    """Draws the pictures and returns their captions."""
    captions = {}
    for old in folder.glob("*.png"):
        old.unlink()

    def save(figure: Figure, name: str, caption: str) -> None:
        figure.savefig(folder / name, dpi=110)
        captions[name] = caption

    trained = max(outcome.run["max_train_length"] for members in groups.values() for outcome in members)
    # The figures' shade is one for all; accuracy_by_length.json has the others.
    groups = {group: members for group, members in groups.items() if members[0].run["max_train_length"] == trained}
    for name, caption, panels in (
        ("accuracy_by_length.png", "Accuracy at every length, by layout", _panels_by_layout(task, groups)),
        ("encodings_by_length.png", "The same with positional encodings (Table 2)", _panels_by_model(task, groups)),
    ):
        if panels:
            figure = length_curves_figure(panels, trained=trained, test=TEST_LENGTHS)
            save(figure, name, f"{caption}: the seeds' mean, and a band from the worst to the best")
    if model is not None and (drawn := stack_picture(task, model)) is not None:
        save(drawn[0], "stack_attention.png", drawn[1])
    return captions


def _panels_by_layout(task: str, groups: Mapping[Group, list[Outcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout to model to curve, without encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if encoding == "none":
            panels.setdefault(layout, {})[_named(model, departures, groups)] = _curve(task, group, members)
    return panels


def _panels_by_model(task: str, groups: Mapping[Group, list[Outcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout and model to encoding to curve, where there are several encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if model in TRANSFORMERS:
            title = f"{layout}, {_named(model, departures, groups)}"
            panels.setdefault(title, {})[encoding] = _curve(task, group, members)
    return {title: lines for title, lines in panels.items() if len(lines) > 1}


def _named(model: str, departures: str, groups: Iterable[Group]) -> str:
    """The model with what it departs in from the preset, unless all groups do."""
    shared = set.intersection(*(set(json.loads(other).items()) for *_, other in groups))
    return " ".join([model, *(f"{k}={v}" for k, v in json.loads(departures).items() if (k, v) not in shared)])


def _curve(task: str, group: Group, members: list[Outcome]) -> LengthCurve:
    accuracy = {int(length): tuple(values) for length, values in _accuracy_by_length(members).items()}
    paper = paper_figure(task, group)
    return LengthCurve(accuracy, paper.mean if paper else None)


def print_table(outcomes: Mapping[Path, Outcome]) -> None:
    """Tables 1 and 2 in the terminal: ours beside the paper's."""
    shown = Table(title="Formal languages: per cent right on lengths 41 to 100, mean ± std over seeds")
    for column in ("task", "layout", "model", "encoding", "departs", "ours", "paper", "trained lengths", "seeds"):
        shown.add_column(column)
    for column in ("steps", "time a run"):
        shown.add_column(column, justify="right")
    for task in dict.fromkeys(outcome.run["task"] for outcome in outcomes.values()):
        own = {folder: outcome for folder, outcome in outcomes.items() if outcome.run["task"] == task}
        for group, members in grouped(own).items():
            departures = ", ".join(f"{name} {value}" for name, value in json.loads(group[3]).items())
            shown.add_row(
                *(task, *group[:3], departures),
                _spread([outcome.accuracy for outcome in members]),
                _percent(paper_figure(task, group)),
                _spread([outcome.trained_length_accuracy for outcome in members]),
                ",".join(str(outcome.run["seed"]) for outcome in members),
                steps_in_words([outcome.steps for outcome in members]),
                f"{fmean(outcome.seconds for outcome in members):.0f} s",
            )
    Console(width=170).print(shown)


def _spread(values: list[float]) -> str:
    return f"{100 * fmean(values):.1f} ± {100 * pstdev(values):.1f}"
