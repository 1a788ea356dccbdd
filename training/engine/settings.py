"""The settings of a run: one dataclass an experiment. Each setting is written once, with its help, and read by all.

    @dataclass(frozen=True, kw_only=True)
    class Run(Settings):
        PRESETS = {"paper": {"steps": 100_000}, "cpu": {"steps": By("task", {"short": 500}, other=900)}}
        task: str = axis("the task", ("short", "long"))   # --task short long: a run each
        seed: int = fixed("of the weights")               # from --seeds
        steps: int = option("training steps", least=1)    # --steps 700 replaces the preset's value

The folder of a run is named by its axes, its preset, every departure from the preset, and its seed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, Self

from hf_mech.hub.redaction import redact

AXIS, OPTION, FIXED = "axis", "option", "fixed"
_LONGEST_NAME = 200  # of a folder; file systems allow 255 bytes


class SettingsError(ValueError):
    """A setting that makes no sense, or settings that contradict each other. The command ends with exit code 2."""


def axis(
    help: str,
    known: Iterable[Any] = (),
    *,
    all: Iterable[Any] = (),
    default: Sequence[Any] | None = None,
    called: str | None = None,
    least: float | None = None,
) -> Any:
    """A field whose option takes several values; every combination of the axes' values is a run.

    Args:
        help: of the option.
        known: the values that it may take; empty: any.
        all: the values that "all" stands for; empty: the known ones.
        default: the values if none is asked for; None: the option must be given.
        called: the option's name, if it is not the field's.
        least: the smallest number that it may be.
    """
    known, all = tuple(known), tuple(all)
    metadata = {"role": AXIS, "help": help, "known": known, "all": all or known, "default": default, "called": called}
    return field(metadata=metadata | {"least": least})


def option(
    help: str,
    *,
    default: Any = MISSING,
    known: Iterable[Any] = (),
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A field that has an option of its own, which replaces the preset's value.

    Args:
        help: of the option.
        default: the value in a preset that does not name the field.
        known: the values that it may take; empty: any.
        least, most: the smallest and the largest number that it may be.
    """
    metadata = {"role": OPTION, "help": help, "known": tuple(known), "least": least, "most": most}
    return field(default=default, metadata=metadata)


