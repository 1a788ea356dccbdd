"""PARGEN in the Production System Machine: the paper's prompts, the walk-through of Swap, and whole splits' samples."""

from __future__ import annotations

import pytest

from hf_mech.programs.psl import read_program
from hf_mech.programs.psl.machine import Path, Run, State
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.templatic.grammar import TemplaticSettings, generate_rows
from hf_mech.programs.templatic.tasks import SPLITS, TASKS
from tests.programs.templatic.paper_prompts import BOX_2, NINE, SWAP

PROMPTS = {**NINE, **BOX_2, "(27)": SWAP}  # (25) is none of the task's: two constituents stand side by side


@pytest.fixture(scope="module")
def pargen() -> PSM:
    return PSM(read_program("pargen"))


@pytest.fixture(scope="module")
def k_shot() -> PSM:
    return PSM(read_program("pargen_k_shot"))


@pytest.mark.parametrize("name", PROMPTS)
def test_the_papers_prompts(name: str, pargen: PSM, k_shot: PSM) -> None:
    prompt, completion = PROMPTS[name]
    assert " ".join(pargen.run(prompt).completion) == completion
    assert " ".join(k_shot.run(prompt).completion) == completion


@pytest.mark.parametrize("words", [("Q", "A"), ("Frage:", "A"), ("V", "A")])
def test_the_question_mark_is_whatever_the_prompt_starts_with(words: tuple[str, str], pargen: PSM) -> None:
    """P1b compares with the first symbol. The generation stops at `Q` by name, so another one is emitted at the end."""
    question, answer = words
    prompt = f"{question} b c w d e {answer} d e w b c {question} f g w j k l {answer}"
    completion = pargen.run(prompt, max_new_tokens=7).completion
    assert completion == ["j", "k", "l", "w", "f", "g", *([question] if question != "Q" else [])]


# ------------------------------------------------------------------------------------------ the walk-through of Swap

XQ, XA, CQ, CA = slice(0, 6), slice(6, 12), slice(12, 19), slice(19, 20)


@pytest.fixture(scope="module")
def swap(pargen: PSM) -> Run:
    return pargen.run(SWAP[0])


def after(run: Run, comment: str) -> list[State]:
    """The prompt cells after the production whose comment starts so; in a repeat block, after its last repetition."""
    starts = [item.comment.split(":")[0] for item in read_program("pargen").productions]
    number = starts.index(comment) + 1
    return list([step.cells for step in run.trace[0] if step.path.production == number][-1])


def row(cells: list[State], register: str) -> str:
    return " ".join(cell[register] or "-" for cell in cells)


def renamed(fields: str) -> str:
    """Fields by the readable names of (36): B's 2 is F1, V's 4 is FV, D's 5 is F2 (Sec. 5.4)."""
    names = {"2": "F1", "4": "FV", "5": "F2"}
    return " ".join(names.get(field, field) for field in fields.split())


def test_p0_marks_everything_unset(swap: Run) -> None:
    cells = after(swap, "P0")
    assert row(cells, "region") == " ".join(["R"] * 20)
    assert row(cells, "type") == " ".join(["T"] * 20)
    assert row(cells, "index") == " ".join(["1"] * 20)
    assert row(cells, "field") == row(cells, "position") == " ".join(str(p) for p in range(1, 21))


def test_p1_marks_the_starts_of_example_and_cue(swap: Run) -> None:
    for comment, region, at in (("P1a", "XQ", 0), ("P1b", "CQ", 12)):
        cell = after(swap, comment)[at]
        assert (cell["region"], cell["field"], cell["type"]) == (region, "FQ", "D")
    assert row(after(swap, "P1b"), "region") == "XQ " + "R " * 11 + "CQ" + " R" * 7


def test_p2_to_p4_fill_the_regions(swap: Run) -> None:
    assert row(after(swap, "P2a"), "region") == "XQ " * 12 + "CQ" + " R" * 7
    assert row(after(swap, "P2b"), "region") == "XQ " * 12 + "CQ " * 7 + "CQ"
    assert row(after(swap, "P3a"), "region") == "XQ " * 6 + "XA " + "XQ " * 5 + "CQ " * 7 + "CQ"
    assert row(after(swap, "P3b"), "region") == "XQ " * 6 + "XA " + "XQ " * 5 + "CQ " * 7 + "CA"
    cells = after(swap, "P3b")
    assert [(cells[p]["field"], cells[p]["type"]) for p in (6, 19)] == [("FA", "D"), ("FA", "D")]
    assert row(after(swap, "P4"), "region") == "XQ " * 6 + "XA " * 6 + "CQ " * 7 + "CA"


def test_each_repeat_block_ends_when_nothing_changes(swap: Run) -> None:
    """XQ spreads over 11 cells, CQ over 7, XA over 5, a constituent over at most 2, one in a repetition. One more
    updates the left-neighbour register of the next cell, where there is one, and the last changes nothing."""
    repetitions: dict[int, int] = {}
    for step in swap.trace[0]:
        if step.path.repetitions:
            repetitions[step.path.production] = step.path.repetitions[0]
    assert list(repetitions.values()) == [13, 13, 8, 8, 7, 7, 4, 4]
    assert swap.trace[0][0].path == Path(0)


