"""What an experiment says of the checkpoints that are shipped: how each is trained, measured and shown."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from hf_mech.hub.checkpoint import load_checkpoint, load_processing_class

from .arguments import Request, parser_of, read
from .experiment import Experiment
from .run import Outcome
from .settings import Settings, SettingsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from hf_mech.hub import PaperFigure

S = TypeVar("S", bound=Settings)
O = TypeVar("O", bound=Outcome[Any])  # noqa: E741

EVALUATION_SEED = 37_000
"""Of the data that a checkpoint is measured on: no training, no choice of a setting and no table has it."""


@dataclass(frozen=True)
class Measured:
    """A figure of an evaluation.

    Attributes:
        value: a share, or another number.
        count: the examples behind it.
    """

    value: float
    count: int


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a checkpoint is made, and what it must reach.

    Attributes:
        name: of its folder in `model_cards/` and of its repository.
        options: the experiment's command line, which makes one run.
        task: what the model does, in a few words.
        metric: the headline.
        bar: what it must reach.
        lower: whether less is better, as of a perplexity.
        count: examples of the whole evaluation.
        dtype: of the weights in the file; they are computed with in float32.
        headline: the figure in words, with `{value}`.
    """

    name: str
    options: str
    task: str
    metric: str
    bar: float
    headline: str
    count: int
    lower: bool = False
    dtype: str = "float32"

    def reaches_bar(self, measured: Mapping[str, Measured]) -> bool:
        """Whether the headline's figure is good enough."""
        value = measured[self.metric].value
        return value <= self.bar if self.lower else value >= self.bar

    @property
    def digest(self) -> str:
        """What tells this recipe from an earlier one of its name."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The parts of a card that depend on the checkpoint.

    Attributes:
        text: the variables of the template.
        dataset, config: of the figures, as `load_dataset` takes them.
        paper: its key in the bibliography.
        pipeline: the Hub's name of the task.
        tags: the Hub's tags.
        papers: the paper's figure by metric, where one compares.
        figures: file name to picture and caption.
    """

    text: Mapping[str, Any]
    dataset: str
    config: str | None
    paper: str
    pipeline: str
    tags: Sequence[str] = ()
    papers: Mapping[str, PaperFigure | None] = field(default_factory=dict)
    figures: Mapping[str, tuple[Figure | bytes, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Added:
    """What comes of the files beside the weights.

    Attributes:
        measured: their figures.
        figures: pictures of them for the card, as in `Shown`.
    """

    measured: Mapping[str, Measured] = field(default_factory=dict)
    figures: Mapping[str, tuple[Figure | bytes, str]] = field(default_factory=dict)


class Checkpoints(ABC, Generic[S, O]):
    """The checkpoints of an experiment. `training/<experiment>/checkpoints.py` holds one, `CHECKPOINTS`.

    Its folder has `checkpoint.md`, the template of their cards.

    Attributes:
        experiment: trains them.
        script: its command, without `python -m training.`.
        recipes: in the order of the table.
        few: examples of the part of the evaluation that the tests repeat.
    """

    experiment: ClassVar[Experiment[Any, Any]]
    script: ClassVar[str]
    recipes: ClassVar[Sequence[Recipe]]
    few: ClassVar[int] = 50

    def request(self, recipe: Recipe, output_dir: Path) -> Request[Any]:
        """The request that the recipe's options make."""
        line = [*shlex.split(recipe.options), "--output_dir", str(output_dir), "--jobs", "1"]
        return read(self.experiment, parser_of(self.experiment, None), line)

    def run(self, recipe: Recipe, output_dir: Path) -> S:
        """The recipe's run.

        Raises:
            SettingsError: its options make several.
        """
        runs = [run for stage in self.experiment.stages(self.request(recipe, output_dir)) for run in stage]
        if len(runs) != 1:
            raise SettingsError(f"{recipe.name}: a checkpoint is one run, its options make {len(runs)}.")
        return runs[0]

    def command(self, recipe: Recipe) -> str:
        """Trains the model alone."""
        return f"python -m training.{self.script} {recipe.options}"

    def load(self, run: S, outcome: O, folder: Path) -> tuple[Any, Any]:
        """The trained model and its tokenizer or processor, or None.

        Args:
            run: the settings.
            outcome: what came of it.
            folder: the run's.
        """
        return load_checkpoint(folder / "model"), load_processing_class(folder / "model")

    @abstractmethod
    def evaluate(self, run: S, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The figures of a model on data of a seed.

        Args:
            run: how it was trained.
            model: in evaluation mode.
            processor: the tokenizer or processor.
            seed: of the data.
            count: examples, about.
        """

    def add(self, run: S, model: Any, processor: Any, folder: Path) -> Added:
        """Writes what belongs beside the weights, such as probes, into the checkpoint's folder; by default nothing."""
        return Added()

    @abstractmethod
    def batch(self, run: S, model: Any, processor: Any) -> dict[str, Tensor]:
        """The arguments of one forward pass, with labels if the model has a loss; small, and always the same."""

    @abstractmethod
    def show(self, recipe: Recipe, run: S, outcome: O, model: Any, processor: Any) -> Shown:
        """The parts of the card."""

    @property
    def template(self) -> Path:
        """The text of the cards."""
        return Path(str(sys.modules[type(self).__module__].__file__)).with_name("checkpoint.md")
