"""A stock model trained on the pretraining part, fine-tuned in every form: outcomes, card, checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from hf_mech.hub import Results, check_folder
from tests.training.commands import printed_by
from tests.training.language_models.sizes import TINY
from training.language_models.experiment import EXPERIMENT
from training.language_models.run import RunOutcome

pytestmark = pytest.mark.slow

SEEDS = (0, 1)
FORMS = ("vanilla", "stack", "gated")


@dataclass
class Finished:
    """A command that has ended: its outcomes by start, form and seed, their folders, its card, its print."""

    outcomes: dict[tuple[str, str, int], RunOutcome]
    folders: dict[tuple[str, str, int], Path]
    card: Path
    printed: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    root = tmp_path_factory.mktemp("pretraining")
    printed = printed_by(
        EXPERIMENT,
        *("--corpus", "stdlib", "--objective", "clm", "--use_stack", "false", "true", "--stack_gate", "false", "true"),
        *("--pretrain", "--scratch", "false", "--num_seeds", "2", "--pretraining_epochs", "1", *TINY),
        *("--max_train_characters", "8000", "--max_pretraining_characters", "16000"),
        *("--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")),
    )
    outcomes, folders = {}, {}
    for file in (root / "runs").glob("*/*/outcome.json"):
        outcome = EXPERIMENT.load(file.parent)
        key = (outcome.settings.start, outcome.settings.form, outcome.settings.seed)
        outcomes[key], folders[key] = outcome, file.parent
    return Finished(outcomes, folders, root / "cards" / "stack-lm", printed)


def test_every_form_is_fine_tuned_once_a_seed(finished: Finished):
    assert set(finished.outcomes) == {
        ("pretraining", "vanilla", 0),
        *(("pretrained", form, seed) for form in FORMS for seed in SEEDS),
    }
    pretraining = finished.outcomes["pretraining", "vanilla", 0]
    assert pretraining.epochs == 1
    assert all(o.epochs == 2 for o in finished.outcomes.values() if o is not pretraining)


@pytest.mark.parametrize("seed", SEEDS)
def test_fine_tuning_begins_with_the_pretrained_model(finished: Finished, seed: int):
    vanilla, stack, gated = (finished.outcomes["pretrained", form, seed] for form in FORMS)
    pretraining = finished.outcomes["pretraining", "vanilla", 0]
    assert vanilla.logits_difference == gated.logits_difference == 0
    assert stack.logits_difference is not None
    assert stack.logits_difference > 1e-3
    assert vanilla.perplexity_before == gated.perplexity_before
    assert vanilla.perplexity_before == pytest.approx(min(pretraining.validation_perplexity), rel=1e-6)
    assert stack.parameters > vanilla.parameters == pretraining.parameters
    assert gated.validation_perplexity != vanilla.validation_perplexity  # the gate has opened


def test_the_card_has_the_figures_of_the_runs(finished: Finished):
    check_folder(finished.card)
    assert (finished.card / "validation_perplexity.png").read_bytes().startswith(b"\x89PNG")
    text = (finished.card / "README.md").read_text()
    figures = {
        (m.setting["start"], m.setting["form"]): m
        for m in Results.load(finished.card / "results.json").results
        if m.metric == "test_perplexity"
    }
    assert len(figures) == 4
    for (start, form), figure in figures.items():
        assert figure.task == "python_stdlib"
        assert figure.paper is None
        if start != "pretraining":
            assert figure.values == [finished.outcomes[start, form, seed].test_perplexity for seed in SEEDS]
            assert f"{figure.mean:.2f} ± {figure.std:.2f}" in text
            assert f"{figure.mean:.2f} ± {figure.std:.2f}" in finished.printed
    assert "pretrained here" in finished.printed


def test_the_saved_model_generates(finished: Finished):
    saved = finished.folders["pretrained", "gated", 0] / "model"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(saved), AutoTokenizer.from_pretrained(saved)
    prompt = tokenizer("def main(", return_tensors="pt", return_token_type_ids=False)
    assert model.generate(**prompt, max_new_tokens=3, do_sample=False).shape[1] > prompt["input_ids"].shape[1]
