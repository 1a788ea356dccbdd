"""The STRIPS Transformer as a stock token classifier: pipeline, Auto class, probabilities, keyword arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    pipeline,
)

from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.models.strips import (
    StripsError,
    StripsTransformer,
    StripsTransformerConfig,
    StripsTransformerForTokenClassification,
    strips_tokenizer,
)
from hf_mech.planning.pddl import load_bundled
from tests.docs.test_readme import python_blocks

SIMPLE = load_bundled("simple").domain
TRACES = ["a c c b c a", "a c a c b b", "b", "c c c c c c c b b b"]
LABELS = {0: "applicable", 1: "inapplicable"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of the base class, with its tokenizer."""
    StripsTransformer.from_domain(SIMPLE).save_pretrained(tmp_path)
    strips_tokenizer(SIMPLE.action_names).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("batch_size", [1, 3])
def test_the_pipeline_labels_every_action(checkpoint: Path, batch_size: int):
    tokenizer = strips_tokenizer(SIMPLE.action_names)
    for given in ({"tokenizer": tokenizer}, {}):
        classify = pipeline("token-classification", model=str(checkpoint), batch_size=batch_size, **given)
        assert type(classify.model) is StripsTransformerForTokenClassification
        for text, found in zip(TRACES, classify(TRACES), strict=True):
            assert [action["word"] for action in found] == text.split()
            assert [action["entity"] for action in found] == [LABELS[y] for y in SIMPLE.labels(text.split())]
            assert all(action["score"] > 0.999 for action in found)
            assert [text[action["start"] : action["end"]] for action in found] == text.split()


