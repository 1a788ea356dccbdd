"""A language model as the judge of two story models (Appendix D.2): which of two stories is better, and by what.

The judge sees the two stories as "Story 1" and "Story 2", without their authors, in both orders, `repeats` times each:
6 answers a story in the paper. Any `hf_mech.probing.language_models.LanguageModel` can be the judge, such as
`ChatEndpoint`, whose retries and time-outs apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

from hf_mech.hub.disk.files import write_text_atomically
from hf_mech.lookahead.stories.errors import JudgeError, StorySettingsError
from hf_mech.lookahead.stories.verdicts import CRITERIA, OVERALL, Choice, Comparison, Verdict
from hf_mech.probing.language_models import LanguageModel, Question

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
        StorySettingsError: repeats below 1.
        JudgeError: the numbers of stories differ, a story is blank, or `answers` holds another comparison.
        LanguageModelError: the judge cannot be reached, or refuses; the answers before that are kept in `answers`.
    """
    if type(repeats) is not int or repeats < 1:
        raise StorySettingsError(f"repeats must be a whole number, 1 or more, got {repeats!r}.")
    if len(first) != len(second) or not first:
        raise JudgeError(
            f"Each story needs one of the other model to the same prompt, got {len(first)} and {len(second)} stories."
        )
    if blank := [
        number for number, pair in enumerate(zip(first, second, strict=True)) if not all(map(str.strip, pair))
    ]:
        raise JudgeError(f"Both stories need a text; the pairs {blank} have a blank one. Leave these pairs out.")
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
            raise JudgeError(f"Line {number + 1} of {path} is not an answer of a judge. Name another file.") from error
        if number >= len(keys) or (place, key) != (number, keys[number]):
            raise JudgeError(
                f"{path} holds the answers of another comparison: other stories, repeats or settings of the judge, "
                f"from line {number + 1} on. Name another file, or delete it to begin anew."
            )
        known.append(answer)
    return known
