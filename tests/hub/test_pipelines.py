"""The pipelines of checkpoints in a process where hf_mech cannot be imported say what they say here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, pipeline

from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM
from hf_mech.models.strips import StripsTransformer
from hf_mech.planning import load_bundled
from hf_mech.programs.psl import compile_program, program_text
from hf_mech.programs.templatic.batches import word_tokenizer, words_of
from tests.stock import gpt2_tokenizer

pytestmark = pytest.mark.slow  # a process that loads four models

PROMPT = "Q B V D E A D E V B . Q F G H V K L A"

ELSEWHERE = """
import json, sys
sys.modules["hf_mech"] = None
from transformers import pipeline

said = {}
for name, task, inputs, options in json.loads(sys.argv[1]):
    try:
        pipeline(task, model=name, trust_remote_code=False)
    except ValueError as error:
        assert "trust_remote_code=True" in str(error), error
    else:
        raise AssertionError(f"{name} ran its code without trust")
    found = pipeline(task, model=name, trust_remote_code=True)
    assert type(found).__module__.startswith("transformers_modules"), type(found).__module__
    said[name] = [found(inputs, batch_size=size, **options) for size in (1, 2)]
    if type(found.model).__module__.startswith("transformers_modules"):  # what was loaded is saved whole
        found.save_pretrained(name + "-again")
        again = pipeline(task, model=name + "-again", trust_remote_code=True)
        assert again(inputs, **options) == said[name][0], name
print(json.dumps(said))
"""


def test_pipelines_travel_with_their_checkpoints(tmp_path: Path) -> None:
    torch.manual_seed(0)
    bpe = gpt2_tokenizer()
    bpe.pad_token = bpe.eos_token
    special = {"eos_token_id": 0, "bos_token_id": 0, "pad_token_id": None}
    sizes = {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}
    belief = BeliefStateForCausalLM(BeliefStateConfig(vocab_size=len(bpe), **sizes, **special)).eval()
    words = word_tokenizer(words_of([PROMPT]))
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), **sizes, **special)).eval()
    program, open_words = compile_program(program_text("pargen"))
    inputs: list[tuple[str, str, list[Any], dict[str, Any]]] = []
    here = {}

    def add(name: str, task: str, own: list[Any], **options: Any) -> str:
        folder = str(tmp_path / name)
        inputs.append((folder, task, own, options))
        return folder

    folder = add("strips", "action-verdicts", ["a c a", ["b", "b"]])
    save_checkpoint(StripsTransformer.from_domain(load_bundled("simple").domain), folder)
    folder = add("dat", "template-completion", [PROMPT, {"examples": [["a V b", "b V a"]], "query": "c V d"}])
    save_checkpoint(program, folder, processing_class=open_words)
    goals = [{"prefix": "the cat", "suffix": " the dog"}, {"prefix": "cats", "suffix": " eat"}]
    folder = add("belief", "infilling", goals, max_new_tokens=3)
    save_checkpoint(belief, folder, processing_class=bpe)
    for folder, task, own, options in inputs:
        here[folder] = pipeline(task, model=folder)(own, **options)
    # A model of transformers' own has its code from its pipeline; then the package serves it no longer.
    folder = add("gpt2", "template-completion", [PROMPT, "Q B A D . Q E A"], max_new_tokens=3)
    made = pipeline("template-completion", model=gpt2, tokenizer=words)
    here[folder] = made(inputs[-1][2], max_new_tokens=3)
    made.save_pretrained(folder)

    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, json.dumps(inputs)],
        cwd=tmp_path,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout.splitlines()[-1])
    assert there == {name: [said, said] for name, said in here.items()}
