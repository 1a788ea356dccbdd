"""App. L word by word: a program run on tensor product representations, in float64, with loops over roles and cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hf_mech.models.dat import DATModel
from tests.models.dat.literal import Literal

TOLERANCE = 1e-9


class TensorProducts(Literal):
    """The equations of App. L; from the model it takes the vectors of roles and fillers, and no matrix.

    Args:
        model: with an embedding whose fillers are orthonormal or nearly so.
    """

    def __init__(self, model: DATModel):
        self.qkvl: Mapping[str, Any] = model.config.qkvl
        self.registers = list(self.qkvl["register_map"].values())
        self.space, self.d = model.config.values, model.config.vocab_size
        self.weights = [{}] * model.config.num_hidden_layers
        self.layer = -1
        vectors = model.to(torch.float64).embedding(torch.device("cpu"))
        self.fillers: Tensor = vectors.fillers.vectors
        self.ones: Tensor = vectors.fillers.ones
        self.roles = torch.eye(len(self.registers)).double() if vectors.roles is None else vectors.roles
        overlap = self.fillers @ self.fillers.T - torch.eye(self.d).double()
        self.coherence = float(overlap.max())
        self.streams: list[Tensor] = []

    def vector(self, values: list[int]) -> Tensor:
        """T = sum_i r_i (x) f_i, [M, width]."""
        products = [torch.outer(role, self.fillers[value]) for role, value in zip(self.roles, values, strict=True)]
        return torch.stack(products).sum(0)

    def values(self, cells: Tensor) -> Tensor:
        """r_i+ T is a filler, and so a value; r_i+ = r_i."""
        unbound = torch.stack([torch.stack([role @ cell for role in self.roles]) for cell in cells])
        found = (unbound @ self.fillers.T).argmax(-1)
        assert float((unbound - self.fillers[found]).abs().max()) < TOLERANCE
        return found

    def production(self, block: Mapping[str, Any], weights: Any, cells: Tensor, readable: Tensor) -> Tensor:
        """q . k = T_S . T_S' / m; where it is 1, T + r^T [f - r+ T]."""
        sources = block["weights"]
        roles = torch.linalg.qr(torch.randn(len(sources["q"]), len(sources["q"])).double()).Q
        of_N, of_n = self.values(cells).tolist(), self.values(readable).tolist()
        keys = [self.structure(sources["k"], values, roles) for values in of_n]
        outputs = []
        for N, (cell, values) in enumerate(zip(cells, of_N, strict=True), start=len(readable) - len(cells)):
            query = self.structure(sources["q"], values, roles)
            order = range(len(readable))
            attended = None
            for n in reversed(order) if block["right_match"] else order:
                if block["causal_attn"] and n > N:
                    continue
                product = float((query * keys[n]).sum()) / len(roles)
                assert self.coherence > TOLERANCE or abs(product * len(roles) - round(product * len(roles))) < TOLERANCE
                if product > 1 - 0.5 / len(roles):
                    attended = n
                    break
            if attended is not None:
                for target, source in sources["v"].items():
                    if not self.source(source, of_n[attended])[1]:
                        continue  # a function without a value there: nothing is assigned
                    role = self.roles[self.registers.index(target)]
                    filler = self.filler(source, of_n[attended])
                    cell = cell + torch.outer(role, filler - role @ cell)
            outputs.append(cell)
        made = torch.stack(outputs)
        self.streams.append(made.flatten(1))
        return made

    def structure(self, sources: Mapping[str, Any], values: list[int], roles: Tensor) -> Tensor:
        """The tensor product representation of a query or a key."""
        fillers = [self.filler(sources[target], values) for target in sorted(sources)]
        return torch.stack([torch.outer(role, filler) for role, filler in zip(roles, fillers, strict=True)]).sum(0)

    def filler(self, source: Any, values: list[int]) -> Tensor:
        """That of a source; a condition has the sum of its values', or the ones' complement of it."""
        kind, found = self.source(source, values)
        vector = self.fillers[found].sum(0)
        return self.ones - vector if kind in ("!=", "not in") else vector

    def ends(self, until: Mapping[str, Any], before: Tensor, after: Tensor, past: list[Tensor]) -> bool:
        if not until:
            return bool(torch.equal(self.values(before), self.values(after)))
        return super().ends(until, before, after, past)
