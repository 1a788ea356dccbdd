"""The Semi-formal Transformer, (92): a program's registers beside an ordinary residual stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from transformers import initialization as init
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .checkpoints import SafeCheckpoints
from .configuration_semi_formal import SemiFormalConfig
from .dat_embedding import Embedding, LocalFillers, Registers
from .dat_layer import DATProjection, VectorBackend, allowed_pairs
from .dat_machine import Cells, Readable, at_columns
from .dat_program import NIL, Block, DATError, DATRepeatError, Layer, Statement, read_program
from .dat_states import check_ids, check_length, collect, read_mask, read_registers
from .semi_formal_heads import BiasedHead, UnbiasedLayer, attention_entropy

LEAST_SHARE = 1e-4  # of a class in the output register: its logarithm is a logit


@dataclass
class SemiFormalModelOutput(ModelOutput):
    """The output of [`SemiFormalModel`].

    Args:
        last_hidden_state (`Tensor` of shape `[batch, length, hidden_size]`): V_u of every token; padding is zero.
        biased_state (`Tensor` of shape `[batch, length, biased_size]`): V_b of every token after the program, a
            distribution over the values for each register; padding is zero.
        output (`Tensor` of shape `[batch, values]`): the output register of each row's last token.
        attention_entropy (`Tensor` of shape `[batch]`): (92e), the mean over the biased heads that ran and over the
            row's cells; 0 if it has no weight in the configuration.
    """

    last_hidden_state: Tensor | None = None
    biased_state: Tensor | None = None
    output: Tensor | None = None
    attention_entropy: Tensor | None = None


class SemiFormalPreTrainedModel(SafeCheckpoints, PreTrainedModel):
    """Weights, loading and saving of the Semi-formal Transformers."""

    config_class = SemiFormalConfig
    base_model_prefix = "semi_formal"
    main_input_name = "input_ids"
    _no_split_modules = ["BiasedHead", "UnbiasedLayer"]
    _checkpoint_error = DATError

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """The biased heads are the program's; the rest is drawn."""
        if isinstance(module, DATProjection):
            init.copy_(module.weight, module.compiled())
        elif isinstance(module, nn.Linear | nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)
            if getattr(module, "bias", None) is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)


class _Run:
    """One run of the program over the cells of a batch.

    `dat_machine.Machine` keeps the states of all layers, for cells that come later; here none does.

    Args:
        model: its heads and configuration.
        backend: of the first registers, and of the conditions that end a block.
        stream: V_u, [batch, cells, hidden].
        exists, positions: of the cells, [batch, cells].
    """

    def __init__(
        self, model: SemiFormalModel, backend: VectorBackend, stream: Tensor, exists: Tensor, positions: Tensor
    ):
        self.heads, self.backend, self.stream, self.positions = model.heads, backend, stream, positions
        self.weighed = bool(model.config.attention_entropy_weight) and backend.temperature > 0
        self.entropy = stream.new_zeros(len(stream), dtype=backend.embedding.fillers.dtype)
        self.ran = stream.new_zeros(len(stream))
        self.exists = exists

    def statements(self, statements: Sequence[Statement], registers: Registers, rows: Tensor) -> Registers:
        """The registers after these layers and blocks, which update the rows [batch]."""
        for statement in statements:
            if isinstance(statement, Block):
                registers = self._block(statement, registers, rows)
            else:
                (head,) = statement.heads
                registers = self._layer(head, registers, rows)
        return registers

    def _layer(self, layer: Layer, registers: Registers, rows: Tensor) -> Registers:
        cells = self._cells(rows)
        allowed = allowed_pairs(cells, self._readable(registers), layer.causal)
        temperature = self.backend.temperature
        made, weights = self.heads[layer.index](
            registers, allowed, self.backend.embedding.fillers, temperature, self.stream
        )
        if temperature not in (0, 1):  # else a cell that reads nothing keeps its registers as they are
            active = cells.exists[..., None]
            made = tuple(
                old if new is old else torch.where(active, new, old) for old, new in zip(registers, made, strict=True)
            )
        if self.weighed:
            entropy = (attention_entropy(weights) * cells.exists).sum(1)
            self.entropy = self.entropy + entropy / self.exists.sum(1)
        self.ran = self.ran + rows
        return made

    def _block(self, block: Block, registers: Registers, rows: Tensor) -> Registers:
        before = self._values(registers)
        for _ in range(block.bound):
            registers = self.statements(block.body, registers, rows)
            after = self._values(registers)
            if block.until is None:
                rows = rows & ((before != after) & self.exists).any(2).any(0)
            else:
                cells = self._cells(rows)
                rows = rows & ~self.backend.holds(block.until, registers, cells, self._readable(registers))
            if not bool(rows.any()):
                return registers
            before = after
        raise DATRepeatError(block.comment, block.bound)

    @torch.no_grad()
    def _values(self, registers: Registers) -> Tensor:
        """The largest value of every register, [registers, batch, cells]."""
        return torch.stack([register.argmax(-1) for register in registers])

    def _cells(self, rows: Tensor) -> Cells:
        return Cells(self.exists & rows[:, None], self.positions)

    def _readable(self, registers: Registers) -> Readable:
        return Readable(self.exists, self.positions, registers.__getitem__, self.exists.shape[1])


