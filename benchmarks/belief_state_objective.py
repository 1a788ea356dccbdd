"""The belief state loss, forward and backward, against the paper's listing and x-transformers' `BeliefStateWrapper`.

    python benchmarks/belief_state_objective.py
    python benchmarks/belief_state_objective.py --device cuda --output benchmarks/belief_state_objective_cuda.json

Given are the states of both encoders. Every side computes the loss over all pairs and the gradients of the states and
of the text head: `blocks` (ours), `listing` (Figure 13 with the right labels; it holds all pairs) and `wrapper`
(x-transformers around encoders that return the given states). Configurations: `star_graph`, G(2, 20) with 138 tokens,
and `stories`, 256 tokens and a vocabulary of 1,000. Heads: the paper's (3 layers, 512 wide; `paper`) and the listing's
(2 layers, as wide as the states; `listing`). All sides have the same head, and their losses and gradients are compared
before any timing. Sides take turns, so other work slows all alike. `length` is the peak memory of `blocks` against the
length, at a fixed block size; `vocabulary` is that of `blocks` and `listing` with the paper's head at a vocabulary of
50,000, where only short texts fit the listing. One thread on a CPU. A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from harness import peak_memory, ratios, report, take_turns
from torch import Tensor, nn
from torch.nn import functional
from x_transformers.belief_state_wrapper import BeliefStateWrapper

from hf_mech.hub import Measurement, measurement
from hf_mech.models.belief_state.belief_state_objective import TextHead, belief_state_loss
from hf_mech.models.belief_state.belief_state_pairs import Sequences

TASK, SIZE, BLOCK = "belief_state_objective", 768, 4096
SHAPES = {"star_graph": (138, 56), "stories": (256, 1000)}  # length, vocabulary
HEADS = {"paper": (512, 3), "listing": (SIZE, 2)}  # width, layers
BATCH = {"cpu": {"star_graph": 4, "stories": 1}, "cuda": {"star_graph": 64, "stories": 16}}
LENGTHS = (64, 128, 256, 512, 1024)
LARGE_VOCABULARY = 50_000
LARGE = (("blocks", 64), ("blocks", 512), ("listing", 32), ("listing", 64))
"""Side and length; the listing's logits of all pairs of 512 tokens alone would take 52 GB."""
SIDES = ("blocks", "listing", "wrapper")


def listing(forward_state: Tensor, backward_state: Tensor, text_head: nn.Module, x: Tensor) -> Tensor:
    """Figure 13: all pairs gathered. Its label of the previous token is x[j]; here it is x[j - 1], as in Eq. 2."""
    places = torch.arange(x.shape[1], device=x.device)
    pairs = torch.cartesian_prod(places, places)
    i, j = pairs[pairs[:, 1] - pairs[:, 0] >= 2].unbind(1)
    labels = torch.stack((x[:, i + 1], x[:, j - 1]), dim=2)
    logits = text_head(torch.cat((forward_state[:, i], backward_state[:, j]), dim=2))
    return functional.cross_entropy(logits.reshape(labels.numel(), -1), labels.flatten())


class Given(nn.Module):
    """An encoder for `BeliefStateWrapper` that returns given states."""

    def __init__(self, states: Tensor, vocabulary: int) -> None:
        super().__init__()
        self.states, self.emb_dim, self.num_tokens, self.max_seq_len = states, SIZE, vocabulary, states.shape[1]

    def forward(self, *_: Any, **__: Any) -> Tensor:
        return self.states


def joined(head: TextHead) -> nn.Sequential:
    """The same head on both states side by side, with the two last layers as one."""
    assert head.suffix is not None
    assert head.prev is not None
    first = nn.Linear(2 * SIZE, head.prefix.out_features)
    last = nn.Linear(head.next.in_features, 2 * head.next.out_features)
    with torch.no_grad():
        first.weight.copy_(torch.cat([head.prefix.weight, head.suffix.weight], 1))
        first.bias.copy_(head.prefix.bias)
        last.weight.copy_(torch.cat([head.next.weight, head.prev.weight]))
        last.bias.copy_(torch.cat([head.next.bias, head.prev.bias]))
    hidden = [part for layer in head.hidden for part in (layer, nn.ReLU())]
    return nn.Sequential(first, nn.ReLU(), *hidden, last)


