"""The command of an experiment: reads the options, runs what is asked for, and writes cards and tables at the end."""

from __future__ import annotations

import re
import shlex
import statistics
import sys
from collections.abc import Hashable, Sequence
from contextlib import ExitStack, redirect_stderr
from functools import lru_cache
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Any

from transformers import HfArgumentParser

from hf_mech.hub import Measurement, Results
from hf_mech.hub.environment import running_command
from hf_mech.hub.files import held, naming_the_path
from hf_mech.hub.redaction import redact, redacted_traceback

from .arguments import Options, Request, carried_options, commands_for, config_of, parser_of, read
from .cluster import check_executor, run_free_on_ray
from .experiment import Experiment
from .own_data import OwnData
from .run import OUTCOME_FILE, Outcome, check_trackers, last_checkpoint, step_of
from .runner import is_main_process, launched_processes, run_all
from .settings import Settings, SettingsError
from .tables import Table, print_markdown

INTERRUPTED = 130
_WRONG_VALUES = (ValueError, FileExistsError, FileNotFoundError, NotADirectoryError)
_OURS = ("hf_mech", __name__.partition(".")[0])  # the packages whose errors are one line
TIMES = ("training_seconds", "seconds")  # the metrics of a card that say how long a run took
_CARDS = Path(__file__).parents[2] / "docs" / "results"


def main(experiment: Experiment[Any, Any], arguments: Sequence[str] | None = None, about: str | None = None) -> None:
    """Runs the command of an experiment.

    Args:
        experiment: the experiment.
        arguments: the command line; by default that of the process.
        about: what `--help` says first: the script's docstring.

    Raises:
        SystemExit: for an error of ours one line and code 2 (options that make no sense) or 1 (such as a failed
            upload); after Ctrl-C the command that goes on, and code 130.
    """
    parser = _parser(experiment, arguments, about)
    try:
        request = read(experiment, parser, arguments)
        check_trackers(request.options.report_to)
        if launched_processes() > 1 and not experiment.shares_runs:
            raise SettingsError("A run is not shared by processes: start this with python, and give --jobs.")
        check_executor(request.options.executor)
        output_dir = Path(request.options.output_dir)
        stages = [list(dict.fromkeys(stage)) for stage in experiment.stages(request)]
        for run in next(filter(None, stages), [])[:1]:  # all runs of a command have the same data
            if isinstance(run, OwnData):
                run.check_own_data()
        if request.options.dry_run:
            if is_main_process():
                print_markdown(plan_of(experiment, [run for stage in stages for run in stage], output_dir).markdown())
            return
        _run(experiment, stages, request)
    except KeyboardInterrupt:
        again = running_command() if arguments is None else shlex.join(redact(list(arguments)))
        sys.stderr.write(f"\nInterrupted. The same command goes on from each run's last checkpoint: {again}\n")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _OURS and not isinstance(error, OSError):
            if (shown := redacted_traceback(error)) is not None:
                parser.exit(1, shown)
            raise  # its traceback is wanted: it is a bug
        parser.exit(
            2 if isinstance(error, _WRONG_VALUES) else 1,
            _one_line(parser.prog, error),
        )


def _parser(experiment: Experiment[Any, Any], arguments: Sequence[str] | None, about: str | None) -> HfArgumentParser:
    """The command's parser, which calls the command as it was called; and so its examples, in an installed package."""
    parser = parser_of(experiment, about)
    if arguments is None:
        words = shlex.split(running_command())
        parser.prog = shlex.join(takewhile(lambda word: not word.startswith("--"), words))
        if words[0] == "hf-mech":
            examples = re.sub(r"python -m training\.(?:train|run)_", "hf-mech train ", about or "")
            parser.description = examples.replace("-m training.", f"-m {__name__.partition('.engine')[0]}.")
    return parser


def _one_line(program: str, error: Exception) -> str:
    return f"{program}: {' '.join(redact(str(error)).split())}\n"


def _run(experiment: Experiment[Any, Any], stages: Sequence[Sequence[Settings]], request: Request[Any]) -> None:
    options = request.options
    jobs = 1 if launched_processes() > 1 else options.jobs
    configs = {run: config_of(experiment, run, request) for runs in stages for run in runs}
    for number, runs in enumerate(stages):
        if runs:  # a later stage may need all runs of this one
            wait, run_free = any(stages[number + 1 :]), run_free_on_ray if options.executor == "ray" else None
            run_all(experiment, runs, options, jobs, wait=wait, configs=configs, run_free=run_free)
    if not is_main_process():
        return
    asked = [settings for runs in stages for settings in runs]
    _say_unfinished(experiment, asked, Path(options.output_dir))
    every = finished_runs(experiment, asked, Path(options.output_dir))
    made = [experiment.card_and_table(finished) for finished in every]
    if len({card.name for card, _, _ in made}) < len(made):
        names = ", ".join(card.name for card, _, _ in made)
        raise SettingsError(
            f"{experiment.name} gives two cards one name: {names}. Name them by what `shares_card` tells."
        )
    for (card, table, template), finished in zip(made, every, strict=True):
        folder, checkpoint = Path(options.cards_dir) / card.name, Path(options.output_dir) / card.name
        with ExitStack() as locks:  # another command may be writing the same card
            for written in dict.fromkeys([checkpoint, folder]):
                locks.enter_context(naming_the_path(written))
                locks.enter_context(held(written, wait=True))
            card.write(template, folder, command_of(experiment, list(finished.values()), options))
            card.save_checkpoint(checkpoint)
            if options.push_to_hub:
                card.push(folder, options.hub_user)
        print_markdown(table.markdown() if isinstance(table, Table) else table)
        print(f"card: {folder}" + (f", checkpoint: {checkpoint}" if card.checkpoint else ""))


