"""Configuration of the STRIPS Transformer."""

from __future__ import annotations

from huggingface_hub.dataclasses import strict
from transformers.configuration_utils import PreTrainedConfig

from .strips_errors import DomainError


@strict
class StripsTransformerConfig(PreTrainedConfig):
    r"""Sizes, names and loss of a [`StripsTransformer`].

    Args:
        num_actions (`int`, *optional*): |A|, the number of actions; the token ids 0 to |A| - 1. Taken from `actions`
            if those are given, else 3.
        num_propositions (`int`, *optional*): |F|, one attention head for each proposition. Taken from `propositions`
            if those are given, else 3.
        actions (`list[str]`, *optional*): the actions' names, in the order of their ids; default `a0`, `a1`, ...
        propositions (`list[str]`, *optional*): the propositions' names, in the order of the heads; default `p0`, ...
        ensemble (`int`, *optional*, defaults to 1): the number of independent members in theta. They are trained on the
            same traces and do not interact, so one run trains this many seeds.
        focal_alpha (`float`, *optional*, defaults to 0.9): weight of the inapplicable class in the loss, Eq. 21-22.
        focal_gamma (`float`, *optional*, defaults to 3.0): focusing exponent of the focal loss, Eq. 21-22.
        pad_token_id (`int`, *optional*): the id of padding, |A|; any other value is refused.

    Raises:
        DomainError: sizes and names that contradict each other, or a value outside its range.

    Example:

    ```python
    >>> from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig

    >>> model = StripsTransformer(StripsTransformerConfig(num_actions=8, num_propositions=9, ensemble=10))
    >>> tuple(model.theta.shape)
    (10, 9, 8, 3)

    ```
    """

    model_type = "strips_transformer"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    attribute_map = {"num_attention_heads": "num_propositions"}
    # Trainer need not gather these for `compute_metrics`; `inapplicability` is the prediction.
    keys_to_ignore_at_inference = ["trace_inapplicability", "head_outputs", "member_losses", "attentions"]

    num_actions: int | None = None
    num_propositions: int | None = None
    actions: list[str] | None = None
    propositions: list[str] | None = None
    ensemble: int = 1
    focal_alpha: float = 0.9
    focal_gamma: float = 3.0
    pad_token_id: int | None = None

    def __post_init__(self, **kwargs):
        self.num_actions, self.actions = _sized("action", self.num_actions, self.actions)
        self.num_propositions, self.propositions = _sized("proposition", self.num_propositions, self.propositions)
        if self.pad_token_id is None:
            self.pad_token_id = self.num_actions
        if self.id2label is None:
            self.id2label: dict[int, str] | None = {0: "applicable", 1: "inapplicable"}
            self.label2id = {"applicable": 0, "inapplicable": 1}
        super().__post_init__(**kwargs)
        self.validate_architecture()  # here too: `strict` wraps the errors of its own call

    def validate_architecture(self):
        """Refuses invalid values before any work starts."""
        if self.ensemble < 1:
            raise DomainError(f"ensemble must be at least 1, got {self.ensemble}.")
        if not 0.0 < self.focal_alpha < 1.0:
            raise DomainError(f"focal_alpha must lie strictly between 0 and 1, got {self.focal_alpha}.")
        if self.focal_gamma < 1.0 and self.focal_gamma != 0.0:
            raise DomainError(
                f"focal_gamma must be 0 (cross-entropy) or at least 1, got {self.focal_gamma}: in between, the "
                "gradient of a right prediction is infinite."
            )
        if self.pad_token_id != self.num_actions:
            raise DomainError(
                f"pad_token_id must be num_actions = {self.num_actions}, the first id that is no action, "
                f"got {self.pad_token_id}; leave it out."
            )

    @property
    def vocab_size(self) -> int:
        """The actions and the padding: |A| + 1."""
        return len(self.actions or ()) + 1


def _sized(kind: str, size: int | None, names: list[str] | None) -> tuple[int, list[str]]:
    """Number and names of the actions or propositions, each filled in from the other."""
    if names is None:
        size = 3 if size is None else size
        if size < 1:
            raise DomainError(f"num_{kind}s must be at least 1, got {size}.")
        return size, [f"{kind[0]}{i}" for i in range(size)]
    if size is not None and size != len(names):
        raise DomainError(f"num_{kind}s is {size}, but {len(names)} {kind} names were given; leave num_{kind}s out.")
    if not names or len(set(names)) != len(names):
        raise DomainError(f"{kind} names must be unique and at least one, got {names}.")
    return len(names), list(names)


__all__ = ["StripsTransformerConfig"]
