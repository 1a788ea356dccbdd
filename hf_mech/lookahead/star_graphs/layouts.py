"""Star graphs as models read them: the columns of a row, the layouts of the baselines, and a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs.graphs import END, PAD, Random, StarGraph, below

# ----------------------------------------------------------------------------------------------------------------------
# Arrays of tokens as columns of fixed width.


def token_type(vocabulary: int) -> str:
    """The smallest type of a column of tokens and labels: a quarter of the disk for most vocabularies."""
    return "int16" if vocabulary <= np.iinfo(np.int16).max else "int32"


def arrow_table(columns: Mapping[str, NDArray[np.int64]], vocabulary: int) -> pa.Table:
    """Columns [count, width] of tokens of a vocabulary of that size as a table of lists."""
    kind = token_type(vocabulary)
    return pa.table(
        {
            name: pa.FixedSizeListArray.from_arrays(pa.array(rows.astype(kind).reshape(-1)), rows.shape[1])
            for name, rows in columns.items()
        }
    )


# ----------------------------------------------------------------------------------------------------------------------
# The layouts of the baselines (Section 3.4 and App. C.1): how a star graph becomes the input and labels of a model.
#
# Labels are aligned with `input_ids` and shifted by the model, as in Hugging Face's causal models: the logits at a
# position predict the label of the next one. A prompt has the label -100; the path and the end token are trained.
#
# `plain`: `edges / n1 nl = n1 ... nl <eos>`. Inference: the prompt up to `=`, then greedy generation of l nodes.
#
# `augmented`: the same row, with a node of the path in the place of the goal: `edges / n1 n' = n1 ... nl <eos>`, n'
# uniform in n2 to n(l-1). Half of the rows keep their goal; without them no model would see the question that it is
# tested on. Inference: as `plain`, with the true goal.
#
# `fim`: fill in the middle (Bavarian et al., 2022), suffix first, in the form of App. C.1, which repeats the whole
# path: `edges / n1 nl $ nj ... nl = n1 ... nl <eos>`. `$` begins the suffix, and `=` begins the path as ever, so the
# vocabulary needs no further tokens. The length of the suffix is uniform in 1 to l - 1; rows are padded on the
# right to one width, and have an `attention_mask`. Inference: the suffix is the goal alone (j = l),
# `edges / n1 nl $ nl =`, then greedy generation of l nodes.
#
# `teacherless`: `edges / n1 nl = $ ... $`, l + 1 times `$`, with the path and the end token as labels (Bachmann &
# Nagarajan, 2024). The model never reads a node of the path. The logits at `=` predict n1, and the logits at the first
# `$` predict n2. Inference: one forward pass of the prompt with l times `$`, all nodes at once.


Layout = Literal["plain", "augmented", "fim", "teacherless"]
IGNORED = -100  # the label of a position that the loss leaves out

Array = Any
"""A numpy array or a torch tensor [count, width]; slices of it are all that is taken."""


def check_layout(graph: StarGraph, layout: str) -> None:
    """Raises LookaheadError: there is no such layout, or paths of two nodes have no subgoal."""
    if layout not in get_args(Layout):
        raise LookaheadError(f"layout must be one of {', '.join(get_args(Layout))}, got {layout!r}.")
    if layout == "augmented" and graph.length < 3:
        raise LookaheadError(
            f"The layout 'augmented' needs a node between start and goal: a length of 3 or more, got {graph.length}."
        )


def width_of(graph: StarGraph, layout: Layout) -> int:
    """The tokens of a row in the layout. Raises LookaheadError, see [`check_layout`]."""
    check_layout(graph, layout)
    return graph.row_length + (graph.length if layout == "fim" else 0)


def lay_out(
    graph: StarGraph, layout: Layout, rows: NDArray[np.int64], random: Random | None = None
) -> dict[str, NDArray[np.int64]]:
    """Rows as a model reads them.

    Args:
        graph: of the rows.
        layout: see the module.
        rows: [count, row_length], from [`StarGraph.draw`].
        random: chooses subgoals and suffixes, for training. None lays out for testing: the goal stays, and the suffix
            of `fim` is the goal alone, so that each row begins with its inference prompt.

    Returns:
        `input_ids` and `labels` [count, width], and for `fim` also `attention_mask`.

    Raises:
        LookaheadError: see [`check_layout`], or rows of another width.
    """
    check_layout(graph, layout)
    _check_rows(graph, rows, graph.row_length)
    prompt = graph.prompt_length
    if layout == "fim":
        return _fill_in_the_middle(graph, rows, random)
    input_ids, labels = rows.copy(), rows.copy()
    labels[:, :prompt] = IGNORED
    if layout == "augmented" and random is not None:
        count, places = len(rows), np.arange(len(rows))
        node = prompt + 1 + below(random, graph.length - 2, (count,))
        keep = below(random, 2, (count,)) == 0
        input_ids[:, prompt - 2] = np.where(keep, rows[:, prompt - 2], rows[places, node])
    elif layout == "teacherless":
        input_ids[:, prompt:] = graph.num_nodes + 3
    return {"input_ids": input_ids, "labels": labels}


def inference_prompts(graph: StarGraph, layout: Layout, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The input at inference.

    Args:
        graph: of the prompts.
        layout: see the module.
        prompts: [count, prompt_length or more]: rows of [`StarGraph.draw`], or prompts of [`StarGraph.encode`].

    Returns:
        [count, width]. For `teacherless` it takes one forward pass; for the others, generation of l tokens.

    Raises:
        LookaheadError: see [`check_layout`], or prompts that are too short.
    """
    check_layout(graph, layout)
    _check_rows(graph, prompts, graph.prompt_length, longer=True)
    prompts = prompts[:, : graph.prompt_length]
    fill = np.full((len(prompts), graph.length), graph.num_nodes + 3)
    if layout == "teacherless":
        return np.concatenate([prompts, fill], 1)
    if layout == "fim":
        return np.concatenate([prompts[:, :-1], fill[:, :1], prompts[:, -2:-1], prompts[:, -1:]], 1)
    return prompts


