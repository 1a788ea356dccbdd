"""Model cards, rendered from the written text (card.yaml) and the measurements (results.json, figures).

model_cards/<name>/
    card.yaml       title, model class, summary, ...: the text, see `CardText`
    results.json    the figures, written by the run
    *.png *.gif     the figures' pictures and films, written by the run
    README.md       the card, rendered from the above; never edited by hand

The card's metadata, its `model-index`, holds ten figures at most, of the headline metrics; its table holds all figures.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from hf_mech.hub.environment import tested_versions
from hf_mech.hub.files import HubError, write_text_atomically
from hf_mech.hub.redaction import redact
from hf_mech.hub.results import Measurement, PaperFigure, Results, validate

TEMPLATE = Path(__file__).with_name("card_template.md")

CARD_FILE = "README.md"
TEXT_FILE = "card.yaml"
RESULTS_FILE = "results.json"
PICTURES = (".png", ".gif")

_GENERATED = "# Generated from card.yaml and results.json by `hf-mech card`. Edit those, not this file."
_MOST_IN_METADATA = 10


@dataclass(frozen=True)
class CardText:
    """The written part of a card: the content of card.yaml.

    Attributes:
        title: the heading.
        model_class: the class to load the checkpoint with.
        summary: a description of the model and of this checkpoint's training, in Markdown.
        usage: how to use it, in Markdown with fenced code.
        limitations: the model's limits, in Markdown.
        citation: BibTeX.
        license: the licence's identifier on the Hub.
        tags: the Hub's tags.
        task: the Hub's task type of the metrics, for example "text-generation".
        headline: the metrics in the metadata (`model-index`, `metrics`); all metrics if it is empty. The metadata has
            their first ten measurements, in the order of the results.
        base_model: the checkpoint that this one was fine-tuned from.
        captions: picture's file name to its caption; a picture without one is captioned by its name.
    """

    title: str
    model_class: str
    summary: str
    usage: str = ""
    limitations: str = ""
    citation: str = ""
    license: str = "apache-2.0"
    tags: list[str] = field(default_factory=list)
    task: str = "other"
    headline: list[str] = field(default_factory=list)
    base_model: str | None = None
    captions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "CardText":
        """Read a card.yaml.

        Raises:
            HubError: if the file is missing, is not YAML, lacks a key, has an unknown one, or one of the wrong kind.
        """
        path = Path(path)
        if not path.is_file():
            raise HubError(f"{path} does not exist. Write at least {', '.join(_REQUIRED_TEXTS)} there.")
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise HubError(f"{path} is not YAML: {error}") from error
        if not isinstance(content, dict):
            raise HubError(f"{path} must map keys to texts, got {type(content).__name__}.")
        known = {entry.name for entry in dataclasses.fields(cls)}
        if missing := [name for name in _REQUIRED_TEXTS if not content.get(name)]:
            raise HubError(f"{path} lacks {', '.join(missing)}.")
        if unknown := sorted(str(key) for key in content.keys() - known):
            raise HubError(
                f"{path} has unknown keys {', '.join(unknown)}; expected some of {', '.join(sorted(known))}."
            )
        for name, value in content.items():
            expected = _KINDS.get(name, str)
            if not isinstance(value, expected):
                raise HubError(f"{path}: {name} must be a {expected.__name__}, got {value!r}.")
            if isinstance(value, list) and not all(isinstance(item, str) for item in value):
                raise HubError(f"{path}: {name} must be a list of texts, got {value!r}.")
        return cls(**content)


_REQUIRED_TEXTS = ("title", "model_class", "summary")
_KINDS: dict[str, type] = {"tags": list, "headline": list, "captions": dict}


def render_card(results: Results, text: CardText, figures: Iterable[str] = ()) -> ModelCard:
    """The model card: its metadata (`model-index`) has the headline metrics, its table has all metrics.

    Args:
        results: the measured part.
        text: the written part.
        figures: file names of pictures in the card's folder.

    Raises:
        HubError: if a figure does not come from a run, a caption is for a picture that is not among `figures`, or a
            headline metric has no measurement.
    """
    validate(results)
    names = sorted(figures)
    if strangers := sorted(text.captions.keys() - set(names)):
        raise HubError(
            f"card.yaml captions {', '.join(strangers)}, but the pictures are: {', '.join(names) or 'none'}."
        )
    headline = _headline(results.results, text.headline)
    shared = _shared_setting(results.results)
    data = ModelCardData(
        model_name=results.name,
        license=text.license,
        library_name="transformers",
        tags=text.tags or None,
        base_model=text.base_model,
        datasets=sorted({entry.task for entry in results.results}),
        metrics=sorted({entry.metric for entry in headline}),
        eval_results=[_eval_result(entry, text.task) for entry in headline],
    )
    return ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        title=text.title,
        model_class=text.model_class,
        summary=text.summary.strip(),
        usage=text.usage.strip(),
        limitations=text.limitations.strip(),
        citation=text.citation.strip(),
        in_every_row=_in_words(shared),
        rows=[_row(entry, shared) for entry in results.results],
        figures=[{"file": name, "caption": text.captions.get(name, _caption(name))} for name in names],
        command=results.command,
        commit=results.commit,
        versions=", ".join(f"{name} {version}" for name, version in results.versions.items()),
        tested=" to ".join(tested_versions("transformers")),
        machine=_machine(results.machine),
        seconds=_number(results.seconds),
    )


def render_folder(folder: str | os.PathLike[str]) -> Path:
    """Render the card of a folder and write it as its README.md, in one step.

    Returns:
        The README's path.

    Raises:
        HubError: if card.yaml is missing or faulty, there is no results.json, or a figure does not come from a run.
    """
    folder = Path(folder)
    return write_text_atomically(folder / CARD_FILE, _rendering(folder))


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Check that the folder's README.md is exactly the rendering of its card.yaml and results.json.

    Raises:
        HubError: if card.yaml is missing or faulty, there is no results.json, a figure does not come from a run, or
            README.md is missing, was edited by hand, or is older than the results.
    """
    folder = Path(folder)
    expected = _rendering(folder)
    card = folder / CARD_FILE
    if not card.is_file():
        raise HubError(f"{card} does not exist. Render it: hf-mech card {folder}")
    with card.open(encoding="utf-8", newline="") as file:
        got = file.read()
    if got != expected:
        raise HubError(f"{_first_difference(card, got, expected)} Render it again: hf-mech card {folder}")


