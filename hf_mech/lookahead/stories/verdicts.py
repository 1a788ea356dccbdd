"""Many verdicts on pairs of stories, and how often one model wins, with a binomial interval."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from hf_mech.hub.disk.files import write_text_atomically
from hf_mech.lookahead.stories.errors import StorySettingsError

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
            StorySettingsError: there is no such criterion.
        """
        if criterion not in (*CRITERIA, OVERALL):
            raise StorySettingsError(f"criterion must be one of {', '.join((*CRITERIA, OVERALL))}, got {criterion!r}.")
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
        StorySettingsError: fewer trials than 1 or than successes, or a confidence outside 0 to 1.
    """
    if not 0 <= successes <= trials or trials < 1 or not 0 < confidence < 1:
        raise StorySettingsError(
            f"An interval needs 0 <= successes <= trials, a trial at least, and a confidence between 0 and 1, got "
            f"{successes}, {trials} and {confidence}."
        )
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share = successes / trials
    center = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return max(0.0, center - half), min(1.0, center + half)
