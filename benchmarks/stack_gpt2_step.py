"""A training step of StackGPT2 (forward, backward, AdamW) against the same model without a stack.

    python benchmarks/stack_gpt2_step.py

4 layers, width 256, 4 heads, batches of 8 x 128 tokens, fp32, no dropout: on the CPU with one and with two threads, and
on the GPU if there is one. `gated` also has the learned gate. Memory is the peak that a step adds to a process, or to
the GPU, including model and optimizer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, peak_memory, ratios, report, take_turns

from hf_mech.hub import Measurement, measurement
from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

FORMS: dict[str, dict[str, bool]] = {
    "vanilla": {"use_stack": False},
    "stack": {},
    "gated": {"stack_gate": True},
}
SIZES = {"n_layer": 4, "n_embd": 256, "n_head": 4, "n_positions": 128, "vocab_size": 512}
DROPOUTS = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
BATCH, LENGTH = 8, 128


def step_of(form: str, device: str, batch: int = BATCH, length: int = LENGTH) -> Callable[[], None]:
    """A function that does one step on random tokens, and waits for the device to be done."""
    torch.manual_seed(0)
    config = StackGPT2Config(
        **SIZES, **dict.fromkeys(DROPOUTS, 0.0), **FORMS[form], bos_token_id=0, eos_token_id=1, use_cache=False
    )
    model = StackGPT2ForCausalLM(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    input_ids = torch.randint(2, SIZES["vocab_size"], (batch, length), device=device)
    input_ids[:, 0] = config.bos_token_id

    def step() -> None:
        model(input_ids=input_ids, labels=input_ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def one_step(form: str, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    step_of(form, "cpu", **({"batch": 1, "length": 2} if warm_up else {}))()


def gpu_megabytes(form: str) -> float:
    """The peak memory that a step adds to the GPU."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step_of(form, "cuda")()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measure(device: str, setting: dict[str, Any], runs: int) -> list[Measurement]:
    """Seconds of every form, and the stack's slow-down, pair by pair."""
    seconds = take_turns({form: step_of(form, device) for form in FORMS}, runs)
    measured = []
    for form in FORMS:
        measured.append(measurement("stack_gpt2_step", device, setting | {"form": form}, "seconds", seconds[form]))
    for form in ("stack", "gated"):
        cost = ratios(seconds, form, "vanilla")
        measured.append(measurement("stack_gpt2_step", device, setting | {"form": form}, "cost_over_vanilla", cost))
    return measured


def main() -> None:
    args = arguments(__doc__, __file__, runs=30)
    began = time.perf_counter()
    shape = {"layers": SIZES["n_layer"], "width": SIZES["n_embd"], "batch": BATCH, "length": LENGTH}
    measured = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        measured += measure("cpu", shape | {"threads": threads}, args.runs)
    for form in FORMS:
        megabytes = peak_memory(one_step, form)
        measured.append(measurement("stack_gpt2_step", "cpu", shape | {"form": form}, "peak_megabytes", [megabytes]))
    if torch.cuda.is_available():
        measured += measure("cuda", shape, args.runs)
        for form in FORMS:
            megabytes = gpu_megabytes(form)
            measured.append(
                measurement("stack_gpt2_step", "cuda", shape | {"form": form}, "peak_megabytes", [megabytes])
            )
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
