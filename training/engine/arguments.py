"""The command line of an experiment, made of its settings and its options; `HfArgumentParser` reads it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from itertools import product
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar, get_type_hints

import yaml
from transformers import HfArgumentParser

from hf_mech.hub.redaction import redact

from .run import TRACKERS
from .settings import (
    AXIS,
    OPTION,
    By,
    Settings,
    SettingsError,
    check_names,
    check_range,
    names_of,
    parse_seeds,
    parts_of,
    seeds_as_text,
)

EXECUTORS = ("processes", "ray")


@dataclass(kw_only=True)
class Options:
    """The options that all experiments share. None of them changes a result."""

    seeds: list[str] = field(default_factory=list, metadata={"help": "seeds, such as 3, or 0,2, or 0..4"})
    num_seeds: int | None = field(default=None, metadata={"help": "so many seeds, counted from 0"})
    preset: list[str] = field(default_factory=list, metadata={"help": "presets of the settings"})
    output_dir: str = field(default="", metadata={"help": "models and outcomes go there"})
    cards_dir: str = field(default="runs/cards", metadata={"help": "results, figures and model cards go there"})
    jobs: int = field(default=0, metadata={"help": "runs trained side by side; 0: one for each core", "least": 0})
    executor: str = field(
        default="processes",
        metadata={
            "help": "of the runs: processes of this machine, or ray: a Ray cluster",
            "known": EXECUTORS,
        },
    )
    report_to: list[str] = field(
        default_factory=list, metadata={"help": f"trackers of the training: {', '.join(TRACKERS)}"}
    )
    push_to_hub: bool = field(default=False, metadata={"help": "push each card's checkpoint and the card"})
    hub_user: str | None = field(default=None, metadata={"help": "the user or organization to push to"})
    config_file: str | None = field(
        default=None,
        metadata={"help": "options in YAML, such as the run.yaml of a run; those of the command line replace them"},
    )
    dry_run: bool = field(
        default=False,
        metadata={"help": "train nothing; print the runs, and how long similar ones took"},
    )


@dataclass(kw_only=True)
class StepOptions(Options):
    """Options of experiments that train step by step."""

    checkpoint_steps: int = field(
        default=1_000, metadata={"help": "steps between two saves of a run's state", "least": 1}
    )
    data_workers: int = field(
        default=0, metadata={"help": "processes that make a run's batches, for a GPU", "least": 0}
    )


T = TypeVar("T", bound=Options)


@dataclass
class Request(Generic[T]):
    """What a command line asks for.

    Attributes:
        options: the experiment's options.
        axes: the values of each axis.
        presets, seeds: of the runs.
        overrides: values by option, those that were given.
        carried: the other options that choose the runs.
    """

    options: T
    axes: dict[str, list[Any]]
    presets: list[str]
    seeds: list[int]
    overrides: dict[str, Any] = field(default_factory=dict)
    carried: dict[str, Any] = field(default_factory=dict)

    def combinations(self) -> list[dict[str, Any]]:
        """The arguments of `Settings.of`, run by run: the first axis outermost, then the seeds, then the other axes."""
        (first, outer), *rest = self.axes.items()
        names = [first, "seed", *(name for name, _ in rest), "preset"]
        values = product(outer, self.seeds, *(values for _, values in rest), self.presets)
        return [{**dict(zip(names, chosen, strict=True)), "overrides": self.overrides} for chosen in values]


class Declared(Protocol):
    """The parts of an experiment that make its command line."""

    name: str
    settings: type[Settings]
    shared: tuple[type[Settings], ...]
    options: type[Options]
    seeds: int
    preset: str

    def chosen_by(self, run: Any, /) -> dict[str, Any]: ...


class _Parser(HfArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and exit code 2."""
        sys.stderr.write(f"{self.prog}: {redact(message)}\n")
        raise SystemExit(2)


