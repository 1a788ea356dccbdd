"""The Production System Machine on what the paper works out: (33)-(34), (57), the Turing machine of (75)-(80)."""

from __future__ import annotations

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.library import load_program
from hf_mech.programs.psl.machine import Path, Run
from hf_mech.programs.psl.machines import PSM

HEAD = """
registers: {symbol: 's', position: 'p', field: 'f', mark: 'm', goal: 'a', last: 'z'}
constants: {"X", F1, F2}
system: {symbol: symbol, position: position, output: mark, parse: goal, eop: last}
"""


def machine(body: str, head: str = HEAD) -> PSM:
    return PSM(load_program(head + body))


def column(run: Run, register: str) -> list[str | None]:
    """A register's final value in every cell."""
    return [cell[register] for cell in run.final]


def final(body: str, prompt: str, register: str = "mark", head: str = HEAD) -> list[str | None]:
    """A register's values after the prompt has been read."""
    return column(machine(body, head).run(prompt, max_new_tokens=0), register)


class TestPrompt:
    def test_layer_one(self) -> None:
        """(33c-ii), and the registers with a part of their own."""
        run = machine("where mark[N] == X:\n    mark[N] = X").run("b a", max_new_tokens=0)
        path, cells = run.trace[0][0]
        assert path == Path(0)
        assert cells == (
            {"symbol": "b", "position": "1", "field": None, "mark": None, "goal": "1", "last": None},
            {"symbol": "a", "position": "2", "field": None, "mark": None, "goal": "1", "last": "EOP"},
        )
        assert run.trace == [[(Path(0), cells), (Path(1), cells)]]

    def test_initial_values(self) -> None:
        head = HEAD + "initial: {field: F2}\n"
        assert final("where field[N] == F2:\n    mark[N] = field[N]", "a b", head=head) == ["F2", "F2"]

    def test_leftmost_match_of_57(self) -> None:
        """P6: the field of the first of two equal symbols goes to the second, and never back."""
        fields = """
where position[N] == 1:
    field[N] = F1
where position[N] == 3:
    field[N] = F2
where{} symbol[n] == symbol[N]:
    field[N] = field[n]
"""
        assert final(fields.format(""), "B Q B", "field") == ["F1", None, "F1"]
        assert final(fields.format("_lm"), "B Q B", "field") == ["F1", None, "F1"]
        assert final(fields.format("_rm"), "B Q B", "field") == ["F2", None, "F2"]

    def test_all_cells_are_updated_from_the_same_input(self) -> None:
        """(33d-ii): one production shifts the whole row by one, it does not run along it."""
        shift = "where position[n] == position[N]@pos_decrement:\n    symbol[N] = symbol[n]"
        assert final(shift, "a b c d", "symbol") == ["a", "a", "b", "c"]
        swap = "where position[N] == position[N]:\n    symbol[N] = mark[N]\n    mark[N] = symbol[N]"
        assert final(swap, "a b", "mark") == ["a", "b"]
        assert final(swap, "a b", "symbol") == [None, None]

    def test_causal_attention_reads_no_later_cell(self) -> None:
        """(61d), (62c-v): n <= N."""
        latest = "where_rm symbol[n] != X:\n    mark[N] = position[n]"
        assert final(latest, "a b c") == ["3", "3", "3"]
        assert final("causal_attn: true\n" + latest, "a b c") == ["1", "2", "3"]
        forward = "where position[n] == position[N]@pos_increment:\n    mark[N] = symbol[n]"
        assert final(forward, "a b c") == ["b", "c", None]
        assert final("causal_attn: true\n" + forward, "a b c") == [None, None, None]

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("symbol[N] == a", ["X", None, "X", None]),
            ("symbol[N] != a", [None, "X", None, "X"]),
            ("symbol[N] in [a, c]", ["X", None, "X", "X"]),
            ("symbol[N] not in [a, c]", [None, "X", None, None]),
            ("symbol[N] == a and position[N] != 1", [None, None, "X", None]),
            ("symbol[N] != a and symbol[N] != c", [None, "X", None, None]),
            ("mark[N] == field[N]", ["X"] * 4),  # nil is nil
            ("mark[N] != symbol[N]", ["X"] * 4),
            ("mark[N] == mark[N]@pos_increment", [None] * 4),  # nil has no successor
            ("symbol[N] != symbol[N]@pos_increment", ["X"] * 4),
            ("symbol[n] == symbol[N] and position[n] != position[N]", ["X", None, "X", None]),
            ("symbol[N] == symbol[n] and position[N] == position[n]@pos_increment", [None] * 4),
            ("position[N] == position[n]@pos_increment and symbol[n] == b", [None, None, "X", None]),
            ("symbol[n] != symbol[N] and position[n] == 1", [None, "X", None, "X"]),
        ],
    )
    def test_conditions(self, condition: str, expected: list[str | None]) -> None:
        head = HEAD.replace('"X"', '"X", a, b, c')
        assert final(f"where {condition}:\n    mark[N] = X", "a b a c", head=head) == expected

    def test_nil_is_copied(self) -> None:
        assert final("where position[n] == 1:\n    symbol[N] = mark[n]", "a b", "symbol") == [None, None]


