"""Tasks as rows: their symbols as tokens, the layouts of masked and causal models, and the rows of the data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.languages.task import Examples, LanguagesError, Task, dice_for
from hf_mech.languages.tasks import MODULAR_ARITHMETIC, MODULUS, SOLVE_EQUATION, task_named

# ----------------------------------------------------------------------------------------------------------------------
# The symbols of a task as tokens, so that transformers' own models, pipelines and `AutoTokenizer` fit.


BOS, PAD, SEP, MASK = "[BOS]", "[PAD]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (BOS, PAD, SEP, MASK)  # ids 0 to 3


def vocabulary(task_name: str) -> dict[str, int]:
    """Token to id: [BOS] 0, [PAD] 1, [SEP] 2, [MASK] 3, then the task's symbols; LanguagesError: no such task."""
    return {token: index for index, token in enumerate((*SPECIAL_TOKENS, *task_named(task_name).symbols))}


def formal_language_tokenizer(task_name: str) -> PreTrainedTokenizerFast:
    """A tokenizer for texts like `"a b b"`, symbols separated by white space; it puts [BOS] first.

    A pair of texts, an input and its output, gets [SEP] between them: the layout `alm`. There is no token for unknown
    symbols: a text with one is refused.

    Raises:
        LanguagesError: there is no such task.

    Example:

    ```python
    >>> tokenizer = formal_language_tokenizer("reverse_string")
    >>> tokenizer("a b b")["input_ids"]
    [0, 4, 5, 5]
    >>> tokenizer.decode(tokenizer("a b b", "b b a")["input_ids"])
    '[BOS] a b b [SEP] b b a'

    ```
    """
    return symbol_tokenizer(task_named(task_name).symbols, task=task_name)  # the collator reads the task


def symbol_tokenizer(symbols: Sequence[str], *, characters: bool = False, **kept: Any) -> PreTrainedTokenizerFast:
    """The same for other symbols, with the ids 4 and on.

    Args:
        symbols: in the order of their ids.
        characters: each is one character, and a text may have no white space between them.
        kept: saved with the tokenizer.

    Raises:
        LanguagesError: a symbol that is empty, has white space, or is a special token.
    """
    if unfit := [symbol for symbol in symbols if symbol.split() != [symbol] or symbol in SPECIAL_TOKENS]:
        raise LanguagesError(f"Symbols have no white space and are none of {', '.join(SPECIAL_TOKENS)}: {unfit[0]!r}.")
    ids = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *symbols))}
    tokenizer = Tokenizer(WordLevel(ids))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    if characters:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [WhitespaceSplit(), pre_tokenizers.Split(Regex("."), "isolated")]
        )
    tokenizer.post_processor = TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {SEP} $B", special_tokens=[(BOS, ids[BOS]), (SEP, ids[SEP])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        pad_token=PAD,
        sep_token=SEP,
        mask_token=MASK,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        **kept,
    )


# ----------------------------------------------------------------------------------------------------------------------
# Partial results: what a reader knows before an expression with brackets ends, to learn from besides the answer.
#
# At a closing bracket: the bracket's value modulo 5; in an equation, with the unknown counted as zero. At the operator
# or the `=` behind an operand that holds the unknown: the sign that the unknown has in it.


BRACKETED = (MODULAR_ARITHMETIC.name, SOLVE_EQUATION.name)
"""The tasks with brackets."""

_OPERATORS = ("+", "-", "*")


def check_bracketed(task_name: str) -> None:
    """Raises LanguagesError: the task has no brackets."""
    if task_name not in BRACKETED:
        raise LanguagesError(f"Partial results are those of brackets, in {' and '.join(BRACKETED)}, got {task_name!r}.")