def parser_of(experiment: Declared, description: str | None) -> HfArgumentParser:
    """The parser of an experiment's command: axes and options of its settings, then its own options.

    Args:
        experiment: the experiment.
        description: what `--help` says first.
    """
    return _Parser(
        [_class_of((experiment.settings, *experiment.shared)), _described(experiment)],
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def read(experiment: Declared, parser: HfArgumentParser, arguments: Sequence[str] | None) -> Request[Any]:
    """The request that a command line makes.

    Raises:
        SettingsError: a value that makes no sense.
    """
    given, executed, unknown = _parsed(parser, sys.argv[1:] if arguments is None else arguments)
    if unknown:
        raise SettingsError(f"unrecognized arguments: {' '.join(redact(unknown))}; see --help.")
    options = experiment.options(**vars(executed))
    for entry in fields(experiment.options):
        check_range(entry, getattr(options, entry.name))
    if options.push_to_hub and not options.hub_user:
        raise SettingsError("--push_to_hub needs --hub_user: the user or organization to push to.")
    presets = parts_of(options.preset or [experiment.preset])
    check_names(presets, experiment.settings.PRESETS, "--preset")
    options.output_dir = options.output_dir or f"runs/{experiment.name}"
    options.report_to = parts_of(options.report_to)
    kinds = get_type_hints(experiment.settings)
    axes = {
        entry.name: _values(entry, kinds[entry.name], getattr(given, _called(entry)))
        for entry in fields(experiment.settings)
        if entry.metadata.get("role") == AXIS
    }
    names = [name for settings in (experiment.settings, *experiment.shared) for name in names_of(settings, OPTION)]
    overrides = {name: value for name in names if (value := getattr(given, name)) is not None}
    return Request(
        options, axes, presets, _seeds(experiment, options), overrides, _carried(experiment, given, executed)
    )


def _parsed(parser: HfArgumentParser, arguments: Sequence[str]) -> Any:
    """What the parser makes of the arguments, behind the options in the file of `--config_file`; and what is left over.

    Raises:
        SettingsError: the file cannot be read, or is no YAML of options.
    """
    of_file = ArgumentParser(add_help=False, allow_abbrev=False)
    of_file.add_argument("--config_file", type=Path)
    found, rest = of_file.parse_known_args(arguments, Namespace(config_file=None))
    words: list[str] = []
    if found.config_file is not None:
        try:
            content = yaml.safe_load(found.config_file.read_text("utf-8"))
        except OSError as error:
            raise SettingsError(f"--config_file {found.config_file} cannot be read: {error.strerror}.") from error
        except yaml.YAMLError as error:
            raise SettingsError(f"--config_file {found.config_file} is no YAML: {error}") from error
        if not isinstance(content, dict):
            raise SettingsError(
                f"--config_file {found.config_file} must hold options and their values, got {content!r:.60}."
            )
        words = [word for name, value in content.items() if value is not None for word in _as_option(name, value)]
    return parser.parse_args_into_dataclasses([*words, *rest], return_remaining_strings=True)


def config_of(experiment: Declared, run: Settings, request: Request[Any]) -> dict[str, Any]:
    """The options that make a run, also where its preset has changed since, as a file for `--config_file` has them."""
    config: dict[str, Any] = {}
    for entry in fields(run):
        role, value = entry.metadata.get("role"), getattr(run, entry.name)
        if role in (AXIS, OPTION) and value is not None:
            config[_called(entry) if role == AXIS else entry.name] = value
    seeds = run.seed if hasattr(run, "seed") else run.seeds  # type: ignore[attr-defined]
    config |= {"preset": run.preset, "seeds": str(seeds), **request.carried, **experiment.chosen_by(run)}
    return {name: value for name, value in config.items() if value is not None}


def commands_for(runs: Sequence[Settings]) -> list[list[str]]:
    """The arguments of as few commands as make the runs: each gives all combinations of its values."""
    kind = type(runs[0])
    axes = [entry for entry in fields(kind) if entry.metadata.get("role") == AXIS]
    boxes: list[tuple[tuple[Any, ...], ...]] = []
    for run in runs:
        seeds = (run.seed,) if hasattr(run, "seed") else tuple(parse_seeds([run.seeds]))  # type: ignore[attr-defined]
        boxes.append((tuple(run.departures.items()), seeds, (run.preset,), *((getattr(run, a.name),) for a in axes)))
    for place in range(1, len(boxes[0])):
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for box in boxes:
            groups.setdefault(box[:place] + box[place + 1 :], []).extend(box[place])
        boxes = [(*rest[:place], tuple(dict.fromkeys(found)), *rest[place:]) for rest, found in groups.items()]
    commands = []
    for departures, seeds, presets, *values in boxes:
        named = dict(zip([_called(axis) for axis in axes], values, strict=True))
        line = [word for name, chosen in named.items() for word in (f"--{name}", *map(str, chosen))]
        line += ["--preset", *presets, "--seeds", seeds_as_text(sorted(seeds))]
        commands.append(line + [word for name, value in departures for word in _as_option(name, value)])
    return commands


def choices(experiment: Declared) -> dict[str, list[str]]:
    """The values that an option may take, where they are known, by the option's name."""
    known = {"preset": list(experiment.settings.PRESETS)}
    for settings in (experiment.settings, *experiment.shared):
        for entry in fields(settings):
            if values := [str(value) for value in entry.metadata.get("known") or ()]:
                known[entry.metadata.get("called") or entry.name] = values
    return known


def carried_options(experiment: Declared, parser: HfArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The options of a command that choose its runs and are no settings of theirs, as arguments."""
    given, executed, _ = _parsed(parser, arguments)
    carried = _carried(experiment, given, executed)
    return [word for name, value in carried.items() for word in _as_option(name, value)]


def _carried(experiment: Declared, given: Any, executed: Any) -> dict[str, Any]:
    shared = [name for settings in experiment.shared for name in names_of(settings, OPTION)]
    carried = {name: value for name in shared if (value := getattr(given, name)) is not None}
    known = {entry.name for entry in fields(StepOptions)}
    for entry in fields(experiment.options):
        usual = entry.default if entry.default_factory is MISSING else entry.default_factory()
        if entry.name not in known and (value := getattr(executed, entry.name)) != usual:
            carried[entry.name] = value
    return carried


def _as_option(name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [f"--{name}", *(str(part).lower() if isinstance(part, bool) else str(part) for part in values)]


def _seeds(experiment: Declared, options: Options) -> list[int]:
    if options.num_seeds is None:
        return parse_seeds(options.seeds) if options.seeds else list(range(experiment.seeds))
    if options.seeds:
        raise SettingsError("Give --seeds, which names them, or --num_seeds, which counts them from 0; not both.")
    if options.num_seeds < 1:
        raise SettingsError(f"--num_seeds must be 1 or more, got {options.num_seeds}.")
    return list(range(options.num_seeds))


def _values(entry: Field[Any], kind: type, asked: Sequence[str]) -> list[Any]:
    """The values of an axis, apart by blanks or commas; "all" stands for all of them."""
    names, metadata = parts_of(asked), entry.metadata
    if names == ["all"] and metadata["all"]:
        return list(metadata["all"])
    convert = kind if kind in (int, float) else str
    try:
        values: list[Any] = list(dict.fromkeys(convert(name) for name in names))
    except ValueError:
        expected = "whole numbers" if kind is int else "numbers"
        raise SettingsError(f"--{_called(entry)} must be {expected}, got {', '.join(names)}.") from None
    if metadata["known"]:
        check_names(values, metadata["known"], f"--{_called(entry)}")
    if not values:
        raise SettingsError(f"--{_called(entry)} must name at least one value.")
    return values


def _called(entry: Field[Any]) -> str:
    """The name of an axis's option."""
    return entry.metadata["called"] or entry.name


def _class_of(all_settings: Iterable[type[Settings]]) -> type:
    """A dataclass of the settings as a command line gives them: lists of texts for axes, None where nothing is said."""
    return make_dataclass("SettingsAsked", [member for settings in all_settings for member in _members(settings)])


def _members(settings: type[Settings]) -> Iterator[tuple[str, Any, Any]]:
    hints = get_type_hints(settings)
    for entry in fields(settings):
        role, text = entry.metadata.get("role"), entry.metadata.get("help", "").replace("%", "%%")
        if role == AXIS:
            known, default = entry.metadata["known"], entry.metadata["default"]
            text += f"; of {', '.join(map(str, known))}, or all" if known else ""
            text += f" ({', '.join(map(str, stands))})" if known and (stands := entry.metadata["all"]) != known else ""
            text += f" [{', '.join(map(str, default))}]" if default else ""
            usual: Any = MISSING if default is None else lambda values=default: [str(value) for value in values]
            yield _called(entry), list[str], field(default_factory=usual, metadata={"help": text}, kw_only=True)
        elif role == OPTION:
            known = entry.metadata["known"]
            text += (f"; of {', '.join(map(str, known))}" if known else "") + _preset_values(settings, entry)
            kind = hints[entry.name] if hints[entry.name] is bool else hints[entry.name] | None  # bool: a flag
            yield entry.name, kind, field(default=None, metadata={"help": text}, kw_only=True)


def _preset_values(settings: type[Settings], entry: Field[Any]) -> str:
    """The presets' values of an option, for its help."""
    values: dict[str, Any] = {
        name: value
        for name, preset in settings.PRESETS.items()
        if (value := preset.get(entry.name, entry.default)) is not MISSING
        and (not callable(value) or type(value) is By)
    }
    if len(set(map(str, values.values()))) == 1 and len(values) == len(settings.PRESETS):
        return f" [{next(iter(values.values()))}]"
    return f" [{', '.join(f'{name}: {value}' for name, value in values.items())}]" if values else ""


def _described(experiment: Declared) -> type:
    """The class of the options, with this experiment's defaults in the help texts."""
    defaults = {
        "seeds": f"0..{experiment.seeds - 1}" if experiment.seeds > 1 else "0",
        "preset": f"{experiment.preset}; of {', '.join(experiment.settings.PRESETS)}",
        "output_dir": f"runs/{experiment.name}",
    }
    members = []
    for entry in fields(experiment.options):
        text = entry.metadata.get("help", "").replace("%", "%%")
        text += f" [{defaults[entry.name]}]" if entry.name in defaults else ""
        default: Any = {"default": entry.default, "default_factory": entry.default_factory}
        kind = get_type_hints(experiment.options)[entry.name]
        members.append((entry.name, kind, field(metadata={"help": text}, kw_only=True, **default)))
    return make_dataclass("OptionsAsked", members)