def _say_unfinished(experiment: Experiment[Any, Any], asked: Sequence[Settings], output_dir: Path) -> None:
    """Names the runs that other processes still train."""
    names = [settings.name for settings in asked if not (output_dir / settings.name / OUTCOME_FILE).exists()]
    if names:
        sys.stderr.write(
            f"Another process still trains {len(names)} of {len(asked)} {experiment.unit}: {', '.join(names)}. The "
            "cards are made without them; run the same command again when they are done.\n"
        )


def finished_runs(
    experiment: Experiment[Any, Any], asked: Sequence[Settings], output_dir: Path
) -> list[dict[Path, Outcome[Any]]]:
    """The finished runs that share a card with runs asked for, card by card: by folder, in the order of the tables."""
    cards: dict[Hashable, dict[Path, Outcome[Any]]] = {experiment.card_key(settings): {} for settings in asked}
    for folder, outcome in sorted(experiment.finished_under(output_dir), key=lambda pair: experiment.order(pair[1])):
        key = experiment.card_key(outcome.settings)
        if key in cards and folder == output_dir / outcome.settings.name:  # not a copy of somebody's
            cards[key][folder] = outcome
    return [finished for finished in cards.values() if finished]


# ---------------------------------------------------------------------------------------------- the command in a card


def command_of(experiment: Experiment[Any, Any], finished: Sequence[Outcome[Any]], options: Options) -> str:
    """The command that repeats the runs of a card.

    Runs of one command: that command. Runs of several: one that is made of their settings. Runs that no single command
    makes, because they depart from their preset in different ways, take a command for each way. If the settings do not
    say how to make the runs, the commands that did follow each other.
    """
    done = list(dict.fromkeys(outcome.origin["command"] for outcome in finished))
    if launched_processes() > 1 or (len(done) == 1 and "--config_file" not in done[0]):
        return " && ".join(done)
    words = shlex.split(done[0])
    start = words[: next((place for place, word in enumerate(words) if word.startswith("--")), len(words))]
    runs = [outcome.settings for outcome in finished]
    parser, made = parser_of(experiment, None), set()
    try:
        with redirect_stderr(StringIO()):  # of the parser, which refuses an option that is gone
            carried = [carried_options(experiment, parser, shlex.split(line)[len(start) :]) for line in done]
            same = carried[0] if all(options == carried[0] for options in carried) else []
            lines = [[*line, *same] for line in commands_for(runs)]
            for line in lines:
                request = read(experiment, parser, [*line, "--dry_run", "--output_dir", options.output_dir])
                made |= {run for stage in experiment.stages(request) for run in stage}
    except (ValueError, OSError, SystemExit):
        return " && ".join(done)
    cards = {experiment.card_key(run) for run in runs}
    if {run for run in made if experiment.card_key(run) in cards} != set(runs):
        return " && ".join(done)
    return " && ".join(shlex.join(redact([*start, *line])) for line in lines)


# ------------------------------------------------------------------------------------------------------------ dry run


def plan_of(experiment: Experiment[Any, Any], runs: Sequence[Settings], output_dir: Path) -> Table:
    """The runs that a command would do: where each stands, and how long similar ones took, each on one core."""
    done = [outcome for _, outcome in experiment.finished_under(output_dir)]
    table, known, unknown = Table([experiment.unit, "state", ">similar runs took"]), 0.0, 0
    for settings in runs:
        folder, seconds = output_dir / settings.name, None
        if (folder / OUTCOME_FILE).exists():
            state = "done"
        else:
            checkpoint = last_checkpoint(folder)
            state = f"goes on from {step_of(checkpoint):,}" if checkpoint else "new"
            seconds = _similar(settings, done) or _published(settings)
            known, unknown = known + (seconds or 0), unknown + (seconds is None)
        table.rows.append([settings.name, state, "" if seconds is None else duration(seconds)])
    total = (
        f"{len(runs)} {experiment.unit}; {duration(known)} on one core by these times"
        if known
        else f"{len(runs)} {experiment.unit}"
    )
    table.notes.append(f"{total}; {unknown} without a similar run." if unknown else f"{total}.")
    return table


def _similar(settings: Settings, done: Sequence[Outcome[Any]]) -> float | None:
    """The median time of finished runs of another seed, or of another part of a split."""

    def shared(content: Settings) -> dict[str, Any]:
        own = ("seed", "stop", "start") if hasattr(content, "stop") else ("seed",)
        return {name: value for name, value in content.to_dict().items() if name not in own}

    seconds = [outcome.seconds for outcome in done if shared(outcome.settings) == shared(settings)]
    return statistics.median(seconds) if seconds else None


@lru_cache(maxsize=1)
def _all_published() -> list[Measurement]:
    return [entry for file in sorted(_CARDS.glob("*/results.json")) for entry in Results.load(file).results]


def _published(settings: Settings) -> float | None:
    """The mean time of the published runs that agree in every setting that both name, departures among them."""
    own, departures = settings.to_dict(), settings.departures
    for entry in _all_published():
        shared = entry.setting.keys() & own.keys() - {"seed", "seeds", "data_seed"}
        named = entry.metric in TIMES and entry.config in own.values() and "preset" in shared
        if named and departures.keys() <= shared and all(entry.setting[name] == own[name] for name in shared):
            return entry.mean
    return None


def duration(seconds: float) -> str:
    """
    >>> duration(41), duration(600), duration(9000)
    ('41 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
