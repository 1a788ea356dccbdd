"""A generation step of StackGPT2 in a long context: with whole rows of stack attention, with their large entries, and
without a stack.

    python benchmarks/stack_long_contexts.py

4 layers, width 256, 4 heads, one row; the actions' weights are large, so that the stack is nearly certain of them, as a
trained one is. `whole` keeps every entry, `large` those that an error of 1e-3 asks for; `whole` is left out at 4,096,
where a prompt alone takes minutes. One thread on the CPU, or a GPU. The memory is that of the stacks in the cache, in
megabytes, and the error the bound of all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, ratios, report, take_turns

from hf_mech.hub import measurement
from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

LENGTHS = (512, 1024, 2048, 4096)
LONGEST_WHOLE = 1024
STEPS = 16
FORMS: dict[str, dict[str, Any]] = {
    "vanilla": {"use_stack": False},
    "whole": {},
    "large": {"stack_tolerance": 1e-3},
}


def model_of(form: str, device: str) -> StackGPT2ForCausalLM:
    """A model with random weights and nearly certain actions."""
    torch.manual_seed(0)
    sizes = {"n_layer": 4, "n_embd": 256, "n_head": 4, "n_positions": 8192, "vocab_size": 512}
    config = StackGPT2Config(**sizes, bos_token_id=0, eos_token_id=1, **FORMS[form])
    model = StackGPT2ForCausalLM(config).to(device).eval()
    for layer in model.transformer.h:
        if layer.stack is not None:
            torch.nn.init.normal_(layer.stack.action.weight, std=3.0, generator=torch.Generator(device).manual_seed(1))
    return model


def steps_of(model: StackGPT2ForCausalLM, length: int) -> tuple[Callable[[], Any], Any]:
    """A function that does some steps behind a context of that length, and the cache."""
    device = next(model.parameters()).device
    ids = torch.randint(2, 512, (1, length), generator=torch.Generator().manual_seed(0)).to(device)
    with torch.inference_mode():
        cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values

    def steps() -> None:
        with torch.inference_mode():
            for i in range(STEPS):
                model(ids[:, i : i + 1], past_key_values=cache)
            cache.crop(-STEPS)
        if device.type == "cuda":
            torch.cuda.synchronize()

    return steps, cache


def stored(cache: Any) -> tuple[float, float]:
    """Megabytes of the stacks' rows, and the largest bound of their error."""
    size, error = 0, 0.0
    for layer in cache.layers:
        if hasattr(layer.stack, "rows"):
            rows = layer.stack.rows
            size += rows.index.nbytes + rows.weight.nbytes + rows.error.nbytes
            error = max(error, float(rows.error.max()))
        else:
            size += layer.stack.alpha.nbytes
    return size / 2**20, error


def main() -> None:
    args = arguments(__doc__, __file__, runs=7)
    began = time.perf_counter()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = []
    for length in LENGTHS:
        forms = [form for form in FORMS if form != "whole" or length <= LONGEST_WHOLE]
        made = {form: steps_of(model_of(form, device), length) for form in forms}
        seconds = take_turns({form: steps for form, (steps, _) in made.items()}, args.runs)
        for form in forms:
            setting = {"length": length, "form": form, "device": device}

            def note(metric: str, values: list[float], setting: dict[str, Any] = setting) -> None:
                measured.append(measurement("stack_long_contexts", "step", setting, metric, values))

            note("seconds", [value / STEPS for value in seconds[form]])
            if form != "vanilla":
                note("times_vanilla", ratios(seconds, form, "vanilla"))
                megabytes, error = stored(made[form][1])
                note("megabytes", [megabytes])
                if form == "large":
                    note("error_bound", [error])
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
