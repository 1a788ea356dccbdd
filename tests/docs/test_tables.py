"""The figures in README.md and in the cards are those of the runs."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean, median

import pytest

from hf_mech.hub import check_folder

ROOT = Path(__file__).parents[2]
CARDS = sorted(path.parent for path in (ROOT / "docs" / "results").glob("*/results.json"))

ACCURACIES = ("token_accuracy", "exact_match", "path_accuracy")

pytestmark = pytest.mark.docs


@pytest.mark.parametrize("card", CARDS, ids=lambda path: path.name)
def test_card_is_the_rendering_of_its_results(card: Path) -> None:
    check_folder(card)


def test_tables_are_the_rendering_of_the_results() -> None:
    subprocess.run([sys.executable, "-m", "training.render_readme", "--check"], cwd=ROOT, check=True)


def test_there_are_cards_to_check() -> None:
    assert {"strips-simple", "strips-blocksworld-3b"} <= {card.name for card in CARDS}


def test_what_the_stacks_readme_says_of_nested_brackets():
    """Its figures of modular_arithmetic are those of the card."""
    entries = json.loads((ROOT / "docs/results/stack-modular-arithmetic/accuracy_by_length.json").read_text())
    runs = {}
    for entry in entries:
        setting = entry["setting"]
        if setting["layout"] == "mlm":
            runs[setting["model"], setting.get("max_train_length", 40)] = entry["accuracy"]

    def percent(model: str, trained: int, *lengths: int) -> str:
        return f"{100 * fmean(value for length in lengths for value in runs[model, trained][str(length)]):.0f}"

    text = " ".join((ROOT / "hf_mech/models/stack/README.md").read_text(encoding="utf-8").split())
    for said, trained, lengths in (
        ("length 1, MLM: {} % with a stack, {} % without", 40, (1,)),
        ("length 5: {} % with a stack, {} % without", 13, (5,)),
        ("length 9: {} and {} %", 13, (9,)),
        ("of all these lengths {} and {} %", 13, range(1, 14)),
    ):
        assert said.format(*(percent(model, trained, *lengths) for model in ("stack", "vanilla"))) in text


@pytest.mark.parametrize(
    ("notebook", "said", "results", "setting"),
    [
        ("stack", "without the stack, is right on {} %", "model_cards/no-stack-reverse-string", {}),
        ("programs", "completes {} % of the prompts", "model_cards/gpt2-templatic", {}),
        (
            "belief_states",
            "a forward-only model is right on {} %",
            "docs/results/belief-state-star-graphs",
            {"model": "forward_only"},
        ),
        ("belief_states", "with its {} %", "docs/results/belief-state-star-graphs", {"model": "bst"}),
    ],
)
def test_what_the_notebooks_say_of_other_runs(notebook: str, said: str, results: str, setting: dict[str, str]):
    entries = json.loads((ROOT / results / "results.json").read_text(encoding="utf-8"))["results"]
    fits = (entry for entry in entries if setting.items() <= entry["setting"].items())
    figure = f"{100 * next(entry['mean'] for entry in fits if entry['metric'] in ACCURACIES):.1f}"
    text = " ".join((ROOT / f"docs/notebooks/{notebook}.md").read_text(encoding="utf-8").split())
    assert said.format(figure) in text


@pytest.mark.parametrize(
    ("said", "file", "setting", "metric", "digits"),
    [
        ("stories made | {:,.0f} a second", "benchmarks/data_sets", {"name": "stories"}, "rows_per_cpu_second", -2),
        (
            "graphs G(2,5) made | {:,.0f} a second",
            "benchmarks/data_sets",
            {"name": "star_graph"},
            "rows_per_cpu_second",
            -4,
        ),
        ("a second, {:.0f} bytes each", "benchmarks/data_sets", {"name": "stories"}, "bytes_per_row", 0),
        ("a second, {:.1f} bytes each", "benchmarks/data_sets", {"name": "star_graph"}, "bytes_per_row", 1),
        ("of 16 in {:,.0f} s", "docs/results/belief-state-stories-cpu-long/results", {"model": "bst"}, "seconds", -1),
        ("of 64 in {:.0f} s", "docs/results/belief-state-star-graphs/results", {"model": "bst"}, "training_seconds", 0),
        ("of 256 tokens | {:.2f} s", "benchmarks/belief_state_training", {"side": "forward-only"}, "seconds", 2),
        ("all pairs | {:.2f} s", "benchmarks/belief_state_training", {"side": "all pairs"}, "seconds", 2),
        (
            "32 rows of 128 tokens | {:.4f} s",
            "benchmarks/stack_attention",
            {"form": "compiled", "length": 128, "threads": 1, "batch": 32},
            "seconds",
            4,
        ),
        ("a step | {:.2f} (one", "benchmarks/stack_gpt2_step", {"form": "stack", "threads": 1}, "cost_over_vanilla", 2),
        ("thread), {:.2f} (two", "benchmarks/stack_gpt2_step", {"form": "stack", "threads": 2}, "cost_over_vanilla", 2),
    ],
)
def test_what_the_sums_on_scale_start_from(said: str, file: str, setting: dict[str, object], metric: str, digits: int):
    entries = json.loads((ROOT / f"{file}.json").read_text(encoding="utf-8"))["results"]
    fits = (entry for entry in entries if entry["metric"] == metric and setting.items() <= entry["setting"].items())
    text = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    assert said.format(round(next(fits)["mean"], digits)) in text


@pytest.mark.parametrize(
    ("said", "side", "length"),
    [("takes {:.2f} GB, block by", "blocks", 512), ("takes {:.2f} GB for 64", "listing", 64)],
)
def test_what_the_readme_of_belief_states_says_of_memory(said: str, side: str, length: int) -> None:
    entries = json.loads((ROOT / "benchmarks/belief_state_objective.json").read_text(encoding="utf-8"))["results"]
    wanted = {"side": side, "length": length, "vocabulary": 50_000}
    (entry,) = (entry for entry in entries if wanted.items() <= entry["setting"].items())
    text = (ROOT / "hf_mech/models/belief_state/README.md").read_text(encoding="utf-8")
    assert said.format(entry["mean"] / 1_000) in text


@pytest.mark.parametrize(("size", "said"), [("small", "takes {} to {} times"), ("bench", "and {} to {} times")])
def test_what_the_readme_of_stacks_says_of_generation(size: str, said: str) -> None:
    entries = json.loads((ROOT / "benchmarks/stack_gpt2_generation.json").read_text(encoding="utf-8"))["results"]
    times = [
        median(entry["values"])
        for entry in entries
        if entry["metric"] == "times_vanilla" and entry["setting"]["size"] == size
    ]
    text = (ROOT / "hf_mech/models/stack/README.md").read_text(encoding="utf-8")
    assert said.format(f"{min(times):.2f}", f"{max(times):.2f}") in text
