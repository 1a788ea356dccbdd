"""The objectives are their papers' equations, term by term, in value and in every gradient; stock code trains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, smooth_l1_loss
from torch.testing import assert_close
from transformers import (
    AutoModelForCausalLM,
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

from hf_mech.lookahead.objectives import JointMultiToken, MultiToken, NextLatent, Objective
from hf_mech.lookahead.star_graphs import StarGraph, star_graph_tokenizer

KINDS = (NextLatent, MultiToken, JointMultiToken)
LENGTH, VOCABULARY = 7, 11


def gpt2(attention: str = "sdpa") -> GPT2LMHeadModel:
    config = GPT2Config(
        **{"vocab_size": VOCABULARY, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2},
        **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "initializer_range": 0.5},
        **{"tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 0, "attn_implementation": attention},
    )
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"
    return model


def objective(kind: type[Objective], horizon: int = 3, attention: str = "sdpa") -> Objective:
    """One whose parts differ from what they were copied from."""
    torch.manual_seed(0)
    made = kind(gpt2(attention), horizon)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return made.double()


def rows(count: int = 2) -> tuple[Tensor, Tensor]:
    """Tokens and labels [count, LENGTH]; the first three tokens, and one in each row besides, are not trained."""
    tokens = torch.randint(VOCABULARY, (count, LENGTH), generator=torch.Generator().manual_seed(1))
    labels = tokens.clone()
    labels[:, :3] = -100
    for row in range(count):
        labels[row, 4 + row % 3] = -100
    return tokens, labels


class Reference:
    """The losses from one prefix after another, each read by itself. Tokens and states count from 1, as in the papers.

    Args:
        made: the objective with its parameters.
        tokens, labels: [rows, length].
    """

    def __init__(self, made: Objective, tokens: Tensor, labels: Tensor) -> None:
        self.made, self.model, self.tokens, self.labels = made, made.model, tokens, labels
        self.length = tokens.shape[1]

    def pairs(self, ahead: int, trained: int | None = None) -> Iterator[tuple[Tensor, int]]:
        """Rows and prefixes x_1:t with a token x_t+ahead; only those whose token x_t+trained is trained."""
        for row, labels in zip(self.tokens, self.labels, strict=True):
            for t in range(1, self.length - max(ahead, trained or 0) + 1):
                if trained is None or labels[t + trained - 1] != -100:
                    yield row, t

    def layers(self, row: Tensor, t: int) -> tuple[Tensor, ...]:
        return self.model(row[None, :t], output_hidden_states=True).hidden_states

    def state(self, row: Tensor, t: int) -> Tensor:
        return self.layers(row, t)[-1][0, -1]

    def embedding(self, row: Tensor, t: int) -> Tensor:
        return self.model.transformer.wte.weight[row[t - 1]]

    def logits(self, state: Tensor) -> Tensor:
        return state @ self.model.lm_head.weight.T

    def next_token(self) -> Tensor:
        return self.mean(1, 1, lambda row, t: cross_entropy(self.logits(self.state(row, t)), row[t]))

    def mean(self, ahead: int, trained: int | None, term: Callable[[Tensor, int], Tensor]) -> Tensor:
        """E_t, over all rows."""
        return torch.stack([term(row, t) for row, t in self.pairs(ahead, trained)]).mean()

    def next_latent(self) -> Tensor:
        made, d = self.made, self.made.horizon
        assert isinstance(made, NextLatent)

        def rolled(row: Tensor, t: int, i: int) -> Tensor:
            found = self.state(row, t)
            for k in range(1, i + 1):
                both = torch.cat([found, self.embedding(row, t + k)])
                normed = (both - both.mean()) / (both.var(correction=0) + 1e-5).sqrt()
                normed = normed * made.dynamics.norm.weight + made.dynamics.norm.bias
                found = found + made.dynamics.layers(normed)
            return found

        def of_state(row: Tensor, t: int, i: int) -> Tensor:
            return smooth_l1_loss(rolled(row, t, i), self.state(row, t + i).detach())

        def of_tokens(row: Tensor, t: int, i: int) -> Tensor:
            frozen = self.model.lm_head.weight.detach().T
            wanted = (self.state(row, t + i).detach() @ frozen).softmax(-1)
            said = (rolled(row, t, i) @ frozen).softmax(-1)
            return (wanted * (wanted / said).log()).sum()

        total = self.next_token()
        for i in range(1, d + 1):
            total = total + made.of_states / d * self.mean(i, None, lambda row, t, i=i: of_state(row, t, i))
            total = total + made.of_tokens / d * self.mean(i, i + 1, lambda row, t, i=i: of_tokens(row, t, i))
        return total

    def multi_token(self) -> Tensor:
        assert isinstance(self.made, MultiToken)
        total = self.next_token()
        for i, head in enumerate(self.made.heads, 2):

            def term(row: Tensor, t: int, i: int = i, head=head) -> Tensor:
                state = self.model.transformer.ln_f(head(self.layers(row, t)[-2]))[0, -1]
                return cross_entropy(self.logits(state), row[t + i - 1])

            total = total + self.mean(i, i, term)
        return total

    def joint(self) -> Tensor:
        made = self.made
        assert isinstance(made, JointMultiToken)
        total = self.next_token()
        for i in range(1, made.horizon + 1):

            def term(row: Tensor, t: int, i: int = i) -> Tensor:
                given = [self.embedding(row, t + k) for k in range(1, i + 1)]
                read = torch.stack([self.state(row, t), *given]) + made.places[: i + 1]
                state = self.model.transformer.ln_f(made.fetch(read[None]))[0, -1]
                return cross_entropy(self.logits(state), row[t + i])

            total = total + self.mean(i + 1, i + 1, term)
        return total


EQUATIONS = {NextLatent: Reference.next_latent, MultiToken: Reference.multi_token, JointMultiToken: Reference.joint}


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_the_equations(kind: type[Objective]) -> None:
    made = objective(kind)
    if isinstance(made, NextLatent):
        made.of_states, made.of_tokens = 0.7, 1.3
    tokens, labels = rows()
    ours, theirs = made(tokens, labels).loss, EQUATIONS[kind](Reference(made, tokens, labels))
    assert_close(ours, theirs)
    parameters = dict(made.named_parameters())
    found, expected = (torch.autograd.grad(loss, parameters.values()) for loss in (ours, theirs))
    for name, one, other in zip(parameters, found, expected, strict=True):
        assert_close(one, other, msg=name)
        assert one.abs().max() > 0, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(kind: type[Objective], side: str) -> None:
    made = objective(kind)
    tokens, labels = rows()
    ends = (2, 0) if side == "left" else (0, 2)
    mask = torch.nn.functional.pad(torch.ones_like(tokens), ends)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    padded = (torch.nn.functional.pad(part, ends, value=value) for part, value in ((tokens, 5), (labels, -100)))
    assert_close(made(*padded, mask, positions).loss, made(tokens, labels).loss)


@pytest.mark.parametrize("kind", KINDS)
def test_eager_attention_is_the_same(kind: type[Objective]) -> None:
    assert_close(objective(kind)(*rows()).loss, objective(kind, attention="eager")(*rows()).loss)


@pytest.mark.parametrize("kind", KINDS)
def test_a_horizon_ends_with_the_row(kind: type[Objective]) -> None:
    losses = [objective(kind, horizon)(*rows()).loss for horizon in (LENGTH - 2, LENGTH + 5)]
    assert all(loss.isfinite() for loss in losses)
    if kind is NextLatent:  # the others draw other numbers for more heads and places
        assert_close(*losses)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_changes_no_logits(kind: type[Objective]) -> None:
    made = objective(kind)
    tokens, labels = rows()
    plain = made.model(tokens, labels=labels)
    assert torch.equal(made(tokens, labels).logits, plain.logits)
    assert made(tokens, labels).loss > plain.loss


def test_latents_are_predicted_by_any_decoder() -> None:
    """Llama's head has no bias and its states are normed, too; nothing of GPT-2 is asked for."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **sizes))
    made = NextLatent(model, horizon=1, of_states=0.0)
    tokens, labels = rows()
    states = model.model(tokens).last_hidden_state
    found = made.dynamics(states[:, :-1], model.model.embed_tokens(tokens[:, 1:]))
    wanted, said = (model.lm_head(part).log_softmax(-1) for part in (states[:, 1:], found))
    expected = kl_div(said, wanted, reduction="none", log_target=True).sum(-1)[:, :-1][labels[:, 2:] != -100].mean()
    assert_close(made(tokens, labels).loss, model(tokens, labels=labels).loss + expected)


