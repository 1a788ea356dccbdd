"""Refuses steps that the model cannot read, before any work starts; cleans those that are padding."""

from __future__ import annotations

import torch
from torch import Tensor

from .configuration_msat import MSATDecisionTransformerConfig, MSATError


def check_states(states: Tensor, config: MSATDecisionTransformerConfig, leading: str) -> None:
    """Raises MSATError unless states are `leading` dimensions and the configuration's shape, type and range.

    Args:
        leading: the names of the dimensions before those of a state, as "batch, steps".
    """
    shape, dims = list(config.state_shape), len(leading.split(", "))
    if states.dim() != dims + len(shape) or list(states.shape[dims:]) != shape:
        hint = ""
        if config.reads_frames and list(states.shape[-3:]) == [*shape[1:], shape[0]]:
            hint = " These frames have their channels last; the image processor puts them first."
        elif config.reads_frames and states.dim() == dims + 1:
            hint = f" These are vectors: make the model with state_shape=[{states.shape[-1]}]."
        elif config.reads_frames:
            hint = " The image processor resizes frames."
        elif states.dim() == dims + len(shape):
            hint = " The model was made for other observations; state_shape in its configuration says which."
        elif states.dim() == len(shape):
            hint = f" One state alone is a batch of one: [1, {', '.join(map(str, shape))}]." if dims == 1 else ""
        raise MSATError(f"states must be [{leading}, {', '.join(map(str, shape))}], got {list(states.shape)}.{hint}")
    if states.dtype == torch.bool or states.is_complex():
        raise MSATError(f"states must be numbers, got {states.dtype}.")
    if not config.reads_frames or states.dtype == torch.uint8:
        return
    if states.is_floating_point():
        raise MSATError(
            f"Frames must be integers from 0 to 255, got {states.dtype}: the model scales them itself. Give them as "
            "uint8."
        )
    if not torch.compiler.is_compiling() and states.numel() and (states.amin() < 0 or states.amax() > 255):
        raise MSATError(
            f"Frames must be integers from 0 to 255, got values from {int(states.amin())} to {int(states.amax())}."
        )


def real_states(states: Tensor, real: Tensor | None) -> Tensor:
    """The states, 0 at padding: NaN there would pass through any attention mask.

    Args:
        states: `[*shape, *state_shape]`.
        real: which steps are no padding, `[*shape]`; None if all are.

    Raises:
        MSATError: a state that is not finite. In a context it would outlast its episode.
    """
    if not states.is_floating_point():
        return states
    if real is not None:
        states = states.masked_fill(~real.view(*real.shape, *[1] * (states.dim() - real.dim())), 0)
    if not torch.compiler.is_compiling() and not bool(states.isfinite().all()):
        where = ", ".join(map(str, (~states.isfinite()).nonzero()[0].tolist()))
        raise MSATError(f"states must be finite, got {states[~states.isfinite()][0]} at [{where}].")
    return states


def check_mask(attention_mask: Tensor | None, batch: int, steps: int, context_length: int) -> None:
    """Raises MSATError for more steps than a context holds, for none, or for a mask of another shape."""
    if batch < 1:
        raise MSATError("The batch is empty; give at least one row of steps.")
    if not 1 <= steps <= context_length:
        raise MSATError(
            f"{steps} steps were given, the model reads from 1 to context_length = {context_length}. Cut windows, or "
            "train a model with a longer context."
        )
    if attention_mask is not None and list(attention_mask.shape) != [batch, steps]:
        raise MSATError(
            f"attention_mask must be one number a step, [batch, steps] = [{batch}, {steps}], got "
            f"{list(attention_mask.shape)}."
        )


