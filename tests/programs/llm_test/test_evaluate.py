"""The folder of a run: answers kept, asked again, added, and refused."""

import pytest

from hf_mech.probing import ProbingError
from hf_mech.probing.language_models import Reply
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.llm_test.evaluate import evaluate
from hf_mech.programs.llm_test.variants import Variant, prompts_of
from tests.programs.llm_test.answers import answers
from tests.programs.templatic.regex_solver import solve


class Solver:
    """A model in this process. It answers in groups, and notes what it was asked."""

    name = "in process"

    def __init__(self, group=1, answer=solve, fail_after=None):
        self.group, self.answer, self.fail_after = group, answer, fail_after
        self.asked = []

    def settings(self):
        return {"kind": "solver"}

    def replies(self, questions):
        for question in questions:
            if len(self.asked) == self.fail_after:
                raise ProbingError("no more")
            self.asked.append(question)
            yield Reply(self.answer(question.prompt))


@pytest.mark.parametrize(("group", "kept"), [(1, 6), (4, 4), (8, 0)])
def test_a_broken_line_and_a_broken_group_are_asked_again(tmp_path, group, kept):
    with pytest.raises(ProbingError):
        evaluate(Solver(group, fail_after=6), [Variant()], tmp_path, prompts=10, progress=False)
    path = tmp_path / "answers" / "1_shot_rlw.test.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write('{"index": 6, "prompt": "Q a')
    again = Solver(group)
    (score,) = evaluate(again, [Variant()], tmp_path, prompts=10, progress=False)
    assert [question.prompt for question in again.asked] == [p.text for p in prompts_of(Variant(), count=10)[kept:]]
    assert (score.prompts, score.accuracy) == (10, 1.0)
    assert [record["index"] for record in answers(tmp_path)] == list(range(10))


def test_more_prompts_are_added_and_fewer_are_read(tmp_path):
    evaluate(Solver(), [Variant()], tmp_path, prompts=5, progress=False)
    more = Solver()
    evaluate(more, [Variant(), Variant()], tmp_path, prompts=9, progress=False)
    assert len(more.asked) == 4
    none = Solver()
    (score,) = evaluate(none, [Variant()], tmp_path, prompts=3, progress=False)
    assert (len(none.asked), score.prompts) == (0, 3)


def test_any_text_comes_back_from_the_file(tmp_path):
    said = 'K\u2028L\x85"\\\n\t\u20ac\U0001f600 .'
    evaluate(Solver(answer=lambda _: said), [Variant()], tmp_path, prompts=3, progress=False)
    (score,) = evaluate(Solver(), [Variant()], tmp_path, prompts=3, progress=False)
    assert score.accuracy == 0
    assert {record["reply"] for record in answers(tmp_path)} == {said}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 1}, "begun with other settings"),
        ({"system": False}, "'system_prompt': True"),
    ],
)
def test_a_folder_is_for_one_run(tmp_path, options, said):
    evaluate(Solver(), [Variant()], tmp_path, prompts=2, progress=False)
    with pytest.raises(ProgramsError, match=said):
        evaluate(Solver(), [Variant()], tmp_path, prompts=2, progress=False, **options)


def test_files_that_no_run_wrote(tmp_path):
    evaluate(Solver(), [Variant()], tmp_path, prompts=3, progress=False)
    path = tmp_path / "answers" / "1_shot_rlw.test.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for broken, said in (
        ([lines[0], "?\n", lines[2]], "Line 2 of .* is no answer of ours"),
        ([lines[0], "{}\n"], "Line 2 of .* is no answer of ours"),
        ([lines[0], "[1]\n"], "Line 2 of .* is no answer of ours"),
        ([lines[1], lines[0]], "Line 1 of .* answers another prompt"),
    ):
        path.write_text("".join(broken), encoding="utf-8")
        with pytest.raises(ProgramsError, match=said):
            evaluate(Solver(), [Variant()], tmp_path, prompts=3, progress=False)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(ProgramsError, match=r"run\.json is no JSON"):
        evaluate(Solver(), [Variant()], tmp_path, prompts=3, progress=False)
