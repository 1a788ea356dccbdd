"""Star graphs by `load_dataset`: names and arguments, rows, splits, processes, streaming, and settings refused."""

from collections import Counter

import numpy as np
import pytest
from datasets import Dataset, get_dataset_config_names, load_dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data import local_datasets
from hf_mech.data.random_numbers import Dice
from hf_mech.dataset_builders.star_graph import StarGraphs
from hf_mech.hub import export_dataset
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs import (
    COUNTEREXAMPLES,
    StarGraph,
    inference_prompts,
    parity_graph,
    parity_rows,
    star_graph_tokenizer,
)
from hf_mech.lookahead.star_graphs.graphs import PARTS, check_split, in_split
from hf_mech.lookahead.star_graphs.rows import StarGraphSettings

NAME = "hf_mech/star_graph"


def load(name, **changes):
    return load_dataset(NAME, name, **{"num_train": 300, "num_test": 40, **changes})


def array(rows: Dataset, column: str = "input_ids") -> np.ndarray:
    return np.array(rows[column][:])


def graphs_of(graph: StarGraph, rows: Dataset) -> set[frozenset[tuple[int, int]]]:
    """Each graph as the set of its edges, by Python's own sets."""
    edges = graph.edges_of(array(rows)).tolist()
    return {frozenset((parent, child) for parent, child in graph) for graph in edges}


@pytest.mark.parametrize(
    ("name", "changes", "graph"),
    [
        ("g-2-5", {}, StarGraph(2, 5)),
        ("g-5-5", {"num_nodes": 30}, StarGraph(5, 5, 30)),
        ("g-2-20", {}, StarGraph(2, 20)),
        ("g-7-4", {}, StarGraph(7, 4)),
        ("g-1-30", {"degree": 1, "length": 30}, StarGraph(1, 30)),
        (None, {"degree": 3, "length": 4}, StarGraph(3, 4)),
        (None, {"num_nodes": 20}, StarGraph(2, 5, 20)),
        ("g-3-3", {"directed": False}, StarGraph(3, 3, directed=False)),
    ],
)
def test_any_graph_by_its_name_or_by_arguments(name, changes, graph):
    splits = load(name, **changes)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 300, "test": 40}
    tokenizer = star_graph_tokenizer(graph)
    for rows in splits.values():
        assert rows.column_names == ["input_ids", "labels"]
        ids, labels = array(rows), array(rows, "labels")
        assert ids.shape == (300 if rows is splits["train"] else 40, graph.row_length)
        assert (labels[:, : graph.prompt_length] == -100).all()
        assert (labels[:, graph.prompt_length :] == ids[:, graph.prompt_length :]).all()
        for row in ids.tolist():
            edges, question = tokenizer.decode(row).split("/")
            pairs = [tuple(map(int, edge.split(","))) for edge in edges.split("|")]
            start, goal = map(int, question.split("=")[0].split(","))
            path = question.split("=")[1].removesuffix("<eos>").split(",")
            prompt = graph.encode(pairs, start, goal).tolist()  # it is a star
            assert row == [*prompt, *map(int, path), graph.end_token]
            assert (int(path[0]), int(path[-1]), len(path)) == (start, goal, graph.length)
            steps = set(zip(map(int, path), map(int, path[1:]), strict=False))
            assert all(step in pairs or (not graph.directed and step[::-1] in pairs) for step in steps)


def test_the_listed_configs():
    assert get_dataset_config_names(NAME) == ["g-2-5", "g-5-5", "g-2-20", "parity", "theorem-3", "theorem-4"]
    assert get_dataset_config_names(NAME) == [config.name for config in StarGraphs.BUILDER_CONFIGS]
    info = load("g-3-3")["train"].info
    assert "G(3,3): 3 arms of 3 nodes" in info.description
    assert "Belief State" in info.citation
    assert NAME in local_datasets.local_dataset_names()


@pytest.mark.parametrize("seeds", [(0, 0), (3, 4)])
def test_no_graph_is_in_both_splits(seeds):
    """So few graphs that most of them are drawn: 360 of them, 22 for testing. Neither edge order nor goal hides one."""
    graph = StarGraph(2, 3, 6)
    train = load("g-2-3", num_nodes=6, num_train=337, num_test=1, seed=seeds[0])["train"]
    test = load("g-2-3", num_nodes=6, num_train=1, num_test=22, seed=seeds[1])["test"]
    assert graphs_of(graph, train).isdisjoint(graphs_of(graph, test))
    assert len(graphs_of(graph, train)) > 180
    assert len(graphs_of(graph, test)) > 8


