"""A pipeline that writes the text between a prefix and a suffix; it travels with a checkpoint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Pipeline

from .configuration_belief_state import BeliefStateError


class InfillingPipeline(Pipeline):
    r"""Writes the middle of a text (Section 5.1).

    ```python
    from transformers import pipeline

    infill = pipeline("infilling", model="...", trust_remote_code=True)
    infill({"prefix": "Once upon a time,", "suffix": " They were happy."}, max_new_tokens=40, num_rollouts=120)
    ```

    Prefix and suffix are tokenized apart, so a suffix begins with the space that stands before it in the text. Takes a
    dictionary, a list of them, a data set or a generator. All further arguments are those of `generate()`: with
    `num_rollouts` Algorithm 1 writes the middle, without it plain decoding given the suffix. `max_new_tokens` defaults
    to 50.

    Returns:
        For each input `{"middle": ..., "text": ...}`, the new text alone and the whole; after a search also `"score"`,
        the logarithm of Eq. 7.

    Raises:
        BeliefStateError: an input without a prefix or a suffix, or with an empty one.
    """

    _load_tokenizer = True
    _load_processor = _load_image_processor = _load_feature_extractor = False

    def _sanitize_parameters(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        return {}, kwargs, {}  # generate() refuses what it does not know

    def preprocess(self, input_: Any, **_: Any) -> dict[str, Any]:
        """The tokens of prefix and suffix, as lists: they are padded together in `_forward`, on different sides."""
        tokens = {}
        for name in ("prefix", "suffix"):
            text = input_.get(name) if isinstance(input_, dict) else None
            if not isinstance(text, str):
                raise BeliefStateError(
                    f'An input must be a dictionary with two texts, {{"prefix": ..., "suffix": ...}}; got {name} of '
                    f"type {type(text).__name__}."
                )
            ids = self.tokenizer(text, add_special_tokens=name == "prefix")["input_ids"]
            while ids and ids[-1] == self.model.config.end_token:  # of tokenizers that end every text
                ids = ids[:-1]
            if not ids:
                raise BeliefStateError(
                    f"The {name} has no token; got {text!r}. To write without one, use text-generation."
                )
            tokens[name] = ids
        return {"tokens": (tokens["prefix"], tokens["suffix"])}

    def _forward(self, input_tensors: dict[str, Any], **how: Any) -> Any:
        given = input_tensors["tokens"]
        rows = [given] if isinstance(given, tuple) else given
        end = self.model.config.end_token
        prefixes, mask = _padded([row[0] for row in rows], end, self.device, left=True)
        suffixes, suffix_mask = _padded([row[1] for row in rows], end, self.device, left=False)
        said = self.model.generate(
            prefixes,
            attention_mask=mask,
            suffix_ids=suffixes,
            suffix_attention_mask=suffix_mask,
            **{"max_new_tokens": 50, "pad_token_id": end, **how, "return_dict_in_generate": True},
        )
        copies = len(said.sequences) // len(rows)  # num_return_sequences
        new = said.sequences[:, prefixes.shape[1] :].tolist()
        scores = getattr(said, "candidate_lengths", None)
        made: dict[str, list[Any]] = {
            "tokens": rows,
            "new": [new[row * copies : (row + 1) * copies] for row in range(len(rows))],
            "score": [None] * len(rows) if scores is None else said.scores.amax(1).tolist(),
        }
        return {key: values[0] for key, values in made.items()} if isinstance(given, tuple) else made

    def postprocess(self, model_outputs: dict[str, Any], **_: Any) -> Any:
        """The texts of one input; a list of them with `num_return_sequences`."""
        prefix, suffix = (list(part) for part in model_outputs["tokens"])
        end, results = self.model.config.end_token, []
        for new in model_outputs["new"]:
            new = new[: new.index(end)] if end in new else new
            before = self._text(prefix)
            result = {"middle": self._text(prefix + new)[len(before) :], "text": self._text(prefix + new + suffix)}
            score = model_outputs["score"]
            results.append(result if score is None else {**result, "score": score})
        return results[0] if len(results) == 1 else results

    def _text(self, tokens: list[int]) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True)


def _padded(rows: list[list[int]], value: int, device: Any, *, left: bool) -> tuple[Tensor, Tensor]:
    """Tokens and their mask, each [batch, longest]."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), value, device=device)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(len(row))
        ids[number, place] = torch.tensor(row, device=device)
        mask[number, place] = 1
    return ids, mask
