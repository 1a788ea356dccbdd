"""Action names as tokens, so that transformers' own collators and `AutoTokenizer` fit the STRIPS Transformer."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from .strips_domain import StripsError

PADDING, UNKNOWN = "[PAD]", "[UNK]"


def strips_tokenizer(actions: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose ids are the actions' indices; a text is action names with white space between them.

    Args:
        actions: the actions' names, `config.actions`. The next id is padding; the one after it is for unknown names,
            which the model refuses.

    Raises:
        StripsError: a name contains white space, or is the padding token's.

    Example:

    ```python
    >>> tokenizer = strips_tokenizer(["a", "b", "c"])
    >>> tokenizer(["c a b", "a"], padding=True)["input_ids"]
    [[2, 0, 1], [0, 3, 3]]

    ```
    """
    odd = [name for name in actions if name.split() != [name] or name in (PADDING, UNKNOWN)]
    if odd:
        raise StripsError(f"Action names must be one word each and not {PADDING} or {UNKNOWN}, got {odd}; rename them.")
    vocabulary = {name: index for index, name in enumerate([*actions, PADDING, UNKNOWN])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PADDING, unk_token=UNKNOWN)