def figures_of(folder: str | os.PathLike[str]) -> list[str]:
    """The file names of the pictures in a card folder, sorted."""
    return sorted(path.name for path in Path(folder).iterdir() if path.suffix in PICTURES)


def _rendering(folder: Path) -> str:
    text = CardText.load(folder / TEXT_FILE)
    if not (folder / RESULTS_FILE).is_file():
        raise HubError(f"{folder / RESULTS_FILE} does not exist. The training script writes it: Results.save().")
    card = str(render_card(Results.load(folder / RESULTS_FILE), text, figures_of(folder)))
    # ModelCard rewrites its metadata without comments. The Hub requires `---` as the first line.
    return redact(card).replace("---\n", f"---\n{_GENERATED}\n", 1)


def _first_difference(card: Path, got: str, expected: str) -> str:
    pairs = zip([*got.splitlines(), ""], [*expected.splitlines(), ""], strict=False)
    for number, (line, rendered) in enumerate(pairs, start=1):
        if line != rendered:
            return f"{card}, line {number}, is not what the results render to: expected {rendered!r}, got {line!r}."
    return f"{card} is not what the results render to: expected {len(expected)} characters, got {len(got)}."


def _headline(entries: Sequence[Measurement], metrics: Sequence[str]) -> list[Measurement]:
    """The measurements that the metadata shows."""
    if strangers := sorted(set(metrics) - {entry.metric for entry in entries}):
        raise HubError(
            f"card.yaml has the headline {', '.join(strangers)}, but what was measured is: "
            f"{', '.join(sorted({entry.metric for entry in entries}))}."
        )
    return [entry for entry in entries if not metrics or entry.metric in metrics][:_MOST_IN_METADATA]


def _eval_result(entry: Measurement, task_type: str) -> EvalResult:
    # The setting belongs to the metric, not to the data set: model-index merges all metrics of one configuration.
    return EvalResult(
        task_type=task_type,
        dataset_type=entry.task,
        dataset_name=f"{entry.task} ({entry.config})" if entry.config else entry.task,
        dataset_config=entry.config,
        metric_type=entry.metric,
        metric_name=entry.metric,
        metric_value=entry.mean,
        metric_args={"std": entry.std, "n": entry.n, **({"setting": entry.setting} if entry.setting else {})},
    )


def _shared_setting(entries: Sequence[Measurement]) -> dict[str, Any]:
    """The values that all settings share, to be shown once; empty if there is one row or all settings are equal."""
    first, *others = (entry.setting for entry in entries)
    missing = object()
    shared = {k: v for k, v in first.items() if all(other.get(k, missing) == v for other in others)}
    return shared if any(other != first for other in others) else {}


def _in_words(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in setting.items())


def _row(entry: Measurement, shared: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in entry.setting.items() if name not in shared}
    row = {
        "task": entry.task,
        "config": entry.config or "—",
        "setting": _in_words(own) or "—",
        "metric": entry.metric,
        "figure": _spread(entry.mean, entry.std),
        "range": f"{_number(min(entry.values))} to {_number(max(entry.values))}",
        "n": str(entry.n),
        "paper": _paper(entry.paper),
    }
    return {name: cell.replace("|", r"\|") for name, cell in row.items()}


def _paper(paper: PaperFigure | None) -> str:
    if paper is None:
        return "—"
    figure = _number(paper.mean) if paper.std is None else _spread(paper.mean, paper.std)
    return f"{figure} ({paper.where})"


def _machine(machine: dict[str, Any]) -> str:
    return f"{machine['cpu']}, {machine['cores']} cores, GPU: {machine['gpu'] or 'none'}"


def _spread(mean: float, std: float) -> str:
    return f"{_number(mean)} ± {_number(std)}"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _caption(file: str) -> str:
    return Path(file).stem.replace("_", " ").replace("-", " ").capitalize()