def test_p5_to_p7_find_the_types(swap: Run) -> None:
    types = row(after(swap, "P5a"), "type").split()
    assert types[XQ] == ["D", "T", "T", "D", "T", "T"]  # V comes again in CQ; the walk-through's (95)
    cells = after(swap, "P5b")
    assert row(cells[CQ], "type") == "D T T D T T T"
    assert renamed(row(cells[CQ], "field")) == "FQ 14 15 FV 17 18 19"
    cells = after(swap, "P5c")
    assert row(cells[XA], "type") == "D T T D T T"
    assert renamed(row(cells[XA], "field")) == "FA 8 9 FV 11 12"
    cells = after(swap, "P6")
    assert row(cells[XA], "type") == "D C C D C C"
    assert row(cells[XA], "field") == "FA 5 6 4 2 3"  # each symbol has its own field of XQ still
    assert row(after(swap, "P7"), "type") == row(cells, "type")  # Swap adds no delimiter in its answer
    assert row(after(swap, "P7'"), "type") == "D C C D C C D C C D C C D C C D C C C D"


def test_p8_and_p9_find_the_fields(swap: Run) -> None:
    assert renamed(row(after(swap, "P8")[CQ], "field")) == "FQ F1 15 FV F2 18 19"
    fields = "FQ F1 F1 FV F2 F2 FA F2 F2 FV F1 F1 FQ F1 F1 FV F2 F2 F2 FA"
    assert renamed(row(after(swap, "P9"), "field")) == fields


def test_the_parse_is_that_of_36(swap: Run) -> None:
    """(36), with every index but the first of a field 1, as (38b) has it from then on."""
    cells = after(swap, "P11")
    assert row(cells, "symbol") == SWAP[0]
    assert row(cells, "region") == "XQ " * 6 + "XA " * 6 + "CQ " * 7 + "CA"
    assert renamed(row(cells, "field")) == "FQ F1 F1 FV F2 F2 FA F2 F2 FV F1 F1 FQ F1 F1 FV F2 F2 F2 FA"
    assert row(cells, "index") == "0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 1 0"
    assert row(cells, "parse") == "1 " * 19 + "0"  # P11 reaches the last cell only


def test_the_completion_continues_the_parse(swap: Run) -> None:
    """(39) and (44): fields, regions and indices of the generated cells, at their first layer (34a)."""
    assert swap.completion == ["J", "K", "L", "V", "F", "G"]
    cells = [steps[0].cells[0] for steps in swap.trace[1:]]
    assert row(cells, "symbol") == "J K L V F G"
    assert row(cells, "position") == "21 22 23 24 25 26"
    assert renamed(row(cells, "field")) == "F2 F2 F2 FV F1 F1"
    assert row(cells, "region") == " ".join(["CA"] * 6)
    assert row(cells, "index") == "0 1 1 0 0 1"
    assert row(cells, "end") == "0 1 1 0 0 1"  # whether CONTFIELD gave the symbol


def test_after_the_answers_last_field_comes_the_next_question(swap: Run) -> None:
    """The first production of NEXTFIELD (52) does not ask for region XA, so that the Q of the cue follows."""
    last = swap.trace[-1][-1].cells[0]
    assert (last["symbol"], last["field"]) == ("Q", "FQ")


# --------------------------------------------------------------------------------------------- the task's own prompts


def sample(task: str, split: str, count: int) -> list[dict[str, str]]:
    settings = TemplaticSettings(task, seed=11, num_train=16 * count, num_eval=16 * count)
    rows = [row for table in generate_rows(settings, split, 0) for row in table.to_pylist()]
    return rows[:count]


@pytest.mark.parametrize("split", [str(getattr(split, "name", split)) for split in SPLITS])
def test_samples_of_every_split(split: str, pargen: PSM, k_shot: PSM) -> None:
    for task in (str(getattr(task, "name", task)) for task in TASKS):
        for row in sample(task, split, 1):
            machines = [pargen, k_shot] if task.startswith("1_") else [k_shot]
            for machine in machines:
                run = machine.run(row["prompt"], max_new_tokens=200, max_position_embeddings=2048)
                assert run.completion == row["completion"].split(), (task, machine.program.watch)


def test_pargen_itself_is_for_one_example(pargen: PSM, k_shot: PSM) -> None:
    prompt = "Q a x b A b y a . Q c x d A d y c . Q e x f A"
    assert k_shot.run(prompt).completion == ["f", "y", "e", "."]
    assert pargen.run(prompt).completion != ["f", "y", "e", "."]


@pytest.mark.parametrize("shots", [1, 2, 7])
def test_any_number_of_examples(shots: int, k_shot: PSM) -> None:
    examples = " ".join(f"Q a{i} b{i} x c{i} A c{i} y a{i} b{i} ." for i in range(shots))
    run = k_shot.run(f"{examples} Q e x f g A")
    assert run.completion == ["f", "g", "y", "e", "."]
    steps = {len(steps) for steps in run.trace}
    assert steps == {31}  # the input and one a production, for the prompt and for every new cell
