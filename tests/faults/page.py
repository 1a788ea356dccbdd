"""docs/faults.md, from docs/faults.json."""

from __future__ import annotations

from pathlib import Path

from hf_mech.hub import Measurement, Results
from training.engine.tables import Table

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
JSON = PAGE.with_suffix(".json")
_TEXT = """\
# Faults: killed runs, full disks, a failing Hub

Rendered by `python -m tests.faults` from [faults.json](faults.json), which the same command makes. Every piece of work
is small and is first done in one go. Then it is hit by faults at moments drawn at random, and done again until it is
finished. All counts full is what we promise; what is less is open. The tables have what was run so far: `make faults`
runs the rest, and nothing twice.

## `kill -9`

Up to three kills in a row, at any moment of the work; then the same command runs to its end. *Whole files*: after the
kill every file with its final name can be read, saved training states included. *Nothing left behind*: no process goes
on ten seconds later. *Equal in the end*: finished works that are equal to the one in one go, weights bit for bit; fewer
than kills where a work took several, more where it was done before one came.

{kills}

## A full disk

The work runs on a disk that has room for a random part of what it needs. Then there is room, and the same command runs
again. *Says so*: a command's last line names the disk; `load_dataset` has an error of its own, after the system's.

{disk}

`language_models` trains by the Trainer, which writes a checkpoint in place, file by file, and its `trainer_state.json`
last. One full disk left such a checkpoint with half an optimizer. The next run removes it, as it has no last file, so
the end is equal.

## A failing Hub

The real clients, and a Hub on this machine. A slow one waits a second before every answer. The other faults hit one
request that is drawn at random: once, or each time that it is repeated. huggingface_hub repeats some requests and gives
up on others. *Arrived*: all of it, at the first call. If not, `hf-mech push` ends with one sentence that says what the
repository holds; the other two end with the errors of their libraries. *Ended*: within five minutes. *Equal in the
end*: after the same call without a fault. Each row has requests of its own draw, and of some the libraries can do
without the answer, so a fault for ever is not always worse than one. No repository ever had a commit with a part of
the files.

{hub}

{origin}
"""


def render() -> str:
    """The page."""
    results = Results.load(JSON)
    found: dict[tuple[str, str], dict[str, Measurement]] = {}
    for entry in results.results:
        found.setdefault((entry.setting["fault"], str(entry.config)), {})[entry.metric] = entry
    hub = [key for key in found if key[0] not in ("kill -9", "full disk")]
    cpu = results.machine["cpu"]
    return _TEXT.format(
        kills=_table(
            found,
            [key for key in found if key[0] == "kill -9"],
            {"whole": "whole files", "no_orphans": "nothing left behind", "equal": "equal in the end"},
        ),
        disk=_table(
            found,
            [key for key in found if key[0] == "full disk"],
            {"says_so": "says so", "whole": "whole files", "equal": "equal in the end"},
        ),
        hub=_table(
            found,
            hub,
            {"arrived": "arrived", "one_sentence": "one sentence", "ended": "ended", "equal": "equal in the end"},
        ),
        origin=f"Made on {cpu}, {results.machine['cores']} cores, the last of them at commit {results.commit[:7]}.",
    )


def _table(
    found: dict[tuple[str, str], dict[str, Measurement]], keys: list[tuple[str, str]], heads: dict[str, str]
) -> str:
    several = len({fault for fault, _ in keys}) > 1
    timed = any("seconds" in found[key] for key in keys)
    table = Table(
        [
            "work",
            *(["fault"] if several else []),
            *(f">{head}" for head in heads.values()),
            *([">seconds"] if timed else []),
        ]
    )
    for fault, work in keys:
        entries = found[fault, work]
        cells = [_count(entries.get(metric)) for metric in heads]
        seconds = [f"{min(s.values):.0f} to {max(s.values):.0f}"] if (s := entries.get("seconds")) else []
        table.rows.append([f"{work}", *([fault] if several else []), *cells, *seconds])
    return table.markdown()


def _count(entry: Measurement | None) -> str:
    return f"{sum(entry.values):.0f} of {entry.n}" if entry else ""


def write_page() -> None:
    PAGE.write_text(render(), encoding="utf-8")
    print(f"{PAGE.name} written.")