SPREAD = """
where position[N] == 1:
    mark[N] = X
repeat{bound}:
    where position[n] == position[N]@pos_decrement and mark[n] == X:
        mark[N] = X
until {until}
"""


class TestRepeat:
    def test_until_no_change(self) -> None:
        run = machine(SPREAD.format(bound="", until="NO_CHANGE")).run("a b c d", max_new_tokens=0)
        assert column(run, "mark") == ["X"] * 4
        # Three repetitions that change something, and one that shows that there is no more to change.
        assert [step.path for step in run.trace[0]] == [Path(0), Path(1), *(Path(2, (j,)) for j in range(1, 5))]

    @pytest.mark.parametrize(
        ("until", "marked"),
        [
            ("position[N] == 3 and mark[N] == X", 3),
            ("position[n] == 2 and mark[n] == X", 2),
            ("position[N] == 1", 2),  # the body runs at least once
        ],
    )
    def test_until_a_condition(self, until: str, marked: int) -> None:
        marks = final(SPREAD.format(bound="", until=until), "a b c d")
        assert marks == ["X"] * marked + [None] * (4 - marked)

    def test_beyond_its_bound_it_raises(self) -> None:
        assert final(SPREAD.format(bound=" 4", until="NO_CHANGE"), "a b c d") == ["X"] * 4
        with pytest.raises(ProgramsError) as caught:
            final(SPREAD.format(bound=" 3", until="NO_CHANGE"), "a b c d")
        assert caught.value.bound == 3
        assert f"the repeat block of line {HEAD.count(chr(10)) + 4} has not ended" in str(caught.value)
        with pytest.raises(ProgramsError):
            final(SPREAD.format(bound="", until="mark[N] == F1"), "a b c d")

    def test_nested(self) -> None:
        """The inner block runs the mark to the end, the outer one takes it back and ends when the field says so."""
        nested = """
repeat:
    where mark[N] == X:
        field[N] = F1
    repeat:
        where position[N] == 1:
            mark[N] = X
        where position[n] == position[N]@pos_decrement and mark[n] == X:
            mark[N] = X
    until NO_CHANGE
until field[N] == F1 and position[N] == 3
"""
        run = machine(nested).run("a b c", max_new_tokens=0)
        assert column(run, "field") == ["F1"] * 3
        paths = [step.path for step in run.trace[0] if step.path.production == 2]
        assert paths == [Path(2, (1, 1)), Path(2, (1, 2)), Path(2, (1, 3)), Path(2, (2, 1))]