def fixed(help: str, *, default: Any = MISSING) -> Any:
    """A field that the experiment sets itself: it has no option and is no departure from the preset."""
    return field(default=default, metadata={"role": FIXED, "help": help})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of an experiment's settings. Make them with [`Settings.of`].

    Attributes:
        PRESETS: preset's name to values by field; a value that is a function gets the axes and the fixed fields.
        IN_LABELS: options that `labels` tells, so that the name does not have them twice.
        preset: the preset's name.

    Raises:
        SettingsError: a value that its field does not allow.
    """

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    IN_LABELS: ClassVar[Sequence[str]] = ()

    preset: str = fixed("the preset's name")

    def __post_init__(self) -> None:
        for entry in fields(self):
            check_range(entry, getattr(self, entry.name))

    @classmethod
    def of(cls, preset: str, overrides: Mapping[str, Any] | None = None, **given: Any) -> Self:
        """The preset's settings.

        Args:
            preset: one of `PRESETS`.
            overrides: values by option; those that are not None, and are of this class, replace the preset's.
            given: the axes and the fixed fields.
        """
        check_names([preset], cls.PRESETS, "--preset")
        own = names_of(cls, OPTION)
        replaced = {name: value for name, value in (overrides or {}).items() if value is not None and name in own}
        return cls(preset=preset, **given | cls._preset_values(preset, given) | replaced)

    @classmethod
    def _preset_values(cls, preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value(given) if callable(value) else value for name, value in cls.PRESETS[preset].items()}

    @property
    def departures(self) -> dict[str, Any]:
        """The options whose values are not the preset's, by name."""
        given = {name: getattr(self, name) for name in names_of(self, AXIS, FIXED) if name != "preset"}
        # Not a run of its own: the preset alone may make no run, where an option has to depart from it.
        usual = {entry.name: entry.default for entry in fields(self)} | self._preset_values(self.preset, given)
        names = names_of(self, OPTION)
        return {name: getattr(self, name) for name in names if getattr(self, name) != usual[name]}

    @property
    def labels(self) -> list[str]:
        """The first parts of the name: the axes' values."""
        return [str(getattr(self, name)) for name in names_of(self, AXIS)]

    @property
    def ending(self) -> list[str]:
        """The last parts of the name: the seed, if there is one."""
        return [f"seed{self.seed}"] if hasattr(self, "seed") else []

    @property
    def name(self) -> str:
        """The run's folder under --output_dir."""
        departures = {name: value for name, value in self.departures.items() if name not in self.IN_LABELS}
        parts = [*self.labels, self.preset, *(f"{name}={value}" for name, value in departures.items())]
        parts += self.ending
        name = "-".join(redact(part).replace("/", "_") for part in parts)
        if len(name) <= _LONGEST_NAME:
            return name
        return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has them."""
        return asdict(self)


SCHEDULERS = ("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup")
"""The schedules of `transformers.get_scheduler` that need no arguments of their own."""


def names_of(settings: Settings | type[Settings], *roles: str) -> list[str]:
    """The names of the fields with these roles, in their order."""
    return [entry.name for entry in fields(settings) if entry.metadata.get("role") in roles]


@dataclass(frozen=True)
class By:
    """A preset's value that depends on an axis: `By("task", {"long": 900}, other=500)`.

    A value may itself depend on another axis.
    """

    axis: str
    values: Mapping[Any, Any]
    other: Any = field(default=None, kw_only=True)

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """The value of a run with these axes."""
        value = self.values.get(given[self.axis], self.other)
        return value(given) if isinstance(value, By) else value

    def __str__(self) -> str:
        """For help texts."""
        return f"by {self.axis}"


def parse_seeds(asked: Iterable[str], option: str = "--seeds") -> list[int]:
    """Whole numbers and ranges, apart by blanks or commas, each once.

    >>> parse_seeds(["0..2,7", "1"])
    [0, 1, 2, 7]

    Raises:
        SettingsError: a part that is neither, or none at all.
    """
    seeds: list[int] = []
    for part in parts_of(asked):
        if (match := re.fullmatch(r"(\d+)(?:\.\.(\d+))?", part)) is None:
            raise SettingsError(f"{option} must be whole numbers such as 0,2 or ranges such as 0..4, got {part}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise SettingsError(f"{option}: a range begins with its smaller number, got {part}.")
        seeds += range(first, last + 1)
    if not seeds:
        raise SettingsError(f"{option} must name at least one seed, such as 0 or 0..4.")
    return list(dict.fromkeys(seeds))


def seeds_as_text(seeds: Sequence[int]) -> str:
    """The shortest text that [`parse_seeds`] reads as these seeds.

    >>> seeds_as_text([0, 1, 2]), seeds_as_text([3]), seeds_as_text([0, 2])
    ('0..2', '3', '0,2')
    """
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ",".join(map(str, seeds))


def parts_of(asked: Iterable[str]) -> list[str]:
    """The parts of an option's values, apart by blanks or commas."""
    return [part for text in asked for part in text.split(",") if part]


def check_names(asked: Iterable[Any], known: Iterable[Any], option: str) -> None:
    """Raises SettingsError if a value is not known."""
    known = list(known)
    if unknown := [str(value) for value in asked if value not in known]:
        raise SettingsError(f"{option} must be of {', '.join(map(str, known))}, got {', '.join(unknown)}.")


def check_range(entry: Field[Any], value: Any) -> None:
    """Raises SettingsError if a field's value is unknown, too small, too large, or no number."""
    known, least, most = (entry.metadata.get(name) for name in ("known", "least", "most"))
    asked_by = f"--{entry.metadata.get('called') or entry.name}"
    if value is None:
        return
    if known:
        check_names([value], known, asked_by)
    if least is not None and not least <= value < float("inf"):  # nor nan
        raise SettingsError(f"{asked_by} must be {least} or more, got {value}.")
    if most is not None and value > most:
        raise SettingsError(f"{asked_by} must be {most} or less, got {value}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{asked_by} must be a finite number, got {value}.")
