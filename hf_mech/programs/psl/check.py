"""Checks of a program: names, types and bounds, with suggestions for names that are nearly right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

from hf_mech.programs.errors import refused
from hf_mech.programs.psl.syntax import (
    Assignment,
    Constants,
    Place,
    Production,
    Program,
    Reference,
    Repeat,
    Test,
)
from hf_mech.programs.psl.values import (
    END_OF_PROMPT,
    PARSING,
    assigned_values,
    function_names,
    is_number,
    value_sets,
)

# ----------------------------------------------------------------------------------------------------------------------
# Suggestions for error messages: the known names that are close to an unknown one.


def either(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = list(names) or ["nothing more"]
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(name: str, known: Iterable[str], otherwise_all: bool = True) -> str:
    """The question `Did you mean ...?` for a name that is close to a known one.

    Args:
        name: the unknown name.
        known: the known names.
        otherwise_all: whether to list all known names if none is close and there are few.

    >>> did_you_mean("regoin", ["region", "field"])
    'Did you mean `region`? '
    >>> did_you_mean("x", ["region", "field"])
    'Known: region, field. '
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if close:
        return f"Did you mean {either(f'`{match}`' for match in close)}? "
    return f"Known: {', '.join(known)}. " if otherwise_all and 0 < len(known) <= 12 else ""


# ----------------------------------------------------------------------------------------------------------------------
# The checker: refuses programs without an exact compiled form; names the line, expression, reason and fix.


ROLES = ("symbol", "position", "output", "parse", "eop")
"""The roles of registers in `system`; the first three are required."""

_REQUIRED = ROLES[:3]


def check_program(program: Program, name: str = "<string>") -> Program:
    """Returns `program` if it can be compiled exactly.

    Args:
        program: from `parse_program`, or built by hand.
        name: its name in messages, such as its file.

    Raises:
        PSLError: the first fault, with `line`, `expression`, `reason` and `mend`.
    """
    _Checker(program, name).check()
    return program


