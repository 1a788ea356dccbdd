"""Discrete-Attention-only Transformer: a production-system program as the weights of attention layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .configuration_dat import DATConfig
from .dat_backend_gather import GatherBackend
from .dat_backend_vectors import VectorBackend
from .dat_cache import DATCache, as_dat_cache
from .dat_errors import DATBackendError
from .dat_history import Group, History, Registers
from .dat_inputs import Words, check_ids, check_length, collect, read_mask, split
from .dat_layer import DATLayer
from .dat_machine import Backend, Machine, at_columns
from .dat_program import END, read_program
from .dat_projection import DATProjection
from .dat_trace import LayerState, trace_of
from .dat_values import NIL


@dataclass
class DATModelOutput(ModelOutput):
    """The output of [`DATModel`].

    Args:
        last_hidden_state (`Tensor` of shape `[batch, length, hidden_size]`): every token's cell after the last layer, a
            one-hot vector for each register (soft vectors from the relaxed backend), (66). The end of the prompt has
            the state of the prompt's last cell; padding is zero.
        register_values (`Tensor` of shape `[batch, length, num_registers]`): the same as indices of values.
        past_key_values (`DATCache`, with `use_cache=True`): the cache for generation.
    """

    last_hidden_state: Tensor | None = None
    register_values: Tensor | None = None
    past_key_values: DATCache | None = None


@dataclass(frozen=True)
class _States:
    """The registers of all cells that a call has read, and each token's cell, [batch, length]; -1 for none."""

    registers: Registers
    columns: Tensor
    history: History

    def register(self, index: int, size: int, dtype: torch.dtype) -> Tensor:
        """A register of every token as a vector, [batch, length, size]."""
        found = at_columns(self.registers[index], self.columns)
        real = (self.columns >= 0)[..., None]
        if found.dim() == 3:
            return found.to(dtype) * real
        vectors = torch.zeros(*found.shape, size, dtype=dtype, device=found.device)
        return vectors.scatter_(-1, found[..., None].long(), real.to(dtype))

    def values(self) -> Tensor:
        """The values of all registers, [batch, length, registers]; nil for padding."""
        found = [at_columns(register, self.columns) for register in self.registers]
        return torch.stack([v.argmax(-1) if v.dim() == 3 else v.long() for v in found], -1) * (
            self.columns >= 0
        ).unsqueeze(-1)


class DATPreTrainedModel(PreTrainedModel):
    """Weights, loading and saving of all DAT models."""

    config_class = DATConfig
    base_model_prefix = "dat"
    main_input_name = "input_ids"
    _no_split_modules = ["DATLayer"]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Without a checkpoint, the weights are those of the configuration's program."""
        if isinstance(module, DATProjection):
            init.copy_(module.weight, module.compiled())