class TestGeneration:
    def test_the_whole_state_goes_to_the_next_cell(self) -> None:
        """(34a): all but the position; (34d): the symbols of the new cells are the completion."""
        copy = "where position[N] == position[N]:\n    mark[N] = symbol[N]\n    field[N] = F1"
        run = machine(copy).run("a b", max_new_tokens=2)
        assert run.completion == ["b", "b"]
        assert run.trace[1][0].cells == (
            {"symbol": "b", "position": "3", "field": "F1", "mark": "b", "goal": "1", "last": "EOP"},
        )
        assert len(run.trace) == 2  # the last word emitted needs no cell

    def test_a_new_cell_reads_the_earlier_ones_at_the_same_layer(self) -> None:
        """Cell 3 sees cell 1 with field nil at the first layer, F1 at the second."""
        body = """
where position[n] == 1:
    mark[N] = field[n]
where position[N] == position[N]:
    field[N] = F1
where position[n] == 1 and field[n] == F1:
    mark[N] = F2
"""
        run = machine(body).run("a b", max_new_tokens=2)
        assert run.completion == ["F2", "F2"]
        assert [step.cells[0]["mark"] for step in run.trace[1]] == ["F2", None, None, "F2"]

    def test_what_ends_the_generation(self) -> None:
        """`max_new_tokens`, a stop word at once, and nil."""
        head = HEAD + "initial: {field: 0}\n"
        body = """
where field[N] == 0 and last[N] == 'EOP':
    field[N] = '1'
where position[n] == field[N] and goal[n] == 1:
    mark[N] = symbol[n]
"""
        run = machine(body, head).run("a b", max_new_tokens=3)
        assert run.completion == ["a", "a", "a"]  # the field is carried forward as it is
        stopped = machine(body, head + "stop: ['a']\n").run("a b", max_new_tokens=3)
        assert stopped.completion == []
        silent = machine("where position[N] == 2:\n    mark[N] = field[N]").run("a b")
        assert silent.completion == []
        assert len(silent.trace) == 1

    def test_stop_words_are_not_part_of_the_completion(self) -> None:
        head = HEAD + "stop: ['.']\n"
        repeat_first = "where symbol[n] == symbol[N] and position[N] == position[n]@pos_increment:\n    goal[N] = 0\n"
        following = "where_lm position[n] == position[N]@pos_decrement:\n    field[N] = symbol[n]\n"
        induction = "where field[n] == symbol[N]:\n    mark[N] = symbol[n]"
        run = machine(repeat_first + following + induction, head).run("a b c . a")
        assert run.completion == ["b", "c"]

    def test_a_group_that_left_the_block_replays_its_last_repetition(self) -> None:
        """The prompt cell takes one repetition, the new one three: in all of them it reads the field of the first one.

        The field is F1 at the input of the block's only repetition, and F2 after it.
        """
        body = """
where goal[N] == 1:
    field[N] = F1
repeat:
    where position[n] == 1 and goal[N] == 0:
        mark[N] = field[n]
    where goal[N] == 0 and last[N] == F1:
        last[N] = F2
    where goal[N] == 0 and last[N] == 'EOP':
        last[N] = F1
until NO_CHANGE
where position[N] == 1:
    field[N] = F2
    mark[N] = X
where goal[N] == 1:
    goal[N] = 0
"""
        run = machine(body).run("a", max_new_tokens=2)
        assert run.completion == ["X", "F1"]
        assert [step.path.repetitions for step in run.trace[0] if step.path.production == 2] == [(1,)]
        of_new_cell = [step for step in run.trace[1] if step.path.production == 2]
        assert [step.path.repetitions for step in of_new_cell] == [(1,), (2,), (3,)]
        assert [step.cells[0]["mark"] for step in of_new_cell] == ["F1"] * 3


class TestRefusals:
    body = "where position[N] == position[N]:\n    mark[N] = symbol[N]"

    @pytest.mark.parametrize("prompt", ["", "  \n", [], ["a", ""], ["a", 3], 7, None])
    def test_what_is_no_prompt(self, prompt: object) -> None:
        with pytest.raises(ProgramsError):
            machine(self.body).run(prompt)  # type: ignore[arg-type]

    def test_more_cells_than_positions(self) -> None:
        assert machine(self.body).run("a b c", max_new_tokens=2, max_position_embeddings=4).completion == ["c", "c"]
        with pytest.raises(ProgramsError, match="max_position_embeddings") as caught:
            machine(self.body).run("a b c", max_new_tokens=3, max_position_embeddings=4)
        assert caught.value.limit == 4
        assert str(caught.value).startswith("5 words")
        with pytest.raises(ProgramsError):
            machine(self.body).run("a b c", max_position_embeddings=2)


TURING = """
registers: {symbol: 's', position: 'p', head: 'c', state: 'q'}
constants: {L, R}
system: {symbol: symbol, position: position, output: state}
initial: {head: '0', state: 'q0'}
"""

