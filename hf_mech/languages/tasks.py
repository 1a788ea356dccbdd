"""All tasks by name: Delétang et al.'s fifteen, the four deterministic context-free ones (the paper's) first.

Lengths without examples are left out: equations and texts `first + second` have at least 3 symbols, simple expressions
an odd number, and strings with a missing symbol an even one. (The original code fills such lengths with constants or
padding.)
"""

from __future__ import annotations

from hf_mech.languages.arithmetic import MODULAR_ARITHMETIC, MODULAR_ARITHMETIC_SIMPLE, SOLVE_EQUATION
from hf_mech.languages.automata import CYCLE_NAVIGATION, EVEN_PAIRS, PARITY_CHECK, STACK_MANIPULATION
from hf_mech.languages.binary import BINARY_ADDITION, BINARY_MULTIPLICATION, COMPUTE_SQRT
from hf_mech.languages.errors import TaskError
from hf_mech.languages.strings import BUCKET_SORT, DUPLICATE_STRING, MISSING_DUPLICATE, ODDS_FIRST, REVERSE_STRING
from hf_mech.languages.task import Task

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        REVERSE_STRING,
        STACK_MANIPULATION,
        MODULAR_ARITHMETIC,
        SOLVE_EQUATION,
        EVEN_PAIRS,
        PARITY_CHECK,
        CYCLE_NAVIGATION,
        MODULAR_ARITHMETIC_SIMPLE,
        DUPLICATE_STRING,
        MISSING_DUPLICATE,
        ODDS_FIRST,
        BINARY_ADDITION,
        BINARY_MULTIPLICATION,
        COMPUTE_SQRT,
        BUCKET_SORT,
    )
}


def task_named(name: str) -> Task:
    """The task of that name. Raises TaskError, with the known names, if there is none."""
    if name not in TASKS:
        raise TaskError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name]
