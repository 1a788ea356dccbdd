"""Recurrent stack values, forward and backward: the fast form against the equations with autograd.

    python benchmarks/stack_recurrent_values.py

Batch 64, hidden size 64, inner size 256, random links, one thread on the CPU or a GPU. Sides: the equations as a Python
loop with PyTorch's gradient (`reference`); the model's form (`fast`). Peak memory is that of a step, in MB.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from harness import arguments, peak_memory, ratios, report, take_turns
from torch import Tensor

from hf_mech.hub import measurement
from hf_mech.models.stack.stack_values import Cell, Inputs, recurrent_values, recurrent_values_reference

BATCH, HIDDEN, INNER = 64, 64, 256
LENGTHS = (40, 128)
FORMS: dict[str, Callable[..., Tensor]] = {
    "reference": recurrent_values_reference,
    "fast": recurrent_values,
}


def step_of(form: str, length: int, device: str) -> Callable[[], list[Tensor]]:
    """A function that returns all gradients for a random gradient of the values."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(*shape, generator=generator)).to(device)

    popped = random(BATCH, length, length, scale=3.0).softmax(-1).tril(-1)
    weights = [random(INNER, 2 * HIDDEN), random(HIDDEN, INNER), *(random(HIDDEN) for _ in range(3))]
    given = [random(BATCH, length, HIDDEN), random(BATCH, length, INNER), random(BATCH, length).sigmoid(), popped]
    leaves = [tensor.mul(0.1).requires_grad_() if tensor.dim() == 2 else tensor.requires_grad_() for tensor in weights]
    given = [tensor.requires_grad_() for tensor in given]
    grad = random(BATCH, length, HIDDEN)

    def step() -> list[Tensor]:
        values = FORMS[form](Inputs(*given, given[0][:, :0].detach()), Cell(*leaves))
        gradients = torch.autograd.grad(values, [*given, *leaves], grad)
        if device == "cuda":
            torch.cuda.synchronize()
        return [values.detach(), gradients[0]]

    return step


def one_step(form: str, length: int, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    step_of(form, 4 if warm_up else length, "cpu")()


def main() -> None:
    args = arguments(__doc__, __file__, runs=10)
    began = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    measured = []
    for length in LENGTHS:
        sides = {form: step_of(form, length, device) for form in FORMS}
        for ours, papers in zip(sides["fast"](), sides["reference"](), strict=True):
            torch.testing.assert_close(ours, papers, rtol=1e-3, atol=1e-3)
        seconds = take_turns(sides, args.runs)
        setting = {"batch": BATCH, "length": length, "hidden": HIDDEN, "inner": INNER, "device": device}
        for form in FORMS:
            own = setting | {"form": form}
            measured.append(measurement("stack_recurrent_values", "step", own, "seconds", seconds[form]))
            if form != "reference":
                faster = ratios(seconds, "reference", form)
                measured.append(measurement("stack_recurrent_values", "step", own, "times_faster", faster))
            if device == "cpu":
                peak = peak_memory(one_step, form, length)
                measured.append(measurement("stack_recurrent_values", "step", own, "peak_megabytes", [peak]))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
