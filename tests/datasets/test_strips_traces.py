"""Traces by their builder: rows, configurations, PDDL files of one's own, and errors."""

import pytest

from hf_mech.dataset_builders.strips_traces import StripsTraces
from hf_mech.planning.bundled import BUNDLED, load_bundled
from hf_mech.planning.pddl import GroundingError
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, TooFewTracesError, TraceSettingsError


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
    assert [c.name for c in StripsTraces.BUILDER_CONFIGS] == [*BUNDLED, "pddl"]
    for name in BUNDLED:
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
    assert here.cache_dir == there.cache_dir != changed.cache_dir  # what the files say counts, not where they lie


def test_max_ground_reaches_the_reader_and_leaves_the_cache_alone(tmp_path):
    files = {"domain_file": tmp_path / "d.pddl", "problem_file": tmp_path / "p.pddl"}
    for path, text in zip(files.values(), (PDDL_DOMAIN, PDDL_PROBLEM), strict=True):
        path.write_text(text)
    given = {k: str(v) for k, v in files.items()}
    assert builder(tmp_path, "pddl", **given, max_ground=4).cache_dir == builder(tmp_path, "pddl", **given).cache_dir
    with pytest.raises(GroundingError, match="max_ground=3"):
        builder(tmp_path, "pddl", **given, max_ground=3)
    with pytest.raises(TraceSettingsError, match="max_ground"):
        builder(tmp_path, "simple", max_ground=4)


def test_wrong_configs_are_refused_with_a_way_out(tmp_path):
    with pytest.raises(TraceSettingsError, match="needs domain_file= and problem_file="):
        builder(tmp_path, "pddl")
    with pytest.raises(TraceSettingsError, match="use the config 'pddl'"):
        builder(tmp_path, "simple", domain_file="d.pddl", problem_file="p.pddl")
    with pytest.raises(TooFewTracesError, match="Lower num_train"):  # its own type, not a DatasetGenerationError
        builder(tmp_path, num_train=5000).download_and_prepare()
