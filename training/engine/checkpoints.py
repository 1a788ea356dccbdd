"""Makes checkpoints: trains, measures the weights as they are stored, and writes a folder if they reach their bar.

model_cards/<name>/
    config.json  model.safetensors  SHA256SUMS      `from_pretrained` loads it, after `import hf_mech`
    tokenizer.json  ...                             if there is a tokenizer or processor
    checkpoint.json                                 where the weights come from, and what they reached
    one_batch.json                                  outputs and gradients of one batch, for the tests
    README.md  card.yaml  results.json  *.png       the card

The code is not among them, for no file lies in git twice; a push adds it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from hf_mech.hub import measurement
from hf_mech.hub.catalogue import CHECKPOINT_FILE, ONE_BATCH_FILE, ORGANIZATION
from hf_mech.hub.checkpoint import (
    CHECKSUMS_FILE,
    CODE_KEYS,
    auto_class_of,
    load_checkpoint,
    load_processing_class,
    read_checksums,
    verify_checksums,
    write_checksums,
)
from hf_mech.hub.files import HubError, held, naming_the_path, write_text_atomically
from hf_mech.hub.snippets import first_snippet, run_snippet, with_sources

from .card import Card, render_blocks
from .recipe import EVALUATION_SEED, Added, Checkpoints, Measured, Recipe
from .run import RunError
from .runner import run_all

_KEPT = 24  # entries of each output in one_batch.json


class BarError(RunError):
    """A trained model that is not good enough to be shipped."""


def make_checkpoint(shelf: Checkpoints[Any, Any], recipe: Recipe, output_dir: Path, cards_dir: Path) -> Path:
    """Trains a checkpoint, or takes the run that is there, and writes its folder.

    Returns:
        The folder.

    Raises:
        BarError: the figure is below the recipe's bar; nothing is written.
    """
    experiment = shelf.experiment
    runs = output_dir / experiment.name
    request, run = shelf.request(recipe, runs), shelf.run(recipe, runs)
    run_all(experiment, [run], request.options, 1, wait=True)
    trained = runs / run.name
    outcome = experiment.load(trained)
    model, processor = shelf.load(run, outcome, trained)
    target = cards_dir / recipe.name
    with naming_the_path(target), tempfile.TemporaryDirectory(prefix=f".{recipe.name}-", dir=_made(cards_dir)) as aside:
        folder = Path(aside)
        save_without_code(model, processor, folder, recipe.dtype)
        model, processor = load_checkpoint(folder).eval(), load_processing_class(folder)
        added = shelf.add(run, model, processor, folder)
        write_checksums(folder)
        measured = dict(added.measured) | shelf.evaluate(
            run, model, processor, seed=EVALUATION_SEED, count=recipe.count
        )
        if not recipe.reaches_bar(measured):
            raise BarError(
                f"{recipe.name}: {recipe.metric} must be {'at most' if recipe.lower else 'at least'} {recipe.bar:g}, "
                f"got {measured[recipe.metric].value:g}. Nothing was written; the run is in {trained}."
            )
        small = shelf.evaluate(run, model, processor, seed=EVALUATION_SEED, count=shelf.few)
        batch = shelf.batch(run, model, processor)
        write_text_atomically(folder / ONE_BATCH_FILE, json.dumps(one_batch(model, batch)) + "\n")
        _write_card(shelf, recipe, run, outcome, model, processor, measured, added, folder)
        _write_provenance(shelf, recipe, outcome, model, measured, small, folder)
        with held(target, wait=True):  # another command may be making the same one
            _move(folder, target)
    return target


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_without_code(model: Any, processor: Any, folder: Path, dtype: str) -> None:
    """Saves weights in a data type, and a configuration that computes in float32 and names no code."""
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    for path in folder.glob("*.py"):
        path.unlink()
    for path in folder.glob("*config.json"):
        content = {name: value for name, value in json.loads(path.read_text("utf-8")).items() if name not in CODE_KEYS}
        if path.name == "config.json":
            content["dtype"] = "float32"
        write_text_atomically(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    write_checksums(folder)


def one_batch(model: Any, batch: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """What a model makes of one batch: some entries of each output, spread over all, and the norm of each gradient."""
    model.zero_grad()
    output = model(**batch)
    outputs = {}
    for name, value in output.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            entries = value.detach().double().flatten().nan_to_num(neginf=-1.0, posinf=1.0)
            places = torch.linspace(0, len(entries) - 1, min(_KEPT, len(entries))).long()
            mixed = float(
                entries @ torch.arange(len(entries), dtype=torch.float64).cos()
            )  # every entry has a say in it
            outputs[name] = {"shape": list(value.shape), "mixed": mixed, "entries": entries[places].tolist()}
    found: dict[str, Any] = {"outputs": outputs}
    loss = output.get("loss")
    if loss is not None and loss.requires_grad:
        loss.backward()
        named = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        found["gradient_norms"] = {name: float(gradient.double().norm()) for name, gradient in named.items()}
        model.zero_grad()
    return found


def _write_card(
    shelf: Checkpoints[Any, Any],
    recipe: Recipe,
    run: Any,
    outcome: Any,
    model: Any,
    processor: Any,
    measured: Mapping[str, Measured],
    added: Added,
    folder: Path,
) -> None:
    shown = shelf.show(recipe, run, outcome, model, processor)
    repository = f"{ORGANIZATION}/{recipe.name}"
    text = dict(shown.text) | {
        "repository": repository,
        "recipe": recipe,
        "run": run,
        "measured": measured,
        "training": shelf.command(recipe),
        "evaluation_seed": EVALUATION_SEED,
        "output": "",
    }
    usage = render_blocks(shelf.template, {"name": recipe.name, **text})["usage"]
    text["output"] = run_snippet(with_sources(first_snippet(usage), {recipe.name: str(folder)})).rstrip()
    card = Card(
        name=recipe.name,
        outcomes=[outcome],
        measured=[
            measurement(
                *(shown.dataset, shown.config, {"seed": EVALUATION_SEED, "examples": figure.count}),
                *(metric, [figure.value], shown.papers.get(metric)),
            )
            for metric, figure in measured.items()
        ],
        text=text,
        model_class=type(model).__name__,
        paper=shown.paper,
        task=shown.pipeline,
        tags=shown.tags,
        headline=[recipe.metric],
        figures={**shown.figures, **added.figures},
    )
    card.write(shelf.template, folder, f"python -m training.make_checkpoints {recipe.name}")


def _write_provenance(
    shelf: Checkpoints[Any, Any],
    recipe: Recipe,
    outcome: Any,
    model: Any,
    measured: Mapping[str, Measured],
    small: Mapping[str, Measured],
    folder: Path,
) -> None:
    content = {
        "name": recipe.name,
        "task": recipe.task,
        "model_type": model.config.model_type,
        "auto_class": auto_class_of(model.config),
        "headline": recipe.headline.format(value=shown_value(measured[recipe.metric].value, recipe)),
        "bytes": (folder / "model.safetensors").stat().st_size,
        "metric": recipe.metric,
        "bar": recipe.bar,
        "measured": {name: asdict(figure) for name, figure in measured.items()},
        "measured_again": {name: asdict(figure) for name, figure in small.items()},
        "evaluation_seed": EVALUATION_SEED,
        "command": shelf.command(recipe),
        "commit": outcome.origin["commit"],
        "machine": outcome.origin["machine"],
        "versions": outcome.origin["versions"],
        "seconds": round(outcome.seconds, 1),
        "sha256": read_checksums(folder),
        "recipe": recipe.digest,
    }
    write_text_atomically(folder / CHECKPOINT_FILE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def shown_value(value: float, recipe: Recipe) -> str:
    """The headline's figure: a share in per cent, never rounded up to 100; another number with three digits."""
    if recipe.lower or value > 1:
        return f"{value:.4g}"
    return "100" if value == 1 else f"{int(1000 * value) / 10:.1f}"


def _move(source: Path, target: Path) -> None:
    """Replaces the files of a folder, that with the sums last, and removes those that are there no more."""
    target.mkdir(parents=True, exist_ok=True)
    new = sorted(source.iterdir(), key=lambda path: path.name in (CHECKSUMS_FILE, CHECKPOINT_FILE))
    names = {path.name for path in new}
    for path in new:
        path.replace(target / path.name)
    for path in target.iterdir():
        if path.name not in names:
            path.unlink()


def is_whole(folder: Path, recipe: Recipe) -> bool:
    """Whether a folder holds this recipe's checkpoint, undamaged."""
    file = folder / CHECKPOINT_FILE
    if not file.is_file() or json.loads(file.read_text("utf-8"))["recipe"] != recipe.digest:
        return False
    try:
        verify_checksums(folder)
    except HubError:  # a kill came while the files were replaced
        return False
    return True
