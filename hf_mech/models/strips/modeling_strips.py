"""The STRIPS Transformer: one attention head per proposition; its weights are a STRIPS domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
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
    failing,
    init_state,
    next_scores,
    strips_attention,
    strips_attention_reference,
    strips_focal_loss,
)
from .strips_cells import Cells
from .strips_domain import StripsDomain, StripsError
from .strips_inputs import check_labels, check_objects, check_token_types, find_failed, mask_padding, mask_step
from .strips_lifted import LiftedDomain
from .strips_lifted_attention import lifted_attention, lifted_attention_reference
from .strips_symbols import domain_of, ground_theta, theta_of


@dataclass
class StripsTransformerOutput(ModelOutput):
    """The output of [`StripsTransformer`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): Eq. 20-22, summed over the ensemble, so every
            member gets the same gradient as if trained alone.
        inapplicability (`Tensor` of shape `[batch, length, ensemble]`): y(i) of Eq. 17; 0 at padding.
        trace_inapplicability (`Tensor` of shape `[batch, ensemble]`): f_theta(tau) of Eq. 18.
        head_outputs (`Tensor` of shape `[batch, length, ensemble, num_propositions]`): y_p(i) of Eq. 16; of a lifted
            model the OR over the heads of each predicate.
        member_losses (`Tensor` of shape `[ensemble]`, when `labels` are given): the terms of `loss`.
        attentions (`tuple` of one `Tensor` of shape `[batch, ensemble, num_propositions, length, length]`): with
            `output_attentions=True`, the stick-breaking scores S' of Eq. 15; of a lifted model with a head for each
            ground atom, those of `head_atoms`.
        head_atoms (`Tensor` of shape `[batch, heads, 1 + arguments]`, of a lifted model, with the attentions): the
            predicate and the objects of each head; -1 beyond a predicate's arguments and beyond a row's heads.
    """

    loss: Tensor | None = None
    inapplicability: Tensor | None = None
    trace_inapplicability: Tensor | None = None
    head_outputs: Tensor | None = None
    member_losses: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None
    head_atoms: Tensor | None = None


class StripsTransformer(SafeCheckpoints, PreTrainedModel):
    r"""Learns a STRIPS domain from action traces and returns it as symbols.

    Its one parameter is theta in `[0, 1]^(ensemble x |F| x |A| x 3)`: for every proposition and action, whether the
    action needs it (query), affects it (key), deletes it (value), Eq. 8-13. Training keeps theta in its range by
    projection before every forward pass; inference clamps it.

    With a lifted configuration (`parameters` and `predicates`), actions take objects, and the heads are the predicates
    of all objects. Theta is [ensemble, cells, 3], shared by all groundings: a cell is a predicate and the places of an
    action's objects that it takes, such as on(first, second) for stack. The same weights serve any objects.

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

    Lifted:

    ```python
    >>> from hf_mech.models.strips import LiftedAction, LiftedDomain

    >>> lamps = LiftedDomain({"dark": ("lamp",)}, (
    ...     LiftedAction("on", ("lamp",), pre={("dark", (0,))}, delete={("dark", (0,))}),
    ...     LiftedAction("off", ("lamp",), add={("dark", (0,))}),
    ... ))
    >>> model = StripsTransformer.from_domain(lamps)
    >>> objects = torch.tensor([[[0], [1], [0]]])  # on the first lamp, on the second, on the first again
    >>> model(torch.tensor([[0, 0, 0]]), objects=objects).inapplicability[0, :, 0].tolist()
    [0.0, 0.0, 1.0]
    >>> model.next_actions(["on l1"], objects={"lamp": ["l1", "l2"]})
    ['on(l2)', 'off(l1)', 'off(l2)']

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
        self.cells = Cells.of(config) if config.lifted else None
        heads = (len(self.cells.all),) if self.cells else (config.num_propositions, config.num_actions)
        self.theta = nn.Parameter(torch.empty(config.ensemble, *heads, 3))
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
        """Draws new theta for every member, each from its own generator: no member depends on the others.

        Raises:
            StripsError: not one seed a member.
        """
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
        objects: Tensor | None = None,  # [batch, length, places]
        failed: Tensor | None = None,  # [batch, length]
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> StripsTransformerOutput:
        """Scores every action of every trace.

        An action that failed changed nothing, and the trace goes on: its key is 0. With labels, those are the actions
        labelled 1; without, none, and every action counts as done; `failed` says otherwise in both cases.

        Args:
            input_ids: action indices, [batch, length]; `num_actions` is padding, on either side.
            attention_mask: 0 at padding, [batch, length]; may be left out if padding has its own id.
            labels: 1 where the action is inapplicable, 0 where it is applicable, -100 at padding, [batch, length].
            num_traces: `|T|` of Eq. 20 if it differs from the size of this batch, for exact gradient accumulation.
            token_type_ids: must be 0 everywhere, as a stock tokenizer gives them: a row is one trace.
            objects: of a lifted model, the objects of every action as integers, [batch, length, places], -1 where there
                is none; see `encode_trace` and `StripsDataCollator`.
            failed: 1 where the action is known to have failed, else 0, [batch, length].
            output_attentions: also return S' (Eq. 15); computed by the quadratic form.
            output_hidden_states: refused if true, as there are none; `head_outputs` is always returned.

        Raises:
            StripsError: ids out of range, an empty trace, objects, labels, failures or token types that do not fit, or
                a request for hidden states.
        """
        if self.config.output_hidden_states if output_hidden_states is None else output_hidden_states:
            raise StripsError(
                "output_hidden_states: the STRIPS Transformer has one layer and no hidden states. Read head_outputs "
                "(y_p of Eq. 16, a value for each proposition), which is always returned, or set "
                "output_attentions=True for the scores S' of Eq. 15."
            )
        check_token_types(token_type_ids, input_ids)
        ids = mask_padding(input_ids, attention_mask, self.config.num_actions)
        objects = check_objects(objects, ids, self.cells)
        if labels is not None:
            check_labels(labels, ids)
        lost = find_failed(failed, labels, ids)
        if self.training:
            self.theta.data.clamp_(0, 1)
        theta = self.theta if self.training else self.theta.clamp(0, 1)

        attentions = head_atoms = None
        slow = self.config.output_attentions if output_attentions is None else output_attentions
        if self.cells and slow:
            heads, scores, stick_breaking, head_atoms = lifted_attention_reference(
                theta, self.cells, ids, objects, lost
            )
            attentions = (stick_breaking,)
        elif self.cells:
            heads, scores = lifted_attention(theta, self.cells, ids, objects, lost)
        else:
            if lost is not None:
                theta, ids = failing(theta, ids, lost)
            if slow:
                heads, scores, stick_breaking = strips_attention_reference(theta, ids)
                attentions = (stick_breaking,)
            else:
                heads, scores = strips_attention(theta, ids)

        loss = member_losses = None
        if labels is not None:
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
            head_atoms=head_atoms,
        )

    # ----------------------------------------------------------------------------------------------------- streaming

    @torch.no_grad()
    def step(self, actions: Tensor, state: Tensor | None = None, failed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Reads one more action of every trace and scores all possible next ones.

        Time and memory are constant for traces of any length.

        Args:
            actions: the actions just taken, [batch]; `num_actions` (padding) changes nothing.
            state: from the last call, [batch, ensemble, num_propositions, num_actions]; None at the start.
            failed: 1 where the action is known to have failed, so that it changed nothing, [batch]; None: all are done.

        Returns:
            The inapplicability (Eq. 17) that each action would have next, [batch, num_actions, ensemble]; the state.

        Raises:
            StripsError: an index out of range, or a lifted model, whose next actions depend on the objects.
        """
        if self.cells:
            raise StripsError(
                "step scores all possible next actions, and those of a lifted model depend on the objects: use "
                "`model.ground(objects).step(...)`, or `model.next_actions(trace, objects=...)`."
            )
        ids = mask_step(actions, failed, self.config.num_actions)
        theta = self.theta.clamp(0, 1)
        state = advance(theta, init_state(theta, len(ids)) if state is None else state, ids)
        return next_scores(state), state

    def next_actions(
        self,
        trace: Sequence[Any],
        member: int = 0,
        *,
        failed: Sequence[int] | None = None,
        objects: Mapping[str, Iterable[str]] | None = None,
        facts: Iterable[Any] | None = None,
    ) -> list[str]:
        """The names of the actions that may follow a trace in the learned domain.

        Args:
            trace: names or indices; of a lifted model, ground actions such as `"stack b1 b2"`.
            member: of the ensemble.
            failed: 1 where the action is known to have failed, so that it changed nothing; None: all are done.
            objects, facts: of a lifted model, those of `LiftedDomain.ground_actions`.

        Raises:
            StripsError: an unknown action, no such member, or objects missing or too many.
        """
        domain = self.to_domain(member)
        if self.cells:
            if objects is None:
                types = sorted({type_ for own in self.cells.parameters.values() for type_ in own})
                raise StripsError(f"next_actions of a lifted model needs objects=, a dictionary with those of {types}.")
            return domain.next_actions(trace, objects, facts, failed)
        if objects is not None or facts is not None:
            raise StripsError("next_actions: this model is propositional; leave objects and facts out.")
        return domain.next_actions(trace, failed)

    # ------------------------------------------------------------------------------------------------ weights, symbols

    @torch.no_grad()
    def binarize(self) -> StripsTransformer:
        """Rounds theta to {0, 1} in place (Eq. 19) and returns the model."""
        self.theta.copy_((_finite(self.theta) >= 0.5).to(self.theta.dtype))
        return self

    def member(self, index: int) -> StripsTransformer:
        """A separate model with one member of the ensemble.

        Raises:
            StripsError: there is no such member.
        """
        if not 0 <= index < self.config.ensemble:
            raise StripsError(f"No member {index} in an ensemble of {self.config.ensemble} (counted from 0).")
        config = type(self.config).from_dict({**self.config.to_dict(), "ensemble": 1})
        single = type(self)(config).to(self.theta.device, self.theta.dtype)
        single.theta.data.copy_(self.theta.data[index : index + 1].clamp(0, 1))
        return single.train(self.training)

    def to_domain(self, member: int = 0, name: str = "learned") -> Any:
        """The STRIPS domain M_theta of Definition 5, from the binarized weights (Eq. 19) of one member.

        Returns:
            A `StripsDomain`; of a lifted model, a `LiftedDomain`.

        Raises:
            StripsError: theta is not finite, or there is no such member.
        """
        if not 0 <= member < self.config.ensemble:
            raise StripsError(f"No member {member} in an ensemble of {self.config.ensemble} (counted from 0).")
        bits = _finite(self.theta)[member] >= 0.5
        if self.cells:
            return self.cells.domain_of(bits, name)
        return domain_of(bits, self.config, name)

    @classmethod
    def from_domain(cls, domain: StripsDomain | LiftedDomain, **kwargs: Any) -> StripsTransformer:
        """The transformer that computes f_M exactly (Theorem 4): theta by Eq. 8-10. `kwargs` go to the config."""
        if isinstance(domain, LiftedDomain):
            types = {"parameters": {action.name: list(action.parameters) for action in domain.actions}}
            types["predicates"] = {name: list(own) for name, own in domain.predicates.items()}
            model = cls(cls.config_class(**types, supertypes=dict(domain.supertypes), **kwargs))
            model.theta.data[:] = Cells.of(model.config).theta_of(domain)
            return model.eval()
        model = cls(
            cls.config_class(actions=list(domain.action_names), propositions=list(domain.propositions), **kwargs)
        )
        model.theta.data[:] = theta_of(domain)
        return model.eval()

    @torch.no_grad()
    def ground(self, objects: Mapping[str, Iterable[str]], facts: Iterable[Any] | None = None) -> StripsTransformer:
        """The propositional model over some objects; its theta is gathered from this one's.

        Args:
            objects: the objects of each type, each under its most special type.
            facts: the true atoms of the predicates that no action changes; actions that need others are left out. None:
                all are true. The predicates are those of `to_domain()`, so an ensemble takes no facts.

        Raises:
            StripsError: the model is propositional; there are no such actions, or too many; facts for an ensemble.
        """
        if not self.cells:
            raise StripsError("ground: this model is propositional; its actions take no objects.")
        if facts is not None and self.config.ensemble > 1:
            raise StripsError("ground with facts takes one domain, got an ensemble; use `model.member(i).ground(...)`.")
        theta, propositions, actions = ground_theta(self.theta, self.cells, self.to_domain(), objects, facts)
        kept = {key: getattr(self.config, key) for key in ("ensemble", "focal_alpha", "focal_gamma")}
        config = type(self.config)(actions=actions, propositions=propositions, **kept)
        grounded = type(self)(config).to(self.theta.device, self.theta.dtype)
        grounded.theta.data.copy_(theta)
        return grounded.train(self.training)

    def verdicts_pipeline(self, **options: Any) -> Any:
        """The pipeline `"action-verdicts"` with this model, before it is saved."""
        import_module("transformers.pipelines")  # loads much, and takes note of the next one
        from .strips_verdicts import ActionVerdictsPipeline

        return ActionVerdictsPipeline(model=self, task="action-verdicts", **options)

    def logits_processor(self, tokenizer: Any, *args: Any, member: int = 0, **kwargs: Any) -> Any:
        """A [`StripsLogitsProcessor`] with the domain of a member: a language model then writes possible calls only.

        Args:
            tokenizer: of the language model; it and the other arguments are the processor's.
            member: of the ensemble.
        """
        from .strips_logits import StripsLogitsProcessor

        return StripsLogitsProcessor(self.to_domain(member), tokenizer, *args, **kwargs)

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
        objects: Tensor | None = None,  # [batch, length, places]
        failed: Tensor | None = None,  # [batch, length]
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
            objects,
            failed,
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
