"""From the cells' outcomes to the figures of results.json, the card of a domain, and Table 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset_builder

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.models.strips import StripsDomain, StripsTransformer, strips_tokenizer
from hf_mech.planning.equivalence import Equivalence, find_distinguishing_trace
from hf_mech.planning.pddl import write_pddl
from hf_mech.planning.problem import StripsProblem, reachable_states

from ..engine.card import Card, Checkpoint
from ..engine.tables import Table
from .figures import figures_of
from .run import CellOutcome
from .settings import DATASET, PAPER, Cell

TRAIN, TEST = "train_trace_accuracy", "test_trace_accuracy"
BEST = "test_trace_accuracy_of_best_training_seed"
_SHOWN = ("num_train", "head_factor", "data_seed", "preset")
_PROOF = {True: "**proved it equal** to", False: "proved it different from", None: "could not decide it against"}


def order(outcome: CellOutcome) -> tuple[Any, ...]:
    """The order of Table 1."""
    return outcome.settings.domain, outcome.settings.head_factor, outcome.settings.num_train, outcome.settings.name


def card(outcomes: Mapping[Path, CellOutcome]) -> Card:
    """The card of a domain; its checkpoint is the best member of the largest cell, chosen by training accuracy."""

    def merit(folder: Path) -> tuple[Any, ...]:
        outcome = outcomes[folder]
        cell, best = outcome.settings, max(outcome.train_trace_accuracy)
        return cell.head_factor == 1, not cell.departures, cell.num_train, best, cell.preset == "redraw"

    folder = max(outcomes, key=merit)
    chosen, domain = outcomes[folder], outcomes[folder].settings.domain
    problem = problem_of(chosen.settings)
    hidden = problem.domain
    model = StripsTransformer.from_pretrained(folder / "model").member(chosen.best)
    learned = model.to_domain(name=f"{domain}-learned")
    verdicts = {path: on_instances(outcome, problem) for path, outcome in outcomes.items()}
    measured = [m for path, outcome in outcomes.items() for m in measurements(outcome, verdicts[path])]
    proved = find_distinguishing_trace(learned, hidden, initial_states=reachable_states(problem)).equivalent
    judged = [(outcome, verdicts[path]) for path, outcome in outcomes.items()]
    same = setting_of(chosen.settings) | {"num_train": None}
    curve = [m for m in measured if m.metric == TEST and m.setting | {"num_train": None} == same]
    return Card(
        name=f"strips-{chosen.settings.labels[0]}",
        outcomes=list(outcomes.values()),
        measured=measured,
        text={
            "domain": domain,
            "actions": len(hidden.actions),
            "propositions": len(hidden.propositions),
            "seeds": len(chosen.train_trace_accuracy),
            "num_train": chosen.settings.num_train,
            "proof": _PROOF[proved],
            "best": BEST,
            "first": hidden.action_names[0],
        },
        model_class="StripsTransformer",
        paper="nunezmolina2025strips",
        task="token-classification",
        tags=["strips", "planning", "world-model", "interpretability"],
        headline=[TEST],
        figures=figures_of(chosen, problem, learned, model, curve, judged),
        files={"learned_domain.pddl": write_pddl(learned)[0]},
        checkpoint=Checkpoint(model, strips_tokenizer(model.config.actions)),
    )


def problem_of(cell: Cell) -> StripsProblem:
    """The hidden problem of a cell's data set."""
    return load_dataset_builder(DATASET, cell.domain, **cell.data).problem


def on_instances(outcome: CellOutcome, problem: StripsProblem) -> list[Equivalence]:
    """Each seed's domain against the hidden one, on the traces of the hidden domain's instances."""
    states = reachable_states(problem)
    learned = [StripsDomain.from_dict(domain) for domain in outcome.domains]
    return [find_distinguishing_trace(domain, problem.domain, initial_states=states) for domain in learned]


def setting_of(cell: Cell) -> dict[str, Any]:
    """The setting of a cell's figures."""
    departures = {name: value for name, value in cell.departures.items() if name not in _SHOWN}
    return {name: getattr(cell, name) for name in _SHOWN} | ({"departures": departures} if departures else {})


def measure(cell: Cell, metric: str, values: Sequence[float | bool | None]) -> Measurement:
    """One metric of a cell; the paper's figure stands beside it where the number of heads is the paper's."""
    setting = setting_of(cell)
    paper = PAPER.figure(metric, domain=cell.domain, num_train=cell.num_train) if cell.head_factor == 1 else None
    return measurement(DATASET, cell.domain, setting, metric, [float(value or 0) for value in values], paper)


def accuracies(outcome: CellOutcome) -> list[Measurement]:
    """The cell's accuracy in training, in the test, and in the test for the seed that was best in training."""
    best = [outcome.test_trace_accuracy[outcome.best]]
    values = (outcome.train_trace_accuracy, outcome.test_trace_accuracy, best)
    return [measure(outcome.settings, name, own) for name, own in zip((TRAIN, TEST, BEST), values, strict=True)]