class DATModel(DATPreTrainedModel):
    r"""A production-system program as an attention-only transformer, (70)-(71).

    Every layer is one production: a cell N reads the first (or last) cell n whose key matches N's query, and writes
    the value of that cell. The vocabulary is the set of register values; no embeddings are learned.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.dat import DATConfig, DATModel

    >>> model = DATModel(DATConfig(max_position_embeddings=4, num_open_values=10))
    >>> words = torch.tensor([[8, 9, 1]])  # two words, and the end of the prompt
    >>> model(words).register_values.tolist()  # position and symbol of each cell; position k has the index k + 2
    [[[3, 8], [4, 9], [4, 9]]]

    ```
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: DATConfig):
        super().__init__(config)
        # Not `config.program`: without the package, its classes are loaded separately and differ from those here.
        self.program = read_program(config.qkvl or {}, config.values)
        self.layers = nn.ModuleList(DATLayer(layer, config.vocab_size) for layer in self.program.layers)
        self._checked: list[int] | None = None  # versions of the weights that were checked to be the program's
        self._tables: dict[torch.device, dict[str, Tensor]] = {}
        self._gather: dict[torch.device, GatherBackend] = {}
        self.post_init()

    # ------------------------------------------------------------------------------------------------------- forward

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        past_key_values: DATCache | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> DATModelOutput:
        r"""Runs the program.

        Args:
            input_ids: words, the end of the prompt, and optional words after it; nil pads, left, right or between.
            attention_mask: 0 at padding. Only the last columns, those of `input_ids`, are read.
            past_key_values: the cache of an earlier call; then all words come after the prompt.
            use_cache: whether to return a cache; `config.use_cache` if it is not given.

        Raises:
            DATInputError: not a valid prompt, or ids out of range.
            DATLengthError: more words than positions.
            DATRepeatError: a repeat block exceeds its bound.
        """
        states = self.run(input_ids, attention_mask, past_key_values)
        cache = self._cached(past_key_values, use_cache, states, input_ids)
        vectors = [states.register(i, self.config.vocab_size, self.dtype) for i in range(len(self.program.registers))]
        return DATModelOutput(torch.cat(vectors, -1), states.values(), cache)

    @torch.compiler.disable
    def run(self, input_ids: Tensor, attention_mask: Tensor | None, past_key_values: DATCache | None) -> _States:
        """The states of all tokens' cells, before conversion to vectors."""
        check_ids(input_ids, self.config.vocab_size)
        mask = read_mask(attention_mask, input_ids)
        machine = Machine(self.program, self._backend(input_ids.device))
        limit = self.config.max_position_embeddings
        if past_key_values is not None and as_dat_cache(past_key_values).is_initialized:
            history = History(list(past_key_values.history.groups))
            words = collect(input_ids, mask & (input_ids > self.config.eop_token_id))
            columns = words.rank
            new = self._read_words(machine, words, history, limit)
        else:
            prompt, words, ends = split(input_ids, mask)
            check_length(prompt.symbols.shape[1], limit)
            first = machine.read_prompt(prompt.symbols, prompt.exists)
            history = History([first])
            new = [first, *self._read_words(machine, words, history, limit)]
            size = prompt.symbols.shape[1]
            columns = torch.where(words.rank >= 0, words.rank + size, prompt.rank)
            columns = torch.where(ends, first.count[:, None] - 1, columns)
        if not new:  # padding alone
            new, columns = [history.groups[-1]], torch.full_like(columns, -1)
        finals = zip(*(group.final for group in new), strict=True)
        return _States(tuple(torch.cat(parts, 1) for parts in finals), columns, history)

    def _read_words(self, machine: Machine, words: Words, history: History, limit: int) -> list[Group]:
        """Reads the words after the prompt column by column, and adds them to the history."""
        groups = []
        for column in range(words.symbols.shape[1]):
            symbols, exists = words.symbols[:, column : column + 1], words.exists[:, column : column + 1]
            check_length(int((history.groups[-1].count + exists[:, 0]).max()), limit)
            group = machine.read_word(symbols, exists, history)
            history.groups.append(group)
            groups.append(group)
        return groups

    def _cached(
        self, past: DATCache | None, use_cache: bool | None, states: _States, input_ids: Tensor
    ) -> DATCache | None:
        if not (self.config.use_cache if use_cache is None else use_cache) or (past is None and self.training):
            return None
        cache = DATCache() if past is None else past
        cache.history = states.history
        cache.tokens += input_ids.shape[1]
        return cache

    # ------------------------------------------------------------------------------------------------------ backends

    def _backend(self, device: torch.device) -> Backend:
        if self.config.backend == "gather":
            self._check_compiled()
            if device not in self._gather:
                self._gather[device] = GatherBackend(self.program, self._functions(device), self._end())
            return self._gather[device]
        temperature = float(self.config.relaxation_temperature) if self.config.backend == "relaxed" else 0.0
        half = self.dtype in (torch.bfloat16, torch.float16)
        return VectorBackend(
            self.program,
            self._layers(),
            self._functions(device),
            self._end(),
            self.config.vocab_size,
            temperature,
            torch.float32 if half else self.dtype,
        )

    def _layers(self) -> list[DATLayer]:
        return [layer for layer in self.layers if isinstance(layer, DATLayer)]

    def _end(self) -> int | None:
        """The value that marks the end of the prompt, for programs with the register `eop`."""
        return self.config.values.index(END) if "eop" in self.program.parts else None

    def _functions(self, device: torch.device) -> dict[str, Tensor]:
        if device not in self._tables:
            registered = (self.config.qkvl or {}).get("functions", {})
            names = {"pos_increment", "pos_decrement", *registered}
            self._tables[device] = {name: self.config.values.table(name, registered).to(device) for name in names}
        return self._tables[device]

    def _check_compiled(self) -> None:
        """Refuses changed weights: integers can replace the vectors only with the program's own weights."""
        versions = [parameter._version for parameter in self.parameters()]
        if self._checked == versions:
            return
        changed = [
            name
            for name, module in self.named_modules()
            if isinstance(module, DATProjection) and not module.is_compiled()
        ]
        if changed:
            raise DATBackendError(
                f"The backend 'gather' runs compiled weights, and those of {changed[:4]} are others now; set "
                "model.config.backend to 'dense' or 'relaxed', or call model.recompile()."
            )
        self._checked = versions

    @torch.no_grad()
    def recompile(self) -> None:
        """Restores the weights of the program, (72)."""
        for module in self.modules():
            if isinstance(module, DATProjection):
                module.weight.copy_(module.compiled().to(module.weight))

    @torch.no_grad()
    def to_dense(self, layer: int) -> Mapping[str, tuple[Tensor, Tensor]]:
        """The full matrices of one layer as in the paper, (72).

        Returns:
            For `query`, `key` and `value` the matrix [input, output] and the bias [output]. The input is a cell's
            vector, `hidden_size` wide. The output has one register for each target of the query or key, and all
            registers for values.
        """
        module, tables, size = self._layers()[layer], self._functions(self.device), self.config.vocab_size
        writes = [target for target, _ in module.layer.writes]
        made = {}
        for name, projection in (("query", module.query), ("key", module.key), ("value", module.value)):
            places = writes if name == "value" else range(len(projection.operands))
            width = self.config.num_registers if name == "value" else len(projection.operands)
            matrix = torch.zeros(self.config.hidden_size, width * size, device=self.device, dtype=self.dtype)
            bias = torch.zeros(width * size, device=self.device, dtype=self.dtype)
            for i, (operand, place) in enumerate(zip(projection.operands, places, strict=True)):
                columns = slice(place * size, (place + 1) * size)
                block = projection.block(i, tables)
                if operand.register is None:
                    bias[columns] = block
                else:
                    matrix[operand.register * size : (operand.register + 1) * size, columns] = block
            made[name] = (matrix, bias)
        return made

    # --------------------------------------------------------------------------------------------------------- traces

    @torch.no_grad()
    def trace(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[list[LayerState]]:
        """The states of every cell at every layer: for the prompt, then for each word after it.

        Returns:
            For every group of cells, the states before the first layer and after each layer, see [`LayerState`].
        """
        states = self.run(input_ids, attention_mask, None)
        return [trace_of(self.program, group) for group in states.history.groups]


class DATForCausalLM(DATPreTrainedModel, GenerationMixin):
    r"""A DAT with logits from its output register; `generate()` carries the whole state forward, (71).

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.dat import DATConfig, DATForCausalLM

    >>> model = DATForCausalLM(DATConfig(max_position_embeddings=8, num_open_values=10))
    >>> model.generate(torch.tensor([[12, 13, 1]]), max_new_tokens=2).tolist()  # the program copies
    [[12, 13, 1, 13, 13]]

    ```
    """

    _auto_class = "AutoModelForCausalLM"

    def __init__(self, config: DATConfig):
        super().__init__(config)
        self.dat = DATModel(config)
        self.post_init()
        if self.generation_config is not None:
            self.generation_config.suppress_tokens = [config.eop_token_id]  # no program emits it

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        past_key_values: DATCache | None = None,
        labels: Tensor | None = None,  # [batch, length]
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        r"""Runs the program and reads its output register.

        Nil ends a completion. Where the register holds a stop word of the program, the logits are those of nil: the
        word ends the completion and is no part of it. So `generate()` ends with nil, a special token.

        Args:
            input_ids, attention_mask, past_key_values, use_cache: see [`DATModel.forward`].
            labels: the input tokens, -100 at tokens without a loss; the logits of each token predict the next. A stop
                word counts as the end, nil.
            logits_to_keep: compute logits for this many last tokens, or for these indices; 0 for all tokens.
        """
        states = self.dat.run(input_ids, attention_mask, past_key_values)
        cache = self.dat._cached(past_key_values, use_cache, states, input_ids)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        states = _States(states.registers, states.columns[:, kept], states.history)
        output = self.dat.program.parts["output"]
        said = self._with_ends(states.register(output, self.config.vocab_size, self.dtype))
        logits = self.config.logit_scale * said
        loss = None
        if labels is not None:
            stops = torch.tensor(self.dat.program.stops, dtype=labels.dtype, device=labels.device)
            labels = labels.masked_fill(torch.isin(labels, stops), NIL)
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=cache)

    def _with_ends(self, said: Tensor) -> Tensor:
        """The output register [batch, length, values] with nil in place of stop words: they end the completion, too."""
        if not self.dat.program.stops:
            return said
        stops = torch.tensor(self.dat.program.stops, device=said.device)
        ends = said.index_select(-1, stops).sum(-1, keepdim=True)
        return said.index_fill(-1, stops, 0.0).index_add(-1, stops.new_tensor([NIL]), ends)

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict, *args: Any, **kwargs: Any
    ) -> None:
        """Always makes a [`DATCache`], whatever cache is requested: the others hold keys and values."""
        if model_kwargs.get("past_key_values") is None and generation_config.use_cache is not False:
            model_kwargs["past_key_values"] = DATCache()


__all__ = ["DATForCausalLM", "DATModel", "DATModelOutput", "DATPreTrainedModel"]
