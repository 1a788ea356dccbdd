"""Fill-in-the-middle rows for a stock causal model, at the level of tokens: the baseline of Section 5.

Two orders, after Bavarian et al. (2022):

- `suffix-first`: `<|suffix|> suffix EOS <|prefix|> prefix middle EOS`. This is the paper's: a random suffix before the
  story, trained on the story's tokens alone. The model is not told where the prefix ends, so one row trains every
  prefix with that suffix: all t up to the cut. For a given t the suffix is uniform, as in Appendix D.1.
- `prefix-first`: `<|prefix|> prefix <|suffix|> suffix EOS <|middle|> middle EOS`, trained on all tokens.

The EOS behind the middle tells `generate` to stop. The empty suffix is EOS alone, so the same model continues a prefix
without a goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from transformers import PreTrainedTokenizerBase

from hf_mech.data.random_numbers import Draws
from hf_mech.lookahead.stories.grammar import ShortStoryError, StorySettingsError, StoryTokenizerError
from hf_mech.lookahead.stories.tokens import SENTINELS

Order = Literal["suffix-first", "prefix-first"]
IGNORED = -100


@dataclass(frozen=True)
class FillInTheMiddle:
    """Makes rows of stories, for `Dataset.map`, and the prompts of their models.

        layout = FillInTheMiddle.of(tokenizer)
        rows.map(layout, batched=True, with_indices=True, remove_columns=rows.column_names)

    Args:
        eos, prefix, suffix, middle: the ids of EOS and of the sentinels.
        order: see above.
        copies: the rows made of each story, each with a cut of its own.
        seed: of the cuts; a row depends on it, on the story's index and on nothing else. 0 or more.

    Raises:
        StorySettingsError: an unknown order, a number out of its range, or two special tokens with one id.
    """

    eos: int
    prefix: int
    suffix: int
    middle: int
    order: Order = "suffix-first"
    copies: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise StorySettingsError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}.")
        for name, least in (("copies", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise StorySettingsError(f"{name} must be {least} or more, got {getattr(self, name)}.")
        ids = (self.eos, self.prefix, self.suffix, self.middle)
        if len(set(ids)) < len(ids):
            raise StorySettingsError(f"EOS, prefix, suffix and middle must be four different tokens, got {ids}.")

    @classmethod
    def of(
        cls, tokenizer: PreTrainedTokenizerBase, *, order: Order = "suffix-first", copies: int = 1, seed: int = 0
    ) -> Self:
        """The layout with a tokenizer's own tokens, as those of `train_story_tokenizer`.

        Raises:
            StoryTokenizerError: the tokenizer lacks EOS or a sentinel.
        """
        found: dict[str, Any] = {name: getattr(tokenizer, f"{name}_id", None) for name in ("eos_token", *SENTINELS)}
        if missing := [name for name, token in found.items() if token is None]:
            raise StoryTokenizerError(
                f"{type(tokenizer).__name__} has no {', '.join(missing)}. Add what is missing: tokenizer."
                f"add_special_tokens({{'extra_special_tokens': {SENTINELS}}}), and enlarge the model's embeddings."
            )
        eos, prefix, suffix, middle = found.values()
        return cls(eos, prefix, suffix, middle, order, copies, seed)

    @property
    def extra_tokens(self) -> int:
        """The tokens of a row beyond those of its story and its EOS."""
        return 3 if self.order == "suffix-first" else 4

    def __call__(self, batch: dict[str, list[list[int]]], indices: Sequence[int]) -> dict[str, list[list[int]]]:
        """Rows with `input_ids` and `labels` (-100: not trained), `copies` of each story.

        Args:
            batch: stories in the column `input_ids`, each with EOS behind it, as `tokenize_stories` gives them.
            indices: the stories' places in the data set.

        Raises:
            ShortStoryError: a story without a token.
        """
        rows: dict[str, list[list[int]]] = {"input_ids": [], "labels": []}
        for ids, index in zip(batch["input_ids"], indices, strict=True):
            story = ids[:-1] if ids and ids[-1] == self.eos else ids
            if not story:
                raise ShortStoryError(f"Story {index} has no token before EOS; leave out empty stories.")
            draws = Draws(f"stories/infilling/{self.order}/{self.seed}/{index}")
            for _ in range(self.copies):
                input_ids, labels = self._row(list(story), draws)
                rows["input_ids"].append(input_ids)
                rows["labels"].append(labels)
        return rows

    def _row(self, story: list[int], draws: Draws) -> tuple[list[int], list[int]]:
        if self.order == "suffix-first":
            cut = 1 + draws.below(len(story))
            prompt = self.prompt((), story[cut:])
            answer = [*story[:cut], self.eos]
            return prompt + answer, [IGNORED] * len(prompt) + answer
        # Two cuts behind the first token, in order; equal ones leave an empty middle.
        first, last = sorted((1 + draws.below(len(story)), 1 + draws.below(len(story))))
        row = [*self.prompt(story[:first], story[last:]), *story[first:last], self.eos]
        return row, row

    def prompt(self, prefix_ids: Sequence[int], suffix_ids: Sequence[int] = ()) -> list[int]:
        """The tokens that a trained model continues with the middle and EOS.

        Args:
            prefix_ids: the beginning of the story.
            suffix_ids: its end, without EOS; empty if there is no goal.
        """
        suffix = [self.suffix, *suffix_ids, self.eos]
        if self.order == "suffix-first":
            return [*suffix, self.prefix, *prefix_ids]
        return [self.prefix, *prefix_ids, *suffix, self.middle]
