"""Greedy generation with StackGPT2 and with transformers' GPT-2 of the same sizes: time of a token, and memory.

    python benchmarks/stack_gpt2_generation.py

`bench`: 4 layers, width 256, 4 heads; `small`: GPT-2's 12 layers, width 768, 12 heads, 50,257 tokens. Batches of 1 and
8 texts of 512 and 4,096 tokens are continued by `generate`, each side from its own cache. `soft` actions are those of
random weights, `certain` ones nearly certain, as those of a trained model. The memory is that of the cache: keys and
values, and what the stacks add. One thread, and the GPU if there is one. Before timing, the tokens with a cache are
compared with those without, and that is timed, too (length 128).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, ratios, report, take_turns
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.hub import Measurement, measurement
from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

TASK = "stack_gpt2_generation"
SIZES: dict[str, dict[str, int]] = {
    "bench": {"n_layer": 4, "n_embd": 256, "n_head": 4, "vocab_size": 512},
    "small": {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257},
}
CERTAINTY = {"soft": 0.0, "certain": 3.0}
TIMED = [
    (size, actions, batch, length)
    for size, actions in (("bench", "soft"), ("bench", "certain"), ("small", "soft"))
    for batch in (1, 8)
    for length in (512, 4096)
]
NEW, SHORT, CHUNK = 16, 128, 256


def model_of(size: str, form: str, device: str, certainty: float = 0.0) -> Any:
    """A model with random weights, transformers' own or with stacks; `certainty` scales the actions' weights."""
    torch.manual_seed(0)
    options = SIZES[size] | {"n_positions": 8192, "bos_token_id": 0, "eos_token_id": 1}
    if form == "vanilla":
        return GPT2LMHeadModel(GPT2Config(**options)).to(device).eval()
    model = StackGPT2ForCausalLM(StackGPT2Config(**options)).to(device).eval()
    if certainty:
        for layer in model.transformer.h:
            generator = torch.Generator(device).manual_seed(1)
            torch.nn.init.normal_(layer.stack.action.weight, std=certainty, generator=generator)
    return model


def prompts(batch: int, length: int, device: str) -> Tensor:
    """Random tokens, [batch, length]."""
    return torch.randint(2, 512, (batch, length), generator=torch.Generator().manual_seed(0)).to(device)


def settings(ids: Tensor, new: int) -> dict[str, Any]:
    return {
        "attention_mask": torch.ones_like(ids),
        "do_sample": False,
        "max_new_tokens": new,
        "min_new_tokens": new,
        "pad_token_id": 1,
    }


def continuation_of(model: Any, batch: int, length: int) -> tuple[Callable[[], None], Any]:
    """A function that writes the next tokens behind a text of that length, and those after them; and the cache."""
    device = str(next(model.parameters()).device)
    ids, cache = prompts(batch, length, device), None
    with torch.inference_mode():
        for part in ids.split(CHUNK, 1):
            cache = model(part, past_key_values=cache, use_cache=True, logits_to_keep=1).past_key_values
        cache.crop(-1)  # `generate` reads the last token itself

    def go_on() -> None:
        nonlocal ids
        with torch.inference_mode():
            ids = model.generate(ids, past_key_values=cache, **settings(ids, NEW))
        if device != "cpu":
            torch.cuda.synchronize()

    return go_on, cache


def megabytes(cache: Any) -> tuple[float, float]:
    """Of the keys and values, and of the stacks with all that they keep."""
    keys = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    stacks = 0
    for layer in cache.layers:
        if (state := getattr(layer, "stack", None)) is not None:
            levels = state.levels
            stacks += sum(t.nbytes for t in (state.actions, state.values, levels.below, levels.near, levels.bottom))
    return keys / 2**20, stacks / 2**20


def measure(device: str, runs: int) -> list[Measurement]:
    """Milliseconds of a token on every side, the ratio, and the memory."""
    measured = []
    for size, actions, batch, length in TIMED:
        made = {
            form: continuation_of(model_of(size, form, device, CERTAINTY[actions]), batch, length)
            for form in ("vanilla", "stack")
        }
        seconds = take_turns({form: go_on for form, (go_on, _) in made.items()}, runs)
        where = {"size": size, "actions": actions, "batch": batch, "length": length}
        for form, (_, cache) in made.items():
            milliseconds = [1000 * value / NEW for value in seconds[form]]
            measured.append(measurement(TASK, device, where | {"form": form}, "milliseconds_per_token", milliseconds))
            measured.append(measurement(TASK, device, where | {"form": form}, "megabytes", [sum(megabytes(cache))]))
        cost = ratios(seconds, "stack", "vanilla")
        measured.append(measurement(TASK, device, where | {"form": "stack"}, "times_vanilla", cost))
        stacks = [megabytes(made["stack"][1])[1]]
        measured.append(measurement(TASK, device, where | {"form": "stack"}, "megabytes_of_stacks", stacks))
        print(where, "times vanilla", sorted(cost)[len(cost) // 2], flush=True)
    return measured


def measure_caching(device: str, runs: int) -> list[Measurement]:
    """How much faster a short text is with the cache, after a comparison of the tokens."""
    measured, ids = [], prompts(4, 16, device)
    for form in ("vanilla", "stack"):
        model = model_of("bench", form, device)

        def write(cached: bool, model: Any = model) -> Tensor:
            with torch.inference_mode():
                return model.generate(ids, use_cache=cached, **settings(ids, SHORT - 16))

        if not torch.equal(write(True), write(False)):
            raise AssertionError(f"{form} on {device}: the tokens with a cache are not those without.")
        seconds = take_turns({"cached": lambda: write(True), "uncached": lambda: write(False)}, runs)
        where = {"size": "bench", "actions": "soft", "batch": 4, "length": SHORT, "form": form}
        faster = ratios(seconds, "uncached", "cached")
        measured.append(measurement(TASK, device, where, "times_faster_than_uncached", faster))
    return measured


def main() -> None:
    args = arguments(__doc__, __file__, runs=9)
    began = time.perf_counter()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    measured = []
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        measured += measure_caching(device, max(args.runs // 2, 1)) + measure(device, args.runs)
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