def test_the_split_of_a_graph_is_that_of_all_its_rows():
    graph = StarGraph(2, 3, 6)
    rows = graph.draw(20_000, np.random.default_rng(0))
    split = dict.fromkeys(("train", "test"))
    for name in split:
        split[name] = {frozenset(map(tuple, e)) for e in graph.edges_of(rows[in_split(graph, rows, name)]).tolist()}
    assert len(split["train"]) + len(split["test"]) == len(split["train"] | split["test"]) == graph.graphs == 360
    graph, split = StarGraph(2, 3, 6, directed=False), {}
    rows = graph.draw(20_000, np.random.default_rng(0))
    for name in ("train", "test"):
        edges = np.sort(graph.edges_of(rows[in_split(graph, rows, name)]), -1).tolist()
        split[name] = {frozenset(map(tuple, e)) for e in edges}
    assert len(split["train"]) + len(split["test"]) == len(split["train"] | split["test"]) == graph.graphs == 360
    large = StarGraph().draw(100_000, np.random.default_rng(0))
    share = in_split(StarGraph(), large, "test").mean()
    assert abs(share - 1 / PARTS) < 5 * (1 / PARTS / 100_000) ** 0.5


def test_the_builder_checks_the_split(monkeypatch):
    """If graphs of the other split came through, the builder would say so."""
    monkeypatch.setattr(
        "hf_mech.lookahead.star_graphs.rows.in_split", lambda graph, rows, split: np.ones(len(rows), bool)
    )
    settings = StarGraphSettings(num_train=1600)
    with pytest.raises(LookaheadError, match="of 100 graphs of the split 'train' belong to the other"):
        next(settings.tables("train", 3))
    good = StarGraph().draw(100, Dice(0))
    good = good[in_split(StarGraph(), good, "train")]
    check_split(StarGraph(), good, "train")
    with pytest.raises(LookaheadError):
        check_split(StarGraph(), good, "test")


@pytest.mark.parametrize("config", [{"name": "g-2-5", "layout": "fim"}, {"name": "theorem-4"}])
def test_processes_and_streaming_change_nothing(config, tmp_path):
    counts = {"num_train": 300} | ({"num_test": 40} if config["name"] == "g-2-5" else {})
    one = load_dataset(NAME, **config, **counts, cache_dir=str(tmp_path / "one"))
    two = load_dataset(NAME, **config, **counts, cache_dir=str(tmp_path / "two"), num_proc=2)
    streamed = load_dataset(NAME, **config, **counts, streaming=True)
    assert streamed["train"].num_shards == 16
    for split in one:
        rows = one[split].to_list()
        assert rows == two[split].to_list() == list(streamed[split])


def test_a_seed_is_one_data_set():
    one, again, other = (array(load("g-2-5", seed=seed)["train"]) for seed in (0, 0, 1))
    assert (one == again).all()
    assert len(np.unique(np.concatenate([one, other]), axis=0)) == 600
    assert len(np.unique(array(load("g-2-5", num_train=25_000)["train"]), axis=0)) == 25_000  # no table repeats another


def test_shards_have_more_tables_than_one(monkeypatch):
    monkeypatch.setattr("hf_mech.data.shards.ROWS_AT_A_TIME", 10)
    tables = list(StarGraphSettings(num_train=16 * 25).tables("train", 3))
    assert [len(t) for t in tables] == [10, 10, 5]
    rows = [tuple(row) for t in tables for row in t["input_ids"].to_pylist()]
    assert len(set(rows)) == 25


@pytest.mark.parametrize("layout", ["augmented", "fim", "teacherless"])
def test_layouts_have_the_same_graphs(layout):
    graph = StarGraph()
    plain, other = load("g-2-5"), load("g-2-5", layout=layout)
    for split in ("train", "test"):
        assert (graph.edges_of(array(plain[split])) == graph.edges_of(array(other[split]))).all()
        for a, b in zip(plain[split]["labels"], other[split]["labels"], strict=True):
            assert [i for i in a if i != -100] == [i for i in b if i != -100]
    prompts = inference_prompts(graph, layout, array(plain["test"]))
    assert (array(other["test"])[:, : prompts.shape[1]] == prompts).all()
    goals = array(other["train"])[:, graph.prompt_length - 2] != array(plain["train"])[:, graph.prompt_length - 2]
    assert goals.any() == (layout == "augmented")
    assert other["train"].column_names == ["input_ids", "labels", *(["attention_mask"] if layout == "fim" else [])]


def test_a_stock_trainer_takes_the_rows(tmp_path):
    data = load("g-2-3", layout="fim", num_train=16, num_test=8)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=56, n_positions=32, n_embd=8, n_layer=1, n_head=1))
    arguments = TrainingArguments(str(tmp_path), max_steps=2, report_to=[], use_cpu=True, per_device_train_batch_size=4)
    trainer = Trainer(model, arguments, train_dataset=data["train"], eval_dataset=data["test"])
    trainer.train()
    assert 3 < trainer.evaluate()["eval_loss"] < 5  # log 56 = 4.03


def test_parity():
    graph = parity_graph(10, 50)
    splits = load("parity", bits=10)
    seen = {}
    for split, rows in splits.items():
        ids = array(rows)
        edges = graph.edges_of(ids) - 11
        # The child of vertex i, for i from 1 on: on the other side where the bit is 1.
        bits = (edges[:, 2::2, 1] < 0).astype(np.int64)
        assert (ids == parity_rows(bits, 50)).all()
        odd = bits.sum(1) % 2 == 1
        assert (array(rows, "labels")[:, graph.prompt_length + 1] - 11 == np.where(odd, -1, 1)).all()
        assert 0 < odd.sum() < len(odd)
        seen[split] = set(map(tuple, bits.tolist()))
    assert not seen["train"] & seen["test"]
    assert len(load("parity", num_train=1, num_test=1)["train"][0]["input_ids"]) == parity_graph(20, 50).row_length


