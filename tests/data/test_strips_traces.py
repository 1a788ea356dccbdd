"""Traces by their builder: rows, configurations, PDDL files of one's own, and errors."""

import pytest
from datasets import load_dataset

from hf_mech.dataset_builders.strips_traces import StripsTraces
from hf_mech.planning.lifted.domains import DOMAINS
from hf_mech.planning.pddl import BUNDLED, load_bundled, read_pddl
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, TooFewTracesError
from tests.planning.adl import BRIEFCASE, LOGISTICS


def builder(tmp_path, config_name="simple", **overrides) -> StripsTraces:
    sizes = {"num_train": 60, "num_test": 90}
    return StripsTraces(config_name=config_name, cache_dir=str(tmp_path), **{**sizes, **overrides})


def test_rows_are_the_traces(tmp_path):
    b = builder(tmp_path)
    b.download_and_prepare()
    data = b.as_dataset()
    for split in ("train", "test"):
        expected = [(list(t.actions), t.labels, t.valid) for t in getattr(b.traces, split)]
        assert [(r["input_ids"], r["labels"], r["valid"]) for r in data[split]] == expected
    features = data["train"].features
    assert features["input_ids"].feature.names == ["a", "b", "c"]
    assert features["labels"].feature.names == ["applicable", "inapplicable"]
    assert data["train"].info.license == "apache-2.0"
    assert "Geffner" in data["train"].info.citation
    assert str(data["train"].info.version) == "1.0.0"


def test_every_config_has_its_own_problem_and_length(tmp_path):
    lifted = [f"{domain}-lifted" for domain in DOMAINS]
    assert [c.name for c in StripsTraces.BUILDER_CONFIGS] == [*BUNDLED, "pddl", *lifted]
    for name in PAPER_MAX_TRAIN_LENGTH:
        b = builder(tmp_path, name)
        assert b.problem == load_bundled(name)
        assert b.config.settings.max_train_length == PAPER_MAX_TRAIN_LENGTH[name]
    assert builder(tmp_path, max_train_length=7).config.settings.max_train_length == 7


PDDL_DOMAIN = """(define (domain lamps) (:requirements :strips :typing) (:types lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp))
  (:action light :parameters (?l - lamp) :precondition (dark ?l) :effect (and (lit ?l) (not (dark ?l))))
  (:action douse :parameters (?l - lamp) :precondition (lit ?l) :effect (and (dark ?l) (not (lit ?l)))))"""
PDDL_PROBLEM = """(define (problem two-lamps) (:domain lamps) (:objects x y - lamp)
  (:init (dark x) (dark y)) (:goal (lit x)))"""


def test_any_pddl_files(tmp_path):
    def lamps(folder: str, domain: str = PDDL_DOMAIN) -> StripsTraces:
        (tmp_path / folder).mkdir()
        files = {"domain_file": tmp_path / folder / "d.pddl", "problem_file": tmp_path / folder / "p.pddl"}
        files["domain_file"].write_text(domain)
        files["problem_file"].write_text(PDDL_PROBLEM)
        return builder(tmp_path, "pddl", **{k: str(v) for k, v in files.items()})

    here, there, changed = (
        lamps("here"),
        lamps("there"),
        lamps("changed", PDDL_DOMAIN.replace("dark ?l) :eff", "lit ?l) :eff")),
    )
    here.download_and_prepare()
    assert here.as_dataset(split="train").num_rows == 60
    assert len(here.info.features["input_ids"].feature.names) == 4
    for row in here.as_dataset(split="train"):
        names = [f"{action['name']}({','.join(action['arguments'])})" for action in row["actions"]]
        assert names == here.problem.domain.decode(row["input_ids"])
    assert here.cache_dir == there.cache_dir != changed.cache_dir  # what the files say counts, not where they lie


def test_max_ground_reaches_the_reader_and_leaves_the_cache_alone(tmp_path):
    files = {"domain_file": tmp_path / "d.pddl", "problem_file": tmp_path / "p.pddl"}
    for path, text in zip(files.values(), (PDDL_DOMAIN, PDDL_PROBLEM), strict=True):
        path.write_text(text)
    given = {k: str(v) for k, v in files.items()}
    assert builder(tmp_path, "pddl", **given, max_ground=4).cache_dir == builder(tmp_path, "pddl", **given).cache_dir
    with pytest.raises(PlanningError, match="max_ground=3"):
        builder(tmp_path, "pddl", **given, max_ground=3)
    with pytest.raises(PlanningError, match="max_ground"):
        builder(tmp_path, "simple", max_ground=4)


