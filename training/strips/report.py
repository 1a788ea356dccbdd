"""From the cells' outcomes to the figures of results.json, the card of a domain, and Table 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

from datasets import load_dataset_builder

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.models.strips import StripsDomain, StripsTransformer, strips_tokenizer
from hf_mech.planning.equivalence import Equivalence, find_distinguishing_trace
from hf_mech.planning.pddl import BUNDLED, load_bundled, write_pddl
from hf_mech.planning.problem import StripsProblem, reachable_states

from ..engine.card import Card, Checkpoint
from ..engine.tables import Table
from .figures import figures_of
from .run import CellOutcome
from .settings import DATASET, OTHER_DATA, PAPER, Cell

TRAIN, TEST = "train_trace_accuracy", "test_trace_accuracy"
BEST = "test_trace_accuracy_of_best_training_seed"
_PAPERS = PAPER.values("domain")
_SHOWN = ("num_train", "head_factor", "data_seed", "preset")
_PROOF = {
    True: "**proved it equal** to the hidden domain on all traces that its instances can show",
    False: "proved that it differs from the hidden domain on at least one trace that its instances can show",
    None: "could not decide whether it equals the hidden domain on all traces that its instances can show",
}


def order(outcome: CellOutcome) -> tuple[Any, ...]:
    """The order of Table 1."""
    return outcome.settings.domain, outcome.settings.head_factor, outcome.settings.num_train, outcome.settings.name


def card(outcomes: Mapping[Path, CellOutcome]) -> Card:
    """The card of a domain; its checkpoint is the best member of the largest cell, chosen by training accuracy."""

    def merit(folder: Path) -> tuple[Any, ...]:
        outcome = outcomes[folder]
        cell, best = outcome.settings, max(outcome.train_trace_accuracy)
        presets = list(Cell.PRESETS)
        rank = presets.index(cell.preset) if cell.preset in presets else -1
        return cell.head_factor == 1, not cell.departures, cell.num_train, best, rank, -cell.data_seed

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
        name=f"strips-{chosen.settings.card}",
        outcomes=list(outcomes.values()),
        measured=measured,
        text={
            "domain": domain,
            "actions": len(hidden.actions),
            "propositions": len(hidden.propositions),
            "seeds": len(chosen.train_trace_accuracy),
            "num_train": chosen.settings.num_train,
            "preset": chosen.settings.preset,
            "proof": _PROOF[proved],
            "best": BEST,
            "first": hidden.action_names[0],
        },
        model_class="StripsTransformer",
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
    """One metric of a cell; the paper's figure stands beside it where heads and training traces are the paper's."""
    setting = setting_of(cell)
    others = cell.head_factor != 1 or ({*OTHER_DATA} - {"test_negatives"}) & {*cell.departures}
    paper = None if others else PAPER.figure(metric, domain=cell.domain, num_train=cell.num_train)
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
        **({"redraws": outcome.redraws} if outcome.code_bits is None else {"code_bits": outcome.code_bits}),
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
    """Table 1 from the cards: a row a cell, the presets beside the paper."""
    cells = list(cells_of(cards, of_paper=True))
    presets = [name for name in Cell.PRESETS if any(name in cell for _, cell in cells)]
    table = Table(["domain", ">traces", "the paper's", *presets, *(f">proved: {name}" for name in presets)])
    short: dict[str, list[str]] = {name: [] for name in presets}
    for (domain, size), cell in cells:
        paper = next((m.paper for kind in cell.values() for m in kind[TEST] if m.paper), None)
        shown, proved = [], []
        for name in presets:
            if name not in cell:
                shown.append("")
                proved.append("")
                continue
            tests, proofs = cell[name][TEST], cell[name]["proved_on_instances"]
            figure = _over_data(tests)
            shown.append(figure.shown)
            proved.append(f"{sum(sum(m.values) for m in proofs):.0f} of {sum(m.n for m in proofs)}")
            if paper and round(figure.mean, 3) < paper.mean:  # the paper's figures have three decimals
                short[name].append(f"{domain} {size}")
        table.rows.append([domain, str(size), _spread(paper), *shown, *proved])
    for name, missed in short.items():
        done = sum(name in cell for _, cell in cells)
        table.notes.append(
            f"`{name}`: {done - len(missed)} of {done} cells at or above the paper's mean"
            + (f"; below: {', '.join(missed)}." if missed else ".")
        )
    return table


def larger_table(cards: Path) -> Table:
    """Domains that the paper does not have: a row a domain and size; accuracy, proofs and time of the presets."""
    cells = list(cells_of(cards, of_paper=False))
    presets = [name for name in Cell.PRESETS if any(name in cell for _, cell in cells)]
    columns = [(f">{name}", f">proved: {name}", f">seconds a seed: {name}") for name in presets]
    table = Table(["domain", ">actions", ">propositions", ">traces", *(name for own in columns for name in own)])
    for (domain, size), cell in cells:
        hidden = load_bundled(domain).domain if domain in BUNDLED else None
        shown = []
        for name in presets:
            kinds = cell.get(name, {})
            times = [m.mean / kinds[TEST][0].n for m in kinds.get("seconds", [])]
            proofs = kinds.get("proved_on_instances", [])
            shown += [
                _over_data(kinds[TEST]).shown if kinds else "",
                f"{sum(sum(m.values) for m in proofs):.0f} of {sum(m.n for m in proofs)}" if kinds else "",
                f"{sum(times) / len(times):,.1f}" if times else "",
            ]
        counts = (len(hidden.actions), len(hidden.propositions)) if hidden else ("", "")
        table.rows.append([domain, *map(str, counts), str(size), *shown])
    return table


_BESIDE = ("num_test", "shortest_only")
"""Departures that a row of other traces may have besides: fewer tests where there are no more, and another answer."""


def assumptions_table(cards: Path) -> Table:
    """What other traces than Table 1's make of the learners: a row a domain, size and departure, the presets beside
    each other; of several heads a proposition, also how often the true number of propositions is left."""
    rows: dict[tuple[str, int, str], Kinds] = {}
    for file in sorted(cards.glob("strips-*/results.json")):
        for entry in Results.load(file).results:
            setting = entry.setting
            departures = dict(setting.get("departures", {}))
            other = not departures.keys().isdisjoint(OTHER_DATA) or setting["head_factor"] != 1
            if other and departures.keys() <= {*OTHER_DATA, *_BESIDE}:
                told = departures | ({"head_factor": setting["head_factor"]} if setting["head_factor"] != 1 else {})
                place = (entry.config or "", setting["num_train"], ", ".join(f"{k} {v}" for k, v in told.items()))
                kinds = rows.setdefault(place, {}).setdefault(setting["preset"], {})
                kinds.setdefault(entry.metric, []).append(entry)
    presets = [name for name in Cell.PRESETS if any(name in cell for cell in rows.values())]
    found = [f">right number: {name}" for name in presets]
    table = Table(
        ["domain", ">traces", "departure", "the paper's", *presets, *(f">proved: {name}" for name in presets), *found]
    )
    for (domain, size, departure), cell in sorted(rows.items()):
        shown: list[list[str]] = [[], [], []]
        for name in presets:
            kinds = cell.get(name, {})
            shown[0].append(_over_data(kinds[TEST]).shown if kinds else "")
            proofs = kinds.get("proved_on_instances", [])
            shown[1].append(f"{sum(sum(m.values) for m in proofs):.0f} of {sum(m.n for m in proofs)}" if kinds else "")
            shown[2].append(_right_number(kinds))
        paper = next((m.paper for kinds in cell.values() for m in kinds[TEST] if m.paper), None)
        table.rows.append([domain, str(size), departure, _spread(paper), *shown[0], *shown[1], *shown[2]])
    return table.without_empty_columns()


def _right_number(kinds: Mapping[str, Sequence[Measurement]]) -> str:
    """How many seeds ended with as many propositions as are needed; empty where nobody counted."""
    counted = kinds.get("propositions_found", [])
    needed = {str(m.setting): m.values[0] for m in kinds.get("propositions_needed", [])}
    right = sum(count == needed[str(m.setting)] for m in counted for count in m.values)
    return f"{right} of {sum(m.n for m in counted)}" if counted else ""


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    return {
        "strips-table-1": table1(cards).markdown(),
        "strips-assumptions": assumptions_table(cards).markdown(),
        "strips-larger": larger_table(cards).markdown(),
    }


def summary(cards: Path) -> list[list[str]]:
    """A row for each preset that has the largest cells of all domains."""
    largest = {domain: cell for (domain, _), cell in cells_of(cards, of_paper=True)}
    rows = []
    for name in Cell.PRESETS:
        cells = [cell[name] for cell in largest.values() if name in cell]
        if not cells or len(cells) < len(largest):
            continue
        proved = [proof for cell in cells for m in cell["proved_on_instances"] for proof in m.values]
        papers = [m.paper for cell in cells for m in cell[TEST][:1]]
        rows.append(
            [
                f"[STRIPS](docs/results/strips.md), `{name}`, {len(cells)} domains at their most traces",
                "test accuracy, lowest and highest of the domains; seeds proved right",
                f"{_range([_over_data(cell[TEST]).mean for cell in cells])}; {sum(proved):.0f} of {len(proved)}",
                _range([paper.mean for paper in papers if paper]),
                "no",
            ]
        )
    return rows


def _range(means: list[float]) -> str:
    return f"{min(means):.3f}, {max(means):.3f}" if means else ""


Kinds = dict[str, dict[str, list[Measurement]]]
"""A cell's figures by preset and metric, one a data seed."""


