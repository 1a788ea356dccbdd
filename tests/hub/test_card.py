"""Cards are rendered from results, and a card that is not is refused."""

from pathlib import Path

import pytest
from huggingface_hub import ModelCard, metadata_load

from hf_mech.hub import HubError, Results, check_folder, measurement, render_folder


def test_the_metrics_stand_in_the_metadata(card_folder: Path) -> None:
    card = ModelCard.load(card_folder / "README.md")
    assert card.data.library_name == "transformers"
    assert card.data.datasets == ["hf_mech/toy"]
    (index,) = card.data.to_dict()["model-index"]
    assert index["name"] == "toy"
    first, second = index["results"][0]["metrics"]
    assert first == {
        "type": "accuracy",
        "name": "accuracy",
        "value": 0.75,
        "args": {"std": 0.25, "n": 2, "setting": {"num_train": 5}},
    }
    assert second["value"] == 1.0


def metrics_in_metadata(folder: Path) -> list[tuple[str, float]]:
    (index,) = metadata_load(folder / "README.md")["model-index"]
    return [(metric["type"], metric["value"]) for result in index["results"] for metric in result["metrics"]]


def test_the_metadata_shows_the_headline_and_the_table_everything(card_folder: Path, results: Results) -> None:
    results.results += [measurement("hf_mech/toy", "small", {"num_train": n}, "seconds", [n]) for n in (5, 9)]
    results.save(card_folder / "results.json")
    text = card_folder / "card.yaml"
    text.write_text("# What is written, not measured.\n" + text.read_text() + "headline: [seconds]\n")
    render_folder(card_folder)
    check_folder(card_folder)
    assert metrics_in_metadata(card_folder) == [("seconds", 5.0), ("seconds", 9.0)]
    assert ModelCard.load(card_folder / "README.md").data.metrics == ["seconds"]
    rows = [line for line in (card_folder / "README.md").read_text().splitlines() if line.startswith("| hf_mech/toy |")]
    assert [row.split(" | ")[3] for row in rows] == ["accuracy", "accuracy", "seconds", "seconds"]


@pytest.mark.parametrize("headline", ["", "headline: [seconds]\n"])
def test_the_metadata_shows_ten_at_most(card_folder: Path, results: Results, headline: str) -> None:
    results.results = [measurement("hf_mech/toy", "small", {"num_train": n}, "seconds", [n]) for n in range(12)]
    results.save(card_folder / "results.json")
    (card_folder / "card.yaml").write_text((card_folder / "card.yaml").read_text() + headline)
    render_folder(card_folder)
    assert metrics_in_metadata(card_folder) == [("seconds", float(n)) for n in range(10)]


def test_the_first_line_of_the_metadata_says_what_to_edit(card_folder: Path) -> None:
    first, second, *rest = (card_folder / "README.md").read_text().splitlines()
    assert first == "---"
    assert second == "# Generated from card.yaml and results.json by `hf-mech card`. Edit those, not this file."
    assert not any("Edit those" in line for line in rest)
    card = ModelCard.load(card_folder / "README.md")
    assert card.data.to_dict() == metadata_load(card_folder / "README.md")
    assert card.text.strip().startswith("# A toy")


def test_the_text_shows_figures_and_how_to_get_them_again(card_folder: Path) -> None:
    text = (card_folder / "README.md").read_text()
    row = "| hf_mech/toy | small | num_train=5 | accuracy | 0.75 ± 0.25 | 0.5 to 1 | 2 | 0.9 ± 0.1 (Table 1) |"
    assert row in text.splitlines()
    for expected in (
        "python train_toy.py --seed 0 1",
        "0123456789",
        "an abacus",
        "![The loss](loss.png)",
        "@misc{toy}",
    ):
        assert expected in text


def test_what_all_settings_say_alike_is_said_once(card_folder: Path, results: Results) -> None:
    first, second = results.results
    first.setting.update({"lr": 0.1, "layers": 2})
    second.setting.update({"lr": 0.1, "layers": 3})
    results.save(card_folder / "results.json")
    lines = render_folder(card_folder).read_text().splitlines()
    assert "In every row: lr=0.1." in lines
    rows = [line.split(" | ")[2] for line in lines if line.startswith("| hf_mech/toy")]
    assert rows == ["num_train=5, layers=2", "num_train=9, layers=3"]


def test_rendering_again_changes_nothing(card_folder: Path) -> None:
    before = (card_folder / "README.md").read_bytes()
    check_folder(card_folder)
    render_folder(card_folder)
    assert (card_folder / "README.md").read_bytes() == before
    assert not list(card_folder.glob("*.tmp"))


def test_a_number_edited_by_hand_is_refused(card_folder: Path) -> None:
    path = card_folder / "README.md"
    path.write_text(path.read_text().replace("0.75 ± 0.25", "0.99 ± 0.01"))
    with pytest.raises(HubError, match=r"line \d+, is not what the results render to.*0.99 ± 0.01"):
        check_folder(card_folder)


def test_a_card_older_than_its_results_is_refused(card_folder: Path, results: Results) -> None:
    results.seconds = 99.0
    results.save(card_folder / "results.json")
    with pytest.raises(HubError, match="Render it again: hf-mech card"):
        check_folder(card_folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("card.yaml", None, "card.yaml does not exist"),
        ("card.yaml", "title: x", "lacks model_class, summary"),
        ("card.yaml", "{title: x, model_class: y, summary: z, tilte: x}", "unknown keys tilte"),
        ("card.yaml", "{title: 3, model_class: y, summary: z}", "title must be a str, got 3"),
        ("card.yaml", "{title: x, model_class: y, summary: z, captions: {no.png: x}}", "captions no.png"),
        ("card.yaml", "{title: x, model_class: y, summary: z, headline: [f1]}", "has the headline f1"),
        ("card.yaml", "{title: x, model_class: y, summary: z, headline: [3]}", "headline must be a list of"),
        ("card.yaml", "{", "is not YAML"),
        ("results.json", None, "results.json does not exist"),
        ("README.md", None, "README.md does not exist"),
    ],
)
def test_a_faulty_folder_is_refused(card_folder: Path, file: str, text: str | None, message: str) -> None:
    if text is None:
        (card_folder / file).unlink()
    else:
        (card_folder / file).write_text(text)
    with pytest.raises(HubError, match=message):
        check_folder(card_folder)
