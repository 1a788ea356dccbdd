"""A language model judges pairs of stories: the question, its answers, and the verdicts with intervals."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from hf_mech.hub.files import write_text_atomically
from hf_mech.lookahead import LookaheadError
from hf_mech.probing.language_models import LanguageModel, Question

# ----------------------------------------------------------------------------------------------------------------------
# Many verdicts on pairs of stories, and how often one model wins, with a binomial interval.


CRITERIA = ("grammar", "flow", "cohesiveness", "creativity")
"""The factors that Section 5 names."""
OVERALL = "verdict"

Choice = Literal["first", "second", "equal"]


@dataclass(frozen=True)
class Verdict:
    """One answer of the judge.

    Attributes:
        story: the number of the pair.
        repeat: the number of the repetition.
        swapped: whether the second model's story was shown first.
        choices: the better model for each criterion, and overall; a criterion that could not be read is missing.
    """

    story: int
    repeat: int
    swapped: bool
    choices: Mapping[str, Choice]


@dataclass(frozen=True)
class WinRate:
    """How often the first model wins.

    Attributes:
        wins, losses, ties: the stories on which most verdicts are for the first model, for the second, for neither.
        undecided: the stories without a readable verdict.
        rate: wins among wins and losses; None without any.
        interval: of the rate, 95 % (Wilson); None without any.
    """

    wins: int
    losses: int
    ties: int
    undecided: int
    rate: float | None
    interval: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self) | {"interval": None if self.interval is None else list(self.interval)}


@dataclass(frozen=True)
class Comparison:
    """All verdicts on two models.

    Attributes:
        names: of the first and of the second model.
        verdicts: one for each story, repeat and order.
        judge: the judge's settings, without secrets.
    """

    names: tuple[str, str]
    verdicts: tuple[Verdict, ...]
    judge: Mapping[str, Any]

    def win_rate(self, criterion: str = OVERALL) -> WinRate:
        """The first model's win rate by one of `CRITERIA` or overall.

        The unit is the story: the verdicts on one pair of stories are not independent of each other, so an interval
        from all of them would be too narrow.

        Raises:
            LookaheadError: there is no such criterion.
        """
        if criterion not in (*CRITERIA, OVERALL):
            raise LookaheadError(f"criterion must be one of {', '.join((*CRITERIA, OVERALL))}, got {criterion!r}.")
        readable: dict[int, list[Choice]] = {verdict.story: [] for verdict in self.verdicts}
        for verdict in self.verdicts:
            if criterion in verdict.choices:
                readable[verdict.story].append(verdict.choices[criterion])
        sums = [choices.count("first") - choices.count("second") for choices in readable.values() if choices]
        wins, losses = sum(n > 0 for n in sums), sum(n < 0 for n in sums)
        decided = wins + losses
        return WinRate(
            wins=wins,
            losses=losses,
            ties=len(sums) - decided,
            undecided=len(readable) - len(sums),
            rate=wins / decided if decided else None,
            interval=wilson_interval(wins, decided) if decided else None,
        )

    @property
    def counts(self) -> dict[str, int]:
        """Of all verdicts overall: for the first, for the second, for neither, and unreadable."""
        found = Counter(verdict.choices.get(OVERALL, "unreadable") for verdict in self.verdicts)
        return {name: found[name] for name in ("first", "second", "equal", "unreadable")}

    @property
    def shown_first_wins(self) -> float | None:
        """The share of decided verdicts for the story that was shown first; 0.5 if the order does not matter."""
        decided = [verdict for verdict in self.verdicts if verdict.choices.get(OVERALL) in ("first", "second")]
        shown = sum((verdict.choices[OVERALL] == "second") == verdict.swapped for verdict in decided)
        return shown / len(decided) if decided else None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "models": list(self.names),
            "judge": dict(self.judge),
            "stories": len({verdict.story for verdict in self.verdicts}),
            "answers": self.counts,
            "shown_first_wins": self.shown_first_wins,
            "win_rates_of_the_first": {name: self.win_rate(name).to_dict() for name in (OVERALL, *CRITERIA)},
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
        }

    def save(self, path: Path) -> Path:
        """Writes `to_dict()` as JSON, completely or not at all."""
        return write_text_atomically(path, json.dumps(self.to_dict(), indent=1) + "\n")


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a binomial share (Wilson, 1927): its ends stay within 0 and 1, also for 0 of n and n of n.

    Raises:
        LookaheadError: fewer trials than 1 or than successes, or a confidence outside 0 to 1.
    """
    if not 0 <= successes <= trials or trials < 1 or not 0 < confidence < 1:
        raise LookaheadError(
            f"An interval needs 0 <= successes <= trials, a trial at least, and a confidence between 0 and 1, got "
            f"{successes}, {trials} and {confidence}."
        )
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share = successes / trials
    center = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return max(0.0, center - half), min(1.0, center + half)


# ----------------------------------------------------------------------------------------------------------------------
# A language model as the judge of two story models (Appendix D.2): which of two stories is better, and by what.
#
# The judge sees the two stories as "Story 1" and "Story 2", without their authors, in both orders, `repeats` times
# each: 6 answers a story in the paper. Any `hf_mech.probing.language_models.LanguageModel` can be the judge, such as
# `ChatEndpoint`, whose retries and time-outs apply.


REPEATS = 3

