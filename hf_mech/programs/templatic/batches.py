"""The tokenizer of a task, and its rows as batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import datasets
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.programs.errors import ProgramsError

# ----------------------------------------------------------------------------------------------------------------------
# The words of templatic prompts as tokens for learned models; the vocabulary is the words of the training texts.
#
# The compiled model has its own tokenizer with an open vocabulary. This vocabulary is closed, as in the paper's
# baselines (Sec. 4.2.3): an unknown word becomes `<unk>`.


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


# ----------------------------------------------------------------------------------------------------------------------
# Templatic prompts as batches: which prompts stand in which step, and how a batch is laid out for a model.


Kind = Literal["encoder_decoder", "decoder", "decoder_unpadded"]
IGNORED = -100
_POOL = 50  # batches whose prompts are sorted by length together


def _texts(rows: datasets.Dataset, column: str) -> list[str]:
    return rows.select_columns(column).with_format("arrow")[:][column].to_pylist()


def lengths_of(rows: datasets.Dataset) -> NDArray[np.int64]:
    """Words of prompt and completion together, a row each."""
    pairs = zip(_texts(rows, "prompt"), _texts(rows, "completion"), strict=True)
    return np.fromiter((prompt.count(" ") + completion.count(" ") + 2 for prompt, completion in pairs), np.int64)


def batches_of_epoch(lengths: NDArray[np.int64], batch_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Which rows stand in which batch, [batches, batch_size]: a pure function of its arguments.

    Rows are drawn without return; those of a pool of some batches are sorted by length, so that there is little
    padding, and the batches are shuffled again. What does not fill a last batch is left out of the epoch.

    Raises:
        ProgramsError: there are fewer rows than one batch holds.
    """
    if len(lengths) < batch_size:
        raise ProgramsError(f"A batch of {batch_size} needs as many training prompts, got {len(lengths)}.")
    dice = np.random.default_rng((seed, epoch))
    drawn = dice.permutation(len(lengths))
    batches = []
    for start in range(0, len(drawn), _POOL * batch_size):
        pool = drawn[start : start + _POOL * batch_size]
        pool = pool[: len(pool) // batch_size * batch_size]
        batches.append(pool[np.argsort(lengths[pool], kind="stable")].reshape(-1, batch_size))
    return dice.permutation(np.concatenate(batches))


@dataclass(frozen=True)
class Layout:
    """Lays rows out for a model, as tensors.

    - `encoder_decoder`: prompts padded on the right, and answers as labels.
    - `decoder`: both in one text. Prompts are padded on the left, as for generation, so that all answers begin in the
      same column. Logits are computed from there on, and the labels are those columns'.
    - `decoder_unpadded`: both in one text that begins in the first column, for models whose training kernels take no
      padding before it (Mamba's).

    Args:
        tokenizer: a tokenizer of words, see [`~hf_mech.programs.templatic.batches.word_tokenizer`].
        kind: of the model.
    """

    tokenizer: PreTrainedTokenizerFast
    kind: Kind

    def prompts(self, rows: Mapping[str, list[str]]) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` [batch, length] of the prompts alone, for generation."""
        return self._padded(self._ids(rows["prompt"]), "right" if self.kind == "encoder_decoder" else "left")

    def answers(self, rows: Mapping[str, list[str]]) -> Tensor:
        """The completions, each with `<eos>` behind it, [batch, length], padded with `<pad>` behind that."""
        return self._padded([[*ids, self.tokenizer.eos_token_id] for ids in self._ids(rows["completion"])])["input_ids"]

    def training(self, rows: Mapping[str, list[str]]) -> dict[str, Any]:
        """What the model's forward takes in training; only the completion and its `<eos>` are learned."""
        prompts, answers = self.prompts(rows), self.answers(rows)
        real = answers != self.tokenizer.pad_token_id
        labels = answers.masked_fill(~real, IGNORED)
        if self.kind == "encoder_decoder":
            return {**prompts, "labels": labels}
        if self.kind == "decoder_unpadded":
            return self._without_left_padding(rows)
        mask = torch.cat([prompts["attention_mask"], real.long()], 1)
        return {
            "input_ids": torch.cat([prompts["input_ids"], answers], 1),
            "attention_mask": mask,
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
            # Decoders shift the labels by one themselves: the first column is the prompt's last token.
            "labels": torch.cat([labels.new_full((len(labels), 1), IGNORED), labels], 1),
            "logits_to_keep": labels.shape[1] + 1,
        }

    def _without_left_padding(self, rows: Mapping[str, list[str]]) -> dict[str, Tensor]:
        """Prompt and answer from the first column on: Mamba's fused kernels, in training, know no padding before it."""
        prompts, answers = (self._ids(rows[name]) for name in ("prompt", "completion"))
        texts = [
            [*prompt, *answer, self.tokenizer.eos_token_id] for prompt, answer in zip(prompts, answers, strict=True)
        ]
        batch = self._padded(texts)
        columns = torch.arange(batch["input_ids"].shape[1])
        learned = (columns >= torch.tensor([[len(prompt)] for prompt in prompts])) & batch["attention_mask"].bool()
        return batch | {"labels": batch["input_ids"].masked_fill(~learned, IGNORED)}

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer(texts, add_special_tokens=False, return_attention_mask=False)["input_ids"]

    def _padded(self, rows: list[list[int]], side: str = "right") -> dict[str, Tensor]:
        def pad(rows: list[Tensor], value: int) -> Tensor:
            return pad_sequence(rows, batch_first=True, padding_value=value, padding_side=side)

        ids = [torch.tensor(row) for row in rows]
        return {
            "input_ids": pad(ids, self.tokenizer.pad_token_id),
            "attention_mask": pad([torch.ones_like(row) for row in ids], 0),
        }


class TrainingBatches(Dataset[dict[str, Any]]):
    """The training batches by step: each a pure function of the rows, the seed and the step.

    Args:
        rows: the training split.
        layout: of the model.
        batch_size, seed: see [`batches_of_epoch`].

    Raises:
        ProgramsError: there are fewer rows than one batch holds.
    """

    def __init__(self, rows: datasets.Dataset, layout: Layout, batch_size: int, seed: int) -> None:
        self.rows, self.layout, self.batch_size, self.seed = rows, layout, batch_size, seed
        self.lengths = lengths_of(rows)
        self._epoch = 0, batches_of_epoch(self.lengths, batch_size, seed, 0)  # the last one asked for

    def indices(self, step: int) -> NDArray[np.int64]:
        """The rows of a step, [batch_size]."""
        epoch, batch = divmod(step, len(self.lengths) // self.batch_size)
        if self._epoch[0] != epoch:
            self._epoch = epoch, batches_of_epoch(self.lengths, self.batch_size, self.seed, epoch)
        return self._epoch[1][batch]

    def __getitem__(self, step: int) -> dict[str, Any]:
        return self.layout.training(self.rows[self.indices(step)])
