"""Programs over splits: a part, its file and its resumption, wrong programs, the card, the table, the picture."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hf_mech.hub import Results, check_folder
from hf_mech.templatic.grammar import generate

POSITIONS, OPEN = 384, 2000


@pytest.fixture(scope="module")
def pargen_part(scripts: Path) -> ModuleType:
    return importlib.import_module("pargen_part")


@pytest.fixture(scope="module")
def pargen_report(scripts: Path) -> ModuleType:
    return importlib.import_module("pargen_report")


@pytest.fixture(scope="module")
def pargen_table(scripts: Path) -> ModuleType:
    return importlib.import_module("pargen_table")


@pytest.fixture(scope="module")
def run_pargen(scripts: Path) -> ModuleType:
    return importlib.import_module("run_pargen")


@pytest.fixture
def part(pargen_part: ModuleType) -> Any:
    return pargen_part.Part("pargen", "1_shot_rlw", "test", 7, 27, 0, POSITIONS, OPEN, 8)


def launch(run_pargen: ModuleType, *arguments: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["run_pargen.py", "--jobs", "1", *arguments])
        run_pargen.main()


# --------------------------------------------------------------------------------------------------------------- a part


def test_a_part_is_right_and_is_not_run_again(
    pargen_part: ModuleType, part: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outcome = pargen_part.run_part(part, tmp_path / part.name)
    assert (outcome.prompts, outcome.exact, outcome.wrong) == (20, 20, [])
    prompts = [example.prompt for example in generate("1_shot_rlw", "test", 0, 7, 27)]
    assert outcome.longest == max(len(prompt.split()) for prompt in prompts)
    assert {"command", "commit", "machine", "versions"} == outcome.origin.keys()
    assert outcome.cpu_seconds > 0
    file = tmp_path / part.file
    assert pargen_part.Outcome.load(file) == outcome
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # nothing temporary is left

    def not_again(*_: Any, **__: Any) -> None:
        raise AssertionError("the part was run again")

    monkeypatch.setattr(pargen_part, "complete", not_again)
    assert pargen_part.run_part(part, tmp_path / part.name) == outcome
    with pytest.raises(FileExistsError, match="other settings"):
        pargen_part.run_part(replace(part, stop=28), tmp_path / part.name)
    monkeypatch.setattr(pargen_part, "program_text", lambda name: "# another text")
    with pytest.raises(FileExistsError, match="another text of the program"):
        pargen_part.run_part(part, tmp_path / part.name)


def test_a_wrong_program_is_seen_to_be_wrong(
    pargen_part: ModuleType, part: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = pargen_part.program_text("pargen")
    without = re.sub(r"# P5a: .*?\n\n", "", text, count=1, flags=re.DOTALL)
    assert without != text
    monkeypatch.setattr(pargen_part, "program_text", lambda name: without)
    monkeypatch.setattr(pargen_part, "compiled", pargen_part.compiled.__wrapped__)
    outcome = pargen_part.run_part(part, tmp_path / part.name)
    assert outcome.exact < outcome.prompts == 20
    assert len(outcome.wrong) == min(5, 20 - outcome.exact)
    examples = list(generate("1_shot_rlw", "test", 0, 0, 27))
    for wrong in outcome.wrong:
        assert (wrong["prompt"], wrong["expected"]) == (
            examples[wrong["index"]].prompt,
            examples[wrong["index"]].completion,
        )
        assert wrong["got"] != wrong["expected"]


def test_a_completion_that_goes_on_is_wrong(pargen_part: ModuleType):
    model, tokenizer = pargen_part.compiled("pargen", POSITIONS, OPEN)
    prompt = "Q a V b A b V a . Q c V d e A"
    assert pargen_part.complete(model, tokenizer, [prompt], 8) == ["d e V c ."]
    assert pargen_part.complete(model, tokenizer, [prompt], 5) == ["d e V c . …"]  # the end, Q, was not reached


def test_batches_have_every_example_once_and_so_many_cells(pargen_part: ModuleType, monkeypatch: pytest.MonkeyPatch):
    examples = list(enumerate(generate("1_shot_rlw", "ood_cons_len_5", 0, 0, 60)))
    monkeypatch.setattr(pargen_part, "CELLS", 400)
    batches = list(pargen_part.batches(examples, 9))
    assert sorted(entry for batch in batches for entry in batch) == examples
    for batch in batches:
        assert 1 <= len(batch) <= 9
        assert len(batch) * max(len(example.prompt.split()) + 1 for _, example in batch) <= 400


@pytest.mark.parametrize("task", ["1_shot_rlw", "3_shot_rlw", "10_shot_rlw"])
def test_every_prompt_has_room(pargen_part: ModuleType, task: str):
    positions = pargen_part.positions_for(task)
    for split in ("ood_cons_len_10", "ood_cons_count_10"):
        for example in generate(task, split, 0, 0, 50):
            assert len(f"{example.prompt} {example.completion}".split()) + pargen_part.TOO_LONG < positions


# ------------------------------------------------------------------------------------------------------ script and card


def test_the_script_writes_a_card_of_its_results(
    run_pargen: ModuleType, pargen_report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    parts, cards = tmp_path / "parts", tmp_path / "cards"
    common = ["--output_dir", str(parts), "--cards_dir", str(cards), "--program", "pargen_k_shot"]
    launch(run_pargen, *common, "--task", "2_shot_rlw", "--split", "train", "test", *("--num_prompts", "12"))
    assert "2_shot_rlw" in capsys.readouterr().out
    sizes = ["--num_train", "9", "--num_prompts", "14", "--part_size", "6"]
    launch(run_pargen, *common, "--task", "1_shot_eng", "--split", "train", "ood_cons_len_7", *sizes)
    check_folder(cards / "dat-pargen-k-shot")
    results = Results.load(cards / "dat-pargen-k-shot" / "results.json")
    assert [(m.config, m.setting["split"], m.setting["prompts"], m.values, m.paper) for m in results.results] == [
        ("2_shot_rlw", "train", 12, [1.0], None),
        ("2_shot_rlw", "test", 12, [1.0], None),
        ("1_shot_eng", "train", 9, [1.0], None),
        ("1_shot_eng", "ood_cons_len_7", 14, [1.0], None),
    ]
    assert len(list((parts / "pargen_k_shot/1_shot_eng/ood_cons_len_7").iterdir())) == 3
    assert (cards / "dat-pargen-k-shot" / "swap.png").stat().st_size > 20_000
    card = (cards / "dat-pargen-k-shot" / "README.md").read_text("utf-8")
    assert "| pargen_k_shot | 2_shot_rlw | 24 | 0 | 100 |  | 100 |" in card
    assert "the first 9 of 280,000 of train (1_shot_eng)" in card
    assert "the first 12 of every split (2_shot_rlw)" in card


def outcomes_with(pargen_part: ModuleType, part: Any, *exact: int) -> list[Any]:
    """Parts of 1,000 prompts of which so many are right."""
    origin = {"command": "python run_pargen.py", "commit": "0" * 40, "machine": {}, "versions": {}}
    return [
        pargen_part.Outcome(
            asdict(replace(part, start=1000 * i, stop=1000 * (i + 1))), "", 1000, right, 60, [], 1.0, 1.0, origin
        )
        for i, right in enumerate(exact)
    ]


def test_what_is_wrong_is_never_rounded_away(
    pargen_part: ModuleType, pargen_report: ModuleType, pargen_table: ModuleType, part: Any
):
    (entry,) = pargen_report.measurements(outcomes_with(pargen_part, part, 1000, *[1000] * 33, 999))
    assert entry.mean == 34_999 / 35_000
    assert entry.paper.mean == 1.0
    _, _, row, *_ = pargen_table.program_table([entry]).splitlines()
    assert row == "| pargen | 1_shot_rlw | 35,000 | 1 |  |  | 99.99 |" + "  |" * 9
    assert pargen_table.program_table([entry]).endswith("Every prompt of every split shown.")


def test_parts_that_do_not_belong_together_are_refused(
    pargen_part: ModuleType, pargen_report: ModuleType, part: Any, tmp_path: Path
):
    first, second = outcomes_with(pargen_part, part, 1000, 1000)
    folder = tmp_path / "pargen" / "1_shot_rlw" / "test"
    folder.mkdir(parents=True)

    def write(name: str, outcome: Any) -> None:
        (folder / name).write_text(json.dumps(asdict(outcome)))

    write("0000000.json", first)
    write("0001000.json", second)
    assert pargen_report.outcomes_of(tmp_path, "pargen") == [first, second]
    write("0001000.json", replace(second, program_digest="another"))
    with pytest.raises(ValueError, match="of 2 texts of the program"):
        pargen_report.outcomes_of(tmp_path, "pargen")
    write("0001000.json", replace(second, part=second.part | {"start": 999}))
    with pytest.raises(ValueError, match="share prompts"):
        pargen_report.outcomes_of(tmp_path, "pargen")


def test_the_cards_example(pargen_part: ModuleType, pargen_report: ModuleType):
    """What the usage block of the cards says that it prints."""
    prompt, said = re.search(r'tokenizer\("(Q .*?)".*# (.*? Q)\n', pargen_report._USAGE, re.DOTALL).groups()
    for program in ("pargen", "pargen_k_shot"):
        model, tokenizer = pargen_part.compiled(program, POSITIONS, OPEN)
        assert f"{pargen_part.complete(model, tokenizer, [prompt], 20)[0]} Q" == said


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--program", "pargn"], "--program must be of pargen, pargen_k_shot"),
        (["--task", "4_shot_rlw"], "--task must be of .*10_shot_rlw.*got 4_shot_rlw"),
        (["--split", "tset"], "--split must be of"),
        (["--part_size", "0"], "--part_size must be at least 1, got 0"),
        (["--push_to_hub", "true"], "--push_to_hub needs --hub_user"),
    ],
)
def test_wrong_arguments_end_the_script(run_pargen: ModuleType, wrong: list[str], message: str):
    with pytest.raises(SystemExit, match=message):
        launch(run_pargen, *wrong)
