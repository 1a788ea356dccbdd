"""The value of every bracket of an expression modulo 5, at the bracket that closes it: partial results to learn from.

In an equation the unknown counts as zero, so that the bracket around it has a value before the text ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_mech.formal_languages.arithmetic import MODULAR_ARITHMETIC, SOLVE_EQUATION
from hf_mech.formal_languages.errors import LayoutError
from hf_mech.formal_languages.tasks import task_named

BRACKETED = (MODULAR_ARITHMETIC.name, SOLVE_EQUATION.name)
"""The tasks with brackets."""

NO_VALUE = -1
_MODULUS = 5


def check_bracketed(task_name: str) -> None:
    """Raises LayoutError: the task has no brackets."""
    if task_name not in BRACKETED:
        raise LayoutError(f"Partial results are those of brackets, in {' and '.join(BRACKETED)}, got {task_name!r}.")


def bracket_values(task_name: str, inputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value of every bracket.

    Args:
        task_name: one of `BRACKETED`.
        inputs: texts of one length, [count, length], indices into the task's `inputs`.

    Returns:
        [count, length] int64: 0 to 4 at closing brackets, -1 elsewhere.

    Raises:
        LayoutError: the task has no brackets, or those of a text do not match.

    Example:

    ```python
    >>> import numpy as np
    >>> symbols = list("01234+-*()")
    >>> bracket_values("modular_arithmetic", np.array([[symbols.index(s) for s in "((4)*(-3))"]])).tolist()
    [[-1, -1, -1, 4, -1, -1, -1, -1, 2, 3]]

    ```
    """
    check_bracketed(task_name)
    symbols = np.array(task_named(task_name).inputs)[inputs]
    (count, length), rows = inputs.shape, np.arange(len(inputs))
    values = np.full(inputs.shape, NO_VALUE)
    # The open expressions of every text, the outermost first: what they are worth so far, the operator and the sign
    # that wait for an operand.
    worth = np.full((count, length + 1), NO_VALUE)
    operators, signs = np.full((count, length + 1), ""), np.ones((count, length + 1), np.int64)
    depth = np.zeros(count, np.int64)
    for place, symbol in enumerate(symbols.T):
        opens, closes = symbol == "(", symbol == ")"
        depth += opens
        at = rows[opens], depth[opens]
        worth[at], operators[at], signs[at] = NO_VALUE, "", 1
        values[closes, place] = worth[rows[closes], depth[closes]]
        depth -= closes
        if (depth < 0).any():
            raise LayoutError(f"The brackets of row {int(depth.argmin())} do not match: one closes that none opened.")
        digits = np.char.isdigit(symbol)
        operand = np.where(digits, symbol, "0").astype(np.int64)  # the unknown counts as zero
        operand = np.where(closes, values[:, place], operand)
        takes = digits | closes | (symbol == "x")
        for operator in ("", "+", "-", "*"):
            chosen = takes & (operators[rows, depth] == operator)
            at = rows[chosen], depth[chosen]
            right, left = signs[at] * operand[chosen], worth[at]
            result = {"": right, "+": left + right, "-": left - right, "*": left * right}[operator]
            worth[at], signs[at] = result % _MODULUS, 1
        operates = np.isin(symbol, ("+", "-", "*"))
        between = operates & (worth[rows, depth] != NO_VALUE) & (operators[rows, depth] == "")
        operators[rows[between], depth[between]] = symbol[between]
        signs[rows[operates & ~between], depth[operates & ~between]] = -1
    if depth.any():
        raise LayoutError(f"The brackets of row {int(depth.argmax())} do not match: {int(depth.max())} stay open.")
    return values


__all__ = ["BRACKETED", "bracket_values", "check_bracketed"]
