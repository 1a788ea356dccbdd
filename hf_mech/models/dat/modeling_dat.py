"""Discrete-Attention-only Transformer: a production-system program as the weights of attention layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NoReturn, cast

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .checkpoints import SafeCheckpoints
from .configuration_dat import DATConfig
from .dat_embedding import Embedding, make_embedding
from .dat_gather import GatherBackend
from .dat_generation import DATCache, GreedyWords, as_dat_cache
from .dat_layer import DATHeads, DATLayer, DATProjection, VectorBackend, matrix_of
from .dat_machine import AnyGroup, Backend, History, Machine, Recorder
from .dat_program import END, END_OF_PROMPT, NIL, DATEmbeddingError, DATError, Heads, read_program
from .dat_row_machine import RowMachine, few_cells
from .dat_rows import RowGroup
from .dat_states import (
    LayerState,
    Reads,
    Record,
    States,
    Words,
    check_ids,
    check_length,
    collect,
    read_mask,
    read_registers,
    split,
    trace_of,
)


@dataclass
class DATModelOutput(ModelOutput):
    """The output of [`DATModel`].

    Args:
        last_hidden_state (`Tensor` of shape `[batch, length, hidden_size]`): every token's cell after the last layer, a
            one-hot vector for each register (soft vectors from the relaxed backend), (66), or the dense vector of
            `config.embedding`, (69). The end of the prompt has the state of the prompt's last cell; padding is zero.
        register_values (`Tensor` of shape `[batch, length, num_registers]`): the same as indices of values.
        past_key_values (`DATCache`, with `use_cache=True`): the cache for generation.
        hidden_states (`tuple[Tensor]`, with `output_hidden_states=True`): the tokens' vectors before the first layer
            and after each layer, `[batch, length, hidden_size]`. They are large: `DATModel.trace` gives integers.
        attentions (`tuple[Tensor]`, with `output_attentions=True`): for each layer the token that each token's cell
            reads, `[batch, heads, length, tokens so far]`: a one-hot row, or zeros if no cell matches; weights of a
            soft match from the relaxed backend. The end of the prompt has the row of the last word, and is never read.
            The number of heads is that of the layer's productions, usually 1; it can differ between layers.

    A layer of a repeat block has the hidden state and the attention of the last repetition; `DATModel.trace` has all.
    """

    last_hidden_state: Tensor | None = None
    register_values: Tensor | None = None
    past_key_values: DATCache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class DATPreTrainedModel(SafeCheckpoints, PreTrainedModel):
    """Weights, loading and saving of all DAT models."""

    config_class = DATConfig
    base_model_prefix = "dat"
    main_input_name = "input_ids"
    _no_split_modules = ["DATLayer"]
    _checkpoint_error = DATError

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Without a checkpoint, the weights are those of the configuration's program."""
        if isinstance(module, DATProjection):
            init.copy_(module.weight, module.compiled())

    def get_input_embeddings(self) -> nn.Module:
        """Raises DATEmbeddingError: a token's id is the neuron of its value, so there is no table of embeddings."""
        raise DATEmbeddingError(
            "A DAT has no embeddings: a token's id is the index of its value and of its neuron, fixed by the program; "
            "compile the program with another num_open_values to change the vocabulary."
        )

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Raises DATEmbeddingError, see `get_input_embeddings`."""
        self.get_input_embeddings()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Module:
        """Raises DATEmbeddingError, see `get_input_embeddings`."""
        return self.get_input_embeddings()


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
        self.num_values = config.vocab_size
        self.layers = nn.ModuleList(
            DATHeads(layer) if isinstance(layer, Heads) else DATLayer(layer) for layer in self.program.layers
        )
        self._modules_of_layers = [module for layer in self.layers for module in layer.modules()]
        self._checked: list[
            tuple[nn.Parameter, int]
        ] = []  # weights that were found to be the program's, and their versions
        self._tables: dict[torch.device, dict[str, Tensor]] = {}
        self._gather: dict[torch.device, GatherBackend] = {}
        self._embeddings: tuple[tuple[Any, ...], Embedding] | None = None  # the last one, and its form
        self._rows: RowMachine | None = None
        self.post_init()

    # ------------------------------------------------------------------------------------------------------- forward

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        past_key_values: DATCache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        register_values: Tensor | None = None,  # [batch, length, num_registers]
    ) -> DATModelOutput:
        r"""Runs the program.

        Args:
            input_ids: words, the end of the prompt, and optional words after it; nil pads, left, right or between.
            attention_mask: 0 at padding. Only the last columns, those of `input_ids`, are read.
            past_key_values: the cache of an earlier call; then all words come after the prompt.
            use_cache: whether to return a cache; `config.use_cache` if it is not given.
            output_attentions, output_hidden_states: whether to return these, see [`DATModelOutput`]; by default as the
                configuration says.
            register_values: the first values of registers in the prompt's cells, as indices of values; -100 leaves a
                register as the program begins it. Only registers of the program's `prompt` may be set; there may be
                fewer columns than `input_ids` has, the first ones. `DATTokenizer(..., registers=...)` makes them.

        Raises:
            DATError: not a valid prompt, or ids out of range; the backend `gather` with changed weights, or with hooks
                on the layers.
            DATLengthError: more words than positions.
            DATRepeatError: a repeat block exceeds its bound.
        """
        wanted = self._wanted(output_attentions, output_hidden_states)
        recorder = Record if any(wanted) else None
        states = self.run(input_ids, attention_mask, past_key_values, recorder, register_values)
        cache = self._cached(past_key_values, use_cache, states, input_ids)
        hidden_states, attentions = self._recorded(states, *wanted)
        return DATModelOutput(states.vectors(self.dtype), states.values(), cache, hidden_states, attentions)

    def _wanted(self, attentions: bool | None, hidden_states: bool | None) -> tuple[bool, bool]:
        """Whether attentions and hidden states are wanted, by the arguments or the configuration."""
        return (
            bool(self.config.output_attentions if attentions is None else attentions),
            bool(self.config.output_hidden_states if hidden_states is None else hidden_states),
        )

    def _recorded(
        self, states: States, attentions: bool, hidden_states: bool
    ) -> tuple[tuple[Tensor, ...] | None, tuple[Tensor, ...] | None]:
        """Hidden states and attentions, where they are wanted."""
        return (
            states.hidden_states(self.dtype) if hidden_states else None,
            states.attentions(self.dtype) if attentions else None,
        )

    @torch.compiler.disable
    def run(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        past_key_values: DATCache | None,
        recorder: Callable[[], Recorder] | None = None,
        register_values: Tensor | None = None,
    ) -> States:
        """The states of all tokens' cells, before conversion to vectors; a recorder keeps those of every layer."""
        check_ids(input_ids, self.num_values)
        mask = read_mask(attention_mask, input_ids)
        limit = self.config.max_position_embeddings
        machine: Machine | RowMachine
        if past_key_values is not None and as_dat_cache(past_key_values).is_initialized:
            if register_values is not None:
                raise DATError(
                    "register_values are of the prompt's cells, and the cache has read the prompt; leave them out."
                )
            history: History[Any] = History(list(past_key_values.history.groups))
            machine = self._machine(input_ids.device, isinstance(history.groups[-1], RowGroup), recorder)
            history = history if isinstance(machine, RowMachine) else history.tensors
            words = collect(input_ids, mask & (input_ids > END_OF_PROMPT))
            columns = words.rank
            keys = past_key_values.keys_with(words.rank)
            new = self._read_words(machine, words, history, limit)
        else:
            prompt, words, ends = split(input_ids, mask)
            check_length(prompt.symbols.shape[1], limit)
            program, size = self.program, self.num_values
            given = read_registers(register_values, input_ids, prompt, program.registers, program.prompt, size)
            machine = self._machine(input_ids.device, few_cells(prompt.symbols), recorder)
            first = machine.read_prompt(prompt.symbols, prompt.exists, given)
            history = History([first])
            new = [first, *self._read_words(machine, words, history, limit)]
            size = prompt.symbols.shape[1]
            keys = torch.where(words.rank >= 0, words.rank + size, prompt.rank)
            columns = torch.where(ends, first.count[:, None] - 1, keys)
        records: list[Any] = machine.records if isinstance(machine, Machine) else []
        if not new:  # padding alone
            new, columns = [history.groups[-1]], torch.full_like(columns, -1)
            records = [Record.empty(new[0].tensors, self.program.layers)] if recorder else []
        return States(new, columns, keys, history, self.embedding(input_ids.device), records)

    def _read_words(
        self, machine: Machine | RowMachine, words: Words, history: History[Any], limit: int
    ) -> list[AnyGroup]:
        """Reads the words after the prompt column by column, and adds them to the history."""
        groups: list[AnyGroup] = []
        for column in range(words.symbols.shape[1]):
            symbols, exists = words.symbols[:, column : column + 1], words.exists[:, column : column + 1]
            check_length(int((history.groups[-1].count + exists[:, 0]).max()), limit)
            group = machine.read_word(symbols, exists, history)
            history.groups.append(group)
            groups.append(group)
        return groups

    def _cached(
        self, past: DATCache | None, use_cache: bool | None, states: States, input_ids: Tensor
    ) -> DATCache | None:
        if not (self.config.use_cache if use_cache is None else use_cache) or (past is None and self.training):
            return None
        cache = DATCache() if past is None else past
        cache.history, cache.keys = states.history, states.keys
        cache.tokens += input_ids.shape[1]
        return cache

    # ------------------------------------------------------------------------------------------------------ backends

    def _machine(
        self, device: torch.device, few: bool, recorder: Callable[[], Recorder] | None
    ) -> Machine | RowMachine:
        """The program on tensors, or for few cells row by row on integers."""
        backend = self._backend(device)
        if few and recorder is None and isinstance(backend, GatherBackend):
            self._rows = self._rows or RowMachine(backend)
            return self._rows
        return Machine(self.program, backend, recorder)

    def _backend(self, device: torch.device) -> Backend:
        if self.config.backend == "gather":
            self._check_compiled()
            if device not in self._gather:
                self._gather[device] = GatherBackend(self.program, self._functions(device), self.end_of_prompt)
            return self._gather[device]
        if self.config.backend == "relaxed" and self.config.embedding != "local":
            raise DATError(
                f"The backend 'relaxed' softens one-hot vectors, and the embedding is {self.config.embedding!r}; set "
                "model.config.embedding to 'local', or model.config.backend to 'dense' or 'gather'."
            )
        temperature = float(self.config.relaxation_temperature) if self.config.backend == "relaxed" else 0.0
        return VectorBackend(
            self.program, self.layers_in_order(), self.embedding(device), self.end_of_prompt, temperature
        )

    def embedding(self, device: torch.device) -> Embedding:
        """The vectors of registers and values, (66), (69)."""
        config = self.config
        dtype = torch.float32 if self.dtype in (torch.bfloat16, torch.float16) else self.dtype
        form = (config.embedding, config.filler_width, config.embedding_seed, device, dtype)
        if self._embeddings is None or self._embeddings[0] != form:
            sizes = config.vocab_size, len(self.program.registers)
            self._embeddings = (form, make_embedding(*form, self._functions(device), *sizes))
        return self._embeddings[1]

    def layers_in_order(self) -> list[DATLayer | DATHeads]:
        """The program's layers, of the type that they have if no tool has wrapped them."""
        return cast("list[DATLayer | DATHeads]", list(self.layers))

    @property
    def end_of_prompt(self) -> int | None:
        """The value that marks the end of the prompt, for programs with the register `eop`."""
        return self.config.values.index(END) if "eop" in self.program.parts else None

    def _functions(self, device: torch.device) -> dict[str, Tensor]:
        if device not in self._tables:
            registered = (self.config.qkvl or {}).get("functions", {})
            self._tables[device] = self.config.values.tables(registered, device)
        return self._tables[device]

    def _check_compiled(self) -> None:
        """Refuses changed weights, and hooks: integers can replace the vectors only with the program's own weights."""
        weights = []
        for module in self._modules_of_layers:  # in every step of generate(), so without a walk over all parameters
            if module._forward_hooks or module._forward_pre_hooks:
                self._refuse_hooks()
            weight = module._parameters.get("weight")
            if weight is not None:
                weights.append((weight, weight._version))
        if len(weights) == len(self._checked) and all(
            new is old and version == checked
            for (new, version), (old, checked) in zip(weights, self._checked, strict=True)
        ):
            return
        changed = [
            name
            for name, module in self.named_modules()
            if isinstance(module, DATProjection) and not module.is_compiled()
        ]
        if changed:
            raise DATError(
                f"The backend 'gather' runs compiled weights, and those of {changed[:4]} are others now; set "
                "model.config.backend to 'dense' or 'relaxed', or call model.recompile()."
            )
        self._checked = weights

    def _refuse_hooks(self) -> NoReturn:
        hooked = [
            name for name, module in self.layers.named_modules() if module._forward_hooks or module._forward_pre_hooks
        ]
        raise DATError(
            f"The layers {hooked[:4]} have forward hooks, and the backend 'gather' computes with integers and does not "
            "call the layers; set model.config.backend to 'dense' or 'relaxed', or remove the hooks. Every backend "
            "answers output_hidden_states=True and output_attentions=True."
        )

    @torch.no_grad()
    def recompile(self) -> None:
        """Restores the weights of the program, (72)."""
        for module in self.modules():
            if isinstance(module, DATProjection):
                module.weight.copy_(module.compiled().to(module.weight))

    @torch.no_grad()
    def to_dense(self, layer: int, head: int = 0) -> Mapping[str, tuple[Tensor, Tensor]]:
        """The full matrices of a head of a layer as in the paper, (72), in the basis of the configuration's embedding.

        Returns:
            For `query`, `key` and `value` the matrix [input, output] and the bias [output]. The input is a cell's
            vector, `hidden_size` wide. The output has the width of a register for each target of the query or key,
            and is a cell's vector for values.

        Raises:
            DATError: the layer has a function, and there are fewer dimensions than values: then no matrix maps
                the vector of each value to that of its image.
        """
        module, embedding = self.layers_in_order()[layer].heads[head], self.embedding(self.device)
        assert isinstance(module, DATLayer)
        if embedding.fillers.size > embedding.fillers.width and module.functions:
            raise DATError(
                f"Layer {layer} has the functions {sorted(module.functions)}, and no matrix maps the vectors of "
                f"{embedding.fillers.size} values in {embedding.fillers.width} dimensions to those of their images; "
                "leave filler_dim out of the configuration."
            )
        made = {}
        for name, projection in (("query", module.query), ("key", module.key), ("value", module.value)):
            count = self.config.num_registers if name == "value" else len(projection.operands)
            places = [target for target, _ in module.layer.writes] if name == "value" else range(count)
            made[name] = matrix_of(projection, embedding, places, count, roles=name == "value")
        return made

    # --------------------------------------------------------------------------------------------------------- traces

    @torch.no_grad()
    def trace(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        register_values: Tensor | None = None,
        reads: bool = False,
    ) -> list[list[LayerState]]:
        """The states of every cell at every layer: for the prompt, then for each word after it.

        Args:
            input_ids, attention_mask, register_values: see `forward`.
            reads: whether to return the cells that were read, too; only for a batch of one row.

        Returns:
            For every group of cells, the states before the first layer and after each layer, see [`LayerState`].

        Raises:
            DATError: `reads` for several rows: each ends its repeat blocks by itself.
        """
        if reads and len(input_ids) != 1:
            raise DATError(f"reads are of a batch of one row, got {len(input_ids)}; trace each row by itself.")
        states = self.run(input_ids, attention_mask, None, Reads if reads else None, register_values)
        if not reads:
            return [trace_of(self.program, group, states.embedding) for group in states.history.groups]
        return [
            trace_of(self.program, group, states.embedding, own)
            for group, own in zip(states.history.groups, states.records, strict=True)
        ]


