"""The checkpoints in model_cards: whole, as they were when they were measured, and as good as their cards say."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import binomtest

from hf_mech.hub.catalogue import CHECKPOINT_FILE, ONE_BATCH_FILE, catalogue, source_of, write_catalogue
from hf_mech.hub.checkpoint import load_checkpoint, load_processing_class, read_checksums, verify_checksums
from hf_mech.hub.snippets import first_snippet, run_snippet, with_sources
from training.engine.checkpoints import one_batch
from training.make_checkpoints import all_recipes
from training.render_readme import ROOT

CARDS = ROOT / "model_cards"
RECIPES = all_recipes()
MADE = [name for name in RECIPES if (CARDS / name / CHECKPOINT_FILE).is_file()]
UNLIKELY = 1e-4
"""Of a right checkpoint, to fail the part of the evaluation that is repeated on another machine."""


@cache
def loaded(name: str) -> tuple[Any, Any]:
    return load_checkpoint(CARDS / name).eval(), load_processing_class(CARDS / name)


def record(name: str) -> dict[str, Any]:
    return json.loads((CARDS / name / CHECKPOINT_FILE).read_text("utf-8"))


@pytest.mark.parametrize("name", MADE)
def test_weights_are_those_that_were_measured(name: str) -> None:
    verify_checksums(CARDS / name)
    assert read_checksums(CARDS / name) == record(name)["sha256"]


@pytest.mark.parametrize("name", MADE)
def test_outputs_and_gradients_of_a_batch_are_as_before(name: str) -> None:
    shelf, recipe = RECIPES[name]
    model, processor = loaded(name)
    batch = shelf.batch(shelf.run(recipe, Path("runs")), model, processor)
    before, now = json.loads((CARDS / name / ONE_BATCH_FILE).read_text()), one_batch(model, batch)
    assert before["outputs"].keys() == now["outputs"].keys()
    for output, was in before["outputs"].items():
        found = now["outputs"][output]
        assert found["shape"] == was["shape"]
        torch.testing.assert_close(torch.tensor(found["entries"]), torch.tensor(was["entries"]), rtol=1e-3, atol=1e-4)
        # A loss of almost nothing, which has no shape, differs between processors in its second digit.
        assert found["mixed"] == pytest.approx(was["mixed"], rel=1e-3, abs=1e-4 + 1e-3 * len(was["shape"]))
    was, found = before.get("gradient_norms", {}), now.get("gradient_norms", {})
    assert was.keys() == found.keys()
    for weight, norm in was.items():
        assert found[weight] == pytest.approx(norm, rel=1e-2, abs=1e-5), weight


@pytest.mark.parametrize("name", MADE)
def test_part_of_the_evaluation_again(name: str) -> None:
    shelf, recipe = RECIPES[name]
    model, processor = loaded(name)
    known = record(name)
    found = shelf.evaluate(
        shelf.run(recipe, Path("runs")), model, processor, seed=known["evaluation_seed"], count=shelf.few
    )
    for metric, figure in found.items():
        before, whole = known["measured_again"][metric], known["measured"][metric]["value"]
        assert figure.count == before["count"]
        if metric == recipe.metric and not recipe.lower:  # a share
            right = round(figure.value * figure.count)
            assert binomtest(right, figure.count, min(whole, 0.999), alternative="less").pvalue > UNLIKELY
        assert figure.value == pytest.approx(before["value"], rel=0.1, abs=0.05)


@pytest.mark.parametrize("name", MADE)
def test_snippet_says_what_the_card_says(name: str) -> None:
    text = (CARDS / name / "README.md").read_text("utf-8")
    code = first_snippet(text)
    said = run_snippet(with_sources(code, {name: str(CARDS / name)})).rstrip()
    behind = text[text.index(code) + len(code) :]
    assert f"```text\n{said}\n```" in behind


def test_every_folder_has_a_recipe_and_every_figure_reaches_its_bar() -> None:
    assert {path.parent.name for path in CARDS.glob("*/README.md")} == set(MADE)
    for name in MADE:
        value, (_, recipe) = record(name)["measured"][RECIPES[name][1].metric]["value"], RECIPES[name]
        assert value <= recipe.bar if recipe.lower else value >= recipe.bar
        assert record(name)["recipe"] == recipe.digest


def test_no_folder_is_large() -> None:
    sizes = {name: sum(path.stat().st_size for path in (CARDS / name).iterdir()) for name in MADE}
    assert max(sizes.values()) < 6e6
    assert sum(sizes.values()) < 30e6


def test_the_catalogue_lists_the_folders(tmp_path: Path) -> None:
    written = write_catalogue((CARDS / name for name in MADE), tmp_path / "catalogue.json")
    assert [entry.name for entry in catalogue()] == MADE
    assert [vars(entry) for entry in catalogue()] == json.loads(written.read_text())
    assert all(source_of(name) == str(CARDS / name) for name in MADE)
