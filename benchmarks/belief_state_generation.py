"""Generation with belief states: Algorithm 1 with rollouts in batches, and plain decoding against a forward-only GPT-2.

    python benchmarks/belief_state_generation.py

Algorithm 1: 120 rollouts of 50 tokens between a prefix of 50 and a goal of 100 tokens (the paper's, Appendix D.2), with
encoders of 4 layers and width 256, one rollout at a time and in batches. Before timing, the candidates of all batch
sizes are compared. Weights are random, so the queue holds many nearly equal continuations: more rollouts are computed
ahead in vain than with a trained model.

Plain decoding: the paper's encoder (8 layers, width 768, 8 heads, vocabulary of 1,000), a batch of 4 prompts of 50
tokens, 100 new ones, against `GPT2LMHeadModel` with the same encoder. One thread, and the GPU if there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import arguments, peak_memory, ratios, report, take_turns
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.hub import Measurement, measurement
from hf_mech.models.belief_state.belief_state_search import Rollouts, SearchOutput
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

VOCABULARY = 1000
SMALL = {"n_layer": 4, "n_embd": 256, "n_head": 4, "n_positions": 256}
PAPER = {"n_layer": 8, "n_embd": 768, "n_head": 8, "n_positions": 256}
SPECIAL = {"bos_token_id": None, "eos_token_id": VOCABULARY - 1, "pad_token_id": None}
PREFIX, HORIZON, GOAL, ROLLOUTS = 50, 50, 100, 120
ROLLOUT_BATCHES = (1, 8, 32)
BATCH, NEW, CHECKED = 4, 100, 8


def model_of(sizes: dict[str, int], device: str) -> BeliefStateForCausalLM:
    """Random weights, with a head whose distributions are as sharp as those of a trained model."""
    torch.manual_seed(0)
    config = BeliefStateConfig(vocab_size=VOCABULARY, **sizes, **SPECIAL)
    made = BeliefStateForCausalLM(config)
    with torch.no_grad():
        made.text_head.next.weight.mul_(40)
    return made.to(device).eval()


def tokens(batch: int, length: int, seed: int, device: str) -> Tensor:
    made = torch.randint(0, VOCABULARY - 1, (batch, length), generator=torch.Generator().manual_seed(seed))
    return made.to(device)


def search_of(made: BeliefStateForCausalLM, rollouts: int, batch_size: int) -> SearchOutput:
    """Algorithm 1 for one prefix and goal."""
    device = str(made.device)
    prefix = tokens(1, PREFIX, 0, device)
    found = made.generate(
        prefix,
        attention_mask=torch.ones_like(prefix),
        suffix_ids=tokens(1, GOAL, 1, device),
        max_new_tokens=HORIZON,
        num_rollouts=rollouts,
        rollout_batch_size=batch_size,
        return_dict_in_generate=True,
        pad_token_id=VOCABULARY - 1,
    )
    assert isinstance(found, SearchOutput)
    return found


def computed(search: Callable[[], object]) -> int:
    """The rollouts that a search computes, those ahead included."""
    plain, count = Rollouts.__call__, 0

    def counting(self: Rollouts, beginnings: list[list[int]]) -> Any:
        nonlocal count
        count += len(beginnings)
        return plain(self, beginnings)

    Rollouts.__call__ = counting  # type: ignore[method-assign]
    try:
        search()
    finally:
        Rollouts.__call__ = plain  # type: ignore[method-assign]
    return count


def searches(device: str, setting: dict[str, Any], runs: int) -> list[Measurement]:
    """Rollouts a second by batch size, and how many are computed in vain."""
    made = model_of(SMALL, device)
    sides = {str(size): partial(search_of, made, ROLLOUTS, size) for size in ROLLOUT_BATCHES}
    found = {name: side() for name, side in sides.items()}
    expected = found["1"].candidates
    for name, output in found.items():
        assert output.candidates is not None
        assert expected is not None
        if not torch.equal(output.candidates, expected):
            raise AssertionError(f"The candidates of batches of {name} are not the listing's; nothing is timed.")
    seconds = take_turns(sides, runs)
    measured = []
    for size in ROLLOUT_BATCHES:
        where = setting | {"rollouts": ROLLOUTS, "rollout_batch": size, "new": HORIZON, "goal": GOAL}
        note = partial(measurement, "belief_state_search", device, where)
        measured.append(note("rollouts_per_second", [ROLLOUTS / second for second in seconds[str(size)]]))
        measured.append(note("times_faster_than_one_at_a_time", ratios(seconds, "1", str(size))))
        measured.append(note("rollouts_computed_per_candidate", [computed(sides[str(size)]) / ROLLOUTS]))
    return measured


def search_once(batch_size: int, *, warm_up: bool) -> None:
    """The work of the memory measurement."""
    torch.set_num_threads(1)
    search_of(model_of(SMALL, "cpu"), 2 if warm_up else ROLLOUTS, batch_size)


def decodings(device: str, setting: dict[str, Any], runs: int) -> list[Measurement]:
    """Tokens a second of forward-only GPT-2, of the empty suffix, and of a goal."""
    torch.manual_seed(0)
    stock = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **PAPER, **SPECIAL)).to(device).eval()
    ours = model_of(PAPER, device)
    prompt = tokens(BATCH, PREFIX, 0, device)

    def generate(made: Any, new: int = NEW, **given: Any) -> Tensor:
        said = made.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=new,
            min_new_tokens=new,
            pad_token_id=VOCABULARY - 1,
            **given,
        )
        if device == "cuda":
            torch.cuda.synchronize()
        return said

    sides = {
        "forward-only GPT-2": partial(generate, stock),
        "empty suffix": partial(generate, ours),
        "goal": partial(generate, ours, suffix_ids=tokens(BATCH, GOAL, 1, device)),
    }
    for name, given in (("empty suffix", {}), ("goal", {"suffix_ids": tokens(BATCH, GOAL, 1, device)})):
        if not torch.equal(generate(ours, CHECKED, **given), generate(ours, CHECKED, use_cache=False, **given)):
            raise AssertionError(f"{name}: the tokens with a cache are not those without; nothing is timed.")
    seconds = take_turns(sides, runs)
    measured = []
    for name in sides:
        note = partial(
            measurement, "belief_state_decoding", device, setting | {"form": name, "batch": BATCH, "new": NEW}
        )
        measured.append(note("tokens_per_second", [BATCH * NEW / second for second in seconds[name]]))
        measured.append(note("cost_over_forward_only", ratios(seconds, name, "forward-only GPT-2")))
    return measured


def main() -> None:
    args = arguments(__doc__, __file__, runs=3)
    began = time.perf_counter()
    torch.set_num_threads(1)
    measured = decodings("cpu", {"threads": 1}, args.runs) + searches("cpu", {"threads": 1}, args.runs)
    for size in ROLLOUT_BATCHES:
        where = {"threads": 1, "rollouts": ROLLOUTS, "rollout_batch": size}
        peak = peak_memory(search_once, size)
        measured.append(measurement("belief_state_search", "cpu", where, "peak_megabytes_added", [peak]))
    if torch.cuda.is_available():
        measured += decodings("cuda", {}, args.runs) + searches("cuda", {}, args.runs)
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