class DATUnembedding(nn.Module):
    """From the output register to logits. It has no weights: a value's neuron is its token id.

    Args:
        stops: the words that end a completion; nil gets their activity.
        scale: of the logits.
    """

    def __init__(self, stops: Sequence[int], scale: float):
        super().__init__()
        self.stops, self.scale = tuple(stops), scale

    def forward(self, said: Tensor) -> Tensor:
        """The logits [..., values] of the output register [..., values], one-hot or soft."""
        if self.stops:
            stops = torch.tensor(self.stops, device=said.device)
            ends = said.index_select(-1, stops).sum(-1, keepdim=True)
            said = said.index_fill(-1, stops, 0.0).index_add(-1, stops.new_tensor([NIL]), ends)
        return self.scale * said

    def matrix(self, embedding: Embedding, place: int) -> Tensor:
        """The same from a whole state, [hidden_size, vocab_size]; the output register has this place in it."""
        values = embedding.fillers.embed(torch.arange(embedding.fillers.size))
        roles = torch.eye(embedding.number) if embedding.roles is None else embedding.roles
        return self.forward((roles[place].to(values)[:, None, None] * values.T).flatten(0, 1))


class DATForCausalLM(DATPreTrainedModel, GreedyWords, GenerationMixin):
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
    accepts_loss_kwargs = True  # `Trainer` passes num_items_in_batch
    _pipelines = {
        "template-completion": {
            "impl": "dat_completion.TemplateCompletionPipeline",
            "pt": ["AutoModelForCausalLM"],
            "type": "text",
        }
    }

    def __init__(self, config: DATConfig):
        super().__init__(config)
        self.dat = DATModel(config)
        self.unembed = DATUnembedding(self.dat.program.stops, config.logit_scale)
        self.post_init()
        if self.generation_config is not None:
            self.generation_config.suppress_tokens = [config.eop_token_id]  # no program emits it

    def completion_pipeline(self, tokenizer: Any, **options: Any) -> Any:
        """The pipeline `"template-completion"` with this model, before it is saved."""
        from .dat_completion import TemplateCompletionPipeline  # pipelines load much

        return TemplateCompletionPipeline(model=self, tokenizer=tokenizer, task="template-completion", **options)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        past_key_values: DATCache | None = None,
        labels: Tensor | None = None,  # [batch, length]
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        num_items_in_batch: int | Tensor | None = None,
        register_values: Tensor | None = None,  # [batch, length, num_registers]
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        r"""Runs the program and reads its output register.

        Nil ends a completion. Where the register holds a stop word of the program, the logits are those of nil: the
        word ends the completion and is no part of it. So `generate()` ends with nil, a special token.

        Args:
            input_ids, attention_mask, past_key_values, use_cache, register_values: see [`DATModel.forward`].
            output_attentions, output_hidden_states: likewise; those of all tokens, whatever `logits_to_keep`.
            labels: the input tokens, -100 at tokens without a loss; the logits of each token predict the next. A stop
                word counts as the end, nil.
            logits_to_keep: compute logits for this many last tokens, or for these indices; 0 for all tokens.
            num_items_in_batch: the number of labels by which the sum of the losses is divided, from `Trainer`.
            kwargs: `shift_labels`, [batch, length], the labels one place earlier, which transformers gives under
                sequence parallelism; as in its own models they replace the labels. `Trainer` waits for every
                parameter that is called a label, so this is none.

        Raises:
            TypeError: another keyword.
        """
        shift_labels = kwargs.pop("shift_labels", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.forward() got an unexpected keyword argument {next(iter(kwargs))!r}"
            )
        if self.dat._forward_hooks or self.dat._forward_pre_hooks:
            raise DATError(
                "model.dat has a forward hook, which would never run: DATForCausalLM reads the cells without calling "
                "model.dat. Remove it and use output_hidden_states=True, or call model.dat yourself."
            )
        wanted = self.dat._wanted(output_attentions, output_hidden_states)
        recorder = Record if any(wanted) else None
        states = self.dat.run(input_ids, attention_mask, past_key_values, recorder, register_values)
        cache = self.dat._cached(past_key_values, use_cache, states, input_ids)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        program = self.dat.program
        shown = replace(states, columns=states.columns[:, kept])
        logits = self.unembed(shown.register(program.parts["output"], self.dtype))
        loss = None
        if labels is not None or shift_labels is not None:
            stops = torch.tensor(program.stops, device=logits.device)
            labels, shift_labels = (
                None if given is None else given.masked_fill(torch.isin(given, stops), NIL)
                for given in (labels, shift_labels)
            )
            loss = self.loss_function(
                logits=logits, labels=labels, vocab_size=self.config.vocab_size, num_items_in_batch=num_items_in_batch,
                shift_labels=shift_labels,
            )  # fmt: skip
        hidden_states, attentions = self.dat._recorded(states, *wanted)
        return CausalLMOutputWithPast(
            loss=loss, logits=logits, past_key_values=cache, hidden_states=hidden_states, attentions=attentions
        )

    @torch.no_grad()
    def unembedding(self) -> Tensor:
        """The unembedding as a matrix [hidden_size, vocab_size], in the basis of the configuration's embedding.

        A state after the last layer times it are the logits, if the values' vectors are orthonormal; with fewer
        dimensions than values their order is the same.
        """
        return self.unembed.matrix(self.dat.embedding(self.device), self.dat.program.parts["output"])

    def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As in transformers, but without the tokenizer of `stop_strings`, which transformers passes to every model,
        and without the prompt's registers once the prompt has been read."""
        kwargs.pop("tokenizer", None)
        cache = kwargs.get("past_key_values")
        if cache is not None and as_dat_cache(cache).is_initialized:
            kwargs.pop("register_values", None)
        return super().prepare_inputs_for_generation(*args, **kwargs)

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict, *args: Any, **kwargs: Any
    ) -> None:
        """Always makes a [`DATCache`], whatever cache is requested: the others hold keys and values."""
        if model_kwargs.get("past_key_values") is None and generation_config.use_cache is not False:
            model_kwargs["past_key_values"] = DATCache()


DATForCausalLM.forward.__signature__ = signature(DATForCausalLM.forward)  # `generate()` asks for it with every word
