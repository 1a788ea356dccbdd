"""What a reader knows before an expression with brackets ends: partial results to learn from, besides the answer.

At a closing bracket: the bracket's value modulo 5; in an equation, with the unknown counted as zero. At the operator or
the `=` behind an operand that holds the unknown: the sign that the unknown has in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_mech.languages.arithmetic import MODULAR_ARITHMETIC, SOLVE_EQUATION
from hf_mech.languages.task import LayoutError
from hf_mech.languages.tasks import task_named

BRACKETED = (MODULAR_ARITHMETIC.name, SOLVE_EQUATION.name)
"""The tasks with brackets."""

_MODULUS = 5
_OPERATORS = ("+", "-", "*")


def check_bracketed(task_name: str) -> None:
    """Raises LayoutError: the task has no brackets."""
    if task_name not in BRACKETED:
        raise LayoutError(f"Partial results are those of brackets, in {' and '.join(BRACKETED)}, got {task_name!r}.")


def partial_results(task_name: str, inputs: NDArray[np.int64]) -> NDArray[np.str_]:
    """The partial result at every symbol.

    Args:
        task_name: one of `BRACKETED`.
        inputs: texts of one length, [count, length], indices into the task's `inputs`.

    Returns:
        [count, length], symbols of the task; empty where there is no result.

    Raises:
        LayoutError: the task has no brackets, or those of a text do not match.

    Example:

    ```python
    >>> import numpy as np
    >>> symbols = list("01234+-()x=")
    >>> text = "((4)-(-x))=3"
    >>> results = partial_results("solve_equation", np.array([[symbols.index(symbol) for symbol in text]]))
    >>> print(text, "".join(result or "." for result in results[0]), sep="\\n")
    ((4)-(-x))=3
    ...4.....04+.

    ```
    """
    check_bracketed(task_name)
    symbols = np.array(task_named(task_name).inputs)[inputs]
    (count, length), rows = inputs.shape, np.arange(len(inputs))
    results = np.full(inputs.shape, "", dtype="<U1")
    # The open expressions of every text, the outermost first: what the operands so far are worth (a constant and the
    # unknown's sign), and the operator and the minus that wait for an operand.
    worth, unknown = (np.zeros((count, length + 1), np.int64) for _ in range(2))
    begun = np.zeros((count, length + 1), bool)
    operators, signs = np.full((count, length + 1), ""), np.ones((count, length + 1), np.int64)
    depth = np.zeros(count, np.int64)
    for place, symbol in enumerate(symbols.T):
        opens, closes = symbol == "(", symbol == ")"
        depth += opens
        new = rows[opens], depth[opens]
        begun[new], operators[new], signs[new] = False, "", 1
        inner = rows, depth.copy()
        depth -= closes
        if (depth < 0).any():
            raise LayoutError(f"The brackets of row {int(depth.argmin())} do not match: one closes that none opened.")
        here = rows, depth
        constant = np.where(np.char.isdigit(symbol), symbol, "0").astype(np.int64)
        constant = np.where(closes, worth[inner], constant)
        slope = np.where(closes, unknown[inner], symbol == "x")
        results[closes, place] = constant[closes].astype("<U1")
        takes = closes | np.char.isdigit(symbol) | (symbol == "x")
        waiting = np.where(begun[here], operators[here], "")
        right, sloped = signs[here] * constant, signs[here] * slope
        left, leaning = worth[here], unknown[here]
        totals = {"": right, "+": left + right, "-": left - right, "*": left * right}
        slopes = {"": sloped, "+": leaning + sloped, "-": leaning - sloped, "*": 0 * leaning}
        for operator, total in totals.items():
            chosen = takes & (waiting == operator)
            at = rows[chosen], depth[chosen]
            worth[at], unknown[at] = total[chosen] % _MODULUS, slopes[operator][chosen]
            begun[at], operators[at], signs[at] = True, "", 1
        operates = np.isin(symbol, _OPERATORS)
        between = operates & begun[here] & (operators[here] == "")
        shown = (between | (symbol == "=")) & (unknown[here] != 0)
        results[shown, place] = np.where(unknown[here][shown] > 0, "+", "-")
        operators[rows[between], depth[between]] = symbol[between]
        signs[rows[operates & ~between], depth[operates & ~between]] = -1
    if depth.any():
        raise LayoutError(f"The brackets of row {int(depth.argmax())} do not match: {int(depth.max())} stay open.")
    return results
