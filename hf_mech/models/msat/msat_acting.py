"""Acting: one decision after the other in a batch of environments whose episodes begin and end at different times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.cache_utils import Cache, CacheLayerMixin

from .configuration_msat import MSATDecisionTransformerConfig, MSATError
from .msat_inputs import check_states, real_actions, real_returns, real_states, real_timesteps

#: Logits divided by it are still finite.
LEAST_TEMPERATURE = 1e-30


def padded_logits(logits: Sequence[Tensor]) -> Tensor:
    """The components' logits in one tensor, with the type's least number where a component has fewer values.

    Args:
        logits: for each component [..., values].

    Returns:
        [..., components, most values]. `argmax(-1)` and `softmax(-1)` are those of each component: a value that it
        does not have gets exactly 0.
    """
    most = max(part.shape[-1] for part in logits)
    least = torch.finfo(logits[0].dtype).min
    return torch.stack([functional.pad(part, (0, most - part.shape[-1]), value=least) for part in logits], -2)


# ----------------------------------------------------------------------------------------------------------------------
# What a model remembers of running episodes: the last steps of each, as tokens.


class ActingContext:
    """The contexts of a batch of environments, one row each; made by `model.start_context`, filled by `model.act`.

    The context of a decision is the last steps of the row's own episode. When it holds `context_length` steps, the
    oldest `stride` steps leave at once before the next one enters, and the row's keys and values are computed afresh
    from the embeddings of the steps that stay. With a stride of 1 it is the plain sliding window; a larger stride
    computes afresh only every `stride` decisions, and sees from `context_length - stride + 1` to `context_length`
    steps. A row depends on its own episode alone.

    Args:
        config: the model's.
        batch_size: the number of environments.
        stride: the steps that leave a full context at once, 1 to `context_length`.
        use_cache: keep keys and values between decisions; without it, each decision reads its whole context anew.
        device, dtype: the model's.

    Attributes:
        logits: of the last decision, [rows, components, values], as `padded_logits` makes them; None before the first
            one.

    Raises:
        MSATError: a batch size or a stride that is out of range.
    """

    def __init__(
        self,
        config: MSATDecisionTransformerConfig,
        batch_size: int,
        stride: int,
        use_cache: bool,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        if not _is_whole(batch_size) or batch_size < 1:
            raise MSATError(f"batch_size must be the number of environments, at least 1, got {batch_size!r}.")
        if not _is_whole(stride) or not 1 <= stride <= config.context_length:
            raise MSATError(
                f"stride must be from 1 to context_length = {config.context_length}, got {stride!r}; it is the number "
                "of steps that leave a full context at once."
            )
        self.batch_size, self.stride = int(batch_size), int(stride)
        self.sizes = sizes_of(config)
        self.capacity, self.per_step = config.context_length, config.tokens_per_step
        tokens = self.capacity * self.per_step
        self.tokens = torch.zeros(self.batch_size, tokens, config.n_embd, device=device, dtype=dtype)
        self.cache = RowsCache(self.batch_size, tokens, config.n_layer, device) if use_cache else None
        self.logits: Tensor | None = None
        self._steps = [0] * self.batch_size  # in each row's context
        self._read = [0] * self.batch_size  # tokens whose keys and values are in the cache
        self._timesteps = [0] * self.batch_size  # of each row's next decision

    @property
    def device(self) -> torch.device:
        """Where the tokens are."""
        return self.tokens.device

    @property
    def last_step(self) -> int:
        """The number of the first token of a full context's last step."""
        return (self.capacity - 1) * self.per_step

    @property
    def steps(self) -> Tensor:
        """The steps in each row's context, [batch], on the CPU."""
        return torch.tensor(self._steps)

    @property
    def timesteps(self) -> Tensor:
        """The episode's timestep of each row's next decision, [batch], on the CPU."""
        return torch.tensor(self._timesteps)

    def begin(self, rows: Sequence[int]) -> None:
        """New episodes in these rows: nothing of the old ones remains."""
        for row in rows:
            self._steps[row] = self._read[row] = self._timesteps[row] = 0

    def make_room(self, rows: Sequence[int]) -> None:
        """Lets the oldest steps of full rows leave."""
        full = [row for row in rows if self._steps[row] == self.capacity]
        if not full:
            return
        kept = (self.capacity - self.stride) * self.per_step
        where = torch.tensor(full, device=self.device)
        self.tokens[where, :kept] = self.tokens[where, self.stride * self.per_step :]
        for row in full:
            self._steps[row] -= self.stride
            self._read[row] = 0

    def write(self, rows: Sequence[int], tokens: Tensor, first: int) -> None:
        """Puts tokens [rows, some, hidden] into the rows' newest step, the first of them at number `first` of it."""
        starts = [self._steps[row] * self.per_step + first for row in rows]
        columns = torch.tensor(starts, device=self.device)[:, None] + torch.arange(tokens.shape[1], device=self.device)
        self.tokens[torch.tensor(rows, device=self.device)[:, None], columns] = tokens.to(self.tokens.dtype)

    def to_read(self, rows: Sequence[int], until: int) -> list[tuple[list[int], list[int], int]]:
        """The rows' unread tokens up to number `until` of their newest step, in groups of equally many.

        Returns:
            for each group: the places in `rows`, the rows' first unread tokens, the number of unread tokens.
        """
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for place, row in enumerate(rows):
            start = 0 if self.cache is None else self._read[row]
            places, starts = groups.setdefault(self._steps[row] * self.per_step + until - start, ([], []))
            places.append(place)
            starts.append(start)
        return [(places, starts, new) for new, (places, starts) in groups.items()]

    def was_read(self, rows: Sequence[int], until: int) -> None:
        """Notes that the rows' tokens up to number `until` of their newest step have been read."""
        for row in rows:
            self._read[row] = self._steps[row] * self.per_step + until

    def advance(self, rows: Sequence[int], timesteps: Sequence[int]) -> None:
        """Ends a decision, made at these timesteps of the episodes."""
        for row, timestep in zip(rows, timesteps, strict=True):
            self._steps[row] += 1
            self._timesteps[row] = timestep + 1


