"""A Hub that is slow, answers 429 or 500, or closes in the middle of a transfer: pushing, and loading from it."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import datasets
from transformers import AutoModel

import hf_mech  # noqa: F401  (registers the data sets)
from hf_mech.cli import app
from hf_mech.hub import Measurement, measurement
from hf_mech.hub.push import push_dataset
from hf_mech.models.strips import StripsTransformer
from hf_mech.planning import load_bundled
from tests.hub.folders import make_folder
from tests.hub.local_hub import LocalHub

from .processes import finish, orphans, start

MODEL, DATA = "tester/simple", "tester/rules"
FOREVER = 10_000
FAULTS: dict[str, tuple[int | str, int]] = {
    "slow": ("slow", FOREVER),
    "429 once": (429, 1),
    "429 for ever": (429, FOREVER),
    "500 once": (500, 1),
    "500 for ever": (500, FOREVER),
    "closed once": ("close", 1),
    "closed for ever": ("close", FOREVER),
}
"""What a request gets, and how often: slow is every request, the other faults hit one that is drawn at random."""


@dataclass(frozen=True)
class Exchange:
    """What is done with a Hub.

    Attributes:
        name: as the table says it.
        do: in a folder which is empty at first.
        result: what has come of it, equal whenever all has arrived; None if nothing has; raises if it is half.
        prepare: makes the Hub ready for it.
        is_ours: the words of its errors are ours; other errors are those of transformers and datasets.
    """

    name: str
    do: Callable[[Path], Any]
    result: Callable[[LocalHub, Path], str | None]
    prepare: Callable[[LocalHub, Path], Any]
    is_ours: bool = False


@contextmanager
def hub_for_processes(home: Path) -> Iterator[LocalHub]:
    """A Hub that this process and those of the works take for the real one; call it before the first work."""
    with LocalHub() as hub:
        os.environ.update(hub.environment(home))
        yield hub


# ------------------------------------------------------------------------------------------------------ the exchanges


def _folder_of_card(parent: Path) -> Path:
    made = StripsTransformer.from_domain(load_bundled("simple").domain)
    return make_folder(parent / "card", made, "simple", "AutoModel")


def _push(folder: Path) -> None:
    app(["push", str(folder.parent / "card" / "simple"), MODEL], prog_name="hf-mech")


def _pushed(hub: LocalHub, folder: Path) -> str | None:
    """The one commit after the repository's first, which is empty."""
    if ("model", MODEL) not in hub.repositories:
        return None
    commits = hub.repository(MODEL).history()[:-1]
    if len(commits) > 1:
        raise RuntimeError(f"{len(commits)} commits")
    return repr(sorted((name, blob.sha256) for name, blob in commits[0].files.items())) if commits else None


def _load_model(folder: Path) -> None:
    model = AutoModel.from_pretrained(MODEL, trust_remote_code=True, cache_dir=folder / "cache")
    digest = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values()))
    (folder / "loaded").write_text(digest.hexdigest())


def _load_data(folder: Path) -> None:
    rows = datasets.load_dataset(DATA, split="train", cache_dir=str(folder / "cache"))
    (folder / "loaded").write_text(repr(list(rows)))


def _loaded(hub: LocalHub, folder: Path) -> str | None:
    return (folder / "loaded").read_text() if (folder / "loaded").exists() else None


def _no_model(hub: LocalHub, folder: Path) -> None:
    _folder_of_card(folder)
    hub.repositories.pop(("model", MODEL), None)


def _a_model(hub: LocalHub, folder: Path) -> None:
    _no_model(hub, folder)
    if code := finish(start(_push, folder / "pushing", folder / "pushing.txt")):
        raise RuntimeError(f"exit code {code}; {(folder / 'pushing.txt').read_text()}")


def _push_data(folder: Path) -> None:
    builder = datasets.load_dataset_builder("hf_mech/rules", "comments", num_train=40, num_eval=8, cache_dir=folder)
    push_dataset(builder, DATA)


def _some_data(hub: LocalHub, folder: Path) -> None:
    hub.repositories.pop(("dataset", DATA), None)
    if code := finish(start(_push_data, folder / "pushing", folder / "pushing.txt")):
        raise RuntimeError(f"exit code {code}; {(folder / 'pushing.txt').read_text()}")


EXCHANGES = (
    Exchange("hf-mech push", _push, _pushed, _no_model, is_ours=True),
    Exchange("from_pretrained from the Hub", _load_model, _loaded, _a_model),
    Exchange("load_dataset from the Hub", _load_data, _loaded, _some_data),
)


