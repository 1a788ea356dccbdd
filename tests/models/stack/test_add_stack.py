"""`add_stack` on ten stock decoders: they differ in positions, norms, windows, experts and names of their parts."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
from torch.testing import assert_close
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, DynamicCache

from hf_mech.models.stack import StackError, StackGPT2Config, StackGPT2ForCausalLM, add_stack, stacked
from hf_mech.models.stack.stack_layer import StackSubLayer
from tests.contract.checkpointing import enable_checkpointing

from .contract import BOS, PAD, VOCABULARY, gpt2, inputs, predicting_tokens

pytestmark = [
    # GPT-2's own layers store their matrix transposed, ours do not; peft sees that, and says so.
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning"),
    # peft 0.21 reads the attribute under the name that transformers 5.23 deprecates.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]

WINDOW = 4  # shorter than the texts below
DECODERS: dict[str, dict[str, Any]] = {
    "Gemma2ForCausalLM": {"sliding_window": WINDOW},  # every second layer has a window
    "GemmaForCausalLM": {},
    "GPT2LMHeadModel": {},
    "GPTNeoXForCausalLM": {},
    "MistralForCausalLM": {"sliding_window": WINDOW},
    "MixtralForCausalLM": {"num_local_experts": 3},
    "OPTForCausalLM": {"ffn_dim": 32, "word_embed_proj_dim": 16},
    "PhiForCausalLM": {},
    "Qwen3ForCausalLM": {},
    "SmolLM3ForCausalLM": {},
}
SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "vocab_size": VOCABULARY,
    "bos_token_id": BOS,
    "eos_token_id": 2,
    "pad_token_id": PAD,
    "initializer_range": 0.2,
    "init_std": 0.2,
}
RATES = ("embd_pdrop", "attn_pdrop", "resid_pdrop", "dropout", "attention_dropout", "hidden_dropout")
decoders = pytest.mark.parametrize("name", DECODERS)


def stock(name: str, **options: Any) -> Any:
    """A tiny stock model with random weights."""
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    known = {*vars(config_class()), *config_class.attribute_map}
    sizes = {key: value for key, value in {**SIZES, **dict.fromkeys(RATES, 0.0)}.items() if key in known}
    torch.manual_seed(0)
    return model_class(config_class(**{**sizes, **DECODERS.get(name, {}), **options})).eval()


def open_gates(model: Any) -> Any:
    """Lets the stacks be seen."""
    for module in model.modules():
        if isinstance(module, StackSubLayer) and module.gate is not None:
            torch.nn.init.constant_(module.gate, 0.7)
    return model


@cache
def _opened(name: str) -> Any:
    return open_gates(add_stack(stock(name)))


def opened(name: str) -> Any:
    """A model whose stacks are at work; all tests share it and change nothing."""
    return _opened(name)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


# -------------------------------------------------------------------------------------------------- all of them


@decoders
def test_the_logits_are_unchanged_until_the_first_step(name: str):
    model, batch = stock(name), predicting_tokens(3, 9, 0)
    before = model(**batch)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    assert add_stack(model) is model
    assert all(torch.equal(model.state_dict()[key], weight) for key, weight in weights.items())
    after = model(**batch, output_stack_attentions=True)
    assert torch.equal(after.logits, before.logits)
    assert [alpha.shape for alpha in after.stack_attentions] == [(3, 9, 9)] * 2
    after.loss.backward()
    assert all(layer.gate.grad.any() for layer in model.modules() if isinstance(layer, StackSubLayer))
    assert not torch.equal(opened(name)(**batch).logits, before.logits)


@decoders
@torch.no_grad()
def test_a_cache_in_chunks_behind_padding(name: str):
    """Past the window, too: the stack has no window."""
    model, batch = opened(name), inputs(3, 9, 0)
    expected = model(**batch).logits
    ids = torch.nn.functional.pad(batch["input_ids"], (2, 0), value=PAD)
    mask = torch.nn.functional.pad(batch["attention_mask"], (2, 0))
    close(model(ids, attention_mask=mask).logits[:, 2:], expected)
    cache, parts = DynamicCache(config=model.config), []
    for low, high in ((0, 5), (5, 6), (6, 7), (7, 11)):
        parts.append(model(ids[:, low:high], attention_mask=mask[:, :high], past_key_values=cache).logits)
    close(torch.cat(parts, 1)[:, 2:], expected)


@decoders
@torch.no_grad()
def test_generation_is_the_same_with_any_cache(name: str):
    model, batch = opened(name), inputs(3, 6, 0)
    padded = {
        key: torch.nn.functional.pad(x, (2, 0), value=PAD if key == "input_ids" else 0) for key, x in batch.items()
    }
    how = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    plain = model.generate(**batch, **how)[:, 6:]
    for more in ({}, {"use_cache": False}, {"cache_implementation": "static", "disable_compile": True}):
        assert torch.equal(model.generate(**padded, **how, **more)[:, 8:], plain), more
    beams = [model.generate(**padded, **how, num_beams=2, use_cache=cached) for cached in (True, False)]
    assert torch.equal(*beams)


@decoders
@torch.no_grad()
def test_packed_sequences_are_those_sequences_alone(name: str):
    """Without padding, and with padding between and inside them."""
    model, rows = opened(name), [inputs(1, length, length)["input_ids"] for length in (5, 8)]
    alone = torch.cat([model(row).logits for row in rows], 1)
    places = torch.cat([torch.arange(5), torch.arange(8)])[None]
    close(model(torch.cat(rows, 1), position_ids=places).logits, alone)
    mask = torch.tensor([[1] * 5 + [0] * 2 + [1] * 8 + [0]])
    row = torch.full((1, 16), PAD)
    row[mask.bool()] = torch.cat(rows, 1)[0]
    spread = torch.zeros(1, 16, dtype=torch.long)
    spread[mask.bool()] = places[0]
    close(model(row, position_ids=spread, attention_mask=mask).logits[mask.bool()], alone[0])


@decoders
def test_checkpointing_changes_no_gradient(name: str):
    batch, found = predicting_tokens(3, 9, 0), []
    for checkpointing in (False, True):
        model = copy.deepcopy(opened(name)).train()
        if checkpointing:
            enable_checkpointing(model)
        model(**batch).loss.backward()
        found.append({key: weight.grad for key, weight in model.named_parameters()})
    for key, gradient in found[0].items():
        assert gradient is not None, key
        assert_close(found[1][key], gradient)


@decoders
def test_saved_and_loaded_by_the_auto_classes(name: str, tmp_path: Path):
    model, batch = opened(name), inputs(3, 9, 0)
    model.save_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is type(model.config)
    loaded, info = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is type(model)
    assert not any(info.values())
    with torch.no_grad():
        assert torch.equal(loaded(**batch).logits, model(**batch).logits)
        bare = AutoModel.from_pretrained(tmp_path)(**batch).last_hidden_state
        assert torch.equal(bare, model(**batch, output_hidden_states=True).hidden_states[-1])
    assert loaded.config.to_diff_dict() == model.config.to_diff_dict()


@decoders
def test_peft_with_defaults_trains_and_saves_the_stacks(name: str, tmp_path: Path):
    """The adapter fits the stock checkpoint with other new stacks."""
    model, batch = stock(name), predicting_tokens(3, 9, 0)
    known = model.config.model_type in TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    targets = None if known else ["q_proj", "v_proj"]  # peft does not know SmolLM3, either
    adapted = get_peft_model(add_stack(model), LoraConfig(task_type="CAUSAL_LM", target_modules=targets))
    assert adapted.peft_config["default"].modules_to_save == ["stack"]
    weights = [weight for weight in adapted.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    for _ in range(2):
        optimizer.zero_grad()
        adapted(**batch).loss.backward()
        optimizer.step()
    adapted.eval().save_pretrained(tmp_path)
    torch.manual_seed(9)
    loaded = PeftModel.from_pretrained(add_stack(stock(name)), tmp_path).eval()
    with torch.no_grad():
        assert torch.equal(loaded(**batch).logits, adapted(**batch).logits)


ELSEWHERE = """
import sys
sys.modules["hf_mech"] = sys.modules["numba"] = None
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM

for folder in map(Path, sys.argv[1:]):
    model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    assert type(model).__module__.startswith("transformers_modules"), type(model)
    with torch.no_grad():
        torch.save(model(**torch.load(folder / "inputs.pt")).logits, folder / "logits.pt")
    model.save_pretrained(folder / "again")
"""


@pytest.mark.slow
def test_all_load_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hf_mech.models.stack import stack_kernel_cpu

    monkeypatch.setattr(stack_kernel_cpu, "available", False)
    for name in DECODERS:
        opened(name).save_pretrained(tmp_path / name)
        torch.save(inputs(3, 7, 0), tmp_path / name / "inputs.pt")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *(str(tmp_path / name) for name in DECODERS)],
        cwd=tmp_path,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in DECODERS:
        with torch.no_grad():
            assert torch.equal(torch.load(tmp_path / name / "logits.pt"), opened(name)(**inputs(3, 7, 0)).logits), name
        configs = [json.loads((tmp_path / name / place / "config.json").read_text()) for place in (".", "again")]
        assert configs[0].pop("auto_map").items() <= configs[1].pop("auto_map").items()
        assert configs[0] == configs[1]


# ------------------------------------------------------------------------------------------------------ one of them


OPTIONS: list[dict[str, Any]] = [
    {"multi_pop": 3},
    {"values": "recurrent", "actions_from": "layer_input"},
    {"bottom": "bos_token"},
    {"tolerance": 1e-6},
    {"layers": [1]},
    {"gate": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@torch.no_grad()
def test_gpt2_is_stack_gpt2(options: dict[str, Any]):
    """With the same weights, every option has the same logits, with and without a cache."""
    model = open_gates(add_stack(stock("GPT2LMHeadModel"), **options))
    named = {key: getattr(model.config, key) for key in vars(StackGPT2Config()) if hasattr(model.config, key)}
    ours = StackGPT2ForCausalLM(StackGPT2Config(**{key: value for key, value in named.items() if key[0] != "_"})).eval()
    assert ours.config.stack_layers == options.get("layers")
    ours.load_state_dict(model.state_dict())
    batch = inputs(3, 12, 0)
    batch["attention_mask"][1, :3], batch["input_ids"][1, 3] = 0, BOS
    results = []
    for each in (model, ours):
        first = each(batch["input_ids"][:, :9], attention_mask=batch["attention_mask"][:, :9], use_cache=True)
        then = each(
            batch["input_ids"][:, 9:], attention_mask=batch["attention_mask"], past_key_values=first.past_key_values
        )
        results.append([each(**batch).logits, first.logits, then.logits])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_the_layers_that_are_named_have_a_stack(tmp_path: Path):
    model = add_stack(stock("Qwen3ForCausalLM", num_hidden_layers=4), layers=(3, 1))
    assert [layer.stack is not None for layer in model.model.layers] == [False, True, False, True]
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.config.stack_layers == [1, 3]
    assert len(loaded(**inputs(2, 5, 0), output_stack_attentions=True).stack_attentions) == 2


def test_a_stock_checkpoint_of_the_class(tmp_path: Path):
    """Also of experts, whose weights have other names in files."""
    for name in ("Qwen3ForCausalLM", "MixtralForCausalLM"):
        theirs, batch = stock(name), inputs(2, 5, 0)
        theirs.save_pretrained(tmp_path / name)
        ours = stacked(type(theirs))
        model, info = ours.from_pretrained(tmp_path / name, stack_gate=True, multi_pop=2, output_loading_info=True)
        assert all(".stack." in key for key in info["missing_keys"])
        assert not info["unexpected_keys"]
        assert model.config.multi_pop == 2
        assert torch.equal(model(**batch).logits, theirs(**batch).logits)


def test_new_stacks_have_the_type_of_their_layer():
    model = add_stack(stock("Qwen3ForCausalLM").bfloat16(), values="recurrent")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert model(**inputs(2, 5, 0)).logits.dtype == torch.bfloat16


def test_copies_and_pickles():
    model, batch = add_stack(stock("OPTForCausalLM")), inputs(2, 5, 0)
    expected = open_gates(model)(**batch, output_stack_attentions=True)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(again) is type(model)
        assert torch.equal(again(**batch).logits, expected.logits)
    outputs = pickle.loads(pickle.dumps(expected))
    assert torch.equal(outputs.stack_actions[1], expected.stack_actions[1])


def test_without_a_head_every_output_is_recorded():
    model = add_stack(transformers.LlamaModel(stock("LlamaForCausalLM").config))
    outputs = model(**inputs(2, 5, 0), output_hidden_states=True, output_stack_attentions=True)
    assert (len(outputs.hidden_states), len(outputs.stack_attentions)) == (3, 2)


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # torch's own
def test_exported_it_is_the_same():
    model, batch = opened("Qwen3ForCausalLM"), inputs(2, 7, 0)
    with torch.no_grad():  # with gradients torch warns of its own code
        program = torch.export.export(model, (), {**batch, "use_cache": False}, strict=False)
    assert_close(program.module()(**batch, use_cache=False).logits, model(**batch).logits)


# ---------------------------------------------------------------------------------------------------------- refused


TINY = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8, "d_ff": 32, "vocab_size": VOCABULARY}
WRONG = {
    "T5Model": (TINY, "it is an encoder-decoder"),
    "BertModel": ({}, "BertEncoder, which holds its layers, does not take input_ids"),
    "BloomForCausalLM": ({"n_layer": 2}, "does not take position_ids"),
    "MambaForCausalLM": ({"state_size": 4}, "does not take position_ids, past_key_values"),
    "Lfm2ForCausalLM": ({"layer_types": ["conv", "full_attention"]}, "the cache of its layers is a LinearAttention"),
    "FalconH1ForCausalLM": ({}, "LinearAttentionAndFullAttentionLayer, which has no place for a stack"),
    "Gemma3ForCausalLM": ({"use_bidirectional_attention": True}, "its tokens see the future"),
    "LlamaForQuestionAnswering": ({}, "none of the models that transformers has for AutoModel, AutoModelForCausalLM"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_get_a_stack_is_refused(name: str):
    options, says = WRONG[name]
    model = stock(name, **options)
    before = type(model)
    with pytest.raises(StackError, match=says):
        add_stack(model)
    assert type(model) is before


def test_a_model_of_several_parts_is_refused():
    text = {key: SIZES[key] for key in SIZES if key != "init_std"}
    vision = {**dict.fromkeys(("hidden_size", "intermediate_size"), 16), "num_attention_heads": 2, "image_size": 8}
    vision |= {"patch_size": 4, "num_hidden_layers": 1}
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    with pytest.raises(StackError, match="it has several parts, of which a language model is one; give that one alone"):
        add_stack(transformers.Gemma3Model(config))


def test_layers_of_another_form_are_refused_when_they_are_called():
    """Known only then: they return a tuple."""
    model = add_stack(stock("GPTJForCausalLM", rotary_dim=4))
    with pytest.raises(StackError, match="GPTJBlock takes or returns something else than hidden states"):
        model(**inputs(2, 5, 0))


def test_a_stack_is_added_once_and_before_everything_else():
    with pytest.raises(StackError, match="StackQwen3ForCausalLM has stacks already"):
        add_stack(add_stack(stock("Qwen3ForCausalLM")))
    with pytest.raises(StackError, match="StackGPT2ForCausalLM has stacks already"):
        add_stack(StackGPT2ForCausalLM(gpt2()))
    adapted: Any = get_peft_model(stock("Qwen3ForCausalLM"), LoraConfig())
    with pytest.raises(StackError, match="Add the stack first, then adapters"):
        add_stack(adapted)


def test_a_class_of_ones_own_is_refused():
    mine: Any = type("Mine", (transformers.Qwen3ForCausalLM,), {})
    with pytest.raises(StackError, match="Mine is none of the models"):
        add_stack(mine(stock("Qwen3ForCausalLM").config))


def test_a_configuration_of_another_class_is_refused():
    """transformers has InternLM3 as a Llama with a configuration of its own."""
    known = {key: SIZES[key] for key in SIZES if key in vars(transformers.InternLM3Config())}
    model = transformers.LlamaForCausalLM(transformers.InternLM3Config(**known))
    with pytest.raises(StackError, match="has a InternLM3Config; with a stack it is loaded by a LlamaConfig"):
        add_stack(model)


def test_a_quantised_model_is_refused():
    """What quantisers of transformers set; none is installed here."""
    model = stock("Qwen3ForCausalLM")
    model.is_quantized = True
    with pytest.raises(StackError, match="then load that with a quantization_config that skips 'stack'"):
        add_stack(model)


def test_a_wrapped_model_is_refused():
    model = stock("Qwen3ForCausalLM")
    model.model.layers[1].forward = model.model.layers[1].forward
    with pytest.raises(StackError, match=r"stacked\(Qwen3ForCausalLM\).from_pretrained\(..., stack_gate=True"):
        add_stack(model)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layers": [2]}, "from 0 to 1, or None for all; got"),
        ({"layers": [1, 1]}, "different layers"),
        ({"values": "recurrent", "multi_pop": 2}, "multi_pop must be 1"),
        ({"multi_pop": 0}, "multi_pop must be at least 1"),
        ({"bottom": "bos"}, "one of 'first_token', 'bos_token'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], says: str):
    model = stock("Qwen3ForCausalLM")
    with pytest.raises(StackError, match=says):
        add_stack(model, **options)
    assert type(model) is transformers.Qwen3ForCausalLM


def test_another_decoders_checkpoint_is_refused(tmp_path: Path):
    opened("Qwen3ForCausalLM").save_pretrained(tmp_path)
    with pytest.raises(StackError, match="'stack_decoder_qwen3', expected 'stack_decoder_llama' or 'llama'"):
        stacked(transformers.LlamaForCausalLM).from_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "decoder_type": "of_the_future"}))
    with pytest.raises(StackError, match="got 'of_the_future'; is transformers"):
        AutoModelForCausalLM.from_pretrained(tmp_path)
