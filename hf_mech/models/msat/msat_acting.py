"""Acting: one decision after the other in a batch of environments whose episodes begin and end at different times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .msat_context import ActingContext, sizes_of
from .msat_errors import MSATError
from .msat_inputs import check_states, real_actions, real_returns, real_states, real_timesteps
from .msat_loss import padded_logits

#: Logits divided by it are still finite.
LEAST_TEMPERATURE = 1e-30


class Acts:
    """`start_context` and `act` of a Decision Transformer with `config`, `tokenizer`, `decoder` and `heads`."""

    config: Any
    tokenizer: Any
    decoder: Any
    heads: Any
    training: bool

    def start_context(self, batch_size: int = 1, stride: int = 1, use_cache: bool = True) -> ActingContext:
        """Empty contexts for a batch of environments.

        Args:
            batch_size: the number of environments.
            stride: the steps that leave a full context at once; see [`ActingContext`].
            use_cache: keep keys and values between decisions. Without it decisions are the same, and slower.

        Raises:
            MSATError: a batch size or a stride that is out of range.
        """
        weight = self.heads[0].weight
        return ActingContext(self.config, batch_size, stride, use_cache, weight.device, weight.dtype)

    @torch.no_grad()
    def act(
        self,
        states: Tensor,  # [rows, *state_shape]
        context: ActingContext,
        returns_to_go: Tensor | Sequence[float] | float,  # [rows]
        timesteps: Tensor | Sequence[int] | None = None,  # [rows]
        begins: Tensor | Sequence[bool] | bool | None = None,  # [rows]
        rows: Tensor | Sequence[int] | None = None,  # [rows]
        do_sample: bool = False,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        actions: Tensor | None = None,  # [rows, components]
    ) -> Tensor:
        """Decides once in each environment, and remembers the step in its context.

        Args:
            states: the observations, as in `forward`.
            context: from `start_context`; it is changed.
            returns_to_go: the returns still wanted, in the environment's units: the target less the rewards of the
                episode so far. A single number is for all rows.
            timesteps: the steps' numbers in their episodes. By default they count the decisions of each row's episode
                from 0, as in training.
            begins: which rows begin a new episode with this state; True is for all. The first decision of a row always
                begins one.
            rows: the rows of the context that decide; all by default. The others wait.
            do_sample: sample each component from its distribution, instead of the most likely value.
            temperature: of sampling, 1e-30 or more; refused without `do_sample`.
            generator: of sampling, on the model's device.
            actions: take these actions instead of choosing, as when an episode is read again; `context.logits` says
                what the model would have chosen.

        Returns:
            the actions, [rows, components], int64.

        Raises:
            MSATError: a model in training mode, rows that the context does not have, or a bad temperature; as in
                `forward`.
        """
        chosen = self._rows(context, rows)
        shape = (len(chosen),)
        if self.training:
            raise MSATError("The model is in training mode, where dropout changes decisions; call model.eval().")
        if not temperature >= LEAST_TEMPERATURE:
            raise MSATError(
                f"temperature must be above 0, {LEAST_TEMPERATURE} or more, got {temperature}; leave do_sample out for "
                "argmax."
            )
        if temperature != 1 and not do_sample:
            raise MSATError(
                f"temperature={temperature} needs do_sample=True: without it, components take their likeliest values."
            )
        states = torch.as_tensor(states, device=context.device)
        check_states(states, self.config, "rows")
        states = real_states(states, None)
        if len(states) != len(chosen):
            raise MSATError(f"states must be one for each of the {len(chosen)} rows that decide, got {len(states)}.")
        try:
            returns = torch.as_tensor(returns_to_go, device=context.device)
        except (RuntimeError, TypeError, ValueError) as error:
            raise MSATError(
                "returns_to_go must be a real number, or one for each row that decides: the return still wanted; got "
                f"{returns_to_go!r}."
            ) from error
        returns = real_returns(returns.expand(shape) if returns.dim() == 0 else returns, shape, None)
        new = begins if isinstance(begins, bool) else False if begins is None else _numbers("begins", begins)
        begin = [new] * len(chosen) if isinstance(new, bool) else [bool(one) for one in new]
        if len(begin) != len(chosen):
            raise MSATError(f"begins must be one for each of the {len(chosen)} rows that decide, got {len(begin)}.")
        if actions is not None:
            actions = torch.as_tensor(actions, device=context.device)
            actions = real_actions(actions, shape, None, self.config.action_sizes)
        if timesteps is None:
            now = context.timesteps[chosen].masked_fill(torch.tensor(begin, dtype=torch.bool), 0)
        else:
            now = torch.as_tensor(timesteps).cpu()
        times = real_timesteps(now, shape, None, self.config)
        times = None if times is None else times.to(context.device)

        context.begin([row for row, new in zip(chosen, begin, strict=True) if new])
        context.make_room(chosen)
        embedded = self.tokenizer.state_encoder(states)
        tokens = torch.cat([self.tokenizer.of_return(returns), embedded.unsqueeze(-2)], -2)
        context.write(chosen, self.tokenizer.timed(tokens, times), 0)
        hidden = self._read(context, chosen, 2)

        def taken(first: int, logits: list[Tensor]) -> Tensor:
            """Decides components from `first` on, and writes their tokens."""
            if actions is None:
                values = torch.stack([_choose(part, do_sample, temperature, generator) for part in logits], -1)
            else:
                values = actions[:, first : first + len(logits)]
            new = self.tokenizer.action_tokenizer(values, embedded, first)
            context.write(chosen, self.tokenizer.timed(new, times), 2 + first)
            return values

        if self.config.component_prediction == "independent":
            logits = [head(hidden) for head in self.heads]
            values = taken(0, logits)
        else:
            logits, parts = [], []
            for component, head in enumerate(self.heads):
                if component:
                    hidden = self._read(context, chosen, 2 + component)
                logits.append(head(hidden))
                parts.append(taken(component, logits[-1:]))
            values = torch.cat(parts, -1)
        context.logits = padded_logits(logits)
        context.advance(chosen, now.tolist())
        return values

    def _rows(self, context: ActingContext, rows: Tensor | Sequence[int] | None) -> list[int]:
        if not hasattr(context, "tokens"):  # not isinstance: a checkpoint's own code has a class of its own
            raise MSATError(
                f"context must be what model.start_context(batch_size) returns, got {type(context).__name__}. Make it "
                "once, and give it to every decision."
            )
        weight = self.heads[0].weight
        if (context.device, context.tokens.dtype) != (weight.device, weight.dtype):
            raise MSATError(
                f"The context is {context.tokens.dtype} on {context.device}, the model {weight.dtype} on "
                f"{weight.device}; start a new context."
            )
        if context.sizes != sizes_of(self.config):
            raise MSATError("The context is that of another model; start one with this model's start_context.")
        if rows is None:
            return list(range(context.batch_size))
        found = _numbers("rows", rows)
        if any(type(row) is not int for row in found):
            raise MSATError(f"rows must be the numbers of the rows that decide, got {found}; of a mask, its nonzero().")
        if len(set(found)) != len(found) or not found or not all(0 <= row < context.batch_size for row in found):
            raise MSATError(
                f"rows must be different numbers from 0 to {context.batch_size - 1}, at least one, got {found}."
            )
        return found

    def _read(self, context: ActingContext, rows: list[int], until: int) -> Tensor:
        """Reads the rows' unread tokens; the last one's hidden states, [rows, hidden]."""
        last = context.tokens.new_empty(len(rows), context.tokens.shape[-1])
        for places, starts, new in context.to_read(rows, until):
            group = [rows[place] for place in places]
            where = torch.tensor(group, device=context.device)[:, None]
            columns = torch.tensor(starts, device=context.device)[:, None] + torch.arange(new, device=context.device)
            tokens, mask, cache = context.tokens[where, columns], None, context.cache
            if not any(starts) and new > context.last_step and self.config.component_prediction == "independent":
                cache = None  # the context is full now, so the next decision reads it afresh
            if cache is not None:
                cache.places.choose(group, starts, new)
                mask = cache.places.mask(tokens.dtype)
            read = self.decoder(
                inputs_embeds=tokens,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=cache is not None,
            ).last_hidden_state
            last[torch.tensor(places, device=context.device)] = read[:, -1]
        context.was_read(rows, until)
        return last


def _numbers(name: str, values: Tensor | Sequence[Any]) -> list[Any]:
    """One number for each row. Raises MSATError for anything but a row of numbers."""
    try:
        found = torch.as_tensor(values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise MSATError(f"{name} must be a list or a tensor of numbers, got {values!r}.") from error
    if found.dim() != 1:
        raise MSATError(f"{name} must be a list of numbers, [rows], got the shape {list(found.shape)}.")
    return found.tolist()


def _choose(logits: Tensor, do_sample: bool, temperature: float, generator: torch.Generator | None) -> Tensor:
    """One value of a component for each row: [rows, values] -> [rows]."""
    if not do_sample:
        return logits.argmax(-1)
    odds = (logits.float() / temperature).softmax(-1)
    return torch.multinomial(odds, 1, generator=generator).squeeze(-1)