def partial_results_of(task_name: str, inputs: NDArray[np.int64]) -> NDArray[np.str_]:
    """The partial result at every symbol.

    Args:
        task_name: one of `BRACKETED`.
        inputs: texts of one length, [count, length], indices into the task's `inputs`.

    Returns:
        [count, length], symbols of the task; empty where there is no result.

    Raises:
        LanguagesError: the task has no brackets, or those of a text do not match.

    Example:

    ```python
    >>> import numpy as np
    >>> symbols = list("01234+-()x=")
    >>> text = "((4)-(-x))=3"
    >>> results = partial_results_of("solve_equation", np.array([[symbols.index(symbol) for symbol in text]]))
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
            raise LanguagesError(
                f"The brackets of row {int(depth.argmin())} do not match: one closes without an opening."
            )
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
            worth[at], unknown[at] = total[chosen] % MODULUS, slopes[operator][chosen]
            begun[at], operators[at], signs[at] = True, "", 1
        operates = np.isin(symbol, _OPERATORS)
        between = operates & begun[here] & (operators[here] == "")
        shown = (between | (symbol == "=")) & (unknown[here] != 0)
        results[shown, place] = np.where(unknown[here][shown] > 0, "+", "-")
        operators[rows[between], depth[between]] = symbol[between]
        signs[rows[operates & ~between], depth[operates & ~between]] = -1
    if depth.any():
        raise LanguagesError(f"The brackets of row {int(depth.argmax())} do not match: {int(depth.max())} stay open.")
    return results


# ----------------------------------------------------------------------------------------------------------------------
# The layouts: how an input and its output become one row of tokens.
#
# `mlm`: `[BOS] x [MASK]...[MASK]`, a mask for every output symbol, with its label at the mask.
# `alm`: `[BOS] x [SEP] y`, the labels of y at y itself: causal models shift them.
#
# Partial results are labels besides: at the symbols where they are known, in `alm` one place later.


Layout = Literal["mlm", "alm"]
IGNORED = -100  # the label of a position that the loss leaves out


def check_layout(layout: str) -> None:
    """Raises LanguagesError: there is no such layout."""
    if layout not in get_args(Layout):
        raise LanguagesError(f"layout must be one of {', '.join(get_args(Layout))}, got {layout!r}.")


def lay_out(
    task_name: str, layout: Layout, examples: Examples, *, partial_results: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Examples of one length as (input_ids, labels), both [count, width]; labels are -100 at positions without a score.

    Raises:
        LanguagesError: there is no such task or layout, or partial results of a task without brackets.
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
        results, first = partial_results_of(task_name, examples.inputs), 1 if layout == "mlm" else 2
        for symbol in np.unique(results[results != ""]):
            labels[:, first : first + results.shape[1]][results == symbol] = vocabulary(task_name)[symbol]
    return input_ids, labels


@cache
def _token_ids(task_name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index to token id, of the inputs and of the outputs."""
    ids, task = vocabulary(task_name), task_named(task_name)
    return np.array([ids[s] for s in task.inputs]), np.array([ids[s] for s in task.outputs])


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a data set of one task: short inputs for training, longer ones for testing.


Split = Literal["train", "test"]


@dataclass(frozen=True)
class FormalLanguageSettings:
    """The settings of a data set; the default lengths are the paper's.

    Args:
        seed: of all examples; 0 or more.
        num_train: training examples; their lengths are uniform among the task's lengths up to `max_train_length`. There
            are few short strings, so they repeat.
        num_test: test examples; they cycle through the task's lengths from `max_train_length + 1` to `max_test_length`,
            so each length has the same number (by default 512 for 60 lengths).
        max_train_length: the longest training input. Test inputs are longer, so no example is in both splits.
        max_test_length: the longest test input.

    Raises:
        LanguagesError: a number out of its range, or no length left to test on.
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 30_720
    max_train_length: int = 40
    max_test_length: int = 100

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 1, "max_test_length": 2}
        for name, low in least.items():
            check_whole(name, getattr(self, name), low, LanguagesError)
        if self.max_test_length <= self.max_train_length:
            raise LanguagesError(
                "Test inputs are longer than all training inputs, so max_test_length must be above max_train_length, "
                f"got {self.max_test_length} and {self.max_train_length}."
            )

    def rows(self, split: Split) -> int:
        """The number of examples of the split."""
        return self.num_train if split == "train" else self.num_test

    def lengths(self, task: Task, split: Split) -> Sequence[int]:
        """The lengths of the split's inputs. Raises LanguagesError: the task has none in that range."""
        if split == "train":
            return task.lengths(1, self.max_train_length)
        return task.lengths(self.max_train_length + 1, self.max_test_length)


def generate_rows(task: Task, settings: FormalLanguageSettings, split: Split, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        LanguagesError: the task has no example of the split's lengths.
    """
    lengths = np.asarray(settings.lengths(task, split))
    dice = dice_for(task.name, split, settings.seed, shard)
    for table in tables_of(settings.rows(split), shard):
        rows = np.asarray(table)
        chosen = dice.below(len(lengths), rows.shape) if split == "train" else rows % len(lengths)
        order = np.argsort(chosen, kind="stable")
        drawn = [
            _table(*task.sample(dice, int(lengths[index]), int(count)))
            for index, count in zip(*np.unique(chosen, return_counts=True), strict=True)
        ]
        yield pa.concat_tables(drawn).take(np.argsort(order, kind="stable"))


def _table(inputs: NDArray[np.int64], outputs: NDArray[np.int64], scored: NDArray[np.bool_]) -> pa.Table:
    return pa.table({"inputs": _lists(inputs), "outputs": _lists(outputs), "scored": _lists(scored)})


def _lists(rows: NDArray[Any]) -> pa.ListArray:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.reshape(-1)))