def sizes_of(config: MSATDecisionTransformerConfig) -> tuple[int, ...]:
    """The sizes of a model's contexts."""
    return config.context_length, config.tokens_per_step, config.n_embd, config.n_layer, config.n_head


def _is_whole(number: object) -> bool:
    return hasattr(number, "__index__") and not isinstance(number, bool)


# ----------------------------------------------------------------------------------------------------------------------
# The cache of keys and values. Its rows are at different places, because episodes do not keep step.


class RowsLayer(CacheLayerMixin):
    """One layer: [batch, capacity, heads, head dimension], every row filled up to a place of its own."""

    is_sliding = False
    is_compileable = False

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Makes room for all rows; `key_states` are [rows, heads, new, head dimension]."""
        _, heads, _, size = key_states.shape
        shape = self.places.batch, self.places.capacity, heads, size
        self.keys, self.values = key_states.new_zeros(shape), value_states.new_zeros(shape)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes the new keys and values of the chosen rows; returns theirs, [rows, heads, longest, dimension].

        They keep the precision of the first ones, and come in that of the new ones: autocast may begin and end between
        two decisions.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        rows, columns, length = self.places.rows, self.places.columns, self.places.length
        dtype = key_states.dtype
        self.keys[rows[:, None], columns] = key_states.transpose(1, 2).to(self.keys.dtype)
        self.values[rows[:, None], columns] = value_states.transpose(1, 2).to(self.values.dtype)
        keys, values = (
            (kept[:, :length] if self.places.whole else kept[rows, :length]) for kept in (self.keys, self.values)
        )
        return keys.transpose(1, 2).to(dtype), values.transpose(1, 2).to(dtype)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The keys that the next queries see, and where they begin."""
        return self.places.length, 0

    def get_seq_length(self) -> int:
        """0: rows are of different lengths, which `Places` knows."""
        return 0

    def get_max_length(self) -> int:
        """The tokens of a whole context."""
        return self.places.capacity

    def get_max_cache_shape(self) -> int:
        """The name of `get_max_length` before transformers 5.23."""
        return self.get_max_length()


class Places:
    """Which rows of a batch write next, and where; the same for all layers."""

    def __init__(self, batch: int, capacity: int, device: torch.device) -> None:
        self.batch, self.capacity, self.device = batch, capacity, device
        self.rows = self.columns = torch.empty(0, dtype=torch.long, device=device)
        self.length = 0
        self.whole = False  # whether these are all rows, in order

    def choose(self, rows: list[int], starts: list[int], new: int) -> None:
        """`new` tokens in each of these rows, from these places on."""
        self.rows = torch.tensor(rows, device=self.device)
        self.whole = rows == list(range(self.batch))
        self.columns = torch.tensor(starts, device=self.device)[:, None] + torch.arange(new, device=self.device)
        self.length = max(starts) + new

    def mask(self, dtype: torch.dtype) -> Tensor:
        """0 where a query sees a key and the least number elsewhere, [rows, 1, new, length]."""
        seen = torch.arange(self.length, device=self.device) <= self.columns[:, :, None]
        mask = torch.zeros(seen.shape, dtype=dtype, device=self.device)
        return mask.masked_fill(~seen, torch.finfo(dtype).min)[:, None]


class RowsCache(Cache):
    """The cache of a whole decoder."""

    is_compileable = False

    def __init__(self, batch: int, capacity: int, layers: int, device: torch.device) -> None:
        self.places = Places(batch, capacity, device)
        super().__init__(layers=[RowsLayer(self.places) for _ in range(layers)])


# ----------------------------------------------------------------------------------------------------------------------
# The decision.


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
