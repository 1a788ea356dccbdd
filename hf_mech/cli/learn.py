"""The command `hf-mech learn`: a log of actions becomes a planning domain."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_mech.cli.console import open_console

if TYPE_CHECKING:
    from hf_mech.planning.logs import Log

_SHOWN = 5
"""The most events without an explanation, and rows without a meaning, that are printed."""

_MANY, _STRONGEST = 60, 3
"""Of more preconditions than these, those with exceptions are printed, and the strongest of each action."""

_PICTURES = (".png", ".svg", ".pdf")


def learn_log(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            show_default=False,
            help="Files, or folders of files: JSON lines, CSV, PDDL plans (.plan, .soln), XES; also with .gz.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The domain, in PDDL.")] = Path(
        "domain.pddl"
    ),
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of the domain, .png, .svg or .pdf.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Save a STRIPS Transformer of the domain here.", show_default=False),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, csv, plan or xes; by default, by the suffix.", show_default=False),
    ] = None,
    case: Annotated[str, typer.Option(help="The column of the case.")] = "case",
    time: Annotated[str, typer.Option(help="The column of the time; a number, or a date of ISO 8601.")] = "time",
    action: Annotated[str, typer.Option(help="The column of the action.")] = "action",
    arguments: Annotated[
        list[str] | None,
        typer.Option(help="The column of the arguments; repeat it for several.", show_default="arguments"),
    ] = None,
    ok: Annotated[str, typer.Option(help="The column that tells whether the action was done.")] = "ok",
    separator: Annotated[
        str | None, typer.Option(help="Between arguments in a text; by default white space.", show_default=False)
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between columns of CSV; by default, the header tells.", show_default=False)
    ] = None,
    problem: Annotated[
        Path | None,
        typer.Option(help="The PDDL problem of the plans, or the folder of their problems.", show_default=False),
    ] = None,
    own_objects: Annotated[
        bool, typer.Option("--own-objects", help="The objects of each case are its own, whatever they are called.")
    ] = False,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows that cannot be read, and name them.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print and draw every predicate, also those that say the same.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learn a planning domain from a log of actions with objects, some of which may have failed."""
    _check_targets(out, figure, save)
    from hf_mech.planning import BriefDomain, brief_domain, learn_lifted_domain, read_log

    how: dict[str, Any] = {"case": case, "time": time, "action": action, "ok": ok, "separator": separator}
    given = tuple(arguments or ["arguments"])
    log = read_log(
        logs,
        **how,
        arguments=given[0] if len(given) == 1 else given,
        delimiter=delimiter,
        format=format_,
        problem=problem,
        own_objects=own_objects,
        on_error="skip" if skip_bad_rows else "raise",
        progress=True,
    )
    learned = learn_lifted_domain(log.traces, log.labels, progress=True)
    shown = BriefDomain(learned.domain, 1.0) if full else brief_domain(learned)
    written = _write(learned, shown, out, figure, save)
    if as_json:
        typer.echo(json.dumps(_record(log, learned, written), indent=1, ensure_ascii=False))
    else:
        _print(log, learned, shown, written)


def _check_targets(out: Path, figure: Path | None, save: Path | None) -> None:
    """Refuses what cannot be written before the learning. Raises PlanningError, OutputError."""
    from hf_mech.hub.files import check_writable
    from hf_mech.planning.problem import PlanningError

    if figure is not None:
        if figure.suffix.lower() not in _PICTURES:
            raise PlanningError(f"--figure takes a name that ends with {', '.join(_PICTURES)}, got {str(figure)!r}.")
        if find_spec("matplotlib") is None:
            raise PlanningError("--figure needs matplotlib: pip install 'hf-mech[viz]'")
    for file in (out, figure):
        if file is not None:
            if file.is_dir():
                raise PlanningError(f"{file} is a folder; give the name of a file in it.")
            check_writable(file.absolute().parent)
    if save is not None:
        check_writable(save)


def _write(learned: Any, shown: Any, out: Path, figure: Path | None, save: Path | None) -> dict[str, Path]:
    """Writes the domain, its picture and its model, each whole or not at all; returns what was written."""
    from hf_mech.hub.files import replacing, write_text_atomically

    written = {"domain": write_text_atomically(out, learned.to_pddl())}
    if figure is not None:
        from hf_mech.planning.lifted_figures import lifted_figure

        with replacing(figure) as aside:
            lifted_figure(shown.domain).savefig(aside, dpi=110, format=figure.suffix[1:].lower())
        written["figure"] = figure
    if save is not None:
        from hf_mech.hub.checkpoint import save_checkpoint
        from hf_mech.models.strips import StripsTransformer

        save_checkpoint(StripsTransformer.from_domain(learned.domain), save)
        written["model"] = save
    return written