def test_the_usage_on_the_card_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its blocks, on a checkpoint saved as it is pushed, with its tokenizer."""
    save_checkpoint(
        StripsTransformer.from_domain(SIMPLE),
        tmp_path / "strips-simple",
        processing_class=strips_tokenizer(SIMPLE.action_names),
    )
    template = (Path(__file__).parents[3] / "training/strips/card.md").read_text()
    usage = template.partition("{% block usage %}")[2].partition("{% endblock %}")[0]
    monkeypatch.chdir(tmp_path)
    exec(python_blocks(usage.replace("{{ name }}", "strips-simple").replace("{{ first }}", "a")), {})
    assert "'entity': 'inapplicable'" in capsys.readouterr().out


def test_the_pipeline_names_an_unknown_action(checkpoint: Path):
    with pytest.raises(StripsError, match="a name that it does not know"):
        pipeline("token-classification", model=str(checkpoint))("a zork")


def test_the_softmax_is_the_mean_of_the_members(checkpoint: Path):
    torch.manual_seed(0)
    model = StripsTransformerForTokenClassification(StripsTransformerConfig(num_actions=4, ensemble=5)).double().eval()
    ids = torch.randint(0, 4, (6, 11))
    base = StripsTransformer(model.config).double().eval()
    base.load_state_dict(model.state_dict())
    y = base(ids).inapplicability.mean(-1)
    torch.testing.assert_close(model(ids).logits.softmax(-1), torch.stack([1 - y, y], -1))
    exact = AutoModelForTokenClassification.from_pretrained(checkpoint)
    for dtype in (torch.float32, torch.bfloat16):
        logits = exact.to(dtype)(torch.tensor([[0, 2, 0, 2, 1, 1]])).logits
        assert logits.isfinite().all()
        assert logits.dtype == dtype
        assert logits.argmax(-1).tolist() == [[0, 0, 1, 0, 0, 1]]


def test_loss_and_weights_are_the_base_s(checkpoint: Path, tmp_path: Path):
    torch.manual_seed(0)
    base = StripsTransformer(StripsTransformerConfig(num_actions=3, ensemble=2)).eval()
    base.save_pretrained(tmp_path / "base")
    head = AutoModelForTokenClassification.from_pretrained(tmp_path / "base")
    assert head.state_dict().keys() == base.state_dict().keys()
    ids, labels = torch.tensor([[0, 2, 0], [1, 2, 3]]), torch.tensor([[0, 0, 1], [0, 0, -100]])
    assert torch.equal(head(ids, labels=labels).loss, base(ids, labels=labels).loss)
    head.save_pretrained(tmp_path / "head")
    assert torch.equal(AutoModel.from_pretrained(tmp_path / "head").theta, base.theta)
    assert head.to_domain() == base.to_domain()


def test_every_checkpoint_names_both_classes(tmp_path: Path):
    for model_class in (StripsTransformer, StripsTransformerForTokenClassification):
        model_class.from_domain(SIMPLE).save_pretrained(tmp_path)
        assert json.loads((tmp_path / "config.json").read_text())["auto_map"] == {
            "AutoConfig": "configuration_strips.StripsTransformerConfig",
            "AutoModel": "modeling_strips.StripsTransformer",
            "AutoModelForTokenClassification": "modeling_strips.StripsTransformerForTokenClassification",
        }


def test_trainer_predicts_logits(tmp_path: Path):
    """`compute_metrics` sees what it sees for any token classifier."""
    rows = [{"input_ids": SIMPLE.encode(t.split()), "labels": SIMPLE.labels(t.split())} for t in TRACES]
    seen: dict[str, Any] = {}

    def accuracy(prediction: Any) -> dict[str, float]:
        seen["shape"] = prediction.predictions.shape
        real = prediction.label_ids != -100
        right = prediction.predictions.argmax(-1) == prediction.label_ids
        return {"accuracy": float(np.mean(right[real]))}

    arguments = TrainingArguments(str(tmp_path), report_to="none", use_cpu=True, dataloader_pin_memory=False)
    trainer = Trainer(
        StripsTransformerForTokenClassification.from_domain(SIMPLE),
        arguments,
        DataCollatorForTokenClassification(strips_tokenizer(SIMPLE.action_names)),
        eval_dataset=rows,
        compute_metrics=accuracy,
    )
    assert trainer.evaluate()["eval_accuracy"] == 1.0
    assert seen["shape"] == (4, 10, 2)


def test_a_saved_tokenizer_feeds_the_model(checkpoint: Path):
    batch = AutoTokenizer.from_pretrained(checkpoint)(TRACES, padding=True, return_tensors="pt")
    assert AutoModelForTokenClassification.from_pretrained(checkpoint)(**batch).logits.shape == (4, 10, 2)


# -------------------------------------------------------------------------------------------------- keyword arguments


@pytest.mark.parametrize("model_class", [StripsTransformer, StripsTransformerForTokenClassification])
def test_no_keyword_is_ignored(model_class: type[StripsTransformer]):
    model, ids = model_class.from_domain(SIMPLE), torch.tensor([[0, 2]])
    for unknown in ("inputs_embeds", "position_ids", "zork"):
        with pytest.raises(TypeError, match=unknown):
            model(ids, **{unknown: None})
    with pytest.raises(StripsError, match=r"output_hidden_states.*head_outputs"):
        model(ids, output_hidden_states=True)
    model.config.output_hidden_states = True
    with pytest.raises(StripsError, match="output_hidden_states"):
        model(ids)
    assert model(ids, output_hidden_states=False, token_type_ids=torch.zeros_like(ids)) is not None
    with pytest.raises(StripsError, match="token_type_ids must be 0"):
        model(ids, output_hidden_states=False, token_type_ids=torch.ones_like(ids))
    with pytest.raises(StripsError, match="token_type_ids must have input_ids' shape"):
        model(ids, output_hidden_states=False, token_type_ids=torch.zeros(1, 3, dtype=torch.long))
    model.config.output_hidden_states = False
    assert isinstance(model(ids, return_dict=False), tuple)
    assert len(model(ids, output_attentions=True).attentions) == 1
