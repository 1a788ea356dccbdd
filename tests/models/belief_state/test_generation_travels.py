"""Search, sampling from the state and the infilling pipeline travel with a checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerBase, pipeline

from hf_mech.models.belief_state.belief_state_infilling import InfillingPipeline
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig, BeliefStateError
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM
from tests.stock import TEXTS, gpt2_tokenizer

INPUTS = [
    {"prefix": "the cat sat", "suffix": " looked at the dog"},
    {"prefix": "cats and dogs", "suffix": " eat"},
    {"prefix": "a stack holds the words until", "suffix": " close again (as they must)."},
]
SEARCH = {"max_new_tokens": 4, "num_rollouts": 6}

ELSEWHERE = """
import json, sys
sys.modules["hf_mech"] = None
import torch
from transformers import AutoModelForCausalLM, pipeline

folder, inputs, search = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
ids = torch.tensor([[5, 6, 7]])
found = model.generate(ids, suffix_ids=ids, return_dict_in_generate=True, pad_token_id=0, **search)
state = model.model(ids).last_hidden_state[:, -1]
drawn = model.sample_from_belief(state, 3, generator=torch.Generator().manual_seed(0))
infill = pipeline("infilling", model=folder, trust_remote_code=True)
print(json.dumps({
    "module": type(infill).__module__,
    "scores": found.scores.tolist(),
    "candidates": found.candidates.tolist(),
    "drawn": drawn.sequences.tolist(),
    "infilled": infill(inputs, **search),
}))
"""


def tokenizer() -> PreTrainedTokenizerBase:
    made = gpt2_tokenizer()
    made.pad_token = made.eos_token
    return made


def model() -> BeliefStateForCausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer()), "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}
    special = {"eos_token_id": 0, "bos_token_id": 0, "pad_token_id": None}
    made = BeliefStateForCausalLM(BeliefStateConfig(**sizes, head_width=24, **special)).eval()
    with torch.no_grad():
        made.text_head.next.weight.mul_(20)
    return made


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_checkpoint_searches_and_infills_without_the_package(checkpoint: Path, tmp_path: Path):
    assert not list(checkpoint.glob("*reference*"))
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(checkpoint), json.dumps(INPUTS), json.dumps(SEARCH)],
        cwd=tmp_path,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout.splitlines()[-1])
    assert there["module"].startswith("transformers_modules")
    made, ids = model(), torch.tensor([[5, 6, 7]])
    found = made.generate(ids, suffix_ids=ids, return_dict_in_generate=True, pad_token_id=0, **SEARCH)
    assert there["candidates"] == found.candidates.tolist()
    torch.testing.assert_close(torch.tensor(there["scores"]), found.scores)
    state = made.model(ids).last_hidden_state[:, -1]
    drawn = made.sample_from_belief(state, 3, generator=torch.Generator().manual_seed(0))
    assert there["drawn"] == drawn.sequences.tolist()
    here = made.infilling_pipeline(tokenizer())(INPUTS, **SEARCH)
    assert [one["text"] for one in there["infilled"]] == [one["text"] for one in here]


@pytest.mark.parametrize("trust", [None, False, True])
def test_the_package_serves_the_pipeline_of_a_checkpoint(checkpoint: Path, trust: bool | None):
    infill = pipeline("infilling", model=str(checkpoint), trust_remote_code=trust)
    assert type(infill) is InfillingPipeline
    assert type(infill.model) is BeliefStateForCausalLM
    assert infill(INPUTS[0], **SEARCH) == model().infilling_pipeline(tokenizer())(INPUTS[0], **SEARCH)


def test_a_saved_pipeline_is_a_checkpoint(tmp_path: Path):
    model().infilling_pipeline(tokenizer()).save_pretrained(tmp_path)
    assert pipeline("infilling", model=str(tmp_path), trust_remote_code=True)(INPUTS[0], max_new_tokens=2)["text"]


@pytest.mark.parametrize("how", [{}, {"num_rollouts": 6}, {"num_beams": 3}])
def test_infilling_is_generate_between_the_texts(how: dict[str, Any]):
    made, stock = model(), tokenizer()
    for given in INPUTS:
        found = made.infilling_pipeline(stock)(given, max_new_tokens=4, **how)
        prefix, suffix = (torch.tensor([stock(given[name])["input_ids"]]) for name in ("prefix", "suffix"))
        options = {"attention_mask": torch.ones_like(prefix), "max_new_tokens": 4, "pad_token_id": 0, **how}
        said = made.generate(prefix, suffix_ids=suffix, return_dict_in_generate=True, **options)
        middle = stock.decode(said.sequences[0, prefix.shape[1] :])
        assert found["middle"] == middle
        assert found["text"] == given["prefix"] + middle + given["suffix"]
        assert found.keys() == {"middle", "text", "score"} if "num_rollouts" in how else {"middle", "text"}
        if "num_rollouts" in how:
            assert found["score"] == pytest.approx(float(said.scores.max()))


@pytest.mark.parametrize("how", [{}, {"num_rollouts": 6}])
def test_a_batch_is_its_inputs_alone(how: dict[str, Any]):
    infill = model().double().infilling_pipeline(tokenizer())
    alone = [infill(given, max_new_tokens=4, **how) for given in INPUTS]
    for size in (1, 2, 3):
        together = infill(INPUTS, batch_size=size, max_new_tokens=4, **how)
        assert [one["text"] for one in together] == [one["text"] for one in alone]
    assert [one["text"] for one in infill((given for given in INPUTS), max_new_tokens=4, **how)] == [
        one["text"] for one in alone
    ]


def test_several_middles():
    torch.manual_seed(0)
    infill = model().infilling_pipeline(tokenizer())
    for batch_size in (1, 3):
        drawn = infill(INPUTS, batch_size=batch_size, max_new_tokens=4, do_sample=True, num_return_sequences=2)
        assert [len(several) for several in drawn] == [2, 2, 2]
        for given, several in zip(INPUTS, drawn, strict=True):
            assert all(one["text"] == given["prefix"] + one["middle"] + given["suffix"] for one in several)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"prefix": "", "suffix": TEXTS[2]}, BeliefStateError, "The prefix has no token; got ''"),
        ({"prefix": TEXTS[2], "suffix": ""}, BeliefStateError, "The suffix has no token; got ''"),
        ({"prefix": TEXTS[2], "suffix": "<|endoftext|>"}, BeliefStateError, "The suffix has no token"),
        ({"prefix": TEXTS[2]}, BeliefStateError, "got suffix of type NoneType"),
        (TEXTS[2], BeliefStateError, "must be a dictionary with two texts"),
    ],
)
def test_refuses_inputs_without_two_texts(given: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        model().infilling_pipeline(tokenizer())(given)


def test_refuses_misspelt_arguments():
    with pytest.raises(ValueError, match="num_rolouts"):
        model().infilling_pipeline(tokenizer())(INPUTS[0], num_rolouts=3)


def test_the_stock_pipeline_writes_on():
    said = pipeline("text-generation", model=model(), tokenizer=tokenizer())(
        "the cat", max_new_tokens=3, do_sample=False
    )
    assert said[0]["generated_text"].startswith("the cat")
    assert isinstance(model().infilling_pipeline(tokenizer()), InfillingPipeline)