# The first paragraph is the paper's prompt; the second asks for lines that a program can read.
SYSTEM_PROMPT = f"""\
You are evaluating two story generation models. First, analyze the outputs and note their properties. Then, make an \
argument for why one is better than another, or say that both are roughly equal.

End with {len(CRITERIA) + 1} lines, the better story for each criterion and overall. Write 1, 2 or equal after the \
colon:
{chr(10).join(f"{name.capitalize()}: " for name in (*CRITERIA, OVERALL))}"""


def compare(
    judge: LanguageModel,
    first: Sequence[str],
    second: Sequence[str],
    *,
    names: tuple[str, str] = ("first", "second"),
    repeats: int = REPEATS,
    answers: Path | None = None,
) -> Comparison:
    """Let the judge compare two models' stories, each with the other's one of the same prompt.

    Args:
        judge: with a `temperature` above 0, or its repeated answers are copies of each other.
        first, second: whole stories, prefix and suffix included.
        names: of the two models, for the result; the judge does not see them.
        repeats: the answers for each order of two stories.
        answers: a file of JSON lines; each answer is written as it comes, and a later call asks only for the others.

    Raises:
        LookaheadError: repeats below 1; the numbers of stories differ, a story is blank, or `answers` holds another
            comparison.
        ProbingError: the judge cannot be reached, or refuses; the answers before that are kept in `answers`.
    """
    if type(repeats) is not int or repeats < 1:
        raise LookaheadError(f"repeats must be a whole number, 1 or more, got {repeats!r}.")
    if len(first) != len(second) or not first:
        raise LookaheadError(
            f"Each story needs one of the other model to the same prompt, got {len(first)} and {len(second)} stories."
        )
    if blank := [
        number for number, pair in enumerate(zip(first, second, strict=True)) if not all(map(str.strip, pair))
    ]:
        raise LookaheadError(f"Both stories need a text; the pairs {blank} have a blank one. Leave these pairs out.")
    # Anything but a pair's own order would let the judge's habit of liking the first one in.
    asked = [
        (story, repeat, swapped)
        for story in range(len(first))
        for repeat in range(repeats)
        for swapped in (False, True)
    ]
    questions = [question(*((second[s], first[s]) if swapped else (first[s], second[s]))) for s, _, swapped in asked]
    replies = _replies(judge, questions, answers)
    verdicts = [
        Verdict(story, repeat, swapped, read_answer(reply, swapped))
        for (story, repeat, swapped), reply in zip(asked, replies, strict=True)
    ]
    return Comparison(names, tuple(verdicts), judge.settings())


def question(story_1: str, story_2: str) -> Question:
    """The two stories as the judge gets them."""
    return Question(f"Story 1:\n\n{story_1.strip()}\n\nStory 2:\n\n{story_2.strip()}", SYSTEM_PROMPT)


def read_answer(text: str, swapped: bool) -> dict[str, Choice]:
    """The choices in the last lines of an answer, by criterion; without those that cannot be read.

    Args:
        text: the judge's answer.
        swapped: whether Story 1 was the second model's.
    """
    chosen: dict[str, Choice] = {}
    models: dict[str, Choice] = {"1": "second" if swapped else "first", "2": "first" if swapped else "second"}
    for name in (*CRITERIA, OVERALL):
        line = rf"^[^\w\n]*{name}[^\w\n]*(?:story[^\w\n]*)?(1|2|equal)[^\w\n]*$"
        if found := re.findall(line, text, re.IGNORECASE | re.MULTILINE):
            chosen[name] = models.get(found[-1], "equal")
    return chosen


def _replies(judge: LanguageModel, questions: Sequence[Question], path: Path | None) -> Iterator[str]:
    """The replies in the order of the questions: those of the file, then new ones, which are added to it."""
    settings = json.dumps(judge.settings(), sort_keys=True)
    keys = [sha256(f"{settings}\0{q.system}\0{q.prompt}".encode()).hexdigest() for q in questions]
    known = _known(path, keys)
    yield from known
    with ExitStack() as stack:
        file = None if path is None else stack.enter_context(path.open("a", encoding="utf-8"))
        rest = judge.replies(questions[len(known) :])
        for number, reply in enumerate(rest, len(known)):
            if file is not None:
                file.write(json.dumps({"number": number, "key": keys[number], "answer": reply.text}) + "\n")
                file.flush()
            yield reply.text


def _known(path: Path | None, keys: Sequence[str]) -> list[str]:
    """The answers in the file. A last line without its end, left by a kill, is removed."""
    if path is None or not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")  # another kind of file is refused as its first line
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        write_text_atomically(path, whole)
    known = []
    for number, line in enumerate(whole.splitlines()):
        try:
            entry = json.loads(line)
            place, key, answer = entry["number"], entry["key"], entry["answer"]
            if not isinstance(answer, str):
                raise TypeError(f"an answer is a text, got {answer!r}")
        except (ValueError, LookupError, TypeError) as error:
            raise LookaheadError(
                f"Line {number + 1} of {path} is not an answer of a judge. Name another file."
            ) from error
        if number >= len(keys) or (place, key) != (number, keys[number]):
            raise LookaheadError(
                f"{path} holds the answers of another comparison: other stories, repeats or settings of the judge, "
                f"from line {number + 1} on. Name another file, or delete it to begin anew."
            )
        known.append(answer)
    return known
