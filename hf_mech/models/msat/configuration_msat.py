"""Configuration of the M-SAT Decision Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config

#: The published base's convolutions: channels, width of the kernel, stride.
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
#: The largest component and the most components: their sum is the width of a layer.
LARGEST_COMPONENT, MOST_COMPONENTS = 100_000, 1_000
#: The most numbers in one state.
LARGEST_STATE = 10**8


class MSATError(ValueError):
    """What the family refuses: a configuration, a checkpoint, an environment or an input."""


@strict_config(
    MSATError,
    context_length=(1, 1_000_000),
    max_timestep=(0, 100_000_000),
    n_layer=(1, 1_000),
    n_head=(1, 100_000),
    n_embd=(1, 1_000_000),
    n_inner=(1, 10_000_000),
    embd_pdrop=(0, 1),
    resid_pdrop=(0, 1),
    attn_pdrop=(0, 1),
    layer_norm_epsilon=(0, 1),
    initializer_range=(0, 1000),
    return_scale=(1e-30, 1e30),
)
class MSATDecisionTransformerConfig(PreTrainedConfig):
    r"""Sizes of an [`MSATDecisionTransformer`], how it makes tokens, and the environment it was made for.

    Args:
        action_tokenization (`str`, *optional*, defaults to `"multi_state"`): the tokens of a step's action.
            `"single"`: one token of all components, the paper's baseline (Section 5.1.1). `"multi"`: one token a
            component, MAT (Section 5.2.2). `"multi_state"`: one token a component, made from the component and the
            step's state embedding, M-SAT (Sections 4.1 and 5.1.2, Appendix 7.1).
        action_sizes (`list[int]`, *optional*, defaults to `[3, 3, 3, 2]`): the number of values of each component, as
            gymnasium's `MultiDiscrete.nvec`. The default is Deadly Corridor's; My Way Home has `[3, 3]`.
        state_shape (`list[int]`, *optional*, defaults to `[3, 72, 128]`): `[channels, height, width]` of frames, at
            least 36 x 36, or `[features]` of vectors.
        context_length (`int`, *optional*, defaults to 30): the most steps that the model sees at once. A step is
            `tokens_per_step` tokens. The paper has 30 for My Way Home and 60 for Deadly Corridor.
        positional_encoding (`bool`, *optional*, defaults to `True`): add an embedding of the episode's timestep to
            every token of the step. Without it there is no encoding of positions at all (Section 5.2.1, "No PE").
        max_timestep (`int`, *optional*, defaults to 1023): the last timestep of an episode that has an embedding. Not
            read without `positional_encoding`. The base takes the longest episode of its data; both scenarios of the
            paper end after 525 decisions.
        component_prediction (`str`, *optional*, defaults to `"independent"`): `"independent"`, the paper's: all
            components are predicted from the state's token, so they are independent given the context.
            `"autoregressive"`: component i is predicted from the token of component i - 1, the first one from the
            state's token, so any joint distribution can be expressed. Needs one token a component.
        one_hot (`str`, *optional*, defaults to `"disjoint"`): the one-hot vector of a component (Appendix 7.1, whose
            widths are lost). `"disjoint"`: as wide as all components together, and each component has columns of its
            own, so a shared MLP knows which component it reads. `"overlapping"`: as wide as the largest component,
            all begin at column 0; an MLP that is shared cannot tell components apart then. `"single"` always
            concatenates the components' vectors.
        return_scale (`float`, *optional*, defaults to 1.0): returns-to-go are multiplied by it. Give the model the
            environment's returns in training and in play, and scale here.
        environment (`dict`, *optional*): the environment that the model was made for, `{"id": ..., "kwargs": {...}}`:
            arguments of `hf_mech.control.make_environment`, and of `gymnasium.make`. `hf_mech.control.play.play` takes
            it as its default.
        target_return (`float`, *optional*): the return to ask for at play, in the environment's units, as far as a
            user names no other.
        n_layer (`int`, *optional*, defaults to 8), n_head (`int`, *optional*, defaults to 8), n_embd (`int`,
            *optional*, defaults to 128), n_inner (`int`, *optional*), activation_function (`str`, *optional*,
            defaults to `"gelu"`), layer_norm_epsilon (`float`, *optional*, defaults to 1e-5), initializer_range
            (`float`, *optional*, defaults to 0.02): the decoder, as in GPT-2. Layers and heads are the paper's
            (Tables 4 and 5), the width is the base's.
        embd_pdrop (`float`, *optional*, defaults to 0.1), resid_pdrop (`float`, *optional*, defaults to 0.1),
            attn_pdrop (`float`, *optional*, defaults to 0.1): dropout, as in GPT-2. The paper has 0.1, 0.01, 0.1 for
            My Way Home and 0.1, 0.1, 0.3 for Deadly Corridor.

    Raises:
        MSATError: a value of a wrong type or outside its range, or values that contradict each other.

    Example:

    ```python
    >>> from hf_mech.models.msat import MSATDecisionTransformerConfig

    >>> config = MSATDecisionTransformerConfig(action_sizes=[3, 3], context_length=30)
    >>> config.tokens_per_step, config.token_names([17])
    (4, ['r17', 's17', 'a1_17', 'a2_17'])

    ```
    """

    model_type = "msat_decision_transformer"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    attribute_map = {"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}

    # What transformers' GPT-2 blocks read besides, as in GPT-2.
    scale_attn_weights = True
    scale_attn_by_inverse_layer_idx = False
    reorder_and_upcast_attn = False
    add_cross_attention = False

    action_tokenization: Literal["single", "multi", "multi_state"] = "multi_state"
    action_sizes: list[int] | tuple[int, ...] = (3, 3, 3, 2)
    state_shape: list[int] | tuple[int, ...] = (3, 72, 128)
    context_length: int = 30
    positional_encoding: bool = True
    max_timestep: int = 1023
    component_prediction: Literal["independent", "autoregressive"] = "independent"
    one_hot: Literal["disjoint", "overlapping"] = "disjoint"
    return_scale: float | int = 1.0
    environment: dict[str, Any] | None = None
    target_return: float | int | None = None
    n_layer: int = 8
    n_head: int = 8
    n_embd: int = 128
    n_inner: int | None = None
    activation_function: Literal["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "tanh"] = "gelu"
    layer_norm_epsilon: float | int = 1e-5
    initializer_range: float | int = 0.02
    embd_pdrop: float | int = 0.1
    resid_pdrop: float | int = 0.1
    attn_pdrop: float | int = 0.1

    def __post_init__(self, **kwargs: Any) -> None:
        self.action_sizes, self.state_shape = list(self.action_sizes), list(self.state_shape)
        super().__post_init__(**kwargs)

    def validate_architecture(self) -> None:
        """Refuses invalid values before any work starts.

        Raises:
            MSATError: names the value, and what it may be.
        """
        sizes, shape = self.action_sizes, self.state_shape
        if not 1 <= len(sizes) <= MOST_COMPONENTS or not all(1 <= size <= LARGEST_COMPONENT for size in sizes):
            raise MSATError(
                f"action_sizes must be 1 to {MOST_COMPONENTS} numbers from 1 to {LARGEST_COMPONENT}, one a component, "
                f"got {_shortened(sizes)}."
            )
        if len(shape) not in (1, 3) or not all(number >= 1 for number in shape):
            raise MSATError(
                "state_shape must be (channels, height, width) of frames or (features,) of vectors, all at least 1, "
                f"got {_shortened(shape)}."
            )
        numbers = 1
        for number in shape:
            numbers *= number
        if numbers > LARGEST_STATE:
            raise MSATError(f"state_shape {_shortened(shape)} has more than {LARGEST_STATE:,} numbers.")
        if self.reads_frames and shape[2] in (1, 3, 4) and shape[0] > 4:
            raise MSATError(
                f"state_shape {list(shape)} seems to be [height, width, channels], as environments have it; the "
                f"model's channels come first: [{shape[2]}, {shape[0]}, {shape[1]}]."
            )
        if self.reads_frames and min(convolved(size) for size in shape[1:]) < 1:
            raise MSATError(
                f"state_shape {list(shape)}: frames must be at least 36 x 36 for the three convolutions; resize them, "
                "or give them as vectors."
            )
        if self.n_embd % self.n_head:
            raise MSATError(f"n_embd must be a multiple of n_head, got {self.n_embd} and {self.n_head}.")
        if self.component_prediction == "autoregressive" and self.action_tokenization == "single":
            raise MSATError(
                "component_prediction='autoregressive' needs a token for each component; set action_tokenization to "
                "'multi' or 'multi_state', got 'single'."
            )
        if self.environment is not None and not isinstance(self.environment.get("id"), str):
            raise MSATError(
                'environment must be {"id": ..., "kwargs": {...}}, as make_environment takes them, got '
                f"{self.environment}."
            )

    # ---------------------------------------------------------------------------------------------- what follows

    @property
    def num_components(self) -> int:
        """The components of an action, n."""
        return len(self.action_sizes)

    @property
    def action_tokens(self) -> int:
        """The tokens of a step's action: n, or 1 with `"single"`."""
        return 1 if self.action_tokenization == "single" else self.num_components

    @property
    def tokens_per_step(self) -> int:
        """The tokens of a step: its return-to-go, its state, its action."""
        return 2 + self.action_tokens

    @property
    def reads_frames(self) -> bool:
        """Whether states are frames, not vectors."""
        return len(self.state_shape) == 3

    @property
    def scale_of_states(self) -> float:
        """States are multiplied by it: 1/255 for frames, 1 for vectors."""
        return 1 / 255 if self.reads_frames else 1.0

    def token_names(self, timesteps: Sequence[int]) -> list[str]:
        """The names of the tokens of steps, in order, as in Appendix 7.6: r17, s17, a1_17, a2_17, ...

        Args:
            timesteps: of the steps in their episode.
        """
        actions = ["a"] if self.action_tokens == 1 else [f"a{i + 1}_" for i in range(self.action_tokens)]
        return [f"{kind}{timestep}" for timestep in timesteps for kind in ("r", "s", *actions)]

    # ------------------------------------------------------------------------------------------- the environment

    def check_action_sizes(self, sizes: Sequence[int]) -> None:
        """Raises MSATError unless an environment's actions have these components and sizes."""
        found = [int(size) for size in sizes]
        if found != list(self.action_sizes):
            raise MSATError(
                f"The environment's actions have the component sizes {found}, the model's {list(self.action_sizes)}: "
                "the model was made for another scenario. Take the checkpoint of this scenario, or train one."
            )

    def check_state_shape(self, shape: Sequence[int]) -> None:
        """Raises MSATError unless an environment's observations fit `state_shape`.

        Args:
            shape: `[height, width, channels]` of frames, as environments give them, or `[features]`.
        """
        found = [int(size) for size in shape]
        expected = list(self.state_shape)
        if self.reads_frames:
            expected = [*expected[1:], expected[0]]
        if found != expected:
            raise MSATError(
                f"The environment's observations have the shape {found}, the model's {expected} (height, width, "
                "channels of frames). Take the checkpoint of this scenario, or make the environment as "
                f"the model's was: {self.environment or 'with the frame size that it was trained on'}."
            )

    def check_spaces(self, observation_space: Any, action_space: Any) -> None:
        """Raises MSATError unless an environment's gymnasium spaces fit the model.

        Args:
            observation_space: a `Box` of frames [height, width, channels] or of vectors.
            action_space: a `MultiDiscrete` or a `Discrete`.
        """
        sizes = getattr(action_space, "nvec", None)
        if sizes is None and hasattr(action_space, "n"):
            sizes = [action_space.n]
        if sizes is None or getattr(observation_space, "shape", None) is None:
            raise MSATError(
                "The model acts in environments with a Box of observations and MultiDiscrete or Discrete actions, got "
                f"{observation_space} and {action_space}."
            )
        self.check_action_sizes(sizes)
        self.check_state_shape(observation_space.shape)


def convolved(size: int) -> int:
    """The height or width of a frame after the three convolutions."""
    for _, kernel, stride in CONVOLUTIONS:
        size = (size - kernel) // stride + 1
    return size


def _shortened(numbers: Sequence[int]) -> str:
    said = ", ".join(map(str, numbers[:8]))
    return f"[{said}{', ...' if len(numbers) > 8 else ''}]"
