"""The layouts: how an input and its output become one row of tokens.

`mlm`: `[BOS] x [MASK]...[MASK]`, a mask for every output symbol, with its label at the mask.
`alm`: `[BOS] x [SEP] y`, the labels of y at y itself: causal models shift them.

Partial results are labels besides: at the symbols where they are known, in `alm` one place later.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hf_mech.languages.arithmetic.partial_results import partial_results as results_of
from hf_mech.languages.errors import LayoutError
from hf_mech.languages.task import Examples
from hf_mech.languages.tasks import task_named
from hf_mech.languages.tokenizer import BOS, MASK, SEP, SPECIAL_TOKENS, vocabulary

Layout = Literal["mlm", "alm"]
IGNORED = -100  # the label of a position that the loss leaves out


def check_layout(layout: str) -> None:
    """Raises LayoutError: there is no such layout."""
    if layout not in get_args(Layout):
        raise LayoutError(f"layout must be one of {', '.join(get_args(Layout))}, got {layout!r}.")


def lay_out(
    task_name: str, layout: Layout, examples: Examples, *, partial_results: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Examples of one length as (input_ids, labels), both [count, width]; labels are -100 at positions without a score.

    Raises:
        TaskError: there is no such task.
        LayoutError: there is no such layout, or partial results of a task without brackets.
    """
    check_layout(layout)
    input_tokens, output_tokens = _token_ids(task_name)
    count = len(examples.inputs)
    x, y = input_tokens[examples.inputs], output_tokens[examples.outputs]
    head = [np.full((count, 1), SPECIAL_TOKENS.index(BOS)), x]
    if layout == "mlm":
        parts = [*head, np.full(y.shape, SPECIAL_TOKENS.index(MASK))]
    else:
        parts = [*head, np.full((count, 1), SPECIAL_TOKENS.index(SEP)), y]
    input_ids = np.concatenate(parts, axis=1)
    labels = np.full(input_ids.shape, IGNORED)
    labels[:, input_ids.shape[1] - y.shape[1] :] = np.where(examples.scored, y, IGNORED)
    if partial_results:
        results, first = results_of(task_name, examples.inputs), 1 if layout == "mlm" else 2
        for symbol in np.unique(results[results != ""]):
            labels[:, first : first + results.shape[1]][results == symbol] = vocabulary(task_name)[symbol]
    return input_ids, labels


@cache
def _token_ids(task_name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index to token id, of the inputs and of the outputs."""
    ids, task = vocabulary(task_name), task_named(task_name)
    return np.array([ids[s] for s in task.inputs]), np.array([ids[s] for s in task.outputs])
