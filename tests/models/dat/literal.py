"""(70)-(71) word by word: one prompt, whole matrices, loops over registers and cells; no code of the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hf_mech.models.dat import DATModel

KAPPA = 2
State = tuple[int | None, tuple[int, ...], Tensor]  # layer, repetitions, values of the cells' registers [cells, M]


class Literal:
    """The program of a model, run with the matrices of (72).

    Args:
        model: where the configuration and the matrices come from.
    """

    def __init__(self, model: DATModel):
        self.qkvl: Mapping[str, Any] = model.config.qkvl
        self.registers = list(self.qkvl["register_map"].values())
        self.space, self.d = model.config.values, model.config.vocab_size
        self.weights = [model.to_dense(layer) for layer in range(model.config.num_hidden_layers)]
        self.layer = -1

    # ------------------------------------------------------------------------------------------------ (70b), (71a)

    def run(self, prompt: list[int], completion: list[int]) -> list[list[State]]:
        """The states of the prompt's cells at every layer, then those of each cell behind them."""
        values: dict[str, list[int]] = {name: [0] * len(prompt) for name in self.registers}
        system = {part: self.qkvl["register_map"][name] for part, name in self.qkvl["system_map"].items()}
        if "parse" in system:
            values[system["parse"]] = [self.index("1")] * len(prompt)
        for name, value in self.qkvl.get("initial", {}).items():
            values[name] = [self.index(value)] * len(prompt)
        values[system["symbol"]] = prompt
        values[system["position"]] = [self.index(str(p)) for p in range(1, len(prompt) + 1)]
        if "eop" in system:
            values[system["eop"]][-1] = self.index("EOP")
        cells = torch.stack([self.vector([values[name][p] for name in self.registers]) for p in range(len(prompt))])
        self.traces: list[list[State]] = []
        past: list[Any] = []
        for p, word in enumerate([None, *completion], start=len(prompt)):
            if word is not None:
                carried = self.values(cells[-1:])[0].tolist()
                carried[self.registers.index(system["position"])] = self.index(str(p))
                carried[self.registers.index(system["symbol"])] = word
                cells = self.vector(carried)[None]
            self.traces.append([(None, (), self.values(cells))])
            self.layer = -1
            tree, cells = self.body(self.qkvl["weights"], cells, past, ())
            past.append(tree)
        return self.traces

    def index(self, value: str) -> int:
        found = self.space.index(value)
        assert found is not None
        return found

    def vector(self, values: list[int]) -> Tensor:
        """(66): a one-hot vector for each register, one behind the other."""
        made = torch.zeros(len(values) * self.d)
        for register, value in enumerate(values):
            made[register * self.d + value] = 1
        return made

    def values(self, cells: Tensor) -> Tensor:
        """The value of each register [cells, M]; every register must be one-hot."""
        parts = cells.reshape(len(cells), len(self.registers), self.d)
        assert bool(((parts == 0) | (parts == 1)).all())
        assert bool((parts.sum(-1) == 1).all())
        return parts.argmax(-1)

    # ---------------------------------------------------------------------------------------------- layers and blocks

    def body(self, blocks: list[Any], cells: Tensor, past: list[Any], repetitions: tuple[int, ...]) -> Any:
        first, tree = self.layer, []
        for i, block in enumerate(blocks):
            if isinstance(block["weights"], list):
                rounds: list[Any] = []
                before_block = self.layer
                while True:
                    self.layer = before_block
                    earlier = [history[0][i][min(len(rounds), len(history[0][i]) - 1)] for history in past]
                    inner, after = self.body(block["weights"], cells, earlier, (*repetitions, len(rounds)))
                    rounds.append(inner)
                    ended = self.ends(block["until"], cells, after, [history[1] for history in earlier])
                    cells = after
                    if ended:
                        break
                    if len(rounds) == block["bound"]:
                        raise RecursionError
                tree.append(rounds)
            else:
                self.layer += 1
                tree.append(cells)
                readable = torch.cat([*(history[0][i] for history in past), cells])
                cells = self.production(block, self.weights[self.layer], cells, readable)
                self.traces[-1].append((self.layer, repetitions, self.values(cells)))
        assert self.layer > first
        return (tree, cells), cells

    def production(
        self, block: Mapping[str, Any], weights: Mapping[str, tuple[Tensor, Tensor]], cells: Tensor, readable: Tensor
    ) -> Tensor:
        """(70c)."""
        query, key, value = (weights[name] for name in ("query", "key", "value"))
        targets = len(block["weights"]["q"])
        outputs = []
        for N, cell in enumerate(cells, start=len(readable) - len(cells)):
            q = cell @ query[0] + query[1]
            order = range(len(readable))
            attended = None
            for n in reversed(order) if block["right_match"] else order:
                if block["causal_attn"] and n > N:
                    continue
                if q @ (readable[n] @ key[0] + key[1]) / targets == 1:
                    attended = n
                    break
            u = cell
            if attended is not None:
                u = cell + KAPPA * (readable[attended] @ value[0] + value[1])
            outputs.append(self.dat_norm(u))
        return torch.stack(outputs)

    def dat_norm(self, u: Tensor) -> Tensor:
        """(70c-iii)."""
        made = torch.zeros_like(u)
        for begin in range(0, len(u), self.d):
            register = u[begin : begin + self.d]
            if bool((register != 0).any()):
                made[begin + int(register.argmax())] = 1
        return made

    def ends(self, until: Mapping[str, Any], before: Tensor, after: Tensor, past: list[Tensor]) -> bool:
        if not until:
            return bool(torch.equal(before, after))
        readable = self.values(torch.cat([*past, after])).tolist()
        return any(
            all(self.matches(until["q"][x], of_N, until["k"][x], of_n) for x in until["q"])
            for of_N in self.values(after).tolist()
            for of_n in readable
        )

    def matches(self, query: Any, of_N: list[int], key: Any, of_n: list[int]) -> bool:
        """One entry of a query and a key, (62d-iv): one of the two is a single value."""
        (kind, one), (other_kind, other) = self.source(query, of_N), self.source(key, of_n)
        if kind:
            kind, one, other_kind, other = other_kind, other, kind, one
        assert not kind
        return bool(one) and ((one[0] in other) != (other_kind in ("!=", "not in")))

    def source(self, source: Any, values: list[int]) -> tuple[str, list[int]]:
        """What kind of condition it is, "" for a single value, and the values; none is an image that there is not."""
        if isinstance(source, list):
            if source[0] == "!=":
                return "!=", self.source(source[1], values)[1]
            return source[0], [self.index(value) for value in source[1:]]
        name, _, function = source.partition("@")
        if name not in self.registers:
            return "", [self.index(source)]
        value = values[self.registers.index(name)]
        if not function:
            return "", [value]
        text, largest = self.space.value(value), self.space.largest
        if function in ("pos_increment", "pos_decrement"):
            if text is None or not text.isdecimal() or str(int(text)) != text:
                return "", []
            number = int(text) + (1 if function == "pos_increment" else -1)
            return "", [self.index(str(number))] if 0 <= number <= largest else []
        image = self.qkvl["functions"][function].get(text)
        return "", [] if image is None else [self.index(image)]
