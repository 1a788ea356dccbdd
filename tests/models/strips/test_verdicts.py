"""The pipeline of verdicts: labels, scores, and the reason of each refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForTokenClassification, GPT2Config, GPT2Model, pipeline

from hf_mech.models.strips import StripsError, StripsTransformer, StripsTransformerConfig
from hf_mech.models.strips.strips_attention import strips_attention_reference
from hf_mech.models.strips.strips_verdicts import ActionVerdictsPipeline
from hf_mech.planning import load_bundled
from hf_mech.planning.traces import TraceSettings, generate_traces


@pytest.fixture(scope="module")
def judge() -> ActionVerdictsPipeline:
    """Figure 1's domain: a deletes p and q; b needs q and r and deletes both; c needs and adds other things."""
    return StripsTransformer.from_domain(load_bundled("simple").domain).verdicts_pipeline()


def test_a_refusal_has_its_reason(judge: ActionVerdictsPipeline):
    verdicts = judge("a c a c b b")
    assert [verdict["action"] for verdict in verdicts] == ["a", "c", "a", "c", "b", "b"]
    labels = ["applicable", "applicable", "inapplicable", "applicable", "applicable", "inapplicable"]
    assert [verdict["label"] for verdict in verdicts] == labels
    assert [verdict["score"] for verdict in verdicts] == [1.0] * 6
    assert verdicts[2]["missing"] == [{"proposition": "p", "deleted_by": "a", "position": 0}]
    assert verdicts[2]["reason"] == "p is false: a at position 0 deleted it, and nothing added it since"
    assert [one["proposition"] for one in verdicts[5]["missing"]] == ["q", "r"]
    assert verdicts[5]["reason"].count("b at position 4 deleted it") == 2
    assert all(verdicts[place]["missing"] == [] and verdicts[place]["reason"] == "" for place in (0, 1, 3, 4))


@pytest.mark.parametrize("name", ["blocksworld-2b", "ferry-1c"])
def test_labels_and_reasons_follow_from_definition_1(name: str):
    problem = load_bundled(name)
    domain = problem.domain
    judge = StripsTransformer.from_domain(domain).verdicts_pipeline()
    traces = generate_traces(problem, TraceSettings(seed=1, num_train=20, num_test=20)).train
    refused = 0
    for trace, verdicts in zip(traces, judge([list(trace.actions) for trace in traces], batch_size=7), strict=True):
        assert [int(verdict["label"] == "inapplicable") for verdict in verdicts] == domain.labels(trace.actions)
        for place, verdict in enumerate(verdicts):
            false = domain.pre_masks[trace.actions[place]] & domain.falsified(trace.actions[:place])
            assert {one["proposition"] for one in verdict["missing"]} == domain.unmask(false)
            for one in verdict["missing"]:
                refused += 1
                bit = domain.mask([one["proposition"]])
                affecting = [
                    at
                    for at, action in enumerate(trace.actions[:place])
                    if (domain.add_masks[action] | domain.delete_masks[action]) & bit
                ]
                assert one["position"] == affecting[-1]
                assert domain.delete_masks[trace.actions[affecting[-1]]] & bit
                assert one["deleted_by"] == domain.action_names[trace.actions[one["position"]]]
    assert refused > 10


@torch.no_grad()
def test_soft_weights_name_the_action_that_the_head_reads_most():
    model = StripsTransformer(StripsTransformerConfig(num_actions=4, num_propositions=2, ensemble=2)).eval()
    trace, judge = [0, 1, 2, 3, 1, 0, 2], model.verdicts_pipeline()
    for member in (0, 1):
        verdicts = judge(trace, member=member)
        _, scores, attention = strips_attention_reference(model.theta.clamp(0, 1), torch.tensor([trace]))
        values = model.theta[member, :, trace, 2]  # [propositions, length]
        refused = 0
        for place, verdict in enumerate(verdicts):
            y = float(scores[0, place, member])
            assert verdict["score"] == pytest.approx(max(y, 1 - y))
            assert (verdict["label"] == "inapplicable") == (y >= 0.5)
            for one in verdict["missing"]:
                refused += 1
                head = model.config.propositions.index(one["proposition"])
                assert one["position"] == int((attention[0, member, head, place] * values[head]).argmax())
        assert refused


