"""The pipeline of completions: prompts, examples with a query, registers, and other models than programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, pipeline

from hf_mech.models.dat import DATError, DATLengthError, DATVocabularyError
from hf_mech.models.dat.dat_completion import TemplateCompletionPipeline, prompt_of
from hf_mech.programs.psl import compile_program, program_text
from hf_mech.programs.psl.library import complete_batch
from hf_mech.programs.templatic.batches import word_tokenizer, words_of
from hf_mech.programs.templatic.grammar import TemplaticSettings, generate_rows

SWAP = "Q B V D E A D E V B . Q F G H V K L A"
PROMPTS = [SWAP, "Q a A b a . Q c A", "Q blicket => dax A dax or not blicket . Q wug => fep A"]
SWAPPED = {"completion": "K L V F G H .", "ended": True}


@pytest.fixture(scope="module")
def pargen() -> Any:
    return compile_program(program_text("pargen"), max_position_embeddings=60, num_open_values=24)


@pytest.fixture
def complete(pargen: Any) -> TemplateCompletionPipeline:
    model, tokenizer = pargen
    return model.completion_pipeline(tokenizer)


def test_every_form_of_a_prompt(complete: TemplateCompletionPipeline):
    assert complete(SWAP) == SWAPPED
    assert complete({"prompt": SWAP, "completion": "is not read"}) == SWAPPED
    assert complete({"examples": [["B V D E", "D E V B"]], "query": "F G H V K L"}) == SWAPPED
    assert complete({"examples": [("B V D E", "D E V B .")], "query": "F G H V K L"}) == SWAPPED
    two = {"examples": [["a V b", "b a"], ["c V d", "d c"]], "query": "e V f"}
    assert prompt_of(two) == "Q a V b A b a . Q c V d A d c . Q e V f A"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_batch_is_its_prompts_alone(complete: TemplateCompletionPipeline, pargen: Any, size: int):
    expected = [
        {"completion": one.text, "ended": one.ended}
        for prompt in PROMPTS
        for one in complete_batch(*pargen, [prompt], 64)
    ]
    assert complete(PROMPTS, batch_size=size) == expected
    assert list(complete(({"prompt": prompt} for prompt in PROMPTS), batch_size=size)) == expected


def test_words_keep_their_ids_until_their_batch_is_read(complete: TemplateCompletionPipeline):
    """Each prompt has words of its own, and all of them together more than the tokenizer has places."""
    prompts = [f"Q a{i} V b{i} c{i} A b{i} c{i} V a{i} . Q d{i} V e{i} A" for i in range(20)]
    expected = [{"completion": f"e{i} V d{i} .", "ended": True} for i in range(20)]
    assert complete(prompts) == expected
    assert complete(prompts, batch_size=3) == expected
    with pytest.raises(DATVocabularyError, match="24 different words"):
        complete(prompts, batch_size=20)


def test_a_bound_is_no_end(complete: TemplateCompletionPipeline):
    assert complete(SWAP, max_new_tokens=3) == {"completion": "K L V", "ended": False}
    assert complete(SWAP, max_length=19 + 2)["ended"] is False


SAYS_WHAT_IT_IS_GIVEN = """registers: {symbol: 's', position: 'p', given: 'g'}
constants: {}
system: {symbol: symbol, position: position, output: given}
watch: [given]
prompt: [given]
where position[n] == position[N]:
    given[N] = given[n]
