"""The fast measurement says of every graph what token by token decoding says."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_mech.lookahead.star_graphs.layouts import inference_prompts, read_paths
from tests.training.belief_state.small import small
from training.belief_state.batches import held_out
from training.belief_state.models import make_model
from training.belief_state.run import generated_right, right_paths
from training.belief_state.settings import MODELS, Run

GRAPHS = 40


def sharp_model(run: Run) -> PreTrainedModel:
    """An untrained model whose answers depend on the whole prompt."""
    torch.manual_seed(0)
    model = make_model(run).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(3)
    return model


def rows_that_it_solves(run: Run, model: PreTrainedModel) -> Tensor:
    """Rows whose path is the model's own greedy answer, and whose goal is that path's end."""
    graph = run.final
    rows = held_out(run, GRAPHS).repeat_interleave(run.num_nodes, 0)
    rows[:, graph.prompt_length - 2] = torch.arange(run.num_nodes).repeat(GRAPHS)
    prompts = torch.from_numpy(inference_prompts(graph, run.layout, rows.numpy()))
    if run.layout == "teacherless":
        answered = model(prompts).logits.argmax(-1)
    else:
        answered = prompts
        for _ in range(graph.length):  # without a cache
            following = model(answered).logits[:, -1:].argmax(-1)
            answered = torch.cat([answered, following], 1)
    rows[:, graph.prompt_length : -1] = read_paths(graph, run.layout, answered)
    ended = (rows[:, graph.prompt_length : -1] >= run.num_nodes).any(1)
    return rows[(rows[:, -2] == rows[:, graph.prompt_length - 2]) & ~ended]


@pytest.mark.parametrize("model_name", MODELS)
@torch.no_grad()
def test_one_pass_and_generation_agree(model_name: str) -> None:
    run = small(model_name, num_nodes=20)
    model = sharp_model(run)
    solved = rows_that_it_solves(run, model)
    assert len(solved) >= 2
    wrong = solved.clone()
    places = run.final.prompt_length + torch.arange(len(wrong)) % (run.final.length - 1)  # the goal is in the prompt
    wrong[torch.arange(len(wrong)), places] += 1
    rows = torch.cat([solved, wrong])
    expected = [True] * len(solved) + [False] * len(wrong)
    assert right_paths(run, model, rows, 7).tolist() == expected
    assert generated_right(run, model, rows, 7).tolist() == expected
