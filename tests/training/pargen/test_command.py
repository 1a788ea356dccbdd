"""The command as a user runs it: cards in several sittings, the example that they show, wrong options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.text import Text

from hf_mech.hub import Results, check_folder
from tests.training.commands import printed_by, stages_of
from training.engine import main
from training.pargen.experiment import EXPERIMENT
from training.pargen.figures import parse_figure
from training.pargen.run import compiled, complete


def test_the_command_writes_a_card_of_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parts, card = tmp_path / "parts", tmp_path / "cards" / "dat-pargen-k-shot"
    common = ["--output_dir", str(parts), "--cards_dir", str(card.parent), "--program", "pargen_k_shot", "--jobs", "1"]
    sizes = ["--task", "2_shot_rlw", "--split", "train", "test", "--num_prompts", "4"]
    with monkeypatch.context() as patch:
        patch.setattr("training.pargen.report.parse_figure", lambda program: b"drawn in the second sitting")
        assert "2_shot_rlw" in printed_by(EXPERIMENT, *common, *sizes)
    sizes = ["--num_train", "4", "--num_prompts", "7", "--part_size", "3"]
    printed_by(EXPERIMENT, *common, "--task", "1_shot_eng", "--split", "train", "ood_cons_len_7", *sizes)
    check_folder(card)
    results = Results.load(card / "results.json")
    assert [(m.config, m.setting["split"], m.setting["prompts"], m.values, m.paper) for m in results.results] == [
        ("2_shot_rlw", "train", 4, [1.0], None),
        ("2_shot_rlw", "test", 4, [1.0], None),
        ("1_shot_eng", "train", 4, [1.0], None),
        ("1_shot_eng", "ood_cons_len_7", 7, [1.0], None),
    ]
    files = list((parts / "pargen_k_shot/1_shot_eng/ood_cons_len_7").glob("*/outcome.json"))
    assert len(files) == 3
    assert EXPERIMENT.load(files[0].parent).origin.keys() == {"command", "commit", "machine", "versions"}
    assert (card / "swap.png").stat().st_size > 20_000
    text = (card / "README.md").read_text("utf-8")
    assert "| pargen_k_shot | 2_shot_rlw | 8 | 0 | 100 |  | 100 |" in text
    assert "the first 4 of 280,000 of train (1_shot_eng)" in text
    assert "the first 4 of every split (2_shot_rlw)" in text


@pytest.mark.parametrize("program", ["pargen", "pargen_k_shot"])
def test_the_cards_example(program: str):
    """The usage block of the cards prints what its comment says."""
    usage = (EXPERIMENT.folder / "card.md").read_text("utf-8")
    found = re.search(r'tokenizer\("(Q .*?)".*# (.*? Q)\n', usage, re.DOTALL)
    assert found is not None
    prompt, said = found.groups()
    model, tokenizer = compiled(program, 384, 2000)
    assert f"{complete(model, tokenizer, [prompt], 20)[0]} Q" == said


def test_the_picture_says_what_repeats():
    """PARGEN has a repeat block."""
    said = [text.get_text() for text in parse_figure("pargen").findobj(Text)]
    assert any("in which of its repetitions" in text for text in said)


def test_a_split_is_cut_into_parts():
    options = ["--task", "1_shot_rlw", "--split", "train", "test", "--num_train", "25", "--num_prompts", "45"]
    (parts,) = stages_of(EXPERIMENT, *options, "--part_size", "20")
    assert [(part.split, part.start, part.stop) for part in parts] == [
        ("train", 0, 20),
        ("train", 20, 25),
        ("test", 0, 20),
        ("test", 20, 40),
        ("test", 40, 45),
    ]
    assert parts[1].name == "pargen/1_shot_rlw/train/0000020"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--program", "pargn"], "--program must be of pargen, pargen_k_shot"),
        (["--task", "4_shot_rlw"], "--task must be of .*10_shot_rlw.*got 4_shot_rlw"),
        (["--split", "tset"], "--split must be of"),
        (["--part_size", "0"], "--part_size must be 1 or more, got 0"),
        (["--num_prompts", "0"], "--num_prompts must be 1 or more, got 0"),
        (["--seeds", "0..1"], "--seeds: a table is of one seed of the data, got 2"),
    ],
)
def test_wrong_options_are_refused(wrong: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, [*wrong, "--dry_run", "--output_dir", str(tmp_path)])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.count("\n") == 1