"""


def test_a_program_whose_prompt_sets_registers():
    model, tokenizer = compile_program(SAYS_WHAT_IT_IS_GIVEN, max_position_embeddings=9, num_open_values=9)
    complete = model.completion_pipeline(tokenizer)
    given = [
        {"prompt": "a b c", "registers": {"given": [None, None, "x"]}},
        {"prompt": "a b"},
        {"prompt": "a", "registers": {"given": ["y"]}},
    ]
    expected = [{"completion": text, "ended": text == ""} for text in ("x x", "", "y y")]  # a new cell has it, too
    assert complete(given, max_new_tokens=2) == expected
    assert complete(given, batch_size=3, max_new_tokens=2) == expected
    with pytest.raises(DATError, match="registers must be a dictionary"):
        complete({"prompt": "a", "registers": "given"})
    with pytest.raises(DATError, match=r"registers are .*, got 'head'"):
        complete({"prompt": "a", "registers": {"head": ["y"]}})


def test_a_checkpoint_names_its_pipeline_and_the_package_serves_it(pargen: Any, tmp_path: Path):
    for part in pargen:
        part.save_pretrained(tmp_path)
    entry = {"impl": "dat_completion.TemplateCompletionPipeline", "pt": ["AutoModelForCausalLM"], "type": "text"}
    assert json.loads((tmp_path / "config.json").read_text())["custom_pipelines"] == {"template-completion": entry}
    assert (tmp_path / "dat_completion.py").is_file()
    for trust in (None, False, True):
        loaded = pipeline("template-completion", model=str(tmp_path), trust_remote_code=trust)
        assert type(loaded) is TemplateCompletionPipeline
        assert loaded(SWAP) == SWAPPED


def gpt2() -> TemplateCompletionPipeline:
    tokenizer = word_tokenizer(words_of([*PROMPTS[:2], "."]))
    torch.manual_seed(0)
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("eos", "bos", "pad")}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, **special)).eval()
    return pipeline("template-completion", model=model, tokenizer=tokenizer)


def test_a_gpt2_completes_prompts_as_its_generate_does():
    complete = gpt2()
    model, tokenizer = complete.model, complete.tokenizer
    for prompt, found in zip(PROMPTS[:2], complete(PROMPTS[:2], batch_size=2, max_new_tokens=9), strict=True):
        batch = tokenizer(prompt, return_tensors="pt")
        said = model.generate(**batch, max_new_tokens=9)[0, batch["input_ids"].shape[1] :].tolist()
        ended = tokenizer.eos_token_id in said
        assert found == {"completion": tokenizer.decode(said, skip_special_tokens=True), "ended": ended}
    several = complete(SWAP, do_sample=True, num_return_sequences=3, max_new_tokens=2)
    assert [one.keys() for one in several] == [{"completion", "ended"}] * 3


def test_a_gpt2_stops_at_its_end():
    complete = gpt2()
    with torch.no_grad():
        complete.model.lm_head.weight[complete.tokenizer.eos_token_id] = 0
        said = complete(SWAP, max_new_tokens=4, eos_token_id=list(range(len(complete.tokenizer))))
    assert said == {"completion": "", "ended": True}


def test_a_gpt2_refuses_unknown_words_and_registers():
    complete = gpt2()
    with pytest.raises(DATVocabularyError, match=r"none of \['blicket', 'dax'\]"):
        complete("Q blicket A dax . Q B A")
    with pytest.raises(DATError, match="the model is a GPT2LMHeadModel"):
        complete({"prompt": SWAP, "registers": {"head": [None] * 19}})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("", "A prompt has one word at least, got ''"),
        (3, "An input must be a text, .* got a int"),
        ({"query": "a"}, "got a dict with the keys \\['query'\\]"),
        ({"examples": [], "query": "a"}, "one at least, got \\[\\]"),
        ({"examples": "a b", "query": "a"}, "a list of pairs .* got 'a b'"),
        ({"examples": [["a", "b"], "ab"], "query": "a"}, "Example 2 must be a pair"),
        ({"examples": [["a", " "]], "query": "a"}, "The target of example 1 must be a text with one word at least"),
        ({"examples": [["a", "b"]], "query": "c A d"}, "The query has the word 'A', which marks"),
    ],
)
def test_refuses_what_is_no_prompt(complete: TemplateCompletionPipeline, given: Any, text: str):
    with pytest.raises(DATError, match=text):
        complete(given)


def test_refuses_misspelt_arguments_and_long_prompts(complete: TemplateCompletionPipeline):
    with pytest.raises(ValueError, match="max_new_tokns"):
        complete(SWAP, max_new_tokns=3)
    with pytest.raises(DATLengthError):
        complete("a " * 61)


@pytest.mark.slow
def test_rows_of_the_data_set_are_inputs():
    rows = next(iter(generate_rows(TemplaticSettings("1_shot_rlw", num_eval=20), "test", 0))).to_pylist()
    model, tokenizer = compile_program(program_text("pargen"))
    found = model.completion_pipeline(tokenizer)(rows, batch_size=10)
    assert [one["completion"] for one in found] == [row["completion"] for row in rows]