def cells_of(cards: Path, of_paper: bool) -> Iterable[tuple[tuple[str, int], Kinds]]:
    """The cells that the cards hold of Table 1's domains, or of others, domain by domain; heads are as many as
    propositions."""
    cells: dict[tuple[str, int], Kinds] = {}
    for file in sorted(cards.glob("strips-*/results.json")):
        for entry in Results.load(file).results:
            setting = entry.setting
            if setting["head_factor"] != 1 or "departures" in setting or (entry.config in _PAPERS) != of_paper:
                continue
            kinds = cells.setdefault((entry.config or "", setting["num_train"]), {})
            kinds.setdefault(setting["preset"], {}).setdefault(entry.metric, []).append(entry)
    return sorted(cells.items())


class _Spread(NamedTuple):
    mean: float
    shown: str


def _over_data(figures: Sequence[Measurement]) -> _Spread:
    """The mean over data seeds, with two spreads: of the data seeds' means, and that within one data seed."""
    means = [figure.mean for figure in figures]
    within = sum(figure.std or 0 for figure in figures) / len(figures)
    mean = sum(means) / len(means)
    if len(means) == 1:
        return _Spread(mean, f"{mean:.3f} ± {within:.3f}")
    return _Spread(mean, f"{mean:.3f} ± {stdev(means):.3f} ± {within:.3f}")


def _spread(figure: Measurement | PaperFigure | None) -> str:
    return "" if figure is None else f"{figure.mean:.3f} ± {figure.std or 0:.3f}"
