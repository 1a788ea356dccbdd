"""The STRIPS Transformer: one attention head per proposition; its weights are a STRIPS domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.modeling_outputs import TokenClassifierOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .checkpoints import SafeCheckpoints
from .configuration_strips import StripsTransformerConfig
from .strips_attention import (
    advance,
    init_state,
    next_scores,
    strips_attention,
    strips_attention_reference,
    strips_focal_loss,
)
from .strips_domain import StripsAction, StripsDomain, StripsError


@dataclass
class StripsTransformerOutput(ModelOutput):
    """The output of [`StripsTransformer`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): Eq. 20-22, summed over the ensemble, so every
            member gets the same gradient as if trained alone.
        inapplicability (`Tensor` of shape `[batch, length, ensemble]`): y(i) of Eq. 17; 0 at padding.
        trace_inapplicability (`Tensor` of shape `[batch, ensemble]`): f_theta(tau) of Eq. 18.
        head_outputs (`Tensor` of shape `[batch, length, ensemble, num_propositions]`): y_p(i) of Eq. 16.
        member_losses (`Tensor` of shape `[ensemble]`, when `labels` are given): the terms of `loss`.
        attentions (one `Tensor` of shape `[batch, ensemble, num_propositions, length, length]` in a tuple, with
            `output_attentions=True`): the stick-breaking scores S' of Eq. 15.
    """

    loss: Tensor | None = None
    inapplicability: Tensor | None = None
    trace_inapplicability: Tensor | None = None
    head_outputs: Tensor | None = None
    member_losses: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None


class StripsTransformer(SafeCheckpoints, PreTrainedModel):
    r"""Learns a propositional STRIPS domain from action traces and returns it as symbols.

    Its one parameter is theta in [0, 1]^(ensemble x |F| x |A| x 3): for every proposition and action, whether the
    action needs it (query), affects it (key), deletes it (value), Eq. 8-13. Training keeps theta in its range by
    projection before every forward pass; inference clamps it.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.strips import StripsAction, StripsDomain, StripsTransformer

    >>> lamp = StripsDomain(("dark",), (
    ...     StripsAction("on", pre=frozenset({"dark"}), delete=frozenset({"dark"})),
    ...     StripsAction("off", add=frozenset({"dark"})),
    ... ))
    >>> model = StripsTransformer.from_domain(lamp)
    >>> model(torch.tensor([[0, 1, 0, 0]])).inapplicability[0, :, 0].tolist()
    [0.0, 0.0, 0.0, 1.0]
    >>> model.next_actions(["off", "on"])
    ['off']

    ```
    """

    config_class = StripsTransformerConfig
    base_model_prefix = "strips"
    main_input_name = "input_ids"
    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package
    _no_split_modules: list[str] = []
    _checkpoint_error = StripsError
    _refuses_missing_weights = True  # theta is all that there is
    # Eq. 20 divides by the number of traces, but Trainer's `num_items_in_batch` counts actions: Trainer has to average
    # the parts of an accumulated batch itself. That is exact if all parts have the same number of traces; your own
    # loop is exact for any parts with `num_traces`.
    accepts_loss_kwargs = False
    _pipelines = {
        "action-verdicts": {"impl": "strips_verdicts.ActionVerdictsPipeline", "pt": ["AutoModel"], "type": "text"}
    }

    def __init__(self, config: StripsTransformerConfig):
        super().__init__(config)
        sizes = self.config.ensemble, self.config.num_propositions, self.config.num_actions
        self.theta = nn.Parameter(torch.empty(*sizes, 3))
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, StripsTransformer):
            init.uniform_(module.theta, 0.0, 1.0)

    def get_input_embeddings(self) -> nn.Module:
        """Raises NotImplementedError: theta holds three numbers for each proposition and action, and no embeddings."""
        raise NotImplementedError(
            f"A {type(self).__name__} has no embeddings: an action's id selects its three numbers for each proposition "
            "in the parameter theta. Read `model.theta`; for other actions make a new model with "
            "StripsTransformerConfig(actions=[...])."
        )

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Raises NotImplementedError, see `get_input_embeddings`."""
        self.get_input_embeddings()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Module:
        """Raises NotImplementedError, see `get_input_embeddings`."""
        return self.get_input_embeddings()

    def seed_members(self, seeds: Sequence[int]) -> StripsTransformer:
        """Draws new theta for every member, each from its own generator: no member depends on the others."""
        if len(seeds) != self.config.ensemble:
            raise StripsError(f"An ensemble of {self.config.ensemble} needs as many seeds, got {len(seeds)}.")
        for theta, seed in zip(self.theta.data, seeds, strict=True):
            theta.copy_(torch.rand(theta.shape, generator=torch.Generator().manual_seed(seed)))
        return self

    # ------------------------------------------------------------------------------------------------------- forward

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        labels: Tensor | None = None,  # [batch, length]
        num_traces: int | Tensor | None = None,
        token_type_ids: Tensor | None = None,  # [batch, length]
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> StripsTransformerOutput:
        """Scores every action of every trace.

        Args:
            input_ids: action indices, [batch, length]; `num_actions` is padding, on either side.
            attention_mask: 0 at padding, [batch, length]; may be left out if padding has its own id.
            labels: 1 where the action is inapplicable, 0 where it is applicable, -100 at padding, [batch, length].
            num_traces: |T| of Eq. 20 if it differs from the size of this batch, for exact gradient accumulation.
            token_type_ids: must be 0 everywhere, as a stock tokenizer gives them: a row is one trace.
            output_attentions: also return S' (Eq. 15); computed by the quadratic form.
            output_hidden_states: refused if true, as there are none; `head_outputs` is always returned.

        Raises:
            StripsError: ids out of range, an empty trace, labels or token types that do not fit, or a request for
                hidden states.
        """
        if self.config.output_hidden_states if output_hidden_states is None else output_hidden_states:
            raise StripsError(
                "output_hidden_states: the STRIPS Transformer has one layer and no hidden states. Read head_outputs "
                "(y_p of Eq. 16, a value for each proposition), which is always returned, or set "
                "output_attentions=True for the scores S' of Eq. 15."
            )
        check_token_types(token_type_ids, input_ids)
        ids = mask_padding(input_ids, attention_mask, self.config.num_actions)
        if self.training:
            self.theta.data.clamp_(0, 1)
        theta = self.theta if self.training else self.theta.clamp(0, 1)

        attentions = None
        if self.config.output_attentions if output_attentions is None else output_attentions:
            heads, scores, stick_breaking = strips_attention_reference(theta, ids)
            attentions = (stick_breaking,)
        else:
            heads, scores = strips_attention(theta, ids)

        loss = member_losses = None
        if labels is not None:
            check_labels(labels, ids)
            member_losses = strips_focal_loss(
                scores, labels, self.config.focal_alpha, self.config.focal_gamma, num_traces
            )
            loss = member_losses.sum()
        return StripsTransformerOutput(
            loss=loss,
            inapplicability=scores,
            trace_inapplicability=1 - (1 - scores).prod(1),  # Eq. 18
            head_outputs=heads,
            member_losses=member_losses,
            attentions=attentions,
        )

    # ----------------------------------------------------------------------------------------------------- streaming

    @torch.no_grad()
    def step(self, actions: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Reads one more action of every trace and scores all possible next ones.

        Time and memory are constant for traces of any length.

        Args:
            actions: the actions just taken, [batch]; `num_actions` (padding) changes nothing.
            state: from the last call, [batch, ensemble, num_propositions, num_actions]; None at the start.

        Returns:
            The inapplicability (Eq. 17) that each action would have next, [batch, num_actions, ensemble]; the state.

        Raises:
            StripsError: an index out of range.
        """
        ids = mask_step(actions, self.config.num_actions)
        theta = self.theta.clamp(0, 1)
        state = advance(theta, init_state(theta, len(ids)) if state is None else state, ids)
        return next_scores(state), state

    def next_actions(self, trace: Sequence[str | int], member: int = 0) -> list[str]:
        """The names of the actions that may follow a trace (of names or indices) in the learned domain."""
        return self.to_domain(member).next_actions(trace)

    # ------------------------------------------------------------------------------------------------ weights, symbols

    @torch.no_grad()
    def binarize(self) -> StripsTransformer:
        """Rounds theta to {0, 1} in place (Eq. 19) and returns the model."""
        self.theta.copy_((_finite(self.theta) >= 0.5).to(self.theta.dtype))
        return self

    def member(self, index: int) -> StripsTransformer:
        """A separate model with one member of the ensemble."""
        if not 0 <= index < self.config.ensemble:
            raise StripsError(f"No member {index} in an ensemble of {self.config.ensemble} (counted from 0).")
        config = type(self.config).from_dict({**self.config.to_dict(), "ensemble": 1})
        single = type(self)(config).to(self.theta.device, self.theta.dtype)
        single.theta.data.copy_(self.theta.data[index : index + 1].clamp(0, 1))
        return single.train(self.training)

    def to_domain(self, member: int = 0, name: str = "learned") -> StripsDomain:
        """The STRIPS domain M_theta of Definition 5, from the binarized weights (Eq. 19) of one member.

        Raises:
            StripsError: theta is not finite, or there is no such member.
        """
        if not 0 <= member < self.config.ensemble:
            raise StripsError(f"No member {member} in an ensemble of {self.config.ensemble} (counted from 0).")
        pre, affected, deleted = (_finite(self.theta)[member] >= 0.5).unbind(-1)
        propositions = self.config.propositions

        def chosen(column: Tensor) -> frozenset[str]:
            return frozenset(p for p, here in zip(propositions, column.tolist(), strict=True) if here)

        add, delete = affected & ~deleted, affected & deleted
        actions = tuple(
            StripsAction(action, chosen(pre[:, m]), chosen(add[:, m]), chosen(delete[:, m]))
            for m, action in enumerate(self.config.actions)
        )
        return StripsDomain(tuple(propositions), actions, name)

    @classmethod
    def from_domain(cls, domain: StripsDomain, **kwargs: Any) -> StripsTransformer:
        """The transformer that computes f_M exactly (Theorem 4): theta by Eq. 8-10. `kwargs` go to the config."""
        config = cls.config_class(actions=list(domain.action_names), propositions=list(domain.propositions), **kwargs)
        model = cls(config)
        for m, action in enumerate(domain.actions):
            for p, proposition in enumerate(domain.propositions):
                needed, deleted = proposition in action.pre, proposition in action.delete
                bits = [needed, deleted or proposition in action.add, deleted]
                model.theta.data[:, p, m] = torch.tensor(bits, dtype=model.theta.dtype)
        return model.eval()

    def verdicts_pipeline(self, **options: Any) -> Any:
        """The pipeline `"action-verdicts"` with this model, before it is saved."""
        from .strips_verdicts import ActionVerdictsPipeline  # pipelines load much

        return ActionVerdictsPipeline(model=self, task="action-verdicts", **options)

    # ------------------------------------------------------------------------------------------------ saving, loading

    def save_pretrained(self, *args, **kwargs):
        """As in transformers; theta is first projected to [0, 1], which the last optimizer step may have left."""
        self.theta.data.clamp_(0, 1)
        return super().save_pretrained(*args, **kwargs)


class StripsTransformerForTokenClassification(StripsTransformer):
    r"""The STRIPS Transformer as a token classifier: every action of a trace is applicable (0) or inapplicable (1).

    For transformers' token-classification pipeline and other stock code. Weights, checkpoints, loss and methods are
    those of [`StripsTransformer`]: either class loads the other's checkpoints.

    Example:

    ```python
    >>> from transformers import pipeline
    >>> from hf_mech.models.strips import StripsAction, StripsDomain, strips_tokenizer
    >>> from hf_mech.models.strips import StripsTransformerForTokenClassification

    >>> lamp = StripsDomain(("dark",), (
    ...     StripsAction("on", pre=frozenset({"dark"}), delete=frozenset({"dark"})),
    ...     StripsAction("off", add=frozenset({"dark"})),
    ... ))
    >>> model = StripsTransformerForTokenClassification.from_domain(lamp)
    >>> classify = pipeline("token-classification", model=model, tokenizer=strips_tokenizer(["on", "off"]))
    >>> [(action["word"], action["entity"]) for action in classify("on on off on")]
    [('on', 'applicable'), ('on', 'inapplicable'), ('off', 'applicable'), ('on', 'applicable')]

    ```
    """

    _auto_class = "AutoModelForTokenClassification"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        labels: Tensor | None = None,  # [batch, length]
        num_traces: int | Tensor | None = None,
        token_type_ids: Tensor | None = None,  # [batch, length]
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> TokenClassifierOutput:
        """Classifies every action of every trace; the arguments are those of [`StripsTransformer`].

        Returns:
            `logits`, [batch, length, 2]: log(1 - y) and log(y) of Eq. 17, whose softmax is (1 - y, y). Probabilities
            are at least 1.2e-7 (float32's epsilon; 2.2e-16 in float64), so the logits are finite. For an ensemble, y
            is the mean over the members. `loss` and `attentions` as in [`StripsTransformerOutput`]: the loss is the
            focal loss, summed over the members, not a cross-entropy of the logits.

        Raises:
            StripsError: as in [`StripsTransformer`].
        """
        outputs = super().forward(
            input_ids,
            attention_mask,
            labels,
            num_traces,
            token_type_ids,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = classification_logits(outputs.inapplicability)
        return TokenClassifierOutput(loss=outputs.loss, logits=logits, attentions=outputs.attentions)


def classification_logits(inapplicability: Tensor) -> Tensor:
    """log(1 - y) and log(y), [..., 2], of the members' mean y; from y(i) of Eq. 17 [..., members]."""
    y = inapplicability.float() if inapplicability.dtype.itemsize < 4 else inapplicability
    mean = y.mean(-1)
    return torch.stack([1 - mean, mean], -1).clamp(min=torch.finfo(y.dtype).eps).log().to(inapplicability.dtype)


def _finite(theta: Tensor) -> Tensor:
    bad = int((~theta.detach().isfinite()).sum())
    if bad:
        raise StripsError(
            f"The model: {bad} of {theta.numel()} weights are not finite; training diverged or the file is damaged. "
            "Go back to the last good checkpoint, or lower the learning rate."
        )
    return theta.detach()


# ------------------------------------------------------------------------------- what the model reads


def mask_padding(input_ids: Tensor, attention_mask: Tensor | None, num_actions: int) -> Tensor:
    """The actions with -1 at padding, [batch, length].

    Padding is the id `num_actions` or a zero in `attention_mask`, at any position.

    Raises:
        StripsError: wrong shape, wrong dtype, an id out of range, or a row without any action.
    """
    if input_ids.dim() != 2 or input_ids.dtype not in (torch.int64, torch.int32):
        raise StripsError(
            f"input_ids must be integers of shape [batch, length], got {input_ids.dtype} {list(input_ids.shape)}."
        )
    if attention_mask is not None and attention_mask.shape != input_ids.shape:
        raise StripsError(
            f"attention_mask must have input_ids' shape, {list(input_ids.shape)}, got {list(attention_mask.shape)}."
        )
    real = input_ids != num_actions
    if attention_mask is not None:
        real = real & attention_mask.bool()
    ids = torch.where(real, input_ids, -1).long()
    if torch.compiler.is_compiling():
        return ids
    if ids.numel() == 0 or not bool(real.any(1).all()):
        raise StripsError("A trace is empty; every row of input_ids must hold at least one action.")
    wrong = (real & ((input_ids < 0) | (input_ids >= num_actions))).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise StripsError(
            f"Action index {int(input_ids[row, column])} at row {row}, position {column} is out of range; the model "
            f"knows {num_actions} actions, 0 to {num_actions - 1}, and {num_actions} for padding (a tokenizer's "
            f"{num_actions + 1} stands for a name that it does not know)."
        )
    return ids


def mask_step(actions: Tensor, num_actions: int) -> Tensor:
    """One action of every trace, [batch], with -1 for padding. Raises StripsError for a wrong shape or index."""
    if actions.dim() != 1 or actions.dtype not in (torch.int64, torch.int32):
        raise StripsError(f"A step takes one action a trace, integers of shape [batch], got {list(actions.shape)}.")
    wrong = actions[(actions < 0) | (actions > num_actions)]
    if len(wrong):
        raise StripsError(
            f"Action index {int(wrong[0])} is out of range; the model knows {num_actions} actions, 0 to "
            f"{num_actions - 1}, and {num_actions} for padding."
        )
    return torch.where(actions == num_actions, -1, actions).long()


def check_token_types(token_type_ids: Tensor | None, input_ids: Tensor) -> None:
    """Raises StripsError unless the token types, if there are any, are 0: a row is one trace."""
    if token_type_ids is None:
        return
    if token_type_ids.shape != input_ids.shape:
        raise StripsError(
            f"token_type_ids must have input_ids' shape, {list(input_ids.shape)}, got {list(token_type_ids.shape)}."
        )
    if not torch.compiler.is_compiling() and bool(token_type_ids.any()):
        raise StripsError("token_type_ids must be 0 everywhere: a row is one trace. Leave them out.")


def check_labels(labels: Tensor, ids: Tensor) -> None:
    """Raises StripsError unless labels [batch, length] hold 0 or 1 at every action of `ids` and -100 at padding."""
    if labels.shape != ids.shape:
        raise StripsError(f"labels must have the shape of input_ids, {list(ids.shape)}, got {list(labels.shape)}.")
    if torch.compiler.is_compiling():
        return
    wrong = torch.where(ids < 0, labels != -100, (labels != 0) & (labels != 1)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        where, want = ("padding", "-100") if int(ids[row, column]) < 0 else ("an action", "0 or 1")
        raise StripsError(
            f"labels hold {int(labels[row, column])} at row {row}, position {column}, which is {where}: expected "
            f"{want} (1 = inapplicable, 0 = applicable, -100 = padding)."
        )
