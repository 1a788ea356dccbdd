"""Makes the checkpoints in model_cards: trains each from nothing, measures it on other data, writes its folder.

    python -m training.make_checkpoints                        # all of them; one process and one thread for each
    python -m training.make_checkpoints dat-pargen msat-doorway
    python -m training.make_checkpoints --dry_run              # what is done, and how long the rest takes

A folder is written only if the model reaches its bar. What is done under --output_dir is not done again; a run that was
killed goes on from its last checkpoint, bit for bit. One thread trains each model, so that its weights are the same on
every machine of a kind, whatever runs beside it.
"""

if not __package__:  # started as a file: `python training/make_checkpoints.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from json import loads
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm
from transformers import HfArgumentParser

from hf_mech.hub.catalogue import CHECKPOINT_FILE, write_catalogue
from hf_mech.hub.environment import usable_cores
from hf_mech.hub.files import write_text_atomically

from .engine.checkpoints import BarError, is_whole, make_checkpoint
from .engine.recipe import Checkpoints, Recipe
from .engine.tables import Table, print_markdown
from .render_readme import ROOT, checkpoint_shelves

_INTERRUPTED = 130
_CHILD = "HF_MECH_MAKES_ONE_CHECKPOINT"


@dataclass(kw_only=True)
class Options:
    """Options of the command."""

    names: list[str] = field(default_factory=list, metadata={"help": "checkpoints; by default all of them"})
    output_dir: str = field(
        default="runs/checkpoints", metadata={"help": "runs go there, and a log of each checkpoint"}
    )
    cards_dir: str = field(default=str(ROOT / "model_cards"), metadata={"help": "finished folders go there"})
    jobs: int = field(default=0, metadata={"help": "checkpoints made side by side; 0: one for each core"})
    again: bool = field(default=False, metadata={"help": "measure and write what is done, too; finished runs stay"})
    dry_run: bool = field(default=False, metadata={"help": "make nothing; print what is done"})


Kitchen = dict[str, tuple[Checkpoints[Any, Any], Recipe]]


def all_recipes() -> Kitchen:
    """Every recipe by the name of its checkpoint, in the order of the table."""
    return {recipe.name: (shelf, recipe) for shelf in checkpoint_shelves() for recipe in shelf.recipes}


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; the exit code: 1 if a checkpoint failed."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    first = next((place for place, word in enumerate(asked) if word.startswith("--")), len(asked))
    given = (["--names", *asked[:first]] if first else []) + asked[first:]
    (options,) = HfArgumentParser(Options, description=__doc__).parse_args_into_dataclasses(given)
    known = all_recipes()
    if unknown := [name for name in options.names if name not in known]:
        print(f"There is no checkpoint {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = {name: known[name] for name in (options.names or known)}
    output_dir, cards_dir = Path(options.output_dir), Path(options.cards_dir)
    if options.dry_run:
        print_markdown(_table(chosen, output_dir, cards_dir, {}).markdown())
        return 0
    if os.environ.get(_CHILD):
        return _make_here(chosen, output_dir, cards_dir)
    if options.again:
        for _, recipe in chosen.values():
            _stamp(output_dir, recipe).unlink(missing_ok=True)
    failed = _make_all(chosen, output_dir, cards_dir, options.jobs or usable_cores())
    print_markdown(_table(chosen, output_dir, cards_dir, failed).markdown())
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return int(bool(failed))


# ------------------------------------------------------------------------------------------------- one, in this process


def _make_here(chosen: Kitchen, output_dir: Path, cards_dir: Path) -> int:
    for shelf, recipe in chosen.values():
        began = time.perf_counter()
        try:
            folder = make_checkpoint(shelf, recipe, output_dir, cards_dir)
        except BarError as error:
            print(error, file=sys.stderr)
            return 1
        sums = loads((folder / CHECKPOINT_FILE).read_text("utf-8"))["sha256"]["model.safetensors"]
        write_text_atomically(_stamp(output_dir, recipe), f"{sums} {time.perf_counter() - began:.1f}\n")
    return 0


def _stamp(output_dir: Path, recipe: Recipe) -> Path:
    """Says that a checkpoint was made by this recipe from the runs under `output_dir`, with the sum of its weights."""
    return output_dir / f"{recipe.name}-{recipe.digest}.made"


# ------------------------------------------------------------------------------------------ all, in processes of theirs


def _make_all(chosen: Kitchen, output_dir: Path, cards_dir: Path, jobs: int) -> dict[str, str]:
    """Makes what is not done, the longest first; the reasons of those that failed, by name."""
    waiting = sorted(
        (name for name, (_, recipe) in chosen.items() if not _done(recipe, output_dir, cards_dir)),
        key=lambda name: -(_known_seconds(name) or 0),
    )
    output_dir.mkdir(parents=True, exist_ok=True)
    running: set[subprocess.Popen[bytes]] = set()
    failed: dict[str, str] = {}

    def make(name: str) -> int:
        watched = [sys.executable, "-m", "training.ends_with_parent", str(os.getpid())]
        command = [*watched, "training.make_checkpoints", name, "--output_dir", str(output_dir)]
        one_thread = {_CHILD: "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with (output_dir / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [*command, "--cards_dir", str(cards_dir)], cwd=ROOT, env=os.environ | one_thread, stdout=log, stderr=log
            )
            running.add(child)
            code = child.wait()
            running.discard(child)
        return code

    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(chosen), initial=len(chosen) - len(waiting)) as bar:
        futures = {pool.submit(make, name): name for name in waiting}
        try:
            for future in as_completed(futures):
                name = futures.pop(future)
                if future.result():
                    failed[name] = _last_line(output_dir / f"{name}.log")
                elif cards_dir == ROOT / "model_cards":
                    _list_all(cards_dir)
                left = sum(_known_seconds(other) or 0 for other in futures.values()) / jobs
                bar.set_postfix_str(
                    f"{name} {'failed' if name in failed else 'done'}, {left / 60:.0f} min to go by last times"
                )
                bar.update()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(running):
                child.send_signal(signal.SIGTERM)
            print("\nInterrupted. The same command goes on from each run's last checkpoint.", file=sys.stderr)
            raise SystemExit(_INTERRUPTED) from None
    return failed


