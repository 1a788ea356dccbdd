"""Decisions a second of M-SAT, with its cache and without, in 1 and 8 environments.

    python benchmarks/msat_acting.py
    python benchmarks/msat_acting.py --device cuda --output benchmarks/msat_acting_cuda.json

The paper's sizes for My Way Home: 8 layers, 8 heads, context 30, 128 x 72 RGB frames; a width of 128. No environment
runs: frames are random. `first` are the decisions of an episode until its context is full, `later` as many after that.
A full context lets its oldest `stride` steps leave at once: 1 is the plain sliding window, which reads the whole window
at every later decision; half of the context reads it every 15 decisions. Without the cache every decision reads its
whole window. The two sides take turns, and their actions are compared before anything is timed. One thread on a CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from harness import ratios, report, take_turns

from hf_mech.hub import measurement
from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

SIDES = {"cached": True, "recomputed": False}


def episode_of(
    model: MSATDecisionTransformer, environments: int, stride: int, use_cache: bool
) -> tuple[Callable[[], torch.Tensor], Callable[[], torch.Tensor]]:
    """Two functions that make `context_length` decisions: the first ones of new episodes, and later ones."""
    device = model.device
    shape = (model.config.context_length, environments, *model.config.state_shape)
    frames = torch.randint(256, shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8).to(device)
    context = model.start_context(environments, stride, use_cache)

    def decide(begins: bool) -> torch.Tensor:
        actions = [
            model.act(frame, context, 1.8, begins=[begins and not step] * environments)
            for step, frame in enumerate(frames)
        ]
        return torch.stack(actions).cpu()  # waits for a GPU

    return lambda: decide(begins=True), lambda: decide(begins=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each side (default: 5)")
    parser.add_argument("--layers", type=int, default=8, help="of the decoder (default: 8)")
    parser.add_argument("--context_length", type=int, default=30, help="steps (default: 30)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args()
    began = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    length = args.context_length
    config = MSATDecisionTransformerConfig(
        action_sizes=[3, 3], context_length=length, n_layer=args.layers, max_timestep=10_000
    )
    model = MSATDecisionTransformer(config).eval().to(args.device)
    measured = []
    for environments in (1, 8):
        for stride in (1, length // 2):
            sides = {side: episode_of(model, environments, stride, cache) for side, cache in SIDES.items()}
            for cached, recomputed in zip(*sides.values(), strict=True):
                assert torch.equal(cached(), recomputed()), "the cache changes an action"
            for number, part in enumerate(("first", "later")):
                seconds = take_turns({side: sides[side][number] for side in SIDES}, args.runs)
                at = {"environments": environments, "stride": stride, "part": part, "device": args.device}
                for side in SIDES:
                    rate = [length * environments / second for second in seconds[side]]
                    here = at | {"side": side}
                    measured.append(measurement("msat_acting", "my_way_home", here, "decisions_a_second", rate))
                faster = ratios(seconds, "recomputed", "cached")
                measured.append(measurement("msat_acting", "my_way_home", at, "times_as_fast_with_the_cache", faster))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
