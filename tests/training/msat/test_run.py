"""A run in Rooms, an environment with frames and without an engine, from its data to its card."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from hf_mech.control.episodes import episode_seed
from hf_mech.hub import check_folder
from hf_mech.hub.environment import describe_machine, package_versions
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer
from tests.training.jobs import job_in
from tests.training.msat.small import small_run, trained
from training.msat.experiment import EXPERIMENT
from training.msat.run import CURVE, RunOutcome, means, scores_of

pytestmark = pytest.mark.slow

RUN = small_run()
ORIGIN = {"command": "python", "commit": "0" * 40, "machine": describe_machine(), "versions": package_versions()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunOutcome, Path]:
    folder = tmp_path_factory.mktemp("msat")
    return trained(folder, RUN), folder / RUN.name


def test_it_learns_and_plays_held_out_episodes(finished: tuple[RunOutcome, Path]) -> None:
    outcome, _ = finished
    assert outcome.losses[-1] < 0.8 * outcome.losses[0]
    assert [point["step"] for point in outcome.curve] == [20, 40]
    seeds = [episode_seed(3, "play", number) for number in range(3)]
    assert [score["seed"] for score in outcome.argmax] == [score["seed"] for score in outcome.sampled] == seeds
    assert not {episode_seed(3, "play", CURVE + number) for number in range(2)} & set(seeds)
    assert all(score["length"] <= 200 for score in outcome.argmax + outcome.sampled)


def test_the_saved_model_plays_the_same_episodes(finished: tuple[RunOutcome, Path]) -> None:
    outcome, folder = finished
    model = MSATDecisionTransformer.from_pretrained(folder / "model").eval()
    for envs in (1, 3):
        job = job_in(folder, EXPERIMENT)
        job.options.eval_envs = envs
        scores = scores_of(RUN, model, job, range(3))
        assert [score["length"] for score in scores] == [score["length"] for score in outcome.argmax]


def test_its_card_has_a_film_and_the_attention_of_every_head(finished: tuple[RunOutcome, Path], tmp_path: Path) -> None:
    outcome, folder = finished
    card = EXPERIMENT.card({folder: outcome})
    outcome.origin.update(ORIGIN)
    card.write(EXPERIMENT.folder / "card.md", tmp_path)
    check_folder(tmp_path)
    text = (tmp_path / "README.md").read_text()
    for picture in ("episode.gif", "attention.png", "returns_over_training.png", "training_loss.png"):
        assert (tmp_path / picture).is_file()
        assert f"]({picture})" in text
    assert "play(model, episodes=range(10))" in text
    assert "`hf_mech/Rooms-v0` with frames of 48 x 36, and for which return, 0.98" in text.replace("\n", " ")
    assert "- vizdoom" not in text
    with Image.open(tmp_path / "episode.gif") as film:
        steps = outcome.argmax[0]["length"]
        assert film.n_frames <= steps + 1  # equal neighbours are one frame
        assert film.size == (192, 144)


def test_a_card_of_vectors_speaks_of_no_frames(tmp_path: Path) -> None:
    run = small_run(scenario="doorway", steps=2, eval_steps=2)
    outcome = trained(tmp_path, run)
    card = EXPERIMENT.card({tmp_path / run.name: outcome})
    outcome.origin.update(ORIGIN)
    card.write(EXPERIMENT.folder / "card.md", tmp_path / "card")
    check_folder(tmp_path / "card")
    text = (tmp_path / "card" / "README.md").read_text().partition("# M-SAT in Doorway")[2]
    assert "`hf_mech/Doorway-v0`, and for which return, 1.0" in text.replace("\n", " ")
    assert "**Reduced** (preset `cpu`): 1 layers" in text.replace("\n", " ")
    assert "frame" not in text.partition("## Results")[0]
    assert "Section 5" not in text
    assert not (tmp_path / "card" / "episode.gif").exists()


def test_means() -> None:
    scores = [{"total_return": 1.0, "success": True, "length": 4}, {"total_return": 0.0, "success": False, "length": 2}]
    assert means(scores) == {"return": 0.5, "success": 0.5, "length": 3.0}