@pytest.mark.parametrize("kind", KINDS)
def test_trainer_trains_it_and_the_model_is_stock(kind: type[Objective], tmp_path: Path) -> None:
    graph = StarGraph(2, 3, num_nodes=8)
    tokenizer = star_graph_tokenizer(graph)
    paths = [[node, (node + 1) % 8, (node + 2) % 8, (node + 3) % 8] for node in range(8)]
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(graph.tokens), n_positions=8, n_embd=16, n_layer=2, n_head=2)
    made = kind(GPT2LMHeadModel(config), horizon=2)
    arguments = TrainingArguments(
        **{"output_dir": str(tmp_path / "run"), "max_steps": 40, "learning_rate": 1e-2, "logging_steps": 20},
        **{"report_to": "none", "save_strategy": "no", "use_cpu": True, "disable_tqdm": True},
    )
    trainer = Trainer(
        made, arguments, DataCollatorForLanguageModeling(tokenizer, mlm=False), Dataset.from_dict({"input_ids": paths})
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < 0.7 * losses[0]
    made.model.save_pretrained(tmp_path / "model")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert type(loaded) is GPT2LMHeadModel
    said = loaded.generate(torch.tensor([[3, 4]]), max_new_tokens=2, do_sample=False, pad_token_id=graph.pad_token)
    assert said.tolist() == [[3, 4, 5, 6]]
