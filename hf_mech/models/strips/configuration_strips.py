"""Configuration of the STRIPS Transformer."""

from __future__ import annotations

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config
from .strips_domain import StripsError

#: Every name is a string of its own, so a configuration may not ask for more of them.
MOST_NAMES = 100_000


@strict_config(
    StripsError,
    num_actions=(1, MOST_NAMES),
    num_propositions=(1, MOST_NAMES),
    ensemble=(1, MOST_NAMES),
    focal_gamma=(0.0, 1000.0),
)
class StripsTransformerConfig(PreTrainedConfig):
    r"""Sizes, names and loss of a [`StripsTransformer`].

    Args:
        num_actions (`int`, *optional*): |A|, the number of actions, at most 100,000; the token ids 0 to |A| - 1. Taken
            from `actions` if those are given, else 3.
        num_propositions (`int`, *optional*): |F|, at most 100,000, one attention head for each proposition. Taken
            from `propositions` if those are given, else 3.
        actions (`list[str]`, *optional*): the actions' names, in the order of their ids; default `a0`, `a1`, ...
        propositions (`list[str]`, *optional*): the propositions' names, in the order of the heads; default `p0`, ...
        ensemble (`int`, *optional*, defaults to 1): the number of independent members in theta, at most 100,000. They
            are trained on the same traces and do not interact, so one run trains this many seeds.
        focal_alpha (`float`, *optional*, defaults to 0.9): weight of the inapplicable class in the loss, Eq. 21-22.
        focal_gamma (`float`, *optional*, defaults to 3.0): focusing exponent of the focal loss, Eq. 21-22.
        pad_token_id (`int`, *optional*): the id of padding, |A|; any other value is refused.

    Raises:
        StripsError: sizes and names that contradict each other, or a value of a wrong type or outside its range.

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
    focal_alpha: float | int = 0.9
    focal_gamma: float | int = 3.0
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

    def validate_architecture(self):
        """Refuses invalid values before any work starts."""
        if not 0.0 < self.focal_alpha < 1.0:
            raise StripsError(f"focal_alpha must lie strictly between 0 and 1, got {self.focal_alpha}.")
        if self.focal_gamma < 1.0 and self.focal_gamma != 0.0:
            raise StripsError(
                f"focal_gamma must be 0 (cross-entropy) or at least 1, got {self.focal_gamma}: in between, the "
                "gradient of a right prediction is infinite."
            )
        if self.pad_token_id != self.num_actions:
            raise StripsError(
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
        return size, [f"{kind[0]}{i}" for i in range(size)]
    if size is not None and size != len(names):
        raise StripsError(f"num_{kind}s is {size}, but {len(names)} {kind} names were given; leave num_{kind}s out.")
    if not names or len(set(names)) != len(names):
        raise StripsError(f"{kind} names must be unique and at least one, got {names}.")
    return len(names), list(names)