def step_of(side: str, batch: int, length: int, vocabulary: int, kind: str, device: str) -> Callable[[], list[Tensor]]:
    """A function that returns the loss and the gradients of the prefixes' and the suffixes' states.

    The last of `length` tokens is the end token. For the wrapper, it is its own suffix token, and not in the sequence.
    """
    torch.manual_seed(0)
    tokens = torch.randint(vocabulary - 1, (batch, length))
    tokens[:, -1] = vocabulary - 1
    states = torch.randn(2, batch, length, SIZE)
    head = TextHead(SIZE, *HEADS[kind], vocabulary)
    tokens, states, head = tokens.to(device), states.to(device), head.to(device)
    prefixes, suffixes = (part.clone().requires_grad_() for part in states)
    whole = head if side == "blocks" else joined(head).to(device)
    every = Sequences(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens), vocabulary - 1)
    if side == "wrapper":
        prefixes = states[0, :, :-1].clone().requires_grad_()
        suffixes = states[1].flip(1).clone().requires_grad_()
        encoders = Given(prefixes, vocabulary), Given(suffixes, vocabulary)
        wrapper = BeliefStateWrapper(*encoders, text_head=whole).to(device)

    def step() -> list[Tensor]:
        whole.zero_grad()
        prefixes.grad = suffixes.grad = None
        if side == "blocks":
            total, count = belief_state_loss(prefixes, suffixes, head, every, block_size=BLOCK)
            loss = total / count
        else:
            loss = wrapper(tokens[:, :-1]) if side == "wrapper" else listing(prefixes, suffixes, whole, tokens)
        loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
        assert prefixes.grad is not None
        assert suffixes.grad is not None
        if side == "wrapper":
            return [loss.detach(), functional.pad(prefixes.grad, (0, 0, 0, 1)), suffixes.grad.flip(1)]
        return [loss.detach(), prefixes.grad, suffixes.grad]

    return step


def one_step(*setting: Any, warm_up: bool) -> None:
    torch.set_num_threads(1)
    side, batch, length, *rest = setting
    step_of(side, 1 if warm_up else batch, 4 if warm_up else length, *rest)()


def megabytes(*setting: Any) -> float:
    """The memory that a step adds at its peak, states and head included."""
    if setting[-1] == "cpu":
        return peak_memory(one_step, *setting)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    one_step(*setting, warm_up=False)
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def compared(config: str, kind: str, device: str, runs: int) -> list[Measurement]:
    """Seconds and memory of all sides."""
    length, vocabulary = SHAPES[config]
    batch = BATCH[device][config]
    sides = {side: step_of(side, batch, length, vocabulary, kind, device) for side in SIDES}
    expected = sides["listing"]()
    for side in ("blocks", "wrapper"):
        torch.testing.assert_close(sides[side](), expected, rtol=1e-3, atol=1e-6)
    seconds = take_turns(sides, runs)
    at = {"batch": batch, "length": length, "vocabulary": vocabulary, "head": kind, "threads": 1, "device": device}
    peaks = {side: megabytes(side, batch, length, vocabulary, kind, device) for side in SIDES}
    found = []
    for side in SIDES:
        found.append(measurement(TASK, config, at | {"side": side}, "seconds", seconds[side]))
        found.append(measurement(TASK, config, at | {"side": side}, "peak_megabytes", [peaks[side]]))
    for side in ("listing", "wrapper"):
        faster, less = ratios(seconds, side, "blocks"), peaks[side] / peaks["blocks"]
        found.append(measurement(TASK, config, at | {"side": side}, "times_faster", faster))
        found.append(measurement(TASK, config, at | {"side": side}, "times_less_memory", [less]))
    return found


