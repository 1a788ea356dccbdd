"""A part: its completions, its folder, and what a wrong program or another text of the program leads to."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hf_mech.programs.templatic.grammar import generate
from tests.training.commands import stages_of
from training.engine import Job
from training.engine.runner import run_one
from training.pargen import run
from training.pargen.experiment import EXPERIMENT
from training.pargen.run import TOO_LONG, Part, batches, compiled, complete, digest_of, positions_for, run_part


def test_a_part_is_right_and_is_not_run_again(part: Part, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outcome = run_one(EXPERIMENT, part, job)
    assert outcome is not None
    assert (outcome.prompts, outcome.exact, outcome.wrong) == (20, 20, [])
    prompts = [example.prompt for example in generate("1_shot_rlw", "test", 0, 7, 27)]
    assert outcome.longest == max(len(prompt.split()) for prompt in prompts)
    assert outcome.origin == job.origin
    assert outcome.cpu_seconds > 0
    folder = tmp_path / "pargen" / "1_shot_rlw" / "test" / part.name.rpartition("/")[2]
    assert EXPERIMENT.load(folder) == outcome
    assert sorted(path.name for path in folder.iterdir()) == ["outcome.json", "run.json"]  # nothing temporary is left
    assert list(folder.parent.iterdir()) == [folder]

    def not_again(*_: object) -> None:
        raise AssertionError("the part was run again")

    monkeypatch.setattr(run, "complete", not_again)
    assert run_one(EXPERIMENT, part, job) == outcome
    with pytest.raises(FileExistsError, match=r"other settings: stop 27 \(asked for: 28\)"):
        run_one(EXPERIMENT, replace(part, stop=28), job)


def test_another_text_of_the_program_is_refused(job: Job, monkeypatch: pytest.MonkeyPatch):
    options = ["--split", "test", "--num_prompts", "4"]
    ((before,),) = stages_of(EXPERIMENT, *options)
    assert before.program_digest == digest_of("pargen") != digest_of("pargen_k_shot")
    run_one(EXPERIMENT, before, job)
    monkeypatch.setattr(run, "program_text", lambda name: "# another text")
    ((after,),) = stages_of(EXPERIMENT, *options)
    assert after.name == before.name
    with pytest.raises(FileExistsError, match="other settings: program_digest"):
        run_one(EXPERIMENT, after, job)


def test_a_wrong_program_is_seen_to_be_wrong(part: Part, job: Job, monkeypatch: pytest.MonkeyPatch):
    text = run.program_text("pargen")
    without = re.sub(r"# P5a: .*?\n\n", "", text, count=1, flags=re.DOTALL)
    assert without != text
    monkeypatch.setattr(run, "program_text", lambda name: without)
    monkeypatch.setattr(run, "compiled", compiled.__wrapped__)
    outcome = run_part(part, job)
    assert outcome.exact < outcome.prompts == 20
    assert len(outcome.wrong) == min(5, 20 - outcome.exact)
    examples = list(generate("1_shot_rlw", "test", 0, 0, 27))
    for wrong in outcome.wrong:
        assert (wrong["prompt"], wrong["expected"]) == (
            examples[wrong["index"]].prompt,
            examples[wrong["index"]].completion,
        )
        assert wrong["got"] != wrong["expected"]


def test_a_completion_that_goes_on_is_wrong(part: Part):
    model, tokenizer = compiled("pargen", part.positions, part.num_open_values)
    prompt = "Q a V b A b V a . Q c V d e A"
    assert complete(model, tokenizer, [prompt], 8) == ["d e V c ."]
    assert complete(model, tokenizer, [prompt], 5) == ["d e V c . …"]  # the end, Q, was not reached


def test_batches_have_every_example_once_and_so_many_cells(monkeypatch: pytest.MonkeyPatch):
    examples = list(enumerate(generate("1_shot_rlw", "ood_cons_len_5", 0, 0, 60)))
    monkeypatch.setattr(run, "CELLS", 400)
    found = list(batches(examples, 9))
    assert sorted(entry for batch in found for entry in batch) == examples
    for batch in found:
        assert 1 <= len(batch) <= 9
        assert len(batch) * max(len(example.prompt.split()) + 1 for _, example in batch) <= 400


@pytest.mark.parametrize("task", ["1_shot_rlw", "3_shot_rlw", "10_shot_rlw"])
def test_every_prompt_has_room(task: str):
    for split in ("ood_cons_len_10", "ood_cons_count_10"):
        for example in generate(task, split, 0, 0, 50):
            assert len(f"{example.prompt} {example.completion}".split()) + TOO_LONG < positions_for(task)


def test_a_part_has_the_positions_of_its_task_unless_it_is_told_others(part: Part):
    assert (part.positions, part.num_open_values) == (384, 2000)
    assert replace(part, task="10_shot_rlw").positions == 1536
    assert replace(part, max_position_embeddings=500).positions == 500
