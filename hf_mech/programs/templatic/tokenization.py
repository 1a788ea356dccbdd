"""The words of templatic prompts as tokens for learned models; the vocabulary is the words of the training texts.

The compiled model has its own tokenizer with an open vocabulary. This vocabulary is closed, as in the paper's
baselines (Sec. 4.2.3): an unknown word becomes `<unk>`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<bos>", "<eos>"
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)  # ids 0 to 3


def words_of(texts: Iterable[str]) -> list[str]:
    """The different words of the texts, separated by white space and sorted: the order of the texts does not matter."""
    return sorted({word for text in texts for word in text.split()})


def word_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of texts with white space between their words; it pads on the left, for generation.

    A pair of a prompt and its completion gets `<eos>` at its end, as the training text of a decoder. A single text gets
    nothing.

    Args:
        words: the vocabulary, in the order of the ids from 4 on; see [`words_of`].

    Raises:
        ValueError: there are no words, a word occurs twice, contains white space, or is a special token.

    Example:

    ```python
    >>> tokenizer = word_tokenizer(words_of(["Q ab A ab . Q cd A", "cd ."]))
    >>> tokenizer("Q cd A")["input_ids"]
    [6, 8, 5]
    >>> tokenizer.decode(tokenizer("Q ef A", "ef .")["input_ids"])
    'Q <unk> A <unk> . <eos>'

    ```
    """
    words = list(words)
    if not words:
        raise ValueError("A tokenizer needs a vocabulary, got no words; give it words_of(the training texts).")
    if unfit := [word for word in words if word.split() != [word] or word in SPECIAL_TOKENS]:
        raise ValueError(f"Words hold no white space and are none of {', '.join(SPECIAL_TOKENS)}, got {unfit[0]!r}.")
    ids = {word: index for index, word in enumerate((*SPECIAL_TOKENS, *words))}
    if len(ids) < len(SPECIAL_TOKENS) + len(words):
        raise ValueError(f"Each word must come once, got {len(words)} words of which {len(ids) - 4} differ.")
    tokenizer = Tokenizer(WordLevel(ids, unk_token=UNK))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(single="$A", pair=f"$A $B {EOS}", special_tokens=[(EOS, ids[EOS])])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BOS,
        eos_token=EOS,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