def real_actions(
    actions: Tensor, shape: tuple[int, ...], real: Tensor | None, sizes: list[int], name: str = "actions"
) -> Tensor:
    """The actions, 0 where there are none: at padding, and in labels where they are -100.

    Args:
        actions: `[*shape, components]`, integers.
        shape: of the steps.
        real: which steps are no padding, `[*shape]`; None if all are.
        sizes: the number of values of each component.
        name: `"labels"` may hold -100.

    Raises:
        MSATError: wrong shape or type, or a value that its component does not have.
    """
    if list(actions.shape) != [*shape, len(sizes)]:
        raise MSATError(
            f"{name} must have {len(sizes)} components for each step, {[*shape, len(sizes)]}, got "
            f"{list(actions.shape)}. The model's components have the sizes {sizes}."
        )
    if actions.is_floating_point() or actions.is_complex() or actions.dtype == torch.bool:
        raise MSATError(f"{name} must be integers, the number of each component's value, got {actions.dtype}.")
    actions = actions.long()
    counted = torch.ones_like(actions, dtype=torch.bool) if real is None else real[..., None].expand_as(actions)
    if name == "labels":
        counted = counted & (actions != -100)
    if not torch.compiler.is_compiling():
        most = torch.tensor(sizes, device=actions.device)
        wrong = counted & ((actions < 0) | (actions >= most))
        if bool(wrong.any()):
            *where, component = wrong.nonzero()[0].tolist()
            value, last = int(actions[(*where, component)]), sizes[component] - 1
            raise MSATError(
                f"{name} hold {value} for component {component} at row {', step '.join(map(str, where))}; expected 0 "
                f"to {last}{', or -100 where nothing is trained' if name == 'labels' else ''}."
            )
    return actions.masked_fill(~counted, 0)


def real_labels(
    labels: Tensor, shape: tuple[int, ...], real: Tensor | None, sizes: list[int], any_items: bool
) -> Tensor:
    """The labels with -100 at padding, [batch, steps, components].

    Args:
        shape: of the steps.
        any_items: whether labels without any component to train are allowed, as in a part of a larger batch.

    Raises:
        MSATError: labels that do not fit, or nothing to train.
    """
    real_actions(labels, shape, real, sizes, "labels")
    labels = labels.long()
    if real is not None:
        labels = labels.masked_fill(~real[..., None], -100)
    if not any_items and not torch.compiler.is_compiling() and not bool((labels != -100).any()):
        raise MSATError("labels are -100 everywhere: there is nothing to train. Give the actions as labels.")
    return labels


def real_returns(returns_to_go: Tensor, shape: tuple[int, ...], real: Tensor | None) -> Tensor:
    """Returns-to-go as real numbers, 0 at padding. They are never rounded to integers.

    Raises:
        MSATError: wrong shape or type, or a return that is not finite.
    """
    if list(returns_to_go.shape) != list(shape):
        raise MSATError(
            f"returns_to_go must be one number for each step, {list(shape)}, got {list(returns_to_go.shape)}."
        )
    if returns_to_go.is_complex() or returns_to_go.dtype == torch.bool:
        raise MSATError(f"returns_to_go must be real numbers, got {returns_to_go.dtype}.")
    if not returns_to_go.is_floating_point():
        returns_to_go = returns_to_go.float()
    if real is not None:
        returns_to_go = returns_to_go.masked_fill(~real, 0)
    if not torch.compiler.is_compiling() and not bool(returns_to_go.isfinite().all()):
        raise MSATError("returns_to_go hold numbers that are not finite; give a finite target, such as a good return.")
    return returns_to_go


def real_timesteps(
    timesteps: Tensor | None, shape: tuple[int, ...], real: Tensor | None, config: MSATDecisionTransformerConfig
) -> Tensor | None:
    """The episode's timesteps, 0 at padding; None if the model has no positional encoding.

    Raises:
        MSATError: none given where they are needed, wrong shape or type, negative, or beyond `max_timestep`.
    """
    if timesteps is None and not config.positional_encoding:
        return None
    if timesteps is None:
        raise MSATError("The model has positional encoding: give timesteps, each step's number in its episode.")
    if list(timesteps.shape) != list(shape) or timesteps.is_floating_point() or timesteps.dtype == torch.bool:
        raise MSATError(
            f"timesteps must be integers, one for each step, {list(shape)}, got {timesteps.dtype} "
            f"{list(timesteps.shape)}."
        )
    if not config.positional_encoding:
        return None
    timesteps = timesteps.long()
    if real is not None:
        timesteps = timesteps.masked_fill(~real, 0)
    if not torch.compiler.is_compiling() and timesteps.numel():
        least, most = int(timesteps.amin()), int(timesteps.amax())
        if least < 0 or most > config.max_timestep:
            raise MSATError(
                f"timesteps are from {least} to {most}; the model has embeddings for 0 to max_timestep = "
                f"{config.max_timestep}. Train with a larger max_timestep, or with positional_encoding=False, which "
                "has no last timestep."
            )
    return timesteps