@pytest.mark.parametrize(("name", "size"), [("theorem-3", 2), ("theorem-4", 4)])
def test_the_distributions_of_the_theorems_are_exact(name, size):
    splits = load_dataset(NAME, name, num_train=4000)
    assert list(splits) == ["train"]
    tokens = COUNTEREXAMPLES[name].tokens
    texts = ["".join(tokens[i] for i in row) for row in splits["train"]["input_ids"]]
    assert Counter(texts) == {f"{text}<eos>": 4000 // size for text in COUNTEREXAMPLES[name].sequences}
    assert splits["train"]["labels"][:] == splits["train"]["input_ids"][:]
    other = load_dataset(NAME, name, num_train=4000, seed=1)
    assert other["train"]["input_ids"][:] != splits["train"]["input_ids"][:]


def test_the_columns_are_small_but_large_enough():
    assert load("g-2-5")["train"].features["labels"].feature.dtype == "int16"
    many = load("g-2-5", num_nodes=40_000, num_train=20, num_test=1)["train"]
    assert many.features["input_ids"].feature.dtype == "int32"
    assert array(many).max() == 40_004


def test_the_cache_knows_the_code_of_the_graphs():
    sources = local_datasets._project_sources("hf_mech.dataset_builders.star_graph")
    for module in ("rows", "graphs", "layouts"):
        assert f"hf_mech.lookahead.star_graphs.{module}" in sources
    assert {"hf_mech.dataset_builders._base", "hf_mech.data.shards", "hf_mech.data.random_numbers"} <= set(sources)


def test_it_can_be_exported_and_loaded_without_the_builder(tmp_path):
    builder = StarGraphs(config_name="g-4-3", num_train=30, num_test=10)
    export_dataset(builder, tmp_path)
    assert load_dataset(str(tmp_path), "g-4-3")["test"].to_list() == builder.as_dataset("test").to_list()


@pytest.mark.parametrize(
    ("name", "changes", "error", "says"),
    [
        ("g-2-5", {"num_train": 0}, LookaheadError, "num_train must be a whole number, 1 or more, got 0"),
        ("g-2-5", {"num_test": 2.5}, LookaheadError, r"num_test must be .*got 2\.5"),
        ("g-2-5", {"seed": -1}, LookaheadError, "seed must be .*0 or more, got -1"),
        ("g-2-5", {"degree": 3}, LookaheadError, "'g-2-5' has .*got also {'degree': 3}"),
        ("g-2-5", {"bits": 3}, LookaheadError, "'g-2-5' does not take bits=3"),
        ("g-5-20", {}, LookaheadError, "96 nodes, more than the 50 names"),
        ("g-0-5", {}, LookaheadError, "degree must be"),
        ("g-2-5", {"layout": "alm"}, LookaheadError, "layout must be one of plain, augmented, fim, teacherless"),
        ("g-2-2", {"layout": "augmented"}, LookaheadError, "length of 3 or more, got 2"),
        ("g-2-3", {"num_nodes": 6}, LookaheadError, "num_test must be at most 22, got 40: there are 360 graphs"),
        (
            "g-2-3",
            {"num_nodes": 6, "num_train": 338, "num_test": 1},
            LookaheadError,
            "num_train must be at most 337, got 338.*larger num_nodes",
        ),
        ("g-1-2", {"num_nodes": 2, "num_train": 1, "num_test": 1}, LookaheadError, "num_test must be at most 0"),
        ("parity", {"bits": 8}, LookaheadError, "num_train must be at most 240, got 300: .*more bits"),
        ("parity", {"bits": 0}, LookaheadError, "bits must be a whole number, 1 or more, got 0"),
        ("parity", {"length": 5}, LookaheadError, "'parity' does not take length=5"),
        ("parity", {"bits": 30}, LookaheadError, "63 nodes, more than the 50"),
        ("theorem-3", {"num_test": 40}, LookaheadError, "'theorem-3' does not take num_test=40"),
        ("theorem-4", {"num_test": 10_000, "num_train": 6}, LookaheadError, "a multiple of 4, .* got 6"),
        ("stars", {}, LookaheadError, "g-D-L for two numbers D and L, or one of g-2-5.*got 'stars'"),
        ("g-03-7", {}, LookaheadError, "g-D-L for two numbers D and L.*got 'g-03-7'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, changes, error, says):
    with pytest.raises(error, match=says):
        load(name, **changes)


def test_a_split_without_a_graph_is_refused():
    """All 32 graphs of 5 bits belong to the training split."""
    with pytest.raises(LookaheadError, match="None of the 32 graphs belongs to 'test'; take more bits"):
        load("parity", bits=5, num_nodes=13, num_train=1, num_test=1)