def _unexplained(log: Log, learned: Any) -> list[dict[str, Any]]:
    """The events that the learned domain does not explain, and their places in the log."""
    found = []
    for trace, position in learned.exceptions:
        place = log.places[trace][position]
        failed = bool(log.labels[trace][position])
        event = {"source": place.source, place.unit: place.number, "case": log.cases[trace]}
        found.append(event | {"action": str(log.traces[trace][position]), "failed": failed, "place": str(place)})
    return found


def _record(log: Log, learned: Any, written: dict[str, Path]) -> dict[str, Any]:
    unexplained = [{k: v for k, v in event.items() if k != "place"} for event in _unexplained(log, learned)]
    return {
        "log": {
            "cases": len(set(log.cases)),
            "events": log.events,
            "failed": log.failures,
            "skipped": [str(row) for row in log.skipped],
        },
        "domain": learned.domain.to_dict(),
        "facts": sorted(map(str, learned.facts)),
        "objects": {type_: list(own) for type_, own in learned.objects.items()},
        "preconditions": [
            {"action": own.action, "predicate": own.atom.predicate, "places": list(own.atom.places)}
            | {"held": own.needed, "not": own.broken, "expected": round(own.expected, 1)}
            for own in learned.explain()
        ],
        "bits": float(learned.bits),
        "unexplained": unexplained,
        "files": {name: str(path) for name, path in written.items()},
    }


def _print(log: Log, learned: Any, shown: Any, written: dict[str, Path]) -> None:
    from rich.text import Text

    from hf_mech.planning.lifted_figures import lifted_table

    console = open_console()
    console.print(Text(str(log)))
    for row in log.skipped[:_SHOWN]:
        console.print(Text(f"  skipped {row}"), soft_wrap=True)
    console.print()
    console.print(lifted_table(shown.domain))
    few, all_ = len(shown.domain.predicates), len(learned.domain.predicates)
    if few < all_:
        share = f"{shown.refused:.2%}"
        said = f"{few} of {all_} predicates: they refuse {share} of what all refuse in the states of the log."
        console.print(Text(f"\n{said} All: --full, and in {written['domain']}"))
    objects = [
        f"{type_}: {', '.join(own[:8])}{', ...' if len(own) > 8 else ''}" for type_, own in learned.objects.items()
    ]
    console.print(Text("\n".join(["", "Objects seen", *(f"  {line}" for line in objects)])))
    console.print()
    console.print(_support_table(log, learned, shown.domain))
    console.print()
    unexplained = _unexplained(log, learned)
    console.print(Text(f"{len(unexplained):,} of {log.events:,} events are not explained; {learned.bits:,.0f} bits"))
    for event in unexplained[:_SHOWN]:
        why = "failed, though the domain allows it" if event["failed"] else "was done, though the domain forbids it"
        console.print(Text(f"  {event['place']}: {event['action']} {why}"), soft_wrap=True)
    for name, path in written.items():
        console.print(Text(f"Wrote the {name}: {path}"), soft_wrap=True)


def _support_table(log: Log, learned: Any, shown: Any) -> Any:
    """How often an action was done while a precondition held, while it did not, and where: those shown or broken."""
    from rich.table import Table
    from rich.text import Text

    from hf_mech.models.strips.strips_lifted import ground_name
    from hf_mech.planning.lifted_figures import parameter_names

    table = Table("action", "needs", title="How sure", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.caption = (
        "held, not: how often the action was done while this was known to hold, and known not to hold; by chance: how "
        "often it would have been done while this did not hold, were it not needed"
    )
    table.caption_justify = "left"
    for heading in ("held", "not", "by chance"):
        table.add_column(heading, justify="right")
    table.add_column("where not")
    names = {action.name: parameter_names(action) for action in learned.domain.actions}
    last, supports, left_out = None, list(learned.explain()), 0
    supports = [own for own in supports if own.broken or own.atom in shown.by_name[own.action].pre]
    supports.sort(key=lambda own: (list(names).index(own.action), -own.broken, -own.expected))
    strongest = {id(own) for name in names for own in [each for each in supports if each.action == name][:_STRONGEST]}
    for own in supports:
        if len(supports) > _MANY and not own.broken and id(own) not in strongest:
            left_out += 1
            continue
        atom = ground_name(own.atom.predicate, [names[own.action][place] for place in own.atom.places])
        places = "; ".join(str(log.places[trace][position]) for trace, position in own.exceptions[:2])
        numbers = (f"{own.needed:,}", f"{own.broken:,}", f"{own.expected:,.0f}")
        table.add_row(Text("" if own.action == last else own.action, "bold"), Text(atom), *numbers, Text(places))
        last = own.action
    if left_out:
        table.caption += f". {left_out:,} more without exceptions: --json"
    return table
