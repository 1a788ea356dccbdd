"""The command of an experiment, in this process."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from training.engine import Experiment, Settings, main
from training.engine.arguments import parser_of, read


def printed_by(experiment: Experiment[Any, Any], *arguments: str) -> str:
    """What the command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(experiment, arguments)
    return printed.getvalue()


def stages_of(experiment: Experiment[Any, Any], *arguments: str) -> list[list[Settings]]:
    """The runs that the command would do, stage by stage."""
    request = read(experiment, parser_of(experiment, None), arguments)
    return [list(stage) for stage in experiment.stages(request)]