class SemiFormalModel(SemiFormalPreTrainedModel):
    r"""The registers of a program, V_b, beside an ordinary residual stream, V_u, (92a).

    The unbiased layers read V_b as the prompt sets it, and write V_u. Then the program runs: its productions are the
    biased heads. Where the program assigns a constant of `config.estimates`, the head writes what it reads off V_u.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.dat import SemiFormalConfig, SemiFormalModel

    >>> model = SemiFormalModel(SemiFormalConfig(max_position_embeddings=4, num_open_values=10))
    >>> output = model(torch.tensor([[8, 9, 7]]))
    >>> output.last_hidden_state.shape, output.biased_state.shape, int(output.output.argmax())
    (torch.Size([1, 3, 64]), torch.Size([1, 3, 34]), 7)

    ```
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: SemiFormalConfig):
        super().__init__(config)
        # Not `config.program`: without the package, its classes are loaded separately and differ from those here.
        self.program = read_program(config.qkvl or {}, config.values)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            UnbiasedLayer(
                config.hidden_size,
                config.num_attention_heads,
                config.intermediate_size,
                config.biased_size,
                config.reading_size,
                config.layer_norm_eps,
            )
            for _ in range(config.num_hidden_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.heads = nn.ModuleList(
            BiasedHead(
                layer,
                self.program.parts["position"],
                config.hidden_size,
                config.steering_size,
                config.estimated,
            )
            for layer in self.program.productions
        )
        for module in self.modules():
            if isinstance(module, DATProjection):
                module.weight.requires_grad_(config.train_program)
        self._tables: dict[torch.device, dict[str, Tensor]] = {}
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """Of V_u; in V_b a token is the neuron of its value."""
        return self.embeddings

    @can_return_tuple
    @torch.compiler.disable
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        register_values: Tensor | None = None,  # [batch, length, registers]
    ) -> SemiFormalModelOutput:
        r"""Reads the text, then runs the program.

        Args:
            input_ids: words; nil pads, left, right or between.
            attention_mask: 0 at padding.
            register_values: first values of the program's `prompt` registers, see [`DATModel.forward`].

        Raises:
            DATError: ids out of range, or a row without a word.
            DATLengthError: more words than positions.
            DATRepeatError: a repeat block exceeds its bound.
        """
        check_ids(input_ids, self.config.vocab_size)
        words = collect(input_ids, read_mask(attention_mask, input_ids) & (input_ids != NIL))
        empty = (~words.exists.any(1)).nonzero().flatten().tolist() if words.exists.numel() else [0]
        if empty:
            raise DATError(f"A prompt needs a word; rows {empty[:8]} have none.")
        check_length(words.symbols.shape[1], self.config.max_position_embeddings)
        program, size = self.program, self.config.vocab_size
        given = read_registers(register_values, input_ids, words, program.registers, program.prompt, size)
        half = self.dtype in (torch.bfloat16, torch.float16)
        dtype, device = torch.float32 if half else self.dtype, input_ids.device
        embedding = Embedding(LocalFillers(size, self._functions(device), device, dtype), len(program.registers))
        backend = VectorBackend(program, (), embedding, None, float(self.config.relaxation_temperature))
        exists, count = words.exists, words.exists.sum(1, keepdim=True)
        positions = torch.arange(1, exists.shape[1] + 1, device=input_ids.device) * exists
        first = backend.begin(words.symbols, Cells(exists, positions), positions == count, given)
        stream, biased = self.embeddings(words.symbols), torch.cat(first, -1).to(self.dtype)
        for layer in self.layers:
            stream = layer(stream, biased, exists)
        stream = self.norm(stream)
        run = _Run(self, backend, stream, exists, positions)
        final = run.statements(program.statements, first, exists.any(1))
        return SemiFormalModelOutput(
            _by_token(stream, words.rank),
            _by_token(torch.cat(final, -1).to(self.dtype), words.rank),
            at_columns(final[program.parts["output"]], count - 1)[:, 0].to(self.dtype),
            (run.entropy / run.ran.clamp(min=1)).to(self.dtype),
        )

    def _functions(self, device: torch.device) -> dict[str, Tensor]:
        if device not in self._tables:
            registered = (self.config.qkvl or {}).get("functions", {})
            self._tables[device] = self.config.values.tables(registered, device)
        return self._tables[device]


def _by_token(cells: Tensor, rank: Tensor) -> Tensor:
    """The cells [batch, cells, size] at the tokens, [batch, length, size]; zero where a token has none."""
    return at_columns(cells, rank) * (rank >= 0)[..., None]


class SemiFormalForSequenceClassification(SemiFormalPreTrainedModel):
    r"""A Semi-formal Transformer that classifies a text by the output register of its last token.

    The logits are the logarithms of the classes' shares in that register, so the class comes from V_b alone.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.dat import SemiFormalConfig, SemiFormalForSequenceClassification

    >>> config = SemiFormalConfig(max_position_embeddings=4, num_open_values=10, label_values=["1", "2"])
    >>> model = SemiFormalForSequenceClassification(config)
    >>> model(torch.tensor([[8, 4]])).logits.argmax(-1).tolist()  # the last token is the number 2
    [1]

    ```
    """

    _auto_class = "AutoModelForSequenceClassification"
    accepts_loss_kwargs = False  # a mean over rows

    def __init__(self, config: SemiFormalConfig):
        super().__init__(config)
        if len(config.label_values or ()) != config.num_labels:
            config.num_labels = len(config.label_values or ())
        self.semi_formal = SemiFormalModel(config)
        self.label_indices = list(config.label_indices)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        labels: Tensor | None = None,  # [batch]
        register_values: Tensor | None = None,  # [batch, length, registers]
    ) -> SequenceClassifierOutput:
        r"""Classifies texts.

        Args:
            input_ids, attention_mask, register_values: see [`SemiFormalModel.forward`].
            labels: the class of each text. The loss is the cross-entropy plus `config.attention_entropy_weight` times
                the entropy of the biased heads' attention, (92e).
        """
        state = self.semi_formal(input_ids, attention_mask, register_values)
        shares = state.output[:, self.label_indices].clamp(min=0) + LEAST_SHARE
        logits = (shares / shares.sum(-1, keepdim=True)).log()
        loss = None
        if labels is not None:
            loss = nll_loss(logits, labels) + self.config.attention_entropy_weight * state.attention_entropy.mean()
        return SequenceClassifierOutput(loss=loss, logits=logits)
