"""The programs of the package: their text, PARGEN's shape, and how a program is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hf_mech.programs.errors import ProgramsError, PSLError
from hf_mech.programs.psl import load_program, program_names, program_text, read_program
from hf_mech.programs.psl.syntax import Production, Repeat


def test_pargen_has_the_productions_of_the_paper() -> None:
    """31: 24 of (99), with four repeat blocks of two, and 7 of (100)."""
    program = read_program("pargen")
    goals = [
        test.right.values
        for item in program.productions
        for test in item.tests
        if str(test.left) == "parse[N]" and test.operator == "=="
    ]
    assert goals == [("1",)] * 24 + [("0",)] * 7
    blocks = [item for item in program.statements if isinstance(item, Repeat)]
    assert [len(block.body) for block in blocks] == [2, 2, 2, 2]
    assert all(block.until is None for block in blocks)


def test_pargens_comments_name_the_papers_productions() -> None:
    comments = [item.comment for item in read_program("pargen").productions]
    numbers = [re.match(r"[PG][\w'-]+", comment).group() for comment in comments]  # type: ignore[union-attr]
    assert numbers == [
        *("P0", "Ppre-1", "P1a", "P1b", "Ppre-2a", "P2a", "Ppre-2b", "P2b", "P3a", "P3b", "Ppre-4", "P4", "P5a", "P5b"),
        *("P5c", "P6", "P7", "P7'", "Ppre-8", "P8", "Ppre-9", "P9", "P10", "P11"),
        *("G0", "Gpre-1", "G1", "Gpre-2", "G2", "G3", "G3'"),
    ]


def test_pargen_uses_only_default_matching() -> None:
    """No causal production and no rightmost match: (62c.v) says so of the paper's program."""
    assert not any(item.causal or item.right_match for item in read_program("pargen").productions)


def test_the_k_shot_program_has_no_repeat_block() -> None:
    assert all(isinstance(item, Production) for item in read_program("pargen_k_shot").statements)


@pytest.mark.parametrize("name", program_names())
def test_every_program_is_whole(name: str) -> None:
    program = load_program(program_text(name), name)
    assert program.watch
    assert program.stop == (("Q",) if name.startswith("pargen") else ())
    assert all(item.comment for item in program.productions)


def test_a_program_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.psl"
    path.write_text(program_text("pargen"))
    assert read_program(path) == read_program(str(path)) == read_program("pargen")


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.psl"
    path.write_text("registers {}")
    with pytest.raises(PSLError, match=r"mine\.psl, line 1"):
        read_program(path)
    path.write_text("registers: {s, p}\nsystem: {symbol: s, position: p, output: r}\n")
    with pytest.raises(PSLError, match=r"mine\.psl, line 2"):
        read_program(path)


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramsError, match="Did you mean `pargen`"):
        program_text("pargn")
    with pytest.raises(ProgramsError, match="pargen_k_shot"):
        read_program(tmp_path / "missing.psl")
    with pytest.raises(ProgramsError, match="cannot read"):
        read_program("\0")
    (tmp_path / "latin.psl").write_bytes(b"# \xe9\n")
    with pytest.raises(ProgramsError, match="UTF-8"):
        read_program(tmp_path / "latin.psl")
