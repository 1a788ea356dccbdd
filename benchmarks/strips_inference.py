"""One trace of length 10,000 through the STRIPS Transformer: linear-time form against the quadratic one, and streaming.

    python benchmarks/strips_inference.py

blocksworld-3b, one thread. The quadratic form runs head by head, because all sixteen at once need some 30 GB; this does
not improve the ratio. Streaming: `model.step`, one action at a time, at two lengths.
"""

from __future__ import annotations

import time

import torch
from harness import arguments, peak_memory, report, take_turns

from hf_mech.hub import measurement
from hf_mech.models.strips import StripsTransformer, strips_attention, strips_attention_reference
from hf_mech.planning.pddl import load_bundled

DOMAIN = "blocksworld-3b"
LENGTH = 10_000


def trace_and_model(length: int) -> tuple[torch.Tensor, StripsTransformer]:
    """A random trace, [1, length], and the domain's own weights with small changes, so that none is exactly 0 or 1."""
    model = StripsTransformer.from_domain(load_bundled(DOMAIN).domain)
    model.theta.data.mul_(0.98).add_(0.01)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(model.config.num_actions, (1, length), generator=generator), model


@torch.no_grad()
def quadratic(length: int) -> torch.Tensor:
    input_ids, model = trace_and_model(length)
    none = torch.ones(1, length, 1)
    for head in model.theta.split(1, dim=1):
        none *= 1 - strips_attention_reference(head, input_ids)[1]
    return 1 - none


@torch.no_grad()
def linear(length: int) -> torch.Tensor:
    input_ids, model = trace_and_model(length)
    return strips_attention(model.theta, input_ids)[1]


def streaming(length: int) -> torch.Tensor:
    input_ids, model = trace_and_model(length)
    state = None
    scores = [torch.zeros(1, 1)]
    for position in range(length):
        following, state = model.step(input_ids[:, position], state)
        if position + 1 < length:
            scores.append(following[:, input_ids[0, position + 1]])
    return torch.stack(scores, 1)


def run(name: str, length: int, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    {"quadratic": quadratic, "linear": linear, "streaming": streaming}[name](2 if warm_up else length)


def main() -> None:
    args = arguments(__doc__, __file__, runs=3)
    began = time.perf_counter()
    torch.set_num_threads(1)
    for other in (linear, streaming):
        torch.testing.assert_close(other(300), quadratic(300), rtol=1e-4, atol=1e-5)
    sides = {"quadratic": lambda: quadratic(LENGTH), "linear": lambda: linear(LENGTH)}
    seconds = take_turns(sides, args.runs)
    seconds |= take_turns({"streaming": lambda: streaming(LENGTH)}, args.runs)
    setting = {"batch": 1, "seeds": 1, "threads": 1}
    measured = []
    for form, times in seconds.items():
        at = setting | {"form": form, "length": LENGTH}
        measured.append(measurement("strips_inference", DOMAIN, at, "seconds", times))
        megabytes = peak_memory(run, form, LENGTH)
        measured.append(measurement("strips_inference", DOMAIN, at, "peak_megabytes", [megabytes]))
    for form in ("linear", "streaming"):
        faster = [slow / fast for slow, fast in zip(seconds["quadratic"], seconds[form], strict=True)]
        at = setting | {"form": form, "length": LENGTH}
        measured.append(measurement("strips_inference", DOMAIN, at, "times_faster_than_quadratic", faster))
    _, model = trace_and_model(2)
    for length in (10, LENGTH):
        input_ids, _ = trace_and_model(length)
        state = None
        for action in input_ids[0]:
            _, state = model.step(action.view(1), state)
        at = setting | {"form": "streaming", "length": length}
        measured.append(measurement("strips_inference", DOMAIN, at, "state_bytes", [state.nbytes]))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