def measurements(outcome: CellOutcome, verdicts: Sequence[Equivalence]) -> list[Measurement]:
    """All figures of a cell, with the verdicts on its seeds' domains."""
    instances = [verdict.equivalent for verdict in verdicts]
    values: dict[str, Sequence[float | bool | None]] = {
        "proved_on_instances": instances,
        "proved_on_all_sequences": outcome.equivalent,
        "undecided": [None in pair for pair in zip(instances, outcome.equivalent, strict=True)],
        "redraws": outcome.redraws,
        "steps": [outcome.steps],
        "seconds": [outcome.seconds],
    }
    if outcome.settings.head_factor != 1:
        found = [count for count in outcome.propositions_found if count is not None]
        values |= {"propositions_found": found} if found else {}
        values |= {
            "reductions_undecided": [len(outcome.propositions_found) - len(found)],
            "propositions_hidden": [outcome.propositions_hidden],
            "propositions_needed": [outcome.propositions_needed],
        }
    return [*accuracies(outcome), *(measure(outcome.settings, name, own) for name, own in values.items())]


# ------------------------------------------------------------------------------------------------------------- tables


def table(outcomes: Sequence[CellOutcome]) -> Table:
    """Table 1 for the terminal: ours beside the paper's, mean ± std over seeds (the seed that was best in training)."""
    measured = [">train", ">test", ">paper's test", ">proved", ">steps", ">time"]
    shown = Table(["domain", ">traces", ">heads", ">preset", *measured])
    for outcome in outcomes:
        cell = outcome.settings
        train, test, best = accuracies(outcome)
        shown.rows.append(
            [
                *(cell.domain, str(cell.num_train), f"x{cell.head_factor:g}", cell.preset),
                f"{_spread(train)} ({outcome.train_trace_accuracy[outcome.best]:.3f})",
                f"{_spread(test)} ({best.mean:.3f})",
                f"{_spread(test.paper)} ({best.paper.mean:.3f})" if test.paper and best.paper else "",
                f"{sum(v is True for v in outcome.equivalent)} of {len(outcome.equivalent)}",
                *(f"{outcome.steps:,}", f"{outcome.seconds:.0f} s"),
            ]
        )
    return shown


def table1(cards: Path) -> Table:
    """Table 1 from the cards: a row a cell, ours beside the paper's."""
    heads = ["domain", ">traces", "train", "test", "paper's train", "paper's test"]
    table = Table([*heads, ">proved: instances", ">all sequences", ">steps"])
    above: list[str] = []
    below: list[str] = []
    for (domain, size), cell in cells_of(cards):
        table.rows.append(_row(domain, size, cell))
        test = cell[TEST]
        if test.paper and test.paper.std is not None:
            (below if test.mean < test.paper.mean - test.paper.std else above).append(f"{domain} {size}")
    table.notes.append(
        f"At least the paper's test mean less one of its standard deviations: {len(above)} cells. Below: {len(below)}"
        + (f" ({', '.join(below)})." if below else ".")
    )
    return table


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    return {"strips-table-1": table1(cards).markdown()}


def summary(cards: Path) -> list[list[str]]:
    """One row for the largest cells of all domains."""
    largest = list({domain: cell for (domain, _), cell in cells_of(cards)}.values())
    if not largest:
        return []
    proved = [proof for cell in largest for proof in cell["proved_on_instances"].values]
    papers = [cell[TEST].paper for cell in largest]
    return [
        [
            f"[STRIPS](docs/results/strips.md), {len(largest)} domains at their most traces",
            "test accuracy, lowest and highest of the domains; seeds proved right",
            f"{_range([cell[TEST].mean for cell in largest])}; {sum(proved):.0f} of {len(proved)}",
            _range([paper.mean for paper in papers if paper]),
            "no",
        ]
    ]


def _range(means: list[float]) -> str:
    return f"{min(means):.3f}, {max(means):.3f}" if means else ""


def cells_of(cards: Path) -> Iterable[tuple[tuple[str, int], dict[str, Measurement]]]:
    """The cells of Table 1 that the cards hold, domain by domain: each metric's figure."""
    for file in sorted(cards.glob("strips-*/results.json")):
        cells: dict[tuple[str, int], dict[str, Measurement]] = {}
        for entry in Results.load(file).results:
            setting = entry.setting
            chosen = (setting["preset"], setting["head_factor"], setting["data_seed"], "departures" in setting)
            if chosen == ("redraw", 1, 0, False):
                cells.setdefault((entry.config or "", entry.setting["num_train"]), {})[entry.metric] = entry
        yield from sorted(cells.items())


def _row(domain: str, size: int, cell: dict[str, Measurement]) -> list[str]:
    train, test, best = cell[TRAIN], cell[TEST], cell[BEST]
    proofs = [cell["proved_on_instances"], cell["proved_on_all_sequences"]]
    return [
        *(domain, str(size), _spread(train), f"{_spread(test)} ({best.mean:.3f})", _spread(train.paper)),
        f"{_spread(test.paper)} ({best.paper.mean:.3f})" if test.paper and best.paper else "",
        *(f"{sum(proved.values):.0f} of {proved.n}" for proved in proofs),
        f"{cell['steps'].mean:,.0f}",
    ]


def _spread(figure: Measurement | PaperFigure | None) -> str:
    return "" if figure is None else f"{figure.mean:.3f} ± {figure.std or 0:.3f}"
