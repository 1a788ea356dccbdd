"""The names of TransformerLens's bridge for a DAT: which module is which hook point.

TransformerLens finds [`DATArchitecture`] by the package's entry point, so its `build_bridge_from_module` takes a
[`DATForCausalLM`]. A state is one vector there, the registers beside one another.

| hook point | what passes |
|---|---|
| `blocks.{i}.hook_in`, `hook_out` | the cells before and after layer i, [batch, cells, hidden_size] |
| `blocks.{i}.hook_pattern` | the cells read, [batch, heads, cells, cells read] |
| `blocks.{i}.attn.q.hook_in`, `.k.`, `.v.` | what the query, the key or the value reads, [batch, cells, hidden_size] |
| `blocks.{i}.attn.q.hook_out`, `.k.`, `.v.` | its targets beside one another |
| `unembed.hook_in`, `hook_out` | the output register, and the logits, [batch, length, vocab_size] |

A layer of several heads has the first two rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.architecture_adapter import ArchitectureAdapter
from transformer_lens.model_bridge.generalized_components import SymbolicBridge, UnembeddingBridge
from transformer_lens.model_bridge.generalized_components.base import GeneralizedComponent


def _hooked(hook: Callable[[Tensor], Tensor], parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Passes the parts through a hook point as one vector."""
    return hook(torch.cat(list(parts), -1)).split([part.shape[-1] for part in parts], -1)


class ProjectionBridge(GeneralizedComponent):
    """A query, key or value."""

    def forward(self, registers: Sequence[Tensor], embedding: Any) -> list[Tensor]:
        """As `DATProjection.forward`."""
        made = self.original_component(_hooked(self.hook_in, registers), embedding)
        return list(_hooked(self.hook_out, made)) if made else made


class LayerBridge(GeneralizedComponent):
    """A layer."""

    is_list_item = True
    hook_out_is_single_residual_stream = True
    hook_aliases = {"hook_resid_pre": "hook_in", "hook_resid_post": "hook_out"}

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.hook_pattern = HookPoint()

    def forward(self, registers: Sequence[Tensor], readable: Sequence[Tensor], *others: Any) -> Any:
        """As `DATLayer.forward`; what a hook changes is also what other cells read."""
        own = registers[0].shape[1]
        registers = _hooked(self.hook_in, registers)
        readable = tuple(torch.cat([old[:, :-own], new], 1) for old, new in zip(readable, registers, strict=True))
        made, weights = self.original_component(registers, readable, *others)
        return _hooked(self.hook_out, made), self.hook_pattern(weights)


class OutputBridge(UnembeddingBridge):
    """The unembedding; `W_U` is `DATForCausalLM.unembedding`."""

    unembedding: Callable[[], Tensor]

    @property
    def W_U(self) -> Tensor:
        """[hidden_size, vocab_size]."""
        return self.unembedding()

    @property
    def b_U(self) -> Tensor:
        """Zeros, [vocab_size]."""
        return torch.zeros(self.W_U.shape[1])


def _without_positions(model: Any, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return arguments, {name: value for name, value in options.items() if name != "position_ids"}


class DATArchitecture(ArchitectureAdapter):
    """The modules of [`DATForCausalLM`] by the names of TransformerLens."""

    def __init__(self, cfg: Any):
        super().__init__(cfg)
        self.cfg.normalization_type, self.cfg.positional_embedding_type = None, "none"
        self.cfg.attn_only, self.cfg.final_rms = True, False
        ports = {
            short: ProjectionBridge(name=name, optional=True)
            for short, name in (("q", "query"), ("k", "key"), ("v", "value"))
        }
        self.weight_processing_conversions: dict[str, Any] = {}
        self.unembed = OutputBridge(name="unembed")
        self.component_mapping: dict[str, Any] = {
            "blocks": LayerBridge(name="dat.layers", submodules={"attn": SymbolicBridge(submodules=ports)}),
            "unembed": self.unembed,
        }

    def prepare_model(self, hf_model: Any) -> None:
        """Sets the backend `"dense"`, which calls the layers; drops positions, which follow from the mask here."""
        hf_model.config.backend = "dense"
        hf_model.register_forward_pre_hook(_without_positions, with_kwargs=True)
        self.unembed.unembedding = hf_model.unembedding
