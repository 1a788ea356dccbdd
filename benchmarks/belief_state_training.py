"""A training step of the Belief State Transformer against a forward-only GPT-2 with as many parameters.

    python benchmarks/belief_state_training.py
    python benchmarks/belief_state_training.py --device cuda --batch 16 --output benchmarks/training_cuda.json

The shape of TinyStories: 256 tokens, all trained, a vocabulary of 1,000, states of 768, 8 heads; the text head has 3
layers of 512. Two encoders of 6 layers stand against one of 12. Forward and backward pass and AdamW's step. `all pairs`
is the paper's objective, `8192 pairs` a random quarter of it, and `32 pairs` the encoders alone. Sides take turns;
ratios are turn by turn. Memory is the peak that a step adds to its process, parameters, gradients and AdamW's averages
included. One thread on a CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from harness import peak_memory, ratios, report, take_turns
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.hub import measurement
from hf_mech.models.belief_state.belief_state_objective import belief_state_loss
from hf_mech.models.belief_state.belief_state_pairs import Sequences
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

LENGTH, VOCABULARY, LAYERS = 256, 1000, 6
SIZES = {
    "vocab_size": VOCABULARY,
    "n_positions": LENGTH,
    "n_embd": 768,
    "n_head": 8,
    "bos_token_id": None,
    "eos_token_id": VOCABULARY - 1,
}
PAIRS: dict[str, int | None] = {"all pairs": None, "8192 pairs": 8192, "32 pairs": 32}


def model_of(side: str, layers: int, device: str) -> nn.Module:
    torch.manual_seed(0)
    if side == "forward-only":
        return GPT2LMHeadModel(GPT2Config(**SIZES, n_layer=2 * layers)).to(device)
    return BeliefStateForCausalLM(BeliefStateConfig(**SIZES, n_layer=layers)).to(device)


def step_of(side: str, model: nn.Module, batch: int, length: int, device: str) -> Callable[[], None]:
    tokens = torch.randint(VOCABULARY - 1, (batch, length), generator=torch.Generator().manual_seed(1))
    tokens[:, -1] = VOCABULARY - 1
    tokens = tokens.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    every = Sequences(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens), VOCABULARY - 1)

    def step() -> None:
        model.zero_grad()
        if isinstance(model, BeliefStateForCausalLM):
            prefixes, suffixes = model.model(tokens).last_hidden_state, model.model.suffix_states(every)
            size, pairs = model.config.block_size, PAIRS[side]
            total, count = belief_state_loss(
                prefixes, suffixes, model.text_head, every, block_size=size, pairs_per_sequence=pairs
            )
            loss = total / count
        else:
            loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def one_step(side: str, batch: int, layers: int, device: str, *, warm_up: bool) -> None:
    torch.set_num_threads(1)
    model = model_of(side, 1 if warm_up else layers, device)
    step_of(side, model, 1 if warm_up else batch, 8 if warm_up else LENGTH, device)()


def megabytes(side: str, batch: int, layers: int, device: str) -> float:
    if device == "cpu":
        return peak_memory(one_step, side, batch, layers, device)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    one_step(side, batch, layers, device, warm_up=False)
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each side (default: 5)")
    parser.add_argument("--batch", type=int, default=1, help="rows of a step (default: 1)")
    parser.add_argument("--layers", type=int, default=LAYERS, help=f"of each encoder (default: {LAYERS})")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args()
    began = time.perf_counter()
    torch.set_num_threads(1)
    plain, belief = (model_of(side, args.layers, args.device) for side in ("forward-only", "all pairs"))
    models = {"forward-only": plain, **dict.fromkeys(PAIRS, belief)}
    steps = {side: step_of(side, model, args.batch, LENGTH, args.device) for side, model in models.items()}
    seconds = take_turns(steps, args.runs)
    at = {"batch": args.batch, "length": LENGTH, "layers": args.layers, "device": args.device, "threads": 1}
    task, config = "belief_state_training", "stories"
    measured = []
    peaks = {side: megabytes(side, args.batch, args.layers, args.device) for side in models}
    for side, model in models.items():
        here = at | {"side": side}
        parameters = sum(part.numel() for part in model.parameters())
        measured.append(measurement(task, config, here, "parameters", [parameters]))
        measured.append(measurement(task, config, here, "seconds", seconds[side]))
        measured.append(measurement(task, config, here, "peak_megabytes", [peaks[side]]))
        if side != "forward-only":
            cost = ratios(seconds, side, "forward-only")
            measured.append(measurement(task, config, here, "times_the_seconds_of_forward_only", cost))
            memory = peaks[side] / peaks["forward-only"]
            measured.append(measurement(task, config, here, "times_the_memory_of_forward_only", [memory]))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
