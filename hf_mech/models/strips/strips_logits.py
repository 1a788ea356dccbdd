"""Generation of a language model, constrained to calls whose preconditions are not known to be false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LogitsProcessor
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from .strips_domain import StripsDomain, StripsError
from .strips_lifted import GroundAction, LiftedDomain, parse_action

#: The number of ground calls over some objects.
MOST_CALLS = 100_000

Objects = Mapping[str, Iterable[str]]


def words(action: GroundAction) -> str:
    """The call as words: `board c1 l1`."""
    return " ".join((action.name, *action.objects))


class StripsLogitsProcessor(LogitsProcessor):
    r"""Lets `generate` write only calls that are possible after the calls before them, one call a line.

    The calls so far are read off the ids of each row, prompt included: each line that is a known call counts as done,
    and deletes and adds its atoms (Definition 1). A line that is no known call changes nothing; so a prompt may tell of
    a failed call by a mark, as in `board c1 l1 failed`. An atom of which nothing is known counts as true. The next line
    is then one of the calls without a precondition that is known to be false, or the end of the text.

    Nothing is kept of a row but what its ids say, so beams may be reordered, and rows may be padded on the left.

    ```python
    processor = StripsLogitsProcessor(domain, tokenizer, {"car": ["c1", "c2"], "place": ["l1", "l2"]})
    model.generate(**tokenizer("Calls:\nsail l1 l2\n", return_tensors="pt"), logits_processor=[processor])
    ```

    Args:
        domain: learned or written.
        tokenizer: of the model; any whose tokens keep the calls and the separator apart.
        objects: of each type, for a lifted domain; or a function from a row's text to them. None: those of the calls in
            the row, each with the types of its parameters there.
        facts: of a lifted domain, the true atoms of the predicates that no action changes, as for
            `LiftedDomain.ground_actions`; None: all are true.
        form: the text of a call, without separators.
        separator: what ends a call, and a prompt.
        start: a line after which a new trace begins, such as `"Calls:"`: calls before it are examples.
        eos_token_id: allowed between calls; by default the tokenizer's.

    Raises:
        StripsError: no end-of-text token; no call over the objects, or too many; calls that the tokenizer cannot tell
            apart or does not know; while generating, a prompt that does not end with the separator.
    """

    def __init__(
        self,
        domain: StripsDomain | LiftedDomain,
        tokenizer: PreTrainedTokenizerBase,
        objects: Objects | Callable[[str], Objects] | None = None,
        facts: Iterable[Any] | None = None,
        *,
        form: Callable[[GroundAction], str] = words,
        separator: str = "\n",
        start: str | None = None,
        eos_token_id: int | None = None,
    ):
        if isinstance(domain, StripsDomain) and (objects is not None or facts is not None):
            raise StripsError("A propositional domain has its calls; leave objects and facts out.")
        eos = tokenizer.eos_token_id if eos_token_id is None else eos_token_id
        if eos is None:
            raise StripsError("The tokenizer has no end-of-text token, which may follow a call; give eos_token_id.")
        if not separator:
            raise StripsError("separator must be a text that ends a call, such as '\\n', got ''.")
        self.domain, self.tokenizer, self.form, self.separator, self.start = domain, tokenizer, form, separator, start
        self._mark = separator.strip(" ") or separator  # a tokenizer may drop the blanks
        self.objects, self.facts = objects, None if facts is None else list(facts)
        self.eos_token_id = int(eos)
        self._ends: dict[int, bool] = {}
        self._tables = lru_cache(64)(self._make_table)
        self._text = lru_cache(65536)(self._make_text)
        self._rows: set[tuple[int, ...]] = set()  # those of the last call
        if isinstance(domain, StripsDomain) or isinstance(objects, Mapping):
            self._table("")  # refuses what is wrong before any work starts

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores with -inf at all tokens that do not continue to a possible call.

        Args:
            input_ids: [rows, length], the prompts and what was generated after them.
            scores: [rows, vocabulary].
        """
        out = torch.full_like(scores, -float("inf"))
        rows = [tuple(row) for row in input_ids.tolist()]
        for number, row in enumerate(rows):
            allowed = self.allowed(row)
            if not allowed:
                # A beam that had no other way than a forbidden token has a score of -inf, and ends here.
                if row[:-1] not in self._rows:
                    self._refuse(row)
                allowed = [self.eos_token_id]
            chosen = torch.tensor(allowed, device=scores.device)
            out[number, chosen] = scores[number, chosen]
        self._rows = set(rows)
        return out

    def allowed(self, ids: Sequence[int]) -> list[int]:
        """The tokens that may follow the ids; none after the beginning of a line that begins no possible call."""
        lines, partial = self._split(ids)
        texts = [self._text(line) for line in lines]
        table = self._table(self.separator.join(texts))
        calls: list[int] = []
        for line, text in zip(lines, texts, strict=True):
            if line in table.by_ids:
                calls.append(table.by_ids[line])
                continue
            for part in map(str.strip, text.split(self._mark)):
                if self.start is not None and part.endswith(self.start):
                    calls = []
                elif (call := table.find(part)) is not None:
                    calls.append(call)
        possible = table.possible(tuple(calls))
        for place, token in enumerate(partial):
            possible = possible[table.ids[possible, place] == token] if place < table.ids.shape[1] else possible[:0]
        if not len(possible):
            return [] if partial else [self.eos_token_id]
        following = np.unique(table.ids[possible, len(partial)]).tolist()
        return following if partial else [*following, self.eos_token_id]

    # ------------------------------------------------------------------------------------------------- reading a row

    def _split(self, ids: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
        """The complete lines of a row, each with its separator, and what follows them; without special tokens."""
        special = set(self.tokenizer.all_special_ids) | {self.eos_token_id}
        lines: list[tuple[int, ...]] = []
        partial: list[int] = []
        for token in ids:
            if self._is_end(token):
                lines.append((*partial, token))
                partial = []
            elif token not in special:
                partial.append(token)
        return lines, partial

    def _is_end(self, token: int) -> bool:
        if token not in self._ends:
            self._ends[token] = self.tokenizer.decode([token]).endswith(self._mark)
        return self._ends[token]

    def _make_text(self, ids: tuple[int, ...]) -> str:
        """The text of a line."""
        text: str = self.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
        return text.removesuffix(self._mark).strip()

    def _refuse(self, row: Sequence[int]) -> None:
        _, partial = self._split(row)
        raise StripsError(
            f"The prompt ends with {self.tokenizer.decode(partial)!r}, which begins no possible call; end the prompt "
            f"with the separator {self.separator!r}."
        )

    # -------------------------------------------------------------------------------------------------- known calls

    def _table(self, text: str) -> _Calls:
        """The calls over a row's objects."""
        if isinstance(self.domain, StripsDomain):
            return self._tables(None)
        objects = self.objects
        if not isinstance(objects, Mapping):
            objects = self._objects_in(text) if objects is None else objects(text)
        return self._tables(tuple(sorted((type_, tuple(dict.fromkeys(own))) for type_, own in objects.items())))

    def _objects_in(self, text: str) -> Objects:
        """The objects of the calls in a text, under the most special types that their parameters have."""
        assert isinstance(self.domain, LiftedDomain)
        types: dict[str, set[str]] = {}
        for line in filter(None, map(str.strip, text.split(self._mark))):
            action = parse_action(line)
            schema = self.domain.by_name.get(action.name)
            if schema is not None and len(schema.parameters) == len(action.objects):
                for name, type_ in zip(action.objects, schema.parameters, strict=True):
                    types.setdefault(name, set()).add(type_)
        found: dict[str, list[str]] = {}
        for name, own in types.items():
            above = {parent for type_ in own for parent in self.domain.types_above(type_)[1:]}
            for type_ in sorted(own - above):
                found.setdefault(type_, []).append(name)
        if not found:
            raise StripsError(
                "There are no objects: the text holds no call of the domain. Give objects= when the processor is made, "
                f"or begin with a call such as {self.form(GroundAction(*_example(self.domain)))!r}."
            )
        return found

    def _make_table(self, objects: tuple[tuple[str, tuple[str, ...]], ...] | None) -> _Calls:
        actions: list[GroundAction] = []
        effects: list[tuple[frozenset[Any], ...]] = []
        if isinstance(self.domain, StripsDomain):
            actions += [parse_action(name) for name in self.domain.action_names]
            effects += [(action.pre, action.add, action.delete) for action in self.domain.actions]
        else:
            for action in self.domain.ground_actions(dict(objects or ()), self.facts):
                if len(actions) == MOST_CALLS:
                    raise StripsError(f"There are more than {MOST_CALLS} calls over the objects; give fewer objects.")
                schema = self.domain.by_name[action.name]
                kinds = ([atom.ground(action.objects) for atom in a] for a in (schema.pre, schema.add, schema.delete))
                actions.append(action)
                effects.append(tuple(map(frozenset, kinds)))
        if not actions:
            raise StripsError(f"There are no calls over the objects {dict(objects or ())}; give some for each type.")
        return _Calls(actions, effects, [self.form(action) for action in actions], self._encode)

    def _encode(self, text: str) -> tuple[int, ...]:
        """The ids of a call and its separator, as they are after a separator."""

        def ids(text: str) -> list[int]:
            found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            return found

        before, whole = ids(self.separator), ids(self.separator + text + self.separator)
        own = whole[len(before) :] if before and whole[: len(before)] == before else ids(text + self.separator)
        if not before or not own or not self._is_end(own[-1]) or any(map(self._is_end, own[:-1])):
            raise StripsError(
                f"The tokenizer makes {self.tokenizer.convert_ids_to_tokens(own)} of {text + self.separator!r}, where "
                f"the last token, and no other, must end with the separator; choose another one, such as ' ; '."
            )
        unknown = self.tokenizer.unk_token_id
        if unknown is not None and unknown in own and self.tokenizer.decode(own) != text:
            raise StripsError(f"The tokenizer does not know all words of {text!r}; add them, or choose another form.")
        return tuple(own)


class _Calls:
    """Ground calls, their tokens and atoms.

    Args:
        actions: the calls.
        effects: of each, the atoms that it needs, adds and deletes.
        texts: of each.
        encode: from a text to ids.
    """

    def __init__(
        self,
        actions: Sequence[GroundAction],
        effects: Sequence[tuple[frozenset[Any], ...]],
        texts: Sequence[str],
        encode: Callable[[str], tuple[int, ...]],
    ):
        self.effects = effects
        self.by_action = {action: number for number, action in enumerate(actions)}
        self.by_text = {text: number for number, text in enumerate(texts)}
        rows = [encode(text) for text in texts]
        self.by_ids = {row: number for number, row in enumerate(rows)}
        if len(self.by_ids) < len(rows):
            twice = next(text for number, text in enumerate(texts) if self.by_ids[rows[number]] != number)
            raise StripsError(
                f"The tokenizer gives {twice!r} the ids of another call; choose another form or separator."
            )
        self.ids = np.full((len(rows), max(map(len, rows))), -1, np.int64)  # [calls, longest]: the trie, row by row
        for number, row in enumerate(rows):
            self.ids[number, : len(row)] = row
        needed: dict[Any, list[int]] = {}
        for number, (pre, _, _) in enumerate(effects):
            for atom in pre:
                needed.setdefault(atom, []).append(number)
        self.needed = {atom: np.array(own) for atom, own in needed.items()}
        self.possible = lru_cache(4096)(self._possible)
        self.falsified = lru_cache(4096)(self._falsified)

    def find(self, text: str) -> int | None:
        """The call of a text that the tokenizer may have read in another way."""
        if text in self.by_text or not text:
            return self.by_text.get(text)
        try:
            return self.by_action.get(parse_action(text))
        except StripsError:
            return None

    def _falsified(self, calls: tuple[int, ...]) -> frozenset[Any]:
        """The atoms that are known to be false after some calls."""
        if not calls:
            return frozenset()
        _, add, delete = self.effects[calls[-1]]
        return (self.falsified(calls[:-1]) | delete) - add

    def _possible(self, calls: tuple[int, ...]) -> np.ndarray:
        """The calls without a precondition that is known to be false."""
        for end in range(0, len(calls), 100):  # a long prompt would recurse too deep
            self.falsified(calls[:end])
        possible = np.ones(len(self.ids), bool)
        for atom in self.falsified(calls):
            possible[self.needed.get(atom, [])] = False
        return np.flatnonzero(possible)


def _example(domain: LiftedDomain) -> tuple[str, tuple[str, ...]]:
    action = domain.actions[0]
    return action.name, tuple(f"{type_}{number}" for number, type_ in enumerate(action.parameters, 1))