# --------------------------------------------------------------------------------------------------------- the faults


@dataclass
class _Bench:
    """One exchange in one folder, again and again, with caches that are empty at first.

    Raises:
        RuntimeError: it failed without a fault.
    """

    hub: LocalHub
    exchange: Exchange
    folder: Path

    def __post_init__(self) -> None:
        self.work, self.printed = self.folder / "work", self.folder / "printed.txt"
        self.afresh()
        self.hub.requests.clear()
        began = time.perf_counter()
        if code := self.attempt():
            raise RuntimeError(f"{self.exchange.name}: exit code {code}; {self.said[-2000:]}")
        self.seconds = time.perf_counter() - began
        self.straight, self.requests = self.result, list(self.hub.requests)

    @property
    def result(self) -> str | None:
        return self.exchange.result(self.hub, self.work)

    @property
    def said(self) -> str:
        return self.printed.read_text()

    def afresh(self) -> None:
        self.hub.faults.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.exchange.prepare(self.hub, self.folder)

    def start(self) -> BaseProcess:
        shutil.rmtree(Path(os.environ["HF_HOME"]) / "hub", ignore_errors=True)
        return start(self.exchange.do, self.work, self.printed)

    def attempt(self) -> int | None:
        return finish(self.start())

    def is_done(self) -> bool:
        """Whether the same call, without a fault, gives what it gave at first."""
        self.hub.faults.clear()
        return self.attempt() == 0 and self.result == self.straight


def failing(hub: LocalHub, exchange: Exchange, fault: str, times: int, folder: Path) -> list[Measurement]:
    """Does the exchange without a fault, then with one, as often as asked for; each hits a request drawn at random."""
    dice, (action, often) = random.Random(f"{exchange.name} {fault}"), FAULTS[fault]
    bench = _Bench(hub, exchange, folder)
    seen: dict[str, list[float]] = {"arrived": [], "ended": [], "one_sentence": [], "equal": [], "seconds": []}
    for _ in range(times):
        bench.afresh()
        method, path = dice.choice(bench.requests)
        if action == "slow":
            for name in ("GET", "HEAD", "POST", "PUT"):
                hub.fail(name, "", action, times=often)
        else:
            hub.fail(method, f"^{re.escape(path)}$", action, times=often)
        began = time.perf_counter()
        code = bench.attempt()
        seen["seconds"].append(time.perf_counter() - began)
        seen["ended"].append(float(code is not None))
        seen["arrived"].append(float(code == 0 and bench.result == bench.straight))
        said = bench.said
        if not seen["arrived"][-1] and exchange.is_ours:
            seen["one_sentence"].append(float(_says_one_sentence(said)))
        seen["equal"].append(float(bench.is_done()))
        if not (seen["equal"][-1] and seen["ended"][-1] and all(seen["one_sentence"])):
            print(f"{exchange.name}, {fault}, {method} {path}: {code}; {said[-1500:]}", flush=True)
    return _measured(exchange, fault, seen)


def cut_off(hub: LocalHub, exchange: Exchange, times: int, folder: Path) -> list[Measurement]:
    """Kills the exchange at random moments. All has then arrived, or nothing has; and the same call gets all of it."""
    dice, bench = random.Random(exchange.name), _Bench(hub, exchange, folder)
    seen: dict[str, list[float]] = {"whole": [], "no_orphans": [], "equal": []}
    while len(seen["whole"]) < times:
        bench.afresh()
        process = bench.start()
        process.join(dice.uniform(0, bench.seconds))
        if process.exitcode is not None:
            continue  # done before its kill
        process.kill()
        process.join()
        seen["no_orphans"].append(float(orphans(process) == 0))
        seen["whole"].append(float(bench.result in (None, bench.straight)))
        seen["equal"].append(float(bench.is_done()))
        if not (seen["whole"][-1] and seen["equal"][-1]):
            print(f"{exchange.name}, kill -9: {bench.said[-1500:]}", flush=True)
    return _measured(exchange, "kill -9", seen)


def _measured(exchange: Exchange, fault: str, seen: dict[str, list[float]]) -> list[Measurement]:
    return [
        measurement("faults", exchange.name, {"fault": fault}, metric, values)
        for metric, values in seen.items()
        if values
    ]


def _says_one_sentence(said: str) -> bool:
    """Whether a command ended with a message of ours and not with a traceback."""
    return "Traceback" not in said and said.splitlines()[-1].startswith("hf-mech: ")
