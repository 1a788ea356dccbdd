"""Objectives that came beside and after the belief state's: a causal language model with a loss of more than one token.

Each wraps a model of transformers. `forward` gives the loss of the next token plus that of the objective; what only the
training needs is kept outside `model`, which can be saved and generates as ever.

    objective = NextLatent(GPT2LMHeadModel(config), horizon=3)
    Trainer(objective, TrainingArguments("mine", save_strategy="no"), collator, rows).train()
    objective.model.save_pretrained("mine")

With `tie_word_embeddings`, `Trainer` cannot save checkpoints of the objective, as of any module that is not of
transformers.

h_t is the state after the tokens x_1 to x_t, behind the last layer norm. A label of -100 marks a token x_i that is not
trained: no token loss predicts it.
"""

from __future__ import annotations

import copy
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from transformers import GPT2LMHeadModel, PreTrainedModel
from transformers.masking_utils import create_causal_mask
from transformers.modeling_outputs import CausalLMOutput

IGNORED = -100


class Objective(nn.Module):
    """The next token's loss of a causal language model, and one that looks further ahead.

    Args:
        model: of transformers, with an output layer.
        horizon: d, how far beyond the next token, or the next state, the objective looks; fewer steps in shorter rows.
    """

    def __init__(self, model: PreTrainedModel, horizon: int) -> None:
        super().__init__()
        self.model, self.horizon = model, horizon

    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        labels: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        position_ids: Tensor | None = None,  # [batch, length]
    ) -> CausalLMOutput:
        """The loss of the batch, and the logits of the next token."""
        outputs = self.model(
            input_ids=input_ids,
            labels=labels,
            attention_mask=attention_mask,
            position_ids=position_ids,
            output_hidden_states=True,
            use_cache=False,
        )
        beyond = self.beyond(outputs.hidden_states, input_ids, labels, attention_mask)
        return CausalLMOutput(loss=outputs.loss + beyond, logits=outputs.logits)

    @abstractmethod
    def beyond(self, states: tuple[Tensor, ...], input_ids: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        """The objective's own loss, [].

        Args:
            states: of the model's embeddings and layers, the last one behind its last norm, each [batch, length, size].
            input_ids, labels, mask: [batch, length]; without a mask, no token is padding.
        """

    @property
    def head(self) -> nn.Linear:
        """The output layer."""
        found: nn.Linear = self.model.get_output_embeddings()
        return found

    def says(self, labels: Tensor, mask: Tensor | None, ahead: int) -> Tensor:
        """True at the tokens behind which the token that many places ahead is trained, [batch, length - ahead]."""
        trained = labels[:, ahead:] != IGNORED
        return trained if mask is None else trained & mask[:, :-ahead].bool()


class LatentDynamics(nn.Module):
    """p_psi(h_t, x_t+1): an MLP of three layers on the normed state and token embedding, added to the state (Eq. 9).

    Args:
        size: of a state.
        width: of the hidden layers.
    """

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(2 * size)
        self.layers = nn.Sequential(
            *(nn.Linear(2 * size, width), nn.GELU()), *(nn.Linear(width, width), nn.GELU()), nn.Linear(width, size)
        )

    def forward(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The states after one more token, from states and token embeddings, all [..., size]."""
        delta: Tensor = self.layers(self.norm(torch.cat([states, tokens], -1)))
        return states + delta


class NextLatent(Objective):
    r"""Next-latent prediction (Teoh et al., 2025, arXiv 2511.05963v4, Section 3.2 and Appendix C).

    A small model of the latent dynamics says the next states from a state and the tokens in between,
    $\hat h_{t+i} = p_\psi(\hat h_{t+i-1}, x_{t+i})$ from $\hat h_t = h_t$. With the stopped gradient sg:

    $$L = L_{next} + \lambda_h \frac1d \sum_{i=1}^d E_t\,\mathrm{SmoothL1}(sg[h_{t+i}], \hat h_{t+i})
          + \lambda_{KL} \frac1d \sum_{i=1}^d E_t\,KL(p(\cdot\mid sg[h_{t+i}]) \,\|\, p(\cdot\mid\hat h_{t+i}))$$

    (Eq. 3 to 5). The output layer p is frozen in the second loss. The first one takes the prompt's states too, the
    second one only states that predict a trained token.

    Args:
        model, horizon: see [`Objective`].
        width: of the dynamics' hidden layers; None for that of the states, as the paper has it for star graphs.
        of_states, of_tokens: the weights of the two losses; both are 1 in the paper's star graphs.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        horizon: int = 1,
        width: int | None = None,
        of_states: float = 1.0,
        of_tokens: float = 1.0,
    ) -> None:
        super().__init__(model, horizon)
        size = model.get_input_embeddings().weight.shape[1]
        self.dynamics = LatentDynamics(size, width or size)
        self.of_states, self.of_tokens = of_states, of_tokens

    def beyond(self, states: tuple[Tensor, ...], input_ids: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        """The weighted sum of both losses, see [`Objective.beyond`]."""
        last, tokens = states[-1], self.model.get_input_embeddings()(input_ids)
        real = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask.bool()
        found, losses = last, []
        for step in range(1, min(self.horizon, labels.shape[1] - 2) + 1):
            found = self.dynamics(found[:, :-1], tokens[:, step:])  # at t, the state after x_t+step
            wanted = last[:, step:].detach()
            both = real[:, step:] & real[:, :-step]
            says = self.says(labels, mask, step + 1)
            of_states = functional.smooth_l1_loss(found[both], wanted[both])
            of_tokens = self._divergence(wanted[:, :-1][says], found[:, :-1][says])
            losses.append(self.of_states * of_states + self.of_tokens * of_tokens)
        return torch.stack(losses).mean()

    def _divergence(self, wanted: Tensor, found: Tensor) -> Tensor:
        """KL of the tokens that states [count, size] say, the mean over the states."""
        frozen = {name: part.detach() for name, part in self.head.named_parameters()}
        said, true = (functional_call(self.head, frozen, part).log_softmax(-1) for part in (found, wanted))
        return functional.kl_div(said, true, reduction="batchmean", log_target=True)


class MultiToken(Objective):
    r"""Multi-token prediction (Gloeckle et al., 2024, arXiv 2404.19737, Section 2).

    Independent heads on a shared trunk say the next n = d + 1 tokens, with one output layer for all:

    $$L = -\sum_{i=1}^n E_t \log p(x_{t+i} \mid \mathrm{head}_i(\mathrm{trunk}(x_{1:t})))$$

    A head is a block. The model's own last block is the head of the next token, so the model is the trunk and this
    head. The other heads begin as copies of it, and share its last norm.

    Args:
        model, horizon: see [`Objective`]; the heads besides the model's own are `horizon`.
    """

    model: GPT2LMHeadModel

    def __init__(self, model: GPT2LMHeadModel, horizon: int = 3) -> None:
        super().__init__(model, horizon)
        self.heads = nn.ModuleList(copy.deepcopy(model.transformer.h[-1]) for _ in range(horizon))

    def beyond(self, states: tuple[Tensor, ...], input_ids: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        """The sum of the other heads' losses, see [`Objective.beyond`]."""
        trunk = states[-2]
        causal = create_causal_mask(self.model.config, trunk, mask, past_key_values=None)
        total = trunk.new_zeros(())
        for place, head in zip(range(2, labels.shape[1]), self.heads, strict=False):
            found, says = head(trunk, attention_mask=causal)[:, :-place], self.says(labels, mask, place)
            logits = self.head(self.model.transformer.ln_f(found[says]))
            total = total + functional.cross_entropy(logits, labels[:, place:][says])
        return total


class JointMultiToken(Objective):
    r"""Joint multi-token prediction (Ahn, Lamb and Langford, 2025, arXiv 2503.21801).

    A state says the next d + 1 tokens together, by the chain rule. The true tokens in between are given, but what was
    before them is known by the one state alone:

    $$L = -\sum_{i=0}^d E_t \log p(x_{t+i+1} \mid h_t, x_{t+1:t+i})$$

    The term i = 0 is the model's own loss of the next token. The paper calls the module of the others Fetch. Ours is a
    block of the model's kind, which reads h_t and the embeddings of the tokens in between, with their places. It begins
    as a copy of the last block; norm and output layer are the model's.

    Args:
        model, horizon: see [`Objective`].
    """

    model: GPT2LMHeadModel

    def __init__(self, model: GPT2LMHeadModel, horizon: int = 3) -> None:
        super().__init__(model, horizon)
        self.fetch = copy.deepcopy(model.transformer.h[-1])
        self.places = nn.Parameter(torch.zeros(horizon + 1, model.config.n_embd))
        nn.init.normal_(self.places, std=model.config.initializer_range)

    def beyond(self, states: tuple[Tensor, ...], input_ids: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        """The sum of the losses for i of 1 to d, see [`Objective.beyond`]."""
        steps = min(self.horizon, labels.shape[1] - 2)
        # At t, the labels and the tokens of t + 1 to t + d + 1; behind a row's end, labels are none.
        ahead = functional.pad(labels, (0, steps), value=IGNORED).unfold(1, steps + 1, 1)[:, 1:]
        given = functional.pad(input_ids, (0, steps)).unfold(1, steps + 1, 1)[:, 1:, :-1]
        used = (ahead[..., 1:] != IGNORED).any(-1)
        if mask is not None:
            used &= mask[:, :-1].bool()
        tokens = self.model.get_input_embeddings()(given[used])  # [count, steps, size]
        read = torch.cat([states[-1][:, :-1][used][:, None], tokens], 1) + self.places[: steps + 1]
        causal = create_causal_mask(self.model.config, read, None, past_key_values=None)
        logits = self.head(self.model.transformer.ln_f(self.fetch(read, attention_mask=causal)))[:, 1:]
        wanted = ahead[used][:, 1:]
        losses = functional.cross_entropy(logits.mT, wanted, reduction="none")  # [count, steps]
        return (losses.sum(0) / (wanted != IGNORED).sum(0)).sum()
