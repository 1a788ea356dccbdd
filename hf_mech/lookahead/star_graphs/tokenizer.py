"""Star graphs as texts: a stock tokenizer, saved and loaded without hf_mech."""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Sequence, Split
from tokenizers.processors import TemplateProcessing
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.lookahead.star_graphs.graphs import END, PAD, StarGraph


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
    tokenizer.pre_tokenizer = Sequence([Split(Regex(r"[,\s]+"), "removed"), Split(Regex(r"[|=/$]"), "isolated")])
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
