"""Stack attention, forward and backward, against the loop of the published form and the PyTorch form.

    python benchmarks/stack_attention.py

Batch 32, on the CPU with one and two threads; if there is a GPU, also on it, there also with longer rows. Sides: the
equations as a loop that stacks all earlier rows at every position, with autograd (`loop`); our own forward and backward
in PyTorch (`torch`); the default (`compiled`: numba on a CPU, Triton on a GPU). `soft` actions are like those of random
weights, `hard` ones like those of a trained model. Peak memory, on the CPU at batch 128, is in tensors [batch, N, N];
alpha and the incoming gradient are two of them.

The growth with N, to 4,096, is that of the sub-layer's read-out (Eq. 19-25) of one row with 256 hidden units, forward
and backward: through alpha as a whole (`alpha`), by the stack's levels (`levels`), and by its uppermost levels only
with an error of at most 1e-3 (`few_levels`); one thread, seconds and peak megabytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import torch
from harness import arguments, peak_memory, ratios, report, take_turns
from torch import Tensor

from hf_mech.hub import Measurement, measurement
from hf_mech.models.stack import read_stack, stack_attention
from hf_mech.models.stack.stack_attention import backward_torch, forward_torch
from hf_mech.models.stack.stack_levels import BLOCK, Levels

BATCH = 32
LENGTHS = {"cpu": (40, 128), "cuda": (40, 128, 512, 1024)}
HARDNESS = {"soft": 1.0, "hard": 10.0}
GROWTH, HIDDEN, TOLERANCE = (256, 512, 1024, 2048, 4096), 256, 1e-3


def stack_attention_loop(actions: Tensor) -> Tensor:
    """Eq. 19-23 for K = 1, [batch, N, 3] to [batch, N, N]: every position stacks all earlier rows again."""
    batch, length, _ = actions.shape
    one_hot = torch.eye(length, device=actions.device)
    stacks = [one_hot[0].expand(batch, length)]
    for i in range(1, length):
        push, pop, noop = actions[:, i].split(1, -1)
        before = torch.stack([stacks[0], *stacks[:-1]], 1)
        popped = torch.bmm(stacks[-1][:, None, :i], before)[:, 0]
        stacks.append(push * one_hot[i] + pop * popped + noop * stacks[-1])
    return torch.stack(stacks, 1)


def step_of(form: str, length: int, hardness: float, device: str, batch: int = BATCH) -> Callable[[], Tensor]:
    """A function that returns the gradient of random actions for a random gradient of alpha."""
    generator = torch.Generator().manual_seed(0)
    logits = hardness * torch.randn(batch, length, 3, generator=generator)
    actions = logits.softmax(-1).to(device).requires_grad_()
    grad = torch.randn(batch, length, length, generator=generator).to(device)

    def step() -> Tensor:
        if form == "torch":
            values = actions.detach()
            gradient = backward_torch(grad, values, forward_torch(values, None), None)
        else:
            alpha = stack_attention_loop(actions) if form == "loop" else stack_attention(actions, validate=False)
            (gradient,) = torch.autograd.grad(alpha, actions, grad)
        if device == "cuda":
            torch.cuda.synchronize()
        return gradient

    return step


def one_step(form: str, length: int, batch: int, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    step_of(form, 4 if warm_up else length, 1.0, "cpu", batch)()


def reading_of(form: str, length: int, hardness: float, device: str) -> Callable[[], tuple[Tensor, ...]]:
    """A function that reads a row's stacks and returns the gradients of its actions' logits and its values."""
    generator = torch.Generator().manual_seed(0)
    logits = (hardness * torch.randn(1, length, 3, generator=generator)).to(device).requires_grad_()
    values, grad = torch.randn(2, 1, length, HIDDEN, generator=generator).to(device)
    values.requires_grad_()
    drop = TOLERANCE * BLOCK / (2 * length) if form == "few_levels" else 0.0

    def step() -> tuple[Tensor, ...]:
        actions = logits.softmax(-1)
        if form == "alpha":
            read = read_stack(stack_attention(actions, validate=False), values)
        else:
            read = Levels(drop).follow(torch.nn.functional.pad(values, (0, 1), value=1), actions.clone(), None, length)
        gradients = torch.autograd.grad(read, (logits, values), grad)
        if device == "cuda":
            torch.cuda.synchronize()
        return gradients

    return step


def one_reading(form: str, length: int, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    reading_of(form, 40 if warm_up else length, 1.0, "cpu")()


def growth(device: str, runs: int) -> list[Measurement]:
    torch.set_num_threads(1)
    measured, forms = [], ("alpha", "levels", "few_levels")
    for length in GROWTH:
        for config, hardness in HARDNESS.items():
            sides = {form: reading_of(form, length, hardness, device) for form in forms}
            for ours, theirs in zip(sides["levels"](), sides["alpha"](), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
            seconds = take_turns(sides, runs)
            for form in forms:
                setting = {"batch": 1, "length": length, "threads": 1, "device": device, "form": form}
                measured.append(measurement("stack_read_out", config, setting, "seconds", seconds[form]))
                if device == "cpu" and config == "soft":
                    peak = [peak_memory(one_reading, form, length)]
                    measured.append(measurement("stack_read_out", config, setting, "peak_megabytes", peak))
    return measured


def main() -> None:
    args = arguments(__doc__, __file__, runs=15)
    began = time.perf_counter()
    torch.set_flush_denormal(True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = []
    task = "stack_attention"
    for length in LENGTHS[device]:
        forms = ("loop", "torch", "compiled")
        for threads in (1, 2) if device == "cpu" else (1,):
            torch.set_num_threads(min(threads, os.cpu_count() or 1))
            for config, hardness in HARDNESS.items():
                sides = {form: step_of(form, length, hardness, device) for form in forms}
                for form in ("torch", "compiled"):
                    torch.testing.assert_close(sides[form](), sides["loop"](), rtol=1e-3, atol=1e-3)
                seconds = take_turns(sides, args.runs)
                setting = {"batch": BATCH, "length": length, "threads": threads, "device": device}
                for form in forms:
                    measured.append(measurement(task, config, setting | {"form": form}, "seconds", seconds[form]))
                for form in ("torch", "compiled"):
                    faster = ratios(seconds, "loop", form)
                    measured.append(measurement(task, config, setting | {"form": form}, "times_faster", faster))
    if device == "cpu":
        batch, length = 128, 128
        setting = {"batch": batch, "length": length, "threads": 1, "device": device}
        for form in ("loop", "torch", "compiled"):
            tensors = peak_memory(one_step, form, length, batch) * 2**20 / (4 * batch * length**2)
            measured.append(measurement(task, "soft", setting | {"form": form}, "peak_tensors", [tensors]))
    measured += growth(device, max(args.runs // 3, 1))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
