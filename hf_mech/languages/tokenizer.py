"""The symbols of a task as tokens, so that transformers' own models, pipelines and `AutoTokenizer` fit."""

from __future__ import annotations

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.languages.tasks import task_named

BOS, PAD, SEP, MASK = "[BOS]", "[PAD]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (BOS, PAD, SEP, MASK)  # ids 0 to 3


def vocabulary(task_name: str) -> dict[str, int]:
    """Token to id: [BOS] 0, [PAD] 1, [SEP] 2, [MASK] 3, then the task's symbols. Raises TaskError: no such task."""
    return {token: index for index, token in enumerate((*SPECIAL_TOKENS, *task_named(task_name).symbols))}


def formal_language_tokenizer(task_name: str) -> PreTrainedTokenizerFast:
    """A tokenizer for texts like `"a b b"`, symbols separated by white space; it puts [BOS] first.

    A pair of texts, an input and its output, gets [SEP] between them: the layout `alm`. There is no token for unknown
    symbols: a text with one is refused.

    Raises:
        TaskError: there is no such task.

    Example:

    ```python
    >>> tokenizer = formal_language_tokenizer("reverse_string")
    >>> tokenizer("a b b")["input_ids"]
    [0, 4, 5, 5]
    >>> tokenizer.decode(tokenizer("a b b", "b b a")["input_ids"])
    '[BOS] a b b [SEP] b b a'

    ```
    """
    ids = vocabulary(task_name)
    tokenizer = Tokenizer(WordLevel(ids))
    tokenizer.pre_tokenizer = WhitespaceSplit()
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
        task=task_name,  # saved with the tokenizer: the collator reads it
    )
