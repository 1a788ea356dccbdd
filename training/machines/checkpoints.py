"""The shipped programs: compiled into DATs, and run on prompts of another seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from hf_mech.programs.explorer_view import VIEW, read_settings
from hf_mech.programs.psl.compile import compile_program
from hf_mech.programs.psl.library import complete_batch, read_program
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.trace_picture import trace_figure
from hf_mech.programs.psl.turing import run_turing
from hf_mech.programs.templatic.figures import parse_figure

from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .report import TASK
from .run import Trials, TrialsOutcome
from .tables import TABLES
from .trials import Completion, task_named, task_names

EXACT = "exact_match"


_ABOUT = {
    "pargen": "Completes a template: from a source, a target made of its parts, and a new source, it says the new "
    "target. This is the paper's own program.",
    "pargen_k_shot": "Completes a template from several examples: it follows the one whose source has the form of "
    "the new one.",
    "sort": "Sorts words by an order that stands in the prompt.",
    "binary_addition": "Adds two binary numbers of any length.",
    "universal": "A universal Turing machine: the table of a Turing machine stands in the prompt, and it runs it on "
    "a tape.",
    "nested_functions": "Evaluates nested calls of functions, whose meaning the prompt shows by examples.",
}
_DATA = {
    "pargen": 'prompts of `load_dataset("hf_mech/templatic_generation", "1_shot_rlw")`, split `test`',
    "pargen_k_shot": 'prompts of `load_dataset("hf_mech/templatic_generation", "2_shot_rlw")`, split `test`',
    "nested_functions": 'prompts of `load_dataset("hf_mech/nested_functions", "rlw")`, split `test`',
    "universal": "random tapes for six machines: increment, unary addition, palindromes, three busy beavers",
}
_BATCH, _SHOWN_CORNERS = 50, 4


def _compiled(name: str, task: str, about: str) -> Recipe:
    return Recipe(
        name=name,
        options=f"--task {task} --num_prompts 1 --seeds 0",
        task=about,
        metric=EXACT,
        bar=1.0,
        headline="{value} % exact: 0 wrong of 1,000",
        count=1_000,
        dtype="float16",
    )


class ProgramCheckpoints(Checkpoints[Trials, TrialsOutcome]):
    """See `Checkpoints`. Nothing is trained; the run compares the compiled program with the symbolic machines."""

    experiment = EXPERIMENT
    script = "run_machines"
    recipes = (
        _compiled("dat-pargen", "pargen", "completes templates from one example, compiled"),
        _compiled("dat-pargen-k-shot", "pargen_k_shot", "completes templates from several examples, compiled"),
        _compiled("dat-sort", "sort", "sorts words by an order in the prompt, compiled"),
        _compiled("dat-binary-addition", "binary_addition", "adds binary numbers, compiled"),
        _compiled("dat-universal-machine", "universal/increment", "runs any Turing machine, compiled"),
        _compiled("dat-nested-functions", "nested_functions", "evaluates nested function calls, compiled"),
    )

    def load(self, run: Trials, outcome: TrialsOutcome, folder: Path) -> tuple[Any, Any]:
        return compile_program(task_named(run.task).program)

    def evaluate(self, run: Trials, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The share of prompts whose result is right; the universal machine runs all machines of the table in turn."""
        universal, _, _ = run.task.partition("/")
        names = [name for name in task_names() if name.startswith(f"{universal}/")] or [run.task]
        streams = [task_named(name).trials(seed) for name in names]
        trials = [next(streams[number % len(streams)]) for number in range(count)]
        said = [trial for trial in trials if isinstance(trial, Completion)]
        machine = DAT(model, processor)
        right = sum(trial(machine)[1] for trial in trials if not isinstance(trial, Completion))
        return {EXACT: Measured((right + _right(model, processor, said)) / count, count)}

    def batch(self, run: Trials, model: Any, processor: Any) -> dict[str, Tensor]:
        processor.forget()
        return dict(processor(_prompt(run), return_tensors="pt", **_registers(run)))

    def show(self, recipe: Recipe, run: Trials, outcome: TrialsOutcome, model: Any, processor: Any) -> Shown:
        program = run.task.partition("/")[0]
        return Shown(
            text={
                "program": program,
                "about": _ABOUT[program],
                "data": _DATA.get(program, "random prompts of the program's form"),
                "prompt": _prompt(run),
                "registers": _registers(run).get("registers"),
                "layers": outcome.layers,
                "history": _history() if program == "universal" else "",
            },
            dataset=TASK,
            config=program,
            paper="smolensky2024mechanisms",
            pipeline="text-generation",
            tags=["compiled-program", "interpretability", "in-context-learning"],
            figures=_pictures(program, run, model, processor),
        )


def _right(model: Any, tokenizer: Any, trials: Sequence[Completion]) -> int:
    """How many completions are right; prompts of like lengths run together."""
    ordered = sorted(trials, key=lambda trial: (len(trial.prompt), trial.most))
    right = 0
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        tokenizer.forget()  # the words of other batches
        found = complete_batch(
            model, tokenizer, [" ".join(trial.prompt) for trial in batch], max(trial.most for trial in batch)
        )
        right += sum(list(one.words) == trial.completion for one, trial in zip(found, batch, strict=True))
    return right


def _prompt(run: Trials) -> str:
    example = VIEW.example(run.task.partition("/")[0])
    return example.text


def _registers(run: Trials) -> dict[str, Any]:
    registers, _ = read_settings(VIEW.example(run.task.partition("/")[0]).settings)
    return {"registers": registers} if registers else {}


def _history() -> str:
    """A run of the increment in the universal machine, a line a step."""
    machine, _ = TABLES["increment"]
    ended = run_turing(machine, "1 0 1 1", left=2, right=1, universal=True)
    return "\n".join(ended.history())


def _pictures(program: str, run: Trials, model: Any, tokenizer: Any) -> dict[str, tuple[Figure, str]]:
    caption = "Above, the cells of the prompt and of the completion; below, the writes of each production in each cell"
    if program == "universal":
        return {}
    if program.startswith("pargen"):
        return {"run.png": (parse_figure(model, tokenizer, _prompt(run)), caption)}
    names = {short: name for name, short in model.config.qkvl["register_map"].items()}
    symbol = next(short for short, name in names.items() if name == read_program(program).system["symbol"])
    corners = [short for short in names if short != symbol][:_SHOWN_CORNERS]
    drawn = trace_figure(
        *(model, tokenizer, _prompt(run), {short: names[short] for short in (symbol, *corners)}),
        corners=corners,
        symbol=symbol,
        colour_by=corners[0],
    )
    return {"run.png": (drawn, caption)}


CHECKPOINTS = ProgramCheckpoints()