MOVE = """
    where head[n] == L and position[n] == position[N]@pos_increment:  # (76)
        head[N] = 1
        state[N] = state[n]
    where head[n] == R and position[n] == position[N]@pos_decrement:  # (77)
        head[N] = 1
        state[N] = state[n]
    where head[N] in [L, R]:  # (78)
        head[N] = 0
    where head[n] == 1:  # (79)
        state[N] = state[n]
"""


def turing_machine(table: dict[tuple[str, str], tuple[str, str, str]], start: int, bound: int = 1000) -> str:
    """(75)-(79) for every instruction of a table `state, symbol -> state, symbol, direction`."""
    text = TURING + f"where position[N] == {start}:\n    head[N] = 1\nrepeat {bound}:\n"
    for (state, symbol), (next_state, written, direction) in table.items():
        text += f"""
    where head[N] == 1 and state[N] == '{state}' and symbol[N] == '{symbol}':  # (75)
        head[N] = {direction}
        state[N] = '{next_state}'
        symbol[N] = '{written}'
"""
        text += MOVE
    return text + "until NO_CHANGE\n"


class TestTuringMachine:
    def test_one_update_of_80(self) -> None:
        """A tape of three cells, the head in the middle: q0, B => q1, X, R."""
        program = turing_machine({("q0", "B"): ("q1", "X", "R")}, start=2)
        run = PSM(load_program(program)).run("A B C", max_new_tokens=0)
        rows = [
            [" ".join(str(cell[register]) for cell in step.cells) for register in ("symbol", "head", "state")]
            for step in run.trace[0]
            if step.path.repetitions in ((), (1,))
        ]
        assert rows == [
            ["A B C", "0 0 0", "q0 q0 q0"],
            ["A B C", "0 1 0", "q0 q0 q0"],
            ["A X C", "0 R 0", "q0 q1 q0"],  # (75)
            ["A X C", "0 R 0", "q0 q1 q0"],  # (76) does not apply
            ["A X C", "0 R 1", "q0 q1 q1"],  # (77)
            ["A X C", "0 0 1", "q0 q1 q1"],  # (78)
            ["A X C", "0 0 1", "q1 q1 q1"],  # (79)
        ]

    @pytest.mark.parametrize("number", [0, 1, 5, 7, 12, 31])
    def test_binary_increment(self, number: int) -> None:
        """Runs right to the blank, then adds one with carry to the left; reads the tape after halting."""
        table = {
            ("q0", "0"): ("q0", "0", "R"),
            ("q0", "1"): ("q0", "1", "R"),
            ("q0", "_"): ("carry", "_", "L"),
            ("carry", "1"): ("carry", "0", "L"),
            ("carry", "0"): ("halt", "1", "L"),
            ("carry", "_"): ("halt", "1", "L"),
        }
        tape = ["_", "_", *f"{number:b}", "_"]
        run = PSM(load_program(turing_machine(table, start=3))).run(tape, max_new_tokens=0)
        written = "".join(str(cell["symbol"]) for cell in run.final).strip("_")
        assert int(written, 2) == number + 1
        assert {cell["state"] for cell in run.final} == {"halt"}

    def test_one_that_never_halts_is_an_error(self) -> None:
        """The instructions stand in an order in which no repetition comes back to where it began."""
        flipping = {
            ("q3", "_"): ("q0", "_", "L"),
            ("q2", "1"): ("q3", "0", "R"),
            ("q1", "_"): ("q2", "_", "L"),
            ("q0", "0"): ("q1", "1", "R"),
        }
        with pytest.raises(ProgramsError):
            PSM(load_program(turing_machine(flipping, start=1, bound=50))).run("0 _")

    def test_no_change_is_that_of_a_whole_repetition(self) -> None:
        """App. J: a machine that is back where it was after all its instructions counts as one that has stopped."""
        forth_and_back = {("q0", "_"): ("q1", "_", "R"), ("q1", "_"): ("q0", "_", "L")}
        run = PSM(load_program(turing_machine(forth_and_back, start=1))).run("_ _", max_new_tokens=0)
        assert [step.path.repetitions for step in run.trace[0]][-1] == (1,)
