"""Turing machines in the three machines, compiled and in the prompt, against a simulator with a dictionary as tape."""

from __future__ import annotations

import random

import pytest
from typer.testing import CliRunner

from hf_mech.cli.app import app
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import PSM, QKVM, compile_program, load_program, lower_program, program_text
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.turing import TuringMachine, run_turing
from training.machines.tables import ADDITION, BUSY_BEAVERS, INCREMENT, PALINDROME

RUNNERS = {
    "psm": PSM,
    "qkvm": lambda program: QKVM(lower_program(program)),
    "dat": lambda program: DAT(*compile_program(program, max_position_embeddings=128, num_open_values=64)),
    "dense": lambda program: DAT(
        *compile_program(program, max_position_embeddings=128, num_open_values=64, backend="dense")
    ),
}


def simulate(machine: TuringMachine, tape: list[str], head: int, most: int) -> tuple[dict[int, str], int, str, int]:
    """What (73) says, cell by cell on an endless tape: its cells, the head, the state and the steps."""
    cells, state, steps = dict(enumerate(tape)), machine.start, 0
    while (state, cells.get(head, machine.blank)) in machine.table:
        if steps == most:
            raise TimeoutError
        state, cells[head], move = machine.table[state, cells.get(head, machine.blank)]
        head, steps = head + (1 if move == "R" else -1), steps + 1
    return cells, head, state, steps


def assert_like_the_simulator(machine: TuringMachine, tape: str, *, head: int = 0, pads: int = 12, **options) -> None:
    cells, at, state, steps = simulate(machine, tape.split(), head, 1_000)
    ended = run_turing(machine, tape, head=head, left=pads, right=pads, **options)
    assert (ended.head - pads, ended.state, ended.steps) == (at, state, steps)
    assert ended.symbols == [cells.get(place - pads, machine.blank) for place in range(len(ended.symbols))]


@pytest.mark.parametrize("universal", [False, True])
@pytest.mark.parametrize("runner", RUNNERS)
class TestEveryMachine:
    @pytest.mark.parametrize("number", [0, 11, pytest.param(31, marks=pytest.mark.slow)])
    def test_binary_increment(self, runner, universal, number):
        machine = TuringMachine.parse(INCREMENT)
        ended = run_turing(
            machine, " ".join(f"{number:b}"), left=2, right=1, universal=universal, runner=RUNNERS[runner]
        )
        assert (int("".join(ended.written), 2), ended.state) == (number + 1, "done")

    def test_unary_addition(self, runner, universal):
        machine = TuringMachine.parse(ADDITION)
        ended = run_turing(machine, "1 1 + 1 1 1", universal=universal, runner=RUNNERS[runner])
        assert (ended.written, ended.state) == (["1"] * 5, "done")

    @pytest.mark.parametrize(
        ("word", "verdict"),
        [
            ("a b b a", "yes"),
            ("b a a", "no"),
            pytest.param("a b a", "yes", marks=pytest.mark.slow),
            pytest.param("a b", "no", marks=pytest.mark.slow),
        ],
    )
    def test_palindromes(self, runner, universal, word, verdict):
        machine = TuringMachine.parse(PALINDROME)
        assert run_turing(machine, word, universal=universal, runner=RUNNERS[runner]).state == verdict

    @pytest.mark.parametrize(("ones", "steps"), [(4, 6), (6, 14)])
    def test_small_busy_beavers(self, runner, universal, ones, steps):
        machine = TuringMachine.parse(f"blank: 0\n{BUSY_BEAVERS[ones, steps]}")
        ended = run_turing(machine, "0", left=6, right=6, universal=universal, runner=RUNNERS[runner])
        assert (ended.symbols.count("1"), ended.steps, ended.state) == (ones, steps, "H")


@pytest.mark.parametrize("universal", [False, True])
@pytest.mark.parametrize("runner", ["psm", "qkvm", "dat"])
def test_the_busy_beaver_of_four_states(runner, universal):
    machine = TuringMachine.parse(f"blank: 0\n{BUSY_BEAVERS[13, 107]}")
    ended = run_turing(machine, "0", left=14, right=6, universal=universal, runner=RUNNERS[runner])
    assert (ended.symbols.count("1"), ended.steps, ended.state) == (13, 107, "H")
    assert_like_the_simulator(machine, "0", pads=14, universal=universal, runner=RUNNERS[runner])


def random_machine(seed: int) -> tuple[TuringMachine, str, int] | None:
    """A machine of up to four states and three symbols that halts within 40 steps, its tape, and its head."""
    draw = random.Random(seed)
    states, symbols = [f"q{i}" for i in range(draw.randint(1, 4))], ["_", "L", "1"][: draw.randint(2, 3)]
    table = {
        (state, symbol): (draw.choice([*states, "0"]), draw.choice(symbols), draw.choice("LR"))
        for state in states
        for symbol in symbols
        if draw.random() < 0.85
    }
    tape = [draw.choice(symbols) for _ in range(draw.randint(1, 5))]
    head = draw.randrange(len(tape))
    if not table:
        return None
    machine = TuringMachine(table, states[0])
    try:
        return (machine, " ".join(tape), head) if simulate(machine, tape, head, 40)[3] > 1 else None
    except TimeoutError:
        return None


