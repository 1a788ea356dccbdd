"""The story models: sizes of the presets, batches, completions, and the held-out loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hf_mech.lookahead.stories.grammar import read
from tests.training.cases import CASES
from tests.training.commands import stages_of
from training.engine import SettingsError
from training.stories import report
from training.stories.data import StoryBatches, layout_of, load_stories
from training.stories.experiment import EXPERIMENT
from training.stories.models import make_model
from training.stories.run import complete, held_out_loss
from training.stories.settings import Run


class Tokens:
    """As much of a tokenizer as `make_model` reads."""

    eos_token_id, pad_token_id = 1, 0

    def __len__(self) -> int:
        return 1_000


def small(output_dir: Path, model: str) -> Run:
    return replace(CASES["stories"].settings(output_dir), model=model)


def test_the_command_trains_both_models_by_default(tmp_path: Path) -> None:
    """As its help says: `python -m training.train_stories` alone."""
    [runs] = stages_of(EXPERIMENT, "--output_dir", str(tmp_path))
    assert [run.name for run in runs] == ["bst-cpu-seed0", "fim-cpu-seed0"]


def test_the_table_of_the_docs_is_empty_without_a_card(tmp_path: Path) -> None:
    assert report.results(tmp_path) == {
        f"belief-state-stories{end}": "" for end in ("-paper", "-gpu-10min", "", "-cpu-long", "-night")
    }


@pytest.mark.parametrize(("model", "millions"), [("bst", 80), ("fim", 85)])
def test_the_papers_sizes(model: str, millions: int) -> None:
    """Appendix D.1: 80 million parameters for BST, 85 for the baseline."""
    with torch.device("meta"):
        made = make_model(Run.of("paper", {}, model=model, seed=0), Tokens())
    assert made.num_parameters() / 1e6 == pytest.approx(millions, rel=0.025)


def test_random_pairs_where_all_are_too_many() -> None:
    """The paper takes all pairs; the preset for a laptop some of each story."""
    for preset, pairs in (("paper", None), ("cpu", 512)):
        with torch.device("meta"):
            made = make_model(Run.of(preset, {}, model="bst", seed=0), Tokens())
        assert made.config.pairs_per_sequence == pairs


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory):
    return load_stories(small(tmp_path_factory.mktemp("stories"), "bst"))


@pytest.mark.parametrize("model", ["bst", "fim"])
def test_a_batch_is_a_function_of_the_step(model: str, data, tmp_path: Path) -> None:
    run = replace(small(tmp_path, model), batch_size=3)
    batches = StoryBatches(run, data)
    epoch = len(data.train) // 3
    first = {step: batches[step] for step in (0, 1, epoch + 5, 2 * epoch)}
    again = StoryBatches(run, data)
    for step in (2 * epoch, 1, epoch + 5, 0):
        assert all(torch.equal(first[step][name], value) for name, value in again[step].items())
    seen = [int(n) for step in range(epoch) for n in map(again._number, range(3 * step, 3 * step + 3))]
    assert len(set(seen)) == len(seen)
    batch = first[0]
    assert batch["input_ids"].shape == batch["labels"].shape == batch["attention_mask"].shape
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()
    if model == "bst":
        assert (batch["labels"] == batch["input_ids"])[batch["attention_mask"] == 1].all()


@pytest.mark.parametrize("model", ["bst", "fim"])
def test_completions_know_the_suffix_or_not(model: str, data, tmp_path: Path) -> None:
    run = small(tmp_path, model)
    torch.manual_seed(0)
    made = make_model(run, data.tokenizer).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    prefixes, suffixes = data.snippets["prefix_ids"][:], data.snippets["suffix_ids"][:]
    options = {"layout": layout_of(run, data.tokenizer), "max_new_tokens": 12}
    known = complete(made, prefixes, suffixes, batch_size=2, **options)
    assert known == complete(made, prefixes, suffixes, batch_size=1, **options)
    assert known != complete(made, prefixes, None, batch_size=2, **options)
    assert len(known) == len(prefixes)
    assert all(len(ids) <= 12 and made.config.eos_token_id not in ids for ids in known)


@pytest.mark.parametrize("model", ["bst", "fim"])
def test_the_held_out_loss_is_a_tokens_whatever_the_batch(model: str, data, tmp_path: Path) -> None:
    run = small(tmp_path, model)
    torch.manual_seed(0)
    made = make_model(run, data.tokenizer).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    one = held_out_loss(run, made, data, 1)
    assert held_out_loss(run, made, data, 7) == pytest.approx(one, rel=1e-5)


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    run = small(tmp_path, "bst")
    with pytest.raises(SettingsError, match="--hidden must be a multiple of --heads, got 16 and 3"):
        replace(run, heads=3)
    with pytest.raises(SettingsError, match=r"--max_tokens must leave room .*got 151 for 50 and 100"):
        replace(run, max_tokens=151)
    with pytest.raises(SettingsError, match=r"copying needs a --head_width of at least twice .*got 31 and 16"):
        replace(run, initialization="copying", head_width=31)
    assert replace(run, model="fim", initialization="copying", head_width=31)  # has no text head


def test_short_stories_are_trained_on_and_completed(tmp_path: Path) -> None:
    lengths = {"max_tokens": 192, "prefix_tokens": 25, "suffix_tokens": 30}
    run = replace(small(tmp_path, "bst"), length="short", vocabulary=500, **lengths)
    data = load_stories(run)
    for rows in (data.train, data.test):
        story = read(data.tokenizer.decode(rows[0]["input_ids"], skip_special_tokens=True))
        assert story.consistent
        assert not {"snack", "meal", "weather"} & story.facts.keys()  # which only full stories tell
    assert [len(data.snippets[0][f"{part}_ids"]) for part in ("prefix", "suffix")] == [25, 30]
