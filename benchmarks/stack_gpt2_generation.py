"""Greedy generation with StackGPT2: tokens a second, with a stack and without, with a cache and without.

    python benchmarks/stack_gpt2_generation.py

4 layers, width 256, 4 heads, a batch of 4 prompts of 16 tokens, continued to length 512; without a cache to length 128,
because every token needs a whole forward pass. One thread, and the GPU if there is one. Before timing, the tokens with
a cache are compared with those without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, ratios, report, take_turns
from torch import Tensor

from hf_mech.hub import Measurement, measurement
from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

FORMS: dict[str, dict[str, bool]] = {"vanilla": {"use_stack": False}, "stack": {}}
BATCH, PROMPT, LENGTH, SHORT = 4, 16, 512, 128


def model_of(form: str, device: str) -> StackGPT2ForCausalLM:
    """A model with random weights; both forms have the same tensors, except for the stack's."""
    torch.manual_seed(0)
    config = StackGPT2Config(
        n_layer=4,
        n_embd=256,
        n_head=4,
        n_positions=LENGTH,
        vocab_size=512,
        bos_token_id=0,
        eos_token_id=1,
        **FORMS[form],
    )
    return StackGPT2ForCausalLM(config).to(device).eval()


def generation_of(model: StackGPT2ForCausalLM, length: int, *, cached: bool) -> Callable[[], Tensor]:
    """A function that continues the prompts to exactly `length` tokens: [batch, length]."""
    device = next(model.parameters()).device
    prompt = torch.randint(2, 512, (BATCH, PROMPT), generator=torch.Generator().manual_seed(0)).to(device)
    prompt[:, 0] = model.config.bos_token_id
    settings: dict[str, Any] = {
        "attention_mask": torch.ones_like(prompt),
        "do_sample": False,
        "max_new_tokens": length - PROMPT,
        "min_new_tokens": length - PROMPT,
        "pad_token_id": model.config.eos_token_id,
        "use_cache": cached,
    }

    def generate() -> Tensor:
        with torch.inference_mode():
            tokens = model.generate(prompt, **settings)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return tokens

    return generate


def measure(device: str, setting: dict[str, Any], runs: int) -> list[Measurement]:
    """Tokens a second of every side, the slow-down from the stack, and the speed-up from the cache."""
    models = {form: model_of(form, device) for form in FORMS}
    long = {form: generation_of(model, LENGTH, cached=True) for form, model in models.items()}
    short = {
        f"{form} {'cached' if cached else 'uncached'}": generation_of(model, SHORT, cached=cached)
        for form, model in models.items()
        for cached in (True, False)
    }
    measured = []

    def note(length: int, form: str, cached: bool, metric: str, values: list[float]) -> None:
        where = setting | {"length": length, "form": form, "cached": cached}
        measured.append(measurement("stack_gpt2_generation", device, where, metric, values))

    for form in FORMS:
        with_cache, without = short[f"{form} cached"](), short[f"{form} uncached"]()
        if not torch.equal(with_cache, without):
            raise AssertionError(
                f"{form} on {device}: the tokens with a cache are not those without; nothing is timed."
            )
    seconds = take_turns(long, runs)
    for form in FORMS:
        note(LENGTH, form, True, "tokens_per_second", [BATCH * (LENGTH - PROMPT) / s for s in seconds[form]])
    note(LENGTH, "stack", True, "cost_over_vanilla", ratios(seconds, "stack", "vanilla"))
    seconds = take_turns(short, runs)
    for form in FORMS:
        for cached in (True, False):
            side = seconds[f"{form} {'cached' if cached else 'uncached'}"]
            note(SHORT, form, cached, "tokens_per_second", [BATCH * (SHORT - PROMPT) / s for s in side])
        note(SHORT, form, True, "times_faster_than_uncached", ratios(seconds, f"{form} uncached", f"{form} cached"))
    return measured


def main() -> None:
    args = arguments(__doc__, __file__, runs=5)
    began = time.perf_counter()
    torch.set_num_threads(1)
    measured = measure("cpu", {"batch": BATCH, "threads": 1}, args.runs)
    if torch.cuda.is_available():
        measured += measure("cuda", {"batch": BATCH}, args.runs)
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
