"""Path accuracy: the share of graphs whose whole path a model gets right by greedy decoding (Section 3.4)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_mech.lookahead.star_graphs.layouts import inference_prompts, lay_out, read_paths
from hf_mech.metrics.path_accuracy import paths_right

from .settings import Run


@torch.no_grad()
def right_paths(run: Run, model: PreTrainedModel, rows: Tensor, batch_size: int) -> Tensor:
    """Whether the path of each graph is right, [count].

    All nodes are predicted in one pass behind the true path before them. The prediction is right everywhere exactly if
    greedy decoding says the whole path: up to its first wrong node both have read the same tokens.

    Args:
        run: of the graphs and their layout.
        model: in evaluation mode.
        rows: [count, row_length], from `StarGraph.draw`.
        batch_size: graphs at a time.
    """
    return torch.cat([_right(run, model, part) for part in rows.split(batch_size)])


@torch.no_grad()
def generated_right(run: Run, model: PreTrainedModel, rows: Tensor, batch_size: int) -> Tensor:
    """The same by `generate`, token by token; `teacherless` answers in one pass of its prompt."""
    return torch.cat([_generated(run, model, part) for part in rows.split(batch_size)])


def _right(run: Run, model: PreTrainedModel, rows: Tensor) -> Tensor:
    graph = run.final
    batch = {name: torch.from_numpy(part) for name, part in lay_out(graph, run.layout, rows.numpy()).items()}
    trained = batch["labels"][0] != -100
    last = int(trained.nonzero()[-1])  # the end token, in the same column of every row
    path = slice(last - graph.length, last)
    logits = model(batch["input_ids"][:, : last - 1].to(model.device), logits_to_keep=graph.length).logits
    right: Tensor = paths_right(logits.argmax(-1).cpu(), batch["labels"][:, path])
    return right


def _generated(run: Run, model: PreTrainedModel, rows: Tensor) -> Tensor:
    graph = run.final
    prompts = torch.from_numpy(inference_prompts(graph, run.layout, rows.numpy())).to(model.device)
    if run.layout == "teacherless":
        answered = model(prompts).logits.argmax(-1)
    else:
        generator: Any = model
        answered = generator.generate(
            prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=graph.length, do_sample=False
        )
    right: Tensor = paths_right(
        read_paths(graph, run.layout, answered.cpu()), torch.from_numpy(graph.paths_of(rows.numpy()))
    )
    return right