def _list_all(cards_dir: Path) -> None:
    """Writes the catalogue anew, from the folders that are there."""
    folders = [cards_dir / name for name in all_recipes()]
    write_catalogue(folder for folder in folders if (folder / CHECKPOINT_FILE).is_file())


def _done(recipe: Recipe, output_dir: Path, cards_dir: Path) -> bool:
    return _stamp(output_dir, recipe).is_file() and is_whole(cards_dir / recipe.name, recipe)


def _known_seconds(name: str) -> float | None:
    """The time that the published checkpoint took to train."""
    file = ROOT / "model_cards" / name / CHECKPOINT_FILE
    return float(loads(file.read_text("utf-8"))["seconds"]) if file.is_file() else None


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"see {log}"


def _table(chosen: Kitchen, output_dir: Path, cards_dir: Path, failed: dict[str, str]) -> Table:
    """A row for each checkpoint: its state, its figure, its bar, its size and its time."""
    table = Table(["checkpoint", "state", ">figure", ">bar", ">kB", ">minutes of training"])
    for name, (_, recipe) in chosen.items():
        file = cards_dir / name / CHECKPOINT_FILE
        content = loads(file.read_text("utf-8")) if file.is_file() else {}
        state = "failed" if name in failed else "done" if _done(recipe, output_dir, cards_dir) else "to do"
        table.rows.append([name, state, *_figures(content, recipe)])
    left = [_known_seconds(name) for name, (_, r) in chosen.items() if not _done(r, output_dir, cards_dir)]
    table.notes.append(f"{len(left)} to do, {sum(filter(None, left)) / 60:.0f} minutes of one core by the last times.")
    return table


def _figures(content: dict[str, Any], recipe: Recipe) -> Iterator[str]:
    bar = f"{'<=' if recipe.lower else '>='} {recipe.bar:g}"
    if not content:
        return iter(["", bar, "", ""])
    value = content["measured"][recipe.metric]["value"]
    return iter([f"{value:.4g}", bar, f"{content['bytes'] / 1000:,.0f}", f"{content['seconds'] / 60:.1f}"])


if __name__ == "__main__":
    raise SystemExit(main())