def test_pddl_beyond_strips_by_load_dataset(tmp_path):
    """The traces of files with costs, `when` and negative conditions; the card names what was compiled away."""
    for texts, compiled in ((LOGISTICS, "costs and metric"), (BRIEFCASE, "conditional effects (when) in move")):
        files = {"domain_file": tmp_path / "d.pddl", "problem_file": tmp_path / "p.pddl"}
        for path, text in zip(files.values(), texts, strict=True):
            path.write_text(text)
        given = {name: str(path) for name, path in files.items()}
        data = load_dataset(
            "hf_mech/strips_traces", "pddl", **given, num_train=50, num_test=50, cache_dir=str(tmp_path)
        )
        problem = read_pddl(*files.values())
        assert data["train"].features["input_ids"].feature.names == list(problem.domain.action_names)
        assert compiled in data["train"].info.description
        for row in data["test"]:
            assert problem.domain.labels(row["input_ids"]) == row["labels"]


def test_pddl_files_that_cannot_be_read_by_load_dataset(tmp_path):
    (tmp_path / "d.pddl").write_bytes(b"\xff\xfe(define")
    (tmp_path / "p.pddl").write_text(PDDL_PROBLEM)
    given = {"problem_file": str(tmp_path / "p.pddl")}
    for name, says in (("d.pddl", "not UTF-8"), ("no.pddl", "cannot be read"), ("p.pddl", "expected a domain")):
        with pytest.raises(PlanningError, match=says):
            load_dataset("hf_mech/strips_traces", "pddl", domain_file=str(tmp_path / name), **given)


def test_wrong_configs_are_refused_with_a_way_out(tmp_path):
    with pytest.raises(PlanningError, match="needs domain_file= and problem_file="):
        builder(tmp_path, "pddl")
    with pytest.raises(PlanningError, match="use the config 'pddl'"):
        builder(tmp_path, "simple", domain_file="d.pddl", problem_file="p.pddl")
    with pytest.raises(TooFewTracesError, match="Lower num_train"):  # its own type, not a DatasetGenerationError
        builder(tmp_path, num_train=5000).download_and_prepare()


def test_failed_attempts_in_the_middle(tmp_path):
    b = builder(tmp_path, "ferry-2c", failure_rate=0.2, policy="expert")
    b.download_and_prepare()
    train = b.as_dataset(split="train")
    assert any(any(row["labels"][:-1]) for row in train)
    assert all(row["valid"] == (not any(row["labels"])) for row in train)
    assert [(tuple(row["input_ids"]), row["labels"]) for row in train] == [
        (t.actions, t.labels) for t in b.traces.train
    ]


def test_lifted_traces(tmp_path):
    sizes = {"num_train": 20, "num_test": 30, "cache_dir": str(tmp_path)}
    data = load_dataset("hf_mech/strips_traces", "driverlog-lifted", failure_rate=0.1, **sizes)
    b = StripsTraces(config_name="driverlog-lifted", failure_rate=0.1, **sizes)
    assert b.lifted.train_problem.domain.name == "driverlog"
    for split in ("train", "test"):
        rows, own = data[split], getattr(b.lifted, split)
        for row, log in zip(rows, own, strict=True):
            actions = [(action["name"], tuple(action["arguments"])) for action in row["actions"]]
            assert actions == list(log.actions)
            assert tuple(row["labels"]) == log.labels
            assert row["valid"] == (not any(log.labels))
    assert "lifted STRIPS domain" in data["train"].info.description
    assert data["test"].features["labels"].feature.names == ["applicable", "inapplicable"]
    streamed = load_dataset("hf_mech/strips_traces", "driverlog-lifted", failure_rate=0.1, streaming=True, **sizes)
    assert list(streamed["test"]) == list(data["test"])


def test_lifted_and_propositional_settings_do_not_mix(tmp_path):
    with pytest.raises(ValueError, match="doesn't have a 'label_noise' key"):
        builder(tmp_path, "ferry-lifted", label_noise=0.1)
    with pytest.raises(ValueError, match="doesn't have a 'wrong_action' key"):
        builder(tmp_path, "ferry-2c", wrong_action=0.1)
    with pytest.raises(PlanningError, match="size must be one of small, big"):
        builder(tmp_path, "ferry-lifted", size="huge")
    with pytest.raises(PlanningError, match="is lifted"):
        _ = builder(tmp_path, "ferry-lifted").problem
    with pytest.raises(PlanningError, match="is not lifted"):
        _ = builder(tmp_path, "simple").lifted
