"""A training step of M-SAT against transformers' DecisionTransformerModel with the same number of tokens.

    python benchmarks/msat_training_step.py
    python benchmarks/msat_training_step.py --device cuda --batch 128 --output benchmarks/msat_training_step_cuda.json

The paper's sizes: 8 layers, 8 heads, context 30; a width of 128. The baseline has 3 tokens a step, as the peer has; My
Way Home has 4 and Deadly Corridor 6, and the peer then reads as many tokens in more steps (40 and 60). Forward and
backward pass and AdamW's step. States are vectors of 17 on both sides, the peer's default; `frames` are M-SAT with
128 x 72 RGB frames and their CNN, which the peer does not have. The peer's loss is the mean squared error of its
continuous actions. Sides take turns; ratios are turn by turn. Memory is the peak that a step adds to its process,
parameters, gradients and AdamW's averages included. One thread on a CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from harness import peak_memory, ratios, report, take_turns
from torch import nn
from transformers import DecisionTransformerConfig, DecisionTransformerModel

from hf_mech.hub import measurement
from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

#: For each action space: its components, and how they become tokens.
SPACES: dict[str, tuple[list[int], str]] = {
    "baseline": ([3, 3, 3, 2], "single"),
    "my_way_home": ([3, 3], "multi_state"),
    "deadly_corridor": ([3, 3, 3, 2], "multi_state"),
}
SIDES = ("peer", "vectors", "frames")
FEATURES, WIDTH, HEADS = 17, 128, 8


def config_of(space: str, side: str, layers: int, steps: int) -> MSATDecisionTransformerConfig:
    sizes, tokenization = SPACES[space]
    return MSATDecisionTransformerConfig(
        action_sizes=sizes,
        action_tokenization=tokenization,
        state_shape=[3, 72, 128] if side == "frames" else [FEATURES],
        context_length=steps,
        n_layer=layers,
        n_head=HEADS,
        n_embd=WIDTH,
    )


def model_of(space: str, side: str, layers: int, steps: int, device: str) -> nn.Module:
    torch.manual_seed(0)
    if side != "peer":
        return MSATDecisionTransformer(config_of(space, side, layers, steps)).to(device)
    peer = DecisionTransformerConfig(
        state_dim=FEATURES,
        act_dim=len(SPACES[space][0]),
        hidden_size=WIDTH,
        n_layer=layers,
        n_head=HEADS,
        max_ep_len=1024,
        activation_function="gelu",
        bos_token_id=None,
        eos_token_id=None,
    )
    return DecisionTransformerModel(peer).to(device)


def step_of(space: str, side: str, model: nn.Module, batch: int, steps: int, device: str) -> Callable[[], None]:
    config = config_of(space, side, 1, steps)
    if side == "peer":
        steps = steps * config.tokens_per_step // 3
    generator = torch.Generator().manual_seed(1)
    returns = torch.rand(batch, steps, generator=generator).to(device)
    timesteps = torch.arange(steps).expand(batch, -1).to(device)
    if side == "frames":
        states = torch.randint(256, (batch, steps, 3, 72, 128), generator=generator, dtype=torch.uint8).to(device)
    else:
        states = torch.rand(batch, steps, FEATURES, generator=generator).to(device)
    actions = torch.stack(
        [torch.randint(size, (batch, steps), generator=generator) for size in config.action_sizes], -1
    ).to(device)
    mask = torch.ones(batch, steps, dtype=torch.long, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        model.zero_grad()
        if isinstance(model, MSATDecisionTransformer):
            loss = model(states, actions, returns, timesteps, attention_mask=mask, labels=actions).loss
        else:
            continuous = actions.float()
            read = model(
                states=states,
                actions=continuous,
                returns_to_go=returns[..., None],
                timesteps=timesteps,
                attention_mask=mask,
            )
            loss = nn.functional.mse_loss(read.action_preds, continuous)
        loss.backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def one_step(space: str, side: str, batch: int, layers: int, steps: int, device: str, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    model = model_of(space, side, 1 if warm_up else layers, steps, device)
    step_of(space, side, model, 1 if warm_up else batch, steps, device)()


def megabytes(space: str, side: str, batch: int, layers: int, steps: int, device: str) -> float:
    if device == "cpu":
        return peak_memory(one_step, space, side, batch, layers, steps, device)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    one_step(space, side, batch, layers, steps, device, warm_up=False)
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each side (default: 5)")
    parser.add_argument("--batch", type=int, default=16, help="windows of a step (default: 16)")
    parser.add_argument("--layers", type=int, default=8, help="of the decoder (default: 8)")
    parser.add_argument("--steps", type=int, default=30, help="of a window (default: 30)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args()
    began = time.perf_counter()
    torch.set_num_threads(1)
    measured = []
    for space in SPACES:
        sizes = args.batch, args.layers, args.steps, args.device
        models = {side: model_of(space, side, args.layers, args.steps, args.device) for side in SIDES}
        steps = {side: step_of(space, side, models[side], args.batch, args.steps, args.device) for side in SIDES}
        seconds = take_turns(steps, args.runs)
        peaks = {side: megabytes(space, side, *sizes) for side in SIDES}
        tokens = args.steps * config_of(space, "vectors", 1, args.steps).tokens_per_step
        at = {"batch": args.batch, "layers": args.layers, "tokens": tokens, "device": args.device, "threads": 1}
        for side in SIDES:
            here = at | {"side": side}
            parameters = sum(part.numel() for part in models[side].parameters())
            task = "msat_training_step"
            measured.append(measurement(task, space, here, "parameters", [parameters]))
            measured.append(measurement(task, space, here, "seconds", seconds[side]))
            measured.append(measurement(task, space, here, "peak_megabytes", [peaks[side]]))
            if side != "peer":
                cost = ratios(seconds, side, "peer")
                measured.append(measurement(task, space, here, "times_the_seconds_of_the_peer", cost))
                memory = peaks[side] / peaks["peer"]
                measured.append(measurement(task, space, here, "times_the_memory_of_the_peer", [memory]))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