class _Checker:
    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name

    def check(self) -> None:
        self.check_registers()
        self.check_system()
        self.check_sections()
        if not self.program.statements:
            self.refuse("program", "it has no production", "Write one: `where ... :` and indented assignments.", None)
        self.check_statements(self.program.statements)
        self.check_value_sets()

    # -- declarations

    def check_registers(self) -> None:
        shorts: dict[str, str] = {}
        for register, short in self.program.registers.items():
            if not short or re.search(r"[\s@`]", short):
                reason = "a short name is one word without `@` and backquote, which QKVL uses itself"
                self.refuse(f"{register}: '{short}'", reason, "Choose another.", "registers", register)
            if short in shorts:
                reason = f"`{shorts[short]}` has the same short name"
                self.refuse(f"{register}: '{short}'", reason, "Choose another.", "registers", register)
            shorts[short] = register

    def check_system(self) -> None:
        system = self.program.system
        for role, register in system.items():
            if role not in ROLES:
                mend = did_you_mean(role, ROLES) + f"The roles are {', '.join(ROLES)}."
                self.refuse(f"{role}: {register}", f"there is no role `{role}`", mend, "system", role)
            self.known(register, f"{role}: {register}", "system", role)
        for role in _REQUIRED:
            if role not in system:
                reason = f"no register is declared for the role `{role}`"
                self.refuse("system", reason, f"Add `{role}: <register>` to `system: {{...}}`.", "system")
        for role in ("position", "parse", "eop"):
            for other in ("symbol", "position", "parse"):
                if role != other and role in system and system[role] == system.get(other):
                    reason = f"the register also has the role `{other}`, with other values"
                    self.refuse(f"{role}: {system[role]}", reason, "Declare a register of its own.", "system", role)

    def check_sections(self) -> None:
        program = self.program
        for register in program.watch:
            self.known(register, register, "watch", register)
        for register in program.prompt:
            self.known(register, register, "prompt", register)
            for role in ("symbol", "position", "parse", "eop"):
                if program.system.get(role) == register:
                    reason = f"the register has the role `{role}`, which sets its first value"
                    self.refuse(register, reason, "Leave it out, here or in `system`.", "prompt", register)
        for register, value in program.initial.items():
            expression = f"{register}: {value}"
            self.known(register, expression, "initial", register)
            for role in ("symbol", "position", "parse", "eop"):
                if program.system.get(role) == register:
                    reason = f"the register has the role `{role}`, which sets its first value"
                    self.refuse(expression, reason, "Leave it out, here or in `system`.", "initial", register)
            self.allowed(register, (value,), expression, "initial", register)
        for register, values in program.values.items():
            expression = f"{register}: {list(values)}"
            self.known(register, expression, "values", register)
            if not values:
                reason = "the set is empty, so the register could hold nothing"
                self.refuse(expression, reason, "Name its values, or leave the entry out.", "values", register)
            for role, open_set in (("symbol", "any word of a prompt"), ("position", "any position")):
                if program.system.get(role) == register:
                    reason = f"the register has the role `{role}` and may hold {open_set}"
                    self.refuse(expression, reason, "Leave the entry out.", "values", register)
            for role, value in (("parse", PARSING), ("eop", END_OF_PROMPT)):
                if program.system.get(role) == register and value not in values:
                    reason = f"the register has the role `{role}` and holds `{value}` at the first layer"
                    self.refuse(expression, reason, f"Add '{value}'.", "values", register)

    # -- statements

    def check_statements(self, statements: Iterable[Production | Repeat]) -> None:
        for statement in statements:
            if isinstance(statement, Production):
                self.check_production(statement)
                continue
            if not statement.body:
                self.refuse("repeat", "the block is empty", "Give it a production, or leave it out.", statement.place)
            if statement.bound < 1:
                self.refuse(f"repeat {statement.bound}", "a bound is at least 1", "E.g. 500.", statement.place)
            self.check_statements(statement.body)
            if statement.until is not None:
                if not statement.until:
                    self.refuse("until", "it has no test", "Write one, or `until NO_CHANGE`.", statement.place)
                reads_n = any(item.cell == "n" for test in statement.until for item in test.references)
                for test in statement.until:
                    self.check_test(test, reads_n, "until")

    def check_production(self, production: Production) -> None:
        if not production.tests:
            mend = "For all cells: `where position[N] == position[N]:`."
            self.refuse("where", "the production has no test", mend, production.place)
        if not production.assignments:
            self.refuse("where", "the production assigns nothing", "Assign something, or drop it.", production.place)
        for test in production.tests:
            self.check_test(test, production.reads_n, "the production")
        assigned: set[str] = set()
        for assignment in production.assignments:
            self.check_assignment(assignment, production.reads_n)
            if assignment.register in assigned:
                reason = "the production assigns this register twice"
                self.refuse(str(assignment), reason, "Leave one assignment out.", assignment.place)
            assigned.add(assignment.register)

    def check_test(self, test: Test, reads_n: bool, where: str) -> None:
        left, right = test.left, test.right
        if left.function:
            mend = f"Swap the sides: `{right} {test.operator} {left}`."
            self.refuse(str(test), "a function stands on the right side of a test", mend, left.place)
        for reference in test.references:
            self.check_reference(reference, str(test))
        if isinstance(right, Constants):
            self.check_constants(test, right)
            return
        if test.operator not in ("==", "!="):
            mend = "Use `==` or `!=` with a register."
            self.refuse(str(test), f"`{test.operator}` takes a list of constants", mend, left.place)
        if left.cell != right.cell:
            return
        if left.cell == "n":
            reason = "a test can't compare two registers of the cell n, whose key is matched by equality only"
            mend = "Compare them at N in an earlier production that sets a register, and test that at n."
            self.refuse(str(test), reason, mend, left.place)
        if reads_n:
            reason = f"two registers of the cell N can't be compared where {where} also reads the cell n"
            mend = "Compare them in an earlier production that sets a register of N, and test that."
            self.refuse(str(test), reason, mend, left.place)

    def check_constants(self, test: Test, right: Constants) -> None:
        if test.operator in ("==", "!=") and len(right.values) != 1:
            self.refuse(str(test), f"`{test.operator}` takes one constant", "Use `in [...]`.", test.left.place)
        if not right.values:
            always = "always" if test.negated else "never"
            self.refuse(str(test), f"it {always} holds", "Name constants in the list.", test.left.place)
        if test.left.register == self.program.system["position"]:
            wrong = next((value for value in right.values if not is_number(value)), None)
            if wrong is not None:
                reason = f"positions are numbers such as 0 and 17, `{wrong}` is none"
                self.refuse(str(test), reason, "Test another register, or a number.", test.left.place)
        self.allowed(test.left.register, right.values, str(test), test.left.place)

    def check_assignment(self, assignment: Assignment, reads_n: bool) -> None:
        register, value = assignment.register, assignment.value
        self.known(register, str(assignment), assignment.place)
        if register == self.program.system["position"]:
            reason = "a cell is identified by its position (33a-ii), which no production can change"
            self.refuse(str(assignment), reason, "Assign another register.", assignment.place)
        if isinstance(value, str):
            self.allowed(register, (value,), str(assignment), assignment.place)
            return
        self.check_reference(value, str(assignment))
        if value.cell == "N" and reads_n:
            reason = (
                "a register of N can't be copied where the production also reads the cell n, which gives the values"
            )
            mend = "Split the production in two: one that reads n, one with N alone."
            self.refuse(str(assignment), reason, mend, assignment.place)

    def check_reference(self, reference: Reference, expression: str) -> None:
        self.known(reference.register, expression, reference.place)
        if reference.cell not in ("n", "N"):
            self.refuse(expression, f"`{reference.cell}` is no cell", "Cells are `n` and `N`.", reference.place)
        if reference.function is not None and reference.function not in function_names():
            mend = did_you_mean(reference.function, function_names())
            mend += "Register your own: `hf_mech.programs.psl.register_function(name, function)`."
            self.refuse(expression, f"there is no function `@{reference.function}`", mend, reference.place)

    # -- values

    def check_value_sets(self) -> None:
        """Refuses copies that could write a value outside a register's declared set."""
        if not self.program.values:
            return
        sets = value_sets(self.program)
        for register, declared in self.program.values.items():
            beyond = sets[register].beyond(declared)
            if not beyond:
                continue
            for assignment, written in assigned_values(self.program, sets):
                value = assignment.value
                if assignment.register != register or not isinstance(value, Reference):
                    continue
                if (value.register != register or value.function) and written.beyond(declared):
                    reason = f"`{register}` is declared to hold {list(declared)} only, and may get {beyond}"
                    read = Reference(value.register, value.cell)
                    mend = f"Declare `values` of `{register}` wider, or test `{read}` for them."
                    self.refuse(str(assignment), reason, mend, assignment.place)

    def allowed(
        self, register: str, values: Iterable[str], expression: str, where: Place | str, entry: str | None = None
    ) -> None:
        """Refuses constants outside the declared set of a register."""
        declared = self.program.values.get(register)
        wrong = None if declared is None else next((value for value in values if value not in declared), None)
        if wrong is not None and declared is not None:
            reason = f"`{wrong}` is not among the declared values of `{register}`: {list(declared)}"
            mend = did_you_mean(wrong, declared) + "Or declare it in `values`."
            self.refuse(expression, reason, mend, where, entry)

    def known(self, register: str, expression: str, where: Place | str, entry: str | None = None) -> None:
        """Refuses an undeclared register."""
        registers: Mapping[str, str] = self.program.registers
        if register in registers:
            return
        close = did_you_mean(register, registers)
        full = next((name for name, short in registers.items() if short == register), None)
        if full is not None:
            close = f"`{register}` is the short name of `{full}`: programs use the full one. "
        mend = f"{close}Declare it: `registers: {{{register}}}`."
        self.refuse(expression, f"the register `{register}` is not declared", mend, where, entry)

    def refuse(
        self, expression: str, reason: str, mend: str, where: Place | str | None, entry: str | None = None
    ) -> NoReturn:
        """Raises; `where` is a place, or a section: then the line is that of the section or of its entry `entry`."""
        place = where if isinstance(where, Place) else self.place_of(where, entry)
        raise refused(expression, reason, mend, place.line, place.column, self.program.source, self.name)

    def place_of(self, section: str | None, entry: str | None) -> Place:
        """The line of a section of declarations, or of an entry in it; Place(0, 0) if it does not exist."""
        source = self.program.source
        head = re.search(rf"^[ \t]*{section}[ \t]*:", source, re.MULTILINE) if section else None
        if head is None:
            return Place(0, 0)
        at = head.start()
        if entry is not None:
            found = re.search(rf"(?<!\w){re.escape(entry)}(?!\w)", source[head.end() :])
            at = head.end() + found.start() if found else at
        return Place(source.count("\n", 0, at) + 1, at - (source.rfind("\n", 0, at) + 1) + 1)
