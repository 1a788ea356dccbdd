"""A pipeline that judges every action of a trace and gives the reason of a refusal; it travels with a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from transformers import Pipeline

from .strips_attention import strips_attention
from .strips_collator import encode_with_names
from .strips_domain import StripsError
from .strips_lifted import ground_name, parse_action
from .strips_lifted_attention import unroll
from .tokenization_strips import strips_tokenizer

_FALSE = 0.5  # y from which a proposition counts as false, Eq. 19
_WORDS = re.compile(r"\([^()]*\)|[^\s()]+(?:\([^()]*\))?")
_REASON = "{proposition} is false: {deleted_by} at position {position} deleted it, and nothing added it since"


class ActionVerdictsPipeline(Pipeline):
    r"""Says of every action of a trace, or of a plan, whether it is applicable; if it is not, it says why.

    ```python
    from transformers import pipeline

    judge = pipeline("action-verdicts", model="...", trust_remote_code=True)
    judge("a c a")
    judge(["a", "c", "a"])  # the same: a list of single words is one trace
    judge(["a c a", "b b"])  # two traces
    ```

    A trace is a text with white space between its actions, or a list of their names or indices. Takes a trace, a list
    of them, a data set or a generator. The actions of a lifted model have their objects in parentheses, `stack(b1,b2)`,
    in a list also `stack b1 b2`, and any objects will do. The initial state is unknown, as in Definition 1: a
    proposition counts as true until an action deletes it.

    Args:
        member: of an ensemble, the one that judges; 0 by default.

    Returns:
        For each trace a list with a dictionary for each action:

        - `"action"`: its name.
        - `"label"`: `config.id2label`, `"applicable"` or `"inapplicable"`.
        - `"score"`: the model's probability of the label, from y of Eq. 17.
        - `"missing"`: for a refusal, its preconditions that are false, `{"proposition": ..., "deleted_by": ...,
          "position": ...}`: the action that deleted it, and that action's place in the trace, from 0. It is the action
          that the proposition's head reads most, Eq. 15-16.
        - `"reason"`: the same as a sentence; empty for an applicable action.

    Raises:
        StripsError: an action that the model does not know, an empty trace, or an input that is no trace.

    Example:

    ```python
    >>> from transformers import pipeline
    >>> from hf_mech.models.strips import StripsAction, StripsDomain, StripsTransformer

    >>> lamp = StripsDomain(("dark",), (
    ...     StripsAction("on", pre=frozenset({"dark"}), delete=frozenset({"dark"})),
    ...     StripsAction("off", add=frozenset({"dark"})),
    ... ))
    >>> judge = pipeline("action-verdicts", model=StripsTransformer.from_domain(lamp))
    >>> [(verdict["label"], verdict["reason"]) for verdict in judge("on on")]
    [('applicable', ''), ('inapplicable', 'dark is false: on at position 0 deleted it, and nothing added it since')]

    ```
    """

    # The model's configuration has the names of the actions; the tokenizer made of them says how to pad a batch.
    _load_tokenizer = _load_processor = _load_image_processor = _load_feature_extractor = False

    def __init__(self, model: Any, tokenizer: Any = None, **kwargs: Any) -> None:
        actions = getattr(model.config, "actions", None)
        if actions is None or not hasattr(model, "theta"):
            raise StripsError(
                f"action-verdicts needs a STRIPS Transformer, whose weights are a planning domain, got a "
                f"{type(model).__name__}; load a checkpoint of model type 'strips_transformer'."
            )
        super().__init__(model=model, tokenizer=tokenizer or strips_tokenizer(actions), **kwargs)
        self.indices = {action: index for index, action in enumerate(actions)}

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """See the class."""
        if isinstance(inputs, list | tuple):
            if len(inputs) == 0:
                raise StripsError("A trace is empty; give one action at least, such as judge(['a']).")
            if all(isinstance(one, Integral) or (isinstance(one, str) and self._is_action(one)) for one in inputs):
                inputs = tuple(inputs)  # one trace; transformers takes a list for a batch
        return super().__call__(inputs, **kwargs)

    def _is_action(self, text: str) -> bool:
        """Whether a text is one action, not a trace: a word, or of a lifted model also `stack b1 b2`."""
        words = text.split()
        places = (self.model.config.parameters or {}).get(words[0], ()) if words else ()
        return len(words) == 1 or (bool(places) and len(words) == 1 + len(places))

    def _sanitize_parameters(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if unknown := kwargs.keys() - {"member"}:
            raise StripsError(f"action-verdicts takes one option, member, got {sorted(unknown)}; leave them out.")
        return {}, kwargs, {}

    def preprocess(self, input_: Any, **_: Any) -> dict[str, Any]:
        """The trace as indices; a tuple, so that it differs from a batch."""
        if not isinstance(input_, str | list | tuple):
            raise StripsError(
                "A trace must be a text with white space between its actions, or a list of their names, got a "
                f"{type(input_).__name__}."
            )
        lifted = self.model.cells is not None
        trace = (_WORDS.findall(input_) if lifted else input_.split()) if isinstance(input_, str) else input_
        if not len(trace):
            raise StripsError(f"A trace is empty, got {input_!r}; give one action at least.")
        if lifted:
            actions = tuple(parse_action(action, position) for position, action in enumerate(trace))
            encode_with_names(self.model.config, actions)  # refuses unknown ones
            return {"trace": tuple(map(str, actions))}
        return {"trace": tuple(_index(self.indices, action, position) for position, action in enumerate(trace))}

    def _forward(self, input_tensors: dict[str, Any], member: int = 0) -> dict[str, Any]:
        given = input_tensors["trace"]
        rows = [given] if isinstance(given, tuple) else given
        if not 0 <= member < len(self.model.theta):
            raise StripsError(f"No member {member} in an ensemble of {len(self.model.theta)} (counted from 0).")
        theta = self.model.theta[member].clamp(0, 1)
        config, cells = self.model.config, self.model.cells
        if cells is None:
            made = self._judge(theta, rows)
            made["actions"] = [[config.actions[action] for action in row] for row in rows]
            made["propositions"] = [config.propositions] * len(rows)
        else:  # each row has its own atoms, and its positions are the actions of its theta
            parts = []
            for row in rows:
                encoded, names = encode_with_names(config, row)
                ground, atoms = unroll(theta[None], cells, encoded["input_ids"], encoded["objects"])
                part = self._judge(ground[0], [range(len(row))])
                part["actions"] = [list(row)]
                part["propositions"] = [
                    [ground_name(config.propositions[atom[0]], [names[one] for one in atom[1:]]) for atom in atoms]
                ]
                parts.append(part)
            made = {key: [part[key][0] for part in parts] for key in parts[0]}
        return {key: values[0] for key, values in made.items()} if isinstance(given, tuple) else made

    def _judge(self, theta: Tensor, rows: Sequence[Sequence[int]]) -> dict[str, list[Any]]:
        """The scores of traces, and what is missing at each action. theta: [propositions, actions, 3]."""
        ids = torch.full((len(rows), max(map(len, rows))), -1)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        heads, scores = strips_attention(theta[None], ids.to(theta.device))
        heads, scores = heads[:, :, 0].cpu(), scores[:, :, 0].cpu()  # [batch, length, propositions], [batch, length]
        return {
            "scores": [scores[number, : len(row)].tolist() for number, row in enumerate(rows)],
            "missing": [
                [
                    _missing(theta, row, place, heads[number, place]) if scores[number, place] >= _FALSE else []
                    for place in range(len(row))
                ]
                for number, row in enumerate(rows)
            ],
        }

    def postprocess(self, model_outputs: dict[str, Any], **_: Any) -> list[dict[str, Any]]:
        """The verdicts of one trace."""
        config = self.model.config
        names, propositions = model_outputs["actions"], model_outputs["propositions"]
        verdicts = []
        for name, y, found in zip(names, model_outputs["scores"], model_outputs["missing"], strict=True):
            missing = [
                {"proposition": propositions[head], "deleted_by": names[place], "position": place}
                for head, place in found
            ]
            verdicts.append(
                {
                    "action": name,
                    "label": config.id2label[int(y >= _FALSE)],
                    "score": y if y >= _FALSE else 1 - y,
                    "missing": missing,
                    "reason": "; ".join(_REASON.format(**one) for one in missing),
                }
            )
        return verdicts


def _index(indices: Mapping[str, int], action: Any, position: int) -> int:
    """The index of an action, given by its name or its index."""
    if isinstance(action, str) and action in indices:
        return indices[action]
    if isinstance(action, Integral) and 0 <= int(action) < len(indices):
        return int(action)
    actions = list(indices)
    near = get_close_matches(action, actions, 3, cutoff=0.5) if isinstance(action, str) else []
    shown = ", ".join(near or actions[:12]) + ("" if near or len(actions) <= 12 else ", ...")
    raise StripsError(
        f"Unknown action {action!r} at position {position}; the model knows {len(actions)} actions"
        f"{', the nearest of them ' if near else ': '}{shown}."
    )


def _missing(theta: Tensor, trace: Sequence[int], place: int, outputs: Tensor) -> list[tuple[int, int]]:
    """The heads that say that their proposition is false, and the position that each of them reads most.

    Args:
        theta: [propositions, actions, 3].
        place: of the refused action.
        outputs: y_p of the propositions there, [propositions].
    """
    heads = (outputs >= _FALSE).nonzero()[:, 0].tolist() or [int(outputs.argmax())]
    before = list(trace[:place])
    own = theta[heads]
    scores = own[:, [trace[place]], 0] * own[:, before, 1]  # Eq. 14
    later = (1 - scores).flip(-1).cumprod(-1).flip(-1).roll(-1, -1)
    later[:, -1] = 1
    read = (scores * later * own[:, before, 2]).argmax(-1)  # the largest term of Eq. 16
    return list(zip(heads, read.tolist(), strict=True))