def read_paths(graph: StarGraph, layout: Layout, tokens: Array) -> Array:
    """The paths that a model answered.

    Args:
        graph: of the prompts.
        layout: see the module.
        tokens: [count, width]: the output of `generate`, which begins with the inference prompt, or for `teacherless`
            the argmax of the logits of the inference prompt.

    Returns:
        [count, length]; fewer columns if the generation ended early.

    Raises:
        LookaheadError: see [`check_layout`], or tokens without a path.
    """
    check_layout(graph, layout)
    shift = {"fim": 2, "teacherless": -1}.get(layout, 0)
    first = graph.prompt_length + shift
    _check_rows(graph, tokens, first + 1, longer=True)
    return tokens[:, first : first + graph.length]


def _fill_in_the_middle(
    graph: StarGraph, rows: NDArray[np.int64], random: Random | None
) -> dict[str, NDArray[np.int64]]:
    count, length, prompt = len(rows), graph.length, graph.prompt_length
    size = np.ones(count, np.int64) if random is None else 1 + below(random, length - 1, (count,))
    parts = np.concatenate([rows[:, prompt - 1 :], np.full((count, 1), graph.num_nodes + 3), _pad(graph, count)], 1)
    equals, path, end, dollar, padding = 0, 1, length + 1, length + 2, length + 3  # columns of the parts
    place = np.arange(2 * length + 2)[None]  # behind the question
    size = size[:, None]
    chosen = np.select(
        [place == 0, place <= size, place == size + 1, place <= size + 1 + length, place == size + 2 + length],
        [dollar, path + length - size + place - 1, equals, path + place - size - 2, end],
        padding,
    )
    input_ids = np.concatenate([rows[:, : prompt - 1], np.take_along_axis(parts, chosen, 1)], 1)
    column = np.arange(input_ids.shape[1])[None] - (prompt - 1)
    trained = (column > size + 1) & (column <= size + 2 + length)
    return {
        "input_ids": input_ids,
        "labels": np.where(trained, input_ids, IGNORED),
        "attention_mask": (input_ids != graph.pad_token).astype(np.int64),
    }


def _pad(graph: StarGraph, count: int) -> NDArray[np.int64]:
    return np.full((count, 1), graph.pad_token)


def _check_rows(graph: StarGraph, rows: Array, width: int, longer: bool = False) -> None:
    if rows.ndim != 2 or rows.shape[1] < width or (rows.shape[1] > width and not longer):
        raise LookaheadError(
            f"Expected tokens of G({graph.degree},{graph.length}), [count, {width}{' or more' if longer else ''}], "
            f"got {list(rows.shape)}; the StarGraph must be the one that made them."
        )


# ----------------------------------------------------------------------------------------------------------------------
# The tokenizer of a kind of graphs.


def star_graph_tokenizer(graph: StarGraph) -> PreTrainedTokenizerFast:
    """A tokenizer of texts like `4,1|0,4/0,1=0,4,1`, with the ids of [`StarGraph.draw`]; commas are no tokens.

    A pair of a prompt and its path gets the end token, as in a row of `draw`; a single text gets nothing, so that a
    prompt can be continued. Padding has a token of its own and stands on the left, for generation. A collator masks the
    labels of all padding: were it the end token, no model would learn to end. There is no token for unknown nodes: a
    text with one is refused.

    Args:
        graph: its number of names decides the vocabulary; degree and length do not matter.

    Example:

    ```python
    >>> tokenizer = star_graph_tokenizer(StarGraph(degree=1, length=3, num_nodes=5))
    >>> tokenizer("4,1|0,4/0,1=", "0,4,1")["input_ids"]
    [4, 1, 5, 0, 4, 7, 0, 1, 6, 0, 4, 1, 9]
    >>> tokenizer.decode([4, 1, 5, 0, 4, 7, 0, 1, 6, 0, 4, 1, 9])
    '4,1|0,4/0,1=0,4,1<eos>'

    ```
    """
    tokenizer = Tokenizer(WordLevel({token: index for index, token in enumerate(graph.tokens)}))
    split = pre_tokenizers.Split
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split(Regex(r"[,\s]+"), "removed"), split(Regex(r"[|=/$]"), "isolated")]
    )
    tokenizer.post_processor = TemplateProcessing(
        single="$A", pair=f"$A $B {END}", special_tokens=[(END, graph.end_token)]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(Regex(r"(?<=\d)$"), ","), decoders.Fuse(), decoders.Replace(Regex(r",(?!\d)"), "")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