def test_every_form_of_a_trace_and_of_a_batch(judge: ActionVerdictsPipeline):
    one, other = judge("a c a"), judge("b b")
    assert judge(["a", "c", "a"]) == judge(("a", "c", "a")) == judge([0, 2, 0]) == one
    assert judge(["a c a", "b b"]) == judge([["a", "c", "a"], ["b", "b"]]) == [one, other]
    assert judge([["a"], ["b"]]) == [judge("a"), judge("b")]
    traces = ["a c a", "b b", "a", "a c a c b b"]
    alone = [judge(trace) for trace in traces]
    for size in (1, 2, 3, 4):
        assert judge(traces, batch_size=size) == alone
        assert list(judge((trace for trace in traces), batch_size=size)) == alone


def test_a_checkpoint_names_its_pipeline_and_the_package_serves_it(judge: ActionVerdictsPipeline, tmp_path: Path):
    judge.model.save_pretrained(tmp_path)
    entry = {"impl": "strips_verdicts.ActionVerdictsPipeline", "pt": ["AutoModel"], "type": "text"}
    assert json.loads((tmp_path / "config.json").read_text())["custom_pipelines"] == {"action-verdicts": entry}
    assert (tmp_path / "strips_verdicts.py").is_file()
    assert not hasattr(judge.model.config, "custom_pipelines")
    for trust in (None, False, True):
        loaded = pipeline("action-verdicts", model=str(tmp_path), trust_remote_code=trust)
        assert type(loaded) is ActionVerdictsPipeline
        assert loaded("a c a") == judge("a c a")
    loaded.save_pretrained(tmp_path / "again")
    assert pipeline("action-verdicts", model=str(tmp_path / "again"))("a c a") == judge("a c a")


def test_a_checkpoint_without_code_has_its_pipeline_here(judge: ActionVerdictsPipeline, tmp_path: Path):
    judge.model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["auto_map"], config["custom_pipelines"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    for file in tmp_path.glob("*.py"):
        file.unlink()
    assert pipeline("action-verdicts", model=str(tmp_path))("a c a") == judge("a c a")


def test_the_token_classifier_has_the_same_verdicts(judge: ActionVerdictsPipeline, tmp_path: Path):
    judge.model.save_pretrained(tmp_path)
    classifier = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert pipeline("action-verdicts", model=classifier)("a c a") == judge("a c a")


def test_another_pipeline_of_a_user_stays_in_the_configuration():
    config = StripsTransformerConfig(custom_pipelines={"action-verdicts": {}, "mine": {"impl": "mine.Mine"}})
    assert config.custom_pipelines == {"mine": {"impl": "mine.Mine"}}
    assert not hasattr(StripsTransformerConfig(custom_pipelines={"action-verdicts": {}}), "custom_pipelines")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("a x", "Unknown action 'x' at position 1; the model knows 3 actions: a, b, c"),
        (["a", "aa"], "Unknown action 'aa' at position 1; the model knows 3 actions, the nearest of them a"),
        ([0, 3], "Unknown action 3 at position 1"),
        ("", "A trace is empty, got ''"),
        ([], "A trace is empty"),
        ({"actions": ["a"]}, "A trace must be a text .* got a dict"),
    ],
)
def test_refuses_what_is_no_trace(judge: ActionVerdictsPipeline, given: Any, text: str):
    with pytest.raises(StripsError, match=text):
        judge(given)


def test_refuses_unknown_options_members_and_models(judge: ActionVerdictsPipeline):
    with pytest.raises(StripsError, match="one option, member, got \\['thresold'\\]"):
        judge("a", thresold=0.3)
    with pytest.raises(StripsError, match="No member 1 in an ensemble of 1"):
        judge("a", member=1)
    with pytest.raises(StripsError, match=r"needs a STRIPS Transformer.* got a GPT2Model"):
        ActionVerdictsPipeline(GPT2Model(GPT2Config(vocab_size=2, n_embd=2, n_layer=1, n_head=1)))
