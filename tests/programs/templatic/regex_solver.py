"""A second way to complete a prompt, by regular expressions: shares neither code nor method with the package."""

import re


def solve(prompt):
    """The completion that every example of the prompt leads to; an assertion fails if they differ."""
    *shots, cue = re.split(r"(?:^| )Q ", prompt.removesuffix(" A"))[1:]
    (answer,) = {_answer(*shot.split(" A "), cue) for shot in shots}
    return answer


def _answer(question, answer, cue):
    """Words of the question that the cue lacks become groups of a pattern; the cue's groups replace them."""
    fixed = set(cue.split())
    holes = " ".join(word if word in fixed else "\0" for word in question.split())
    holes = re.sub(r"\0(?: \0)*", "\0", holes)
    pattern = "(.+)".join(map(re.escape, holes.split("\0")))
    old, new = (re.fullmatch(pattern, text).groups() for text in (question, cue))
    answer = f" {answer} "
    for number, value in enumerate(old):
        answer = answer.replace(f" {value} ", f" \0{number}\0 ")
    return re.sub("\0(\\d+)\0", lambda hole: new[int(hole[1])], answer).strip()