def test_random_machines_run_alike_everywhere():
    """States and symbols have the names of constants, of moves and of registers, too."""
    halting = [made for seed in range(100) if (made := random_machine(seed)) is not None][:12]
    assert len(halting) == 12
    for place, (machine, tape, head) in enumerate(halting):
        for universal in (False, True):
            assert_like_the_simulator(machine, tape, head=head, pads=41, universal=universal)
        runner = ("qkvm", "dat")[place % 2]
        assert_like_the_simulator(machine, tape, head=head, pads=41, universal=place % 4 < 2, runner=RUNNERS[runner])


def test_all_states_are_the_same_in_the_three_machines():
    machine = TuringMachine.parse(PALINDROME)
    for universal in (False, True):
        runs = [
            run_turing(machine, "a b a", left=1, right=1, universal=universal, runner=RUNNERS[runner]).run
            for runner in RUNNERS
        ]
        assert all(run == runs[0] for run in runs[1:])


def test_the_history_has_a_line_a_step():
    machine = TuringMachine.parse("a 0 -> b 1 R\nb _ -> c 1 L")
    for universal in (False, True):
        lines = list(run_turing(machine, "0", left=1, right=2, universal=universal).history())
        assert lines == ["a:  _ [0] _  _ ", "b:  _  1 [_] _ ", "c:  _ [1] 1  _ "]


def test_the_command_prints_what_was_written(tmp_path):
    table = tmp_path / "increment.tm"
    table.write_text(INCREMENT)
    for options in (["--machine", "psm"], ["--universal"], ["--machine", "qkvm", "--universal"]):
        ended = CliRunner().invoke(app, ["turing", str(table), "1 1", *options])
        assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "1 0 0\n", "state done, 6 steps\n")
    shown = CliRunner().invoke(
        app, ["turing", str(table), "1", "--show", "--left", "2", "--right", "1", "--machine", "psm"]
    )
    assert shown.stdout.splitlines()[0] == "right:  _  _ [1] _ "
    program = CliRunner().invoke(app, ["turing", str(table), "1", "--psl"]).stdout
    assert len(list(load_program(program).productions)) == 6 + 4
    lost = CliRunner().invoke(app, ["turing", str(table), "1", "--left", "0", "--machine", "psm"])
    assert lost.exit_code == 1
    assert "the head left the tape" in lost.stderr


# -------------------------------------------------------------------------------------------------------- the limits


@pytest.mark.parametrize("universal", [False, True])
@pytest.mark.parametrize(("move", "steps"), [("L", 4), ("R", 6)])
def test_a_head_that_leaves_the_tape_is_an_error(universal, move, steps):
    machine = TuringMachine.parse(f"go _ -> go x {move}")
    with pytest.raises(ProgramsError, match=f"left the tape after {steps} steps: it has 9 cells"):
        run_turing(machine, "_", left=3, right=5, universal=universal)


def test_one_that_never_halts_is_an_error():
    machine = TuringMachine.parse("a _ -> b _ R\nb _ -> a _ L")
    with pytest.raises(ProgramsError):
        run_turing(machine, "_", max_steps=30)
    assert run_turing(TuringMachine.parse("a _ -> b _ R"), "_", max_steps=1).steps == 1


def test_the_start_and_the_blank_can_be_named_and_hash_is_a_symbol():
    machine = TuringMachine.parse("# a comment\nblank: #\nstart: b\n\na # -> b x L\nb # -> a y R\n")
    assert (machine.start, machine.blank, len(machine.table)) == ("b", "#", 2)
    assert run_turing(machine, "#").written == ["y", "x"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs an instruction"),
        ("a 0 -> b 1", "line 1: expected `state symbol -> state symbol L`"),
        ("a 0 -> b 1 N", "line 1: expected"),
        ("a 0 -> b 1 R\na 0 -> c 1 R", "line 2: there is an instruction for a 0 already"),
        ("start: a\nstart: b\na 0 -> b 1 R", "line 2: expected"),
    ],
)
def test_a_wrong_table_names_the_line(text, said):
    with pytest.raises(ProgramsError, match=said):
        TuringMachine.parse(text)


def test_wrong_machines_and_tapes_are_refused(tmp_path):
    with pytest.raises(ProgramsError, match="text without white space, got 'a b'"):
        TuringMachine({("a b", "0"): ("c", "1", "R")}, "a b")
    with pytest.raises(ProgramsError, match="must be L or R, got 'N'"):
        TuringMachine({("a", "0"): ("c", "1", "N")}, "a")
    with pytest.raises(ProgramsError, match="cannot read the table"):
        TuringMachine.read(tmp_path / "none.tm")
    machine = TuringMachine.parse(INCREMENT)
    for tape, head in (("", 0), ("1", 1), ("1", -1)):
        with pytest.raises(ProgramsError, match="the head begins on the tape"):
            run_turing(machine, tape, head=head)
    with pytest.raises(ProgramsError, match="numbers of blanks"):
        run_turing(machine, "1", left=-1)
    with pytest.raises(ProgramsError, match="take another symbol"):
        run_turing(TuringMachine.parse("a instruction -> b x R"), "instruction", universal=True)


def test_names_with_quotation_marks_are_names():
    machine = TuringMachine({("it's", '"'): ("\\", "'", "R")}, "it's")
    ended = run_turing(machine, '"', runner=RUNNERS["dat"])
    assert (ended.written, ended.state) == (["'"], "\\")


def test_both_programs_have_five_kinds_of_productions():
    """(81) and (84): a production an instruction and four that move, and five in all."""
    machine = TuringMachine.parse(INCREMENT)
    assert len(list(machine.to_program().productions)) == len(machine.table) + 4
    assert len(list(load_program(program_text("universal")).productions)) == 5
