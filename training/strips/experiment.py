"""The STRIPS Transformer's Table 1: domains learned from action traces."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_mech.models.strips import StripsTransformer, strips_tokenizer

from ..engine import Experiment, Options, Request, SettingsError
from ..engine.settings import seeds_as_text
from . import report
from .run import CellOutcome, train_cell
from .settings import EVERY_TRACE, PAPER, Cell

_USUAL_SIZE = 500  # training traces, of a domain that Table 1 does not have


@dataclass(kw_only=True)
class StripsOptions(Options):
    """Options of the STRIPS experiment besides those of every experiment."""

    head_factor_at_largest: float | None = field(
        default=None, metadata={"help": "also run each domain's largest size with so many heads per true proposition"}
    )
    domain_file: str | None = field(default=None, metadata={"help": "with --domain pddl: your domain"})
    problem_file: str | None = field(default=None, metadata={"help": "with --domain pddl: your problem"})
    checkpoint_steps: int = field(
        default=10_000, metadata={"help": "steps between two saves of a cell's state", "least": 1}
    )


class StripsExperiment(Experiment[Cell, CellOutcome]):
    """Cells of Table 1; the seeds of a cell are trained at once."""

    name = "strips"
    paper = "nunezmolina2025strips"
    settings = Cell
    outcome = CellOutcome
    options = StripsOptions
    unit = "cells"
    seeds = 10
    preset = "redraw"
    shares_runs = True
    train = staticmethod(train_cell)
    report = report

    def stages(self, request: Request[StripsOptions]) -> Iterable[Sequence[Cell]]:
        options, axes = request.options, request.axes
        files = {name: getattr(options, name) for name in ("domain_file", "problem_file")}
        own = set(axes["domain"]) == {"pddl"}
        if own != ("pddl" in axes["domain"]) or any((file is None) == own for file in files.values()):
            raise SettingsError(
                "--domain pddl goes with --domain_file and --problem_file, and they with it; no other domain goes with "
                "them."
            )
        cells = []
        for domain in axes["domain"]:
            sizes = axes["num_train"]
            if sizes == ["all"]:
                sizes = PAPER.values("num_train", domain=domain) or [EVERY_TRACE if domain == "own" else _USUAL_SIZE]
            kinds = [(size, factor) for size in sizes for factor in axes["head_factor"]]
            if options.head_factor_at_largest is not None:
                kinds.append((max(sizes), options.head_factor_at_largest))
            cells += [
                Cell.of(
                    preset,
                    request.overrides,
                    domain=domain,
                    num_train=size,
                    data_seed=data_seed,
                    head_factor=factor,
                    seeds=seeds_as_text(request.seeds),
                    **files,
                )
                for size, factor in kinds
                for data_seed in axes["data_seed"]
                for preset in request.presets
            ]
        # Preset by preset; large training sets first, so that no core waits long for the last cell.
        yield sorted(cells, key=lambda cell: (request.presets.index(cell.preset), -cell.num_train))

    def chosen_by(self, settings: Cell) -> dict[str, Any]:
        return {"head_factor_at_largest": None} | ({"sizes": None} if settings.num_train == EVERY_TRACE else {})

    def load_model(self, folder: Path, outcome: CellOutcome) -> tuple[Any, Any]:
        """The member with the best training accuracy."""
        model = StripsTransformer.from_pretrained(folder / "model").member(outcome.best)
        return model, strips_tokenizer(model.config.actions)

    def shares_card(self, settings: Cell) -> Hashable:
        return settings.card, settings.seeds


EXPERIMENT = StripsExperiment()
