"""A training step of the STRIPS Transformer, forward and backward, against the plain quadratic form in PyTorch.

    python benchmarks/strips_training_step.py

Ten seeds, batch 8, the paper's lengths, one thread. Sides: the paper's exact equations, with autograd
(`quadratic`); the linear-time form in PyTorch (`linear`); the default (`compiled`). Each computes Eq. 17, the focal
loss and the gradient of theta. `ensemble`: ten seeds in one tensor against one seed. `walks`: the default with the
likelihood of the walks, compiled or by the recurrence in PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from harness import arguments, peak_memory, ratios, report, take_turns

from hf_mech.hub import measurement
from hf_mech.models.strips import (
    strips_attention,
    strips_attention_linear,
    strips_attention_reference,
    strips_focal_loss,
)
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.walk_likelihood import next_inapplicability, next_inapplicability_reference, walk_loss

FORMS: dict[str, Callable] = {
    "quadratic": strips_attention_reference,
    "linear": strips_attention_linear,
    "compiled": strips_attention,
}
LENGTHS = {"simple": 10, "blocksworld-2b": 20, "blocksworld-3b": 30}
BATCH = 8


WALKS: dict[str, Callable] = {
    "walks, recurrence": next_inapplicability_reference,
    "walks, compiled": next_inapplicability,
}


def step_of(form: str, domain: str, seeds: int = 10, length: int | None = None) -> Callable[[], torch.Tensor]:
    """A function that does one step on random traces of the domain's size; a form of `WALKS` adds the walks' term."""
    hidden = load_bundled(domain).domain
    generator = torch.Generator().manual_seed(0)
    shape = (seeds, len(hidden.propositions), len(hidden.actions), 3)
    theta = torch.rand(shape, generator=generator).requires_grad_()
    input_ids = torch.randint(len(hidden.actions), (BATCH, length or LENGTHS[domain]), generator=generator)
    labels = torch.zeros_like(input_ids)
    labels[:, -1] = 1

    def step() -> torch.Tensor:
        scores = FORMS.get(form, strips_attention)(theta, input_ids)[1]
        loss = strips_focal_loss(scores, labels).sum()
        if form in WALKS:
            loss = loss + 0.001 * walk_loss(theta, input_ids, labels, WALKS[form]).sum()
        (gradient,) = torch.autograd.grad(loss, theta)
        return gradient

    return step


def one_step(form: str, domain: str, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    step_of(form, domain, length=2 if warm_up else None)()


def main() -> None:
    args = arguments(__doc__, __file__, runs=30)
    began = time.perf_counter()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as train_strips does
    measured = []
    for domain, length in LENGTHS.items():
        sides = {form: step_of(form, domain) for form in (*FORMS, *WALKS)}
        for form in ("linear", "compiled"):
            torch.testing.assert_close(sides[form](), sides["quadratic"](), rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(*(sides[form]() for form in WALKS), rtol=1e-3, atol=1e-5)
        sides["one seed"] = step_of("compiled", domain, seeds=1)
        seconds = take_turns(sides, args.runs)
        setting = {"seeds": 10, "batch": BATCH, "length": length, "threads": 1}
        task = "strips_training_step"
        for form in (*FORMS, *WALKS):
            measured.append(measurement(task, domain, setting | {"form": form}, "seconds", seconds[form]))
            megabytes = peak_memory(one_step, form, domain)
            measured.append(measurement(task, domain, setting | {"form": form}, "peak_megabytes", [megabytes]))
        for form in ("linear", "compiled"):
            faster = ratios(seconds, "quadratic", form)
            measured.append(measurement(task, domain, setting | {"form": form}, "times_faster_than_quadratic", faster))
        faster = ratios(seconds, *WALKS)
        measured.append(measurement(task, domain, setting, "times_faster_than_recurrence", faster))
        cost = ratios(seconds, "walks, compiled", "compiled")
        measured.append(measurement(task, domain, setting, "cost_of_the_walks_term", cost))
        cost = ratios(seconds, "compiled", "one seed")
        measured.append(measurement(task, domain, setting, "cost_of_ten_seeds_over_one", cost))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