def against_length(length: int, device: str) -> list[Measurement]:
    peak = megabytes("blocks", 1, length, SHAPES["star_graph"][1], "listing", device)
    at = {"batch": 1, "length": length, "head": "listing", "block_size": BLOCK, "device": device, "side": "blocks"}
    return [measurement(TASK, "length", at, "peak_megabytes", [peak])]


def at_a_large_vocabulary(side: str, length: int, device: str) -> list[Measurement]:
    peak = megabytes(side, 1, length, LARGE_VOCABULARY, "paper", device)
    at = {"batch": 1, "length": length, "vocabulary": LARGE_VOCABULARY, "head": "paper", "device": device, "side": side}
    return [measurement(TASK, "vocabulary", at, "peak_megabytes", [peak])]


def draw(measured: list[Measurement], file: Path) -> None:
    """Times faster and times less memory by configuration, and the memory of the blocks against the length."""
    from matplotlib.figure import Figure

    from hf_mech.viz.palette import ACCENT, OURS, style

    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    axes = figure.subplots(1, 3)
    titles = {"times_faster": "Times faster", "times_less_memory": "Times less memory"}
    for panel, (metric, title) in zip(axes, titles.items(), strict=False):
        for k, (side, colour) in enumerate((("listing", OURS), ("wrapper", ACCENT))):
            entries = [entry for entry in measured if entry.metric == metric and entry.setting["side"] == side]
            heights = [statistics.median(entry.values) for entry in entries]
            bars = panel.bar([n + 0.4 * k for n in range(len(entries))], heights, 0.38, color=colour, label=side)
            panel.bar_label(bars, fmt="%.1f", size=7)
        names = [f"{entry.config}\n{entry.setting['head']} head" for entry in entries]
        panel.set_xticks([n + 0.2 for n in range(len(names))], names, size=7)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_title(title + " than", size=9.5, weight="bold", loc="left")
        panel.legend(frameon=False, fontsize=8)
        style(panel)
    entries = [entry for entry in measured if entry.config == "length"]
    lengths = [entry.setting["length"] for entry in entries]
    axes[2].plot(lengths, [entry.values[0] for entry in entries], "o-", color=OURS, ms=3.5)
    axes[2].set(xlabel="tokens", ylabel="MB", xlim=(0, None), ylim=(0, None))
    axes[2].set_title("Peak memory of blocks", size=9.5, weight="bold", loc="left")
    style(axes[2])
    figure.savefig(file, dpi=150)


def kept(file: Path, name: str, measure: Callable[[], list[Measurement]]) -> list[Measurement]:
    """Measures, or reads the figures that a stopped run of the same options measured."""
    known = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if name not in known:
        found = measure()
        known[name] = [[entry.config, dict(entry.setting), entry.metric, list(entry.values)] for entry in found]
        file.with_suffix(".new").write_text(json.dumps(known), "utf-8")
        file.with_suffix(".new").replace(file)
    return [measurement(TASK, *entry) for entry in known[name]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each side (default: 5)")
    parser.add_argument("--device", choices=list(BATCH), default="cpu")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args()
    began = time.perf_counter()
    torch.set_num_threads(1)
    part = args.output.with_suffix(f".{args.device}.{args.runs}.part")
    measured = []
    for config in SHAPES:
        for kind in HEADS:
            measure = partial(compared, config, kind, args.device, args.runs)
            measured += kept(part, f"{config} {kind}", measure)
            print(config, kind, "done", flush=True)
    for length in LENGTHS:
        measured += kept(part, str(length), partial(against_length, length, args.device))
    for side, length in LARGE:
        measured += kept(part, f"{side} {length}", partial(at_a_large_vocabulary, side, length, args.device))
        print(side, length, "done", flush=True)
    report(args.output, measured, began)
    draw(measured, args.output.with_suffix(".png"))
    part.unlink()


if __name__ == "__main__":
    main()
