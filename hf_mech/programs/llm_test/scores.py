"""Right and wrong replies, and the figures of a variant (Sec. 4.2.2, App. H)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from hf_mech.probing.language_models import Reply
from hf_mech.programs.llm_test.variants import Variant
from hf_mech.programs.templatic.template import Prompt


@dataclass(frozen=True)
class Record:
    """One line of a file of answers.

    Attributes:
        index: the prompt's number, from 0.
        prompt: the prompt of the task, without the system prompt.
        completion: the right answer.
        reply: the model's text.
        finish_reason: the reason of the reply's end, if known; see [`~hf_mech.probing.language_models.Reply`].
        correct: whether the reply has the completion's symbols, all of them in the same order and no others. White
            space separates symbols. The paper does not give its comparison.
        con_count: number of constituents of the question.
        con_length: number of symbols of the cue's longest constituent.
        constituents: number of constituents of the right answer.
        constituents_right: number of those that the reply contains complete and in order.
        seconds: time between the previous reply and this one.
    """

    index: int
    prompt: str
    completion: str
    reply: str
    finish_reason: str | None
    correct: bool
    con_count: int
    con_length: int
    constituents: int
    constituents_right: int
    seconds: float


@dataclass(frozen=True)
class Score:
    """The figures of one variant.

    Attributes:
        variant: the variant of the task.
        prompts: number of prompts.
        accuracy: the share of replies that are right, the paper's "Accuracy".
        constituent_accuracy: the share of the right answers' constituents that the replies contain complete and in
            order. Our own metric; it separates lost delimiters from lost constituents. None if no answer has any.
        by_count: number of constituents in the question -> (prompts, accuracy).
        by_length: symbols of the cue's longest constituent -> (prompts, accuracy).
        cut_off: number of replies that ended at the limit of tokens, as reported by the model.
        seconds: the sum over all replies, those of interrupted runs included.
    """

    variant: Variant
    prompts: int
    accuracy: float
    constituent_accuracy: float | None
    by_count: dict[int, tuple[int, float]] = field(default_factory=dict)
    by_length: dict[int, tuple[int, float]] = field(default_factory=dict)
    cut_off: int = 0
    seconds: float = 0.0


def judge(index: int, prompt: Prompt, reply: Reply, seconds: float = 0.0) -> Record:
    """Compare a reply with the right answer."""
    said = reply.text.split()
    cue = prompt.cue
    wanted = [cue[field] for field in prompt.template.answer if isinstance(field, int)]
    return Record(
        index=index,
        prompt=prompt.text,
        completion=prompt.completion,
        reply=reply.text,
        finish_reason=reply.finish_reason,
        correct=said == prompt.completion.split(),
        con_count=len(cue),
        con_length=max(map(len, cue)),
        constituents=len(wanted),
        constituents_right=_found_in_order(wanted, said),
        seconds=seconds,
    )


def score(variant: Variant, records: Sequence[Record]) -> Score:
    """The figures of one or more records."""
    constituents = sum(record.constituents for record in records)
    return Score(
        variant=variant,
        prompts=len(records),
        accuracy=accuracy(records),
        constituent_accuracy=sum(r.constituents_right for r in records) / constituents if constituents else None,
        by_count=_grouped(records, "con_count"),
        by_length=_grouped(records, "con_length"),
        cut_off=sum(record.finish_reason == "length" for record in records),
        seconds=sum(record.seconds for record in records),
    )


def _found_in_order(wanted: Sequence[Sequence[str]], said: Sequence[str]) -> int:
    """The largest number of constituents that `said` contains unbroken, in the order of `wanted`."""
    # best[at]: the maximum number of constituents so far that end at or before position `at`.
    best = [0] * (len(said) + 1)
    for symbols in wanted:
        size, with_it = len(symbols), best.copy()
        for end in range(1, len(said) + 1):
            found = end >= size and tuple(said[end - size : end]) == tuple(symbols)
            with_it[end] = max(best[end], with_it[end - 1], best[end - size] + 1 if found else 0)
        best = with_it
    return best[-1]


def _grouped(records: Sequence[Record], attribute: str) -> dict[int, tuple[int, float]]:
    groups: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        groups[getattr(record, attribute)].append(record)
    return {key: (len(groups[key]), accuracy(groups[key])) for key in sorted(groups)}


def accuracy(records: Sequence[Record]) -> float:
    return sum(record.correct for record in records) / len(records)
