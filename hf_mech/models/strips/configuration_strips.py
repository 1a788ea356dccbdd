"""Configuration of the STRIPS Transformer."""

from __future__ import annotations

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config
from .strips_cells import Cells
from .strips_domain import StripsError

#: Every name is a string of its own, so a configuration may not ask for more of them.
MOST_NAMES = 100_000
#: Every pattern is an object of its own.
MOST_CELLS = 1_000_000


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
        num_actions (`int`, *optional*): `|A|`, the number of actions, at most 100,000; the token ids 0 to `|A| - 1`.
            Taken from `actions` if those are given, else 3.
        num_propositions (`int`, *optional*): `|F|`, at most 100,000, one attention head for each proposition. Taken
            from `propositions` if those are given, else 3.
        actions (`list[str]`, *optional*): the actions' names, in the order of their ids; default `a0`, `a1`, ...
        propositions (`list[str]`, *optional*): the propositions' names, in the order of the heads; default `p0`, ...
        ensemble (`int`, *optional*, defaults to 1): the number of independent members in theta, at most 100,000. They
            are trained on the same traces and do not interact, so one run trains this many seeds.
        focal_alpha (`float`, *optional*, defaults to 0.9): weight of the inapplicable class in the loss, Eq. 21-22.
        focal_gamma (`float`, *optional*, defaults to 3.0): focusing exponent of the focal loss, Eq. 21-22.
        pad_token_id (`int`, *optional*): the id of padding, `|A|`; any other value is refused.
        parameters (`dict[str, list[str]]`, *optional*): makes the model lifted: the types of each action's parameters.
            Its actions take objects, and theta is shared by all of them, so that one set of weights serves any objects.
        predicates (`dict[str, list[str]]`, *optional*): of a lifted model, the types of each predicate's arguments. A
            head is a predicate and its objects; `propositions` are the predicates' names.
        supertypes (`dict[str, str]`, *optional*): of a lifted model, the parent of each type that has one.

    The order of `actions` and `propositions` is that of their ids; for a lifted model they are taken from `parameters`
    and `predicates`.

    Raises:
        StripsError: sizes and names that contradict each other, or a value of a wrong type or outside its range.

    Example:

    ```python
    >>> from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig

    >>> model = StripsTransformer(StripsTransformerConfig(num_actions=8, num_propositions=9, ensemble=10))
    >>> tuple(model.theta.shape)
    (10, 9, 8, 3)
    >>> lifted = StripsTransformerConfig(
    ...     parameters={"stack": ["block", "block"], "drop": ["block"]}, predicates={"on": ["block", "block"]}
    ... )
    >>> tuple(StripsTransformer(lifted).theta.shape)  # on: (x, x), (x, y), (y, x), (y, y) of stack; (x, x) of drop
    (1, 5, 3)

    ```
    """

    model_type = "strips_transformer"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    attribute_map = {"num_attention_heads": "num_propositions"}
    # Trainer need not gather these for `compute_metrics`; `inapplicability` is the prediction.
    keys_to_ignore_at_inference = ["trace_inapplicability", "head_outputs", "member_losses", "attentions", "head_atoms"]

    num_actions: int | None = None
    num_propositions: int | None = None
    actions: list[str] | None = None
    propositions: list[str] | None = None
    ensemble: int = 1
    focal_alpha: float | int = 0.9
    focal_gamma: float | int = 3.0
    pad_token_id: int | None = None
    parameters: dict[str, list[str]] | None = None
    predicates: dict[str, list[str]] | None = None
    supertypes: dict[str, str] | None = None

    def __post_init__(self, **kwargs):
        for given, names in (("parameters", "actions"), ("predicates", "propositions")):
            if (types := getattr(self, given)) is not None and getattr(self, names) is None:
                setattr(self, names, list(types))
        self.num_actions, self.actions = _sized("action", self.num_actions, self.actions)
        self.num_propositions, self.propositions = _sized("proposition", self.num_propositions, self.propositions)
        if self.pad_token_id is None:
            self.pad_token_id = self.num_actions
        if self.id2label is None:
            self.id2label: dict[int, str] | None = {0: "applicable", 1: "inapplicable"}
            self.label2id = {"applicable": 0, "inapplicable": 1}
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuses invalid values before any work starts.

        Raises:
            StripsError: names the value, and what it may be.
        """
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
        self._validate_lifted()

    def _validate_lifted(self):
        if (self.parameters is None) != (self.predicates is None) or (self.supertypes and not self.lifted):
            raise StripsError(
                "A lifted model needs both parameters (of the actions) and predicates, and a propositional one neither "
                f"of them nor supertypes; got parameters {self.parameters}, predicates {self.predicates}, supertypes "
                f"{self.supertypes}."
            )
        if not self.lifted:
            return
        for given, names in (("parameters", "actions"), ("predicates", "propositions")):
            if sorted(getattr(self, given)) != sorted(getattr(self, names)):
                raise StripsError(
                    f"{given} must have the types of exactly the {names} {getattr(self, names)}, got those of "
                    f"{list(getattr(self, given))}; leave {names} out, or mend the names."
                )
        count = Cells.of(self).count
        if not 0 < count <= MOST_CELLS:
            raise StripsError(
                f"The types give theta {count} cells, expected 1 to {MOST_CELLS}: each is a predicate and as many "
                "parameters of an action as it takes, of fitting types. Mend the types, or take smaller predicates."
            )

    @property
    def lifted(self) -> bool:
        """Whether the actions take objects."""
        return self.predicates is not None

    @property
    def vocab_size(self) -> int:
        """The actions and the padding: `|A| + 1`."""
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
