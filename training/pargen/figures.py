"""The picture of a card: Swap, the paper's running example, through every production of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.figure import Figure
from torch import Tensor
from transformers import PreTrainedModel

from hf_mech.models.dat.dat_trace import LayerState
from hf_mech.viz.dat_program_grid import Cell, ProductionRow, Writing, program_figure

from .run import compiled

SWAP = "Q B C V D E A D E V B C . Q F G V J K L A"  # (27a)
_TWO_SHOTS = "Q B C V D E A D E V B C . Q P V R S A R S V P . Q F G V J K L A"
_PROMPTS = {"pargen": SWAP, "pargen_k_shot": _TWO_SHOTS}
_REGISTERS = {"r": "region", "f": "field", "s": "symbol", "p": "position", "t": "type", "d": "index"}  # as in (36)
_CORNERS = ("r", "f", "t", "d")
_SAYS = "s"
_NEUTRAL = ("FQ", "FA")
_POSITIONS, _OPEN = 64, 64  # enough for these prompts


def parse_figure(program: str) -> Figure:
    """The parse of the program's example, its completion, and which production wrote what.

    Prompt cells are shown as they are when the last cell goes over to generating, the others as they begin.
    """
    model, tokenizer = compiled(program, _POSITIONS, _OPEN)
    prompt = tokenizer(_PROMPTS[program], return_tensors="pt")
    said = model.generate(**prompt, max_new_tokens=_POSITIONS - prompt["input_ids"].shape[1])
    *groups, _ = model.dat.trace(said)  # the last cell holds the stop word
    trace = _Trace(model, tokenizer, groups)
    completion = tokenizer.decode(said[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    return program_figure(
        trace.cells(),
        trace.productions(),
        _REGISTERS,
        colour_by="f",
        corners=_CORNERS,
        says=_SAYS,
        neutral=_NEUTRAL,
        title=f"{_PROMPTS[program]}   →   {completion.rpartition(' ')[0]}",
    )


class _Trace:
    """The states of all cells of one prompt and its completion, in words."""

    def __init__(self, model: PreTrainedModel, tokenizer: object, groups: Sequence[Sequence[LayerState]]):
        self.program, self.values, self.groups = model.dat.program, model.config.values, groups
        self.names = tokenizer.convert_ids_to_tokens  # type: ignore[attr-defined]
        self.parsing = next(
            state
            for state in reversed(groups[0])
            if self._states(state.values)[-1].get("a") == "1"  # the last cell has not begun to generate
        )

    def _states(self, values: Tensor) -> list[Mapping[str, str]]:
        """Of every cell of a group, [1, cells, registers], the registers that are not nil."""
        return [
            {name: self.names([index])[0] for name, index in zip(self.program.registers, cell, strict=True) if index}
            for cell in values[0].tolist()
        ]

    def cells(self) -> list[Cell]:
        parsed = [Cell(state) for state in self._states(self.parsing.values)]
        made = [Cell(state, made=True) for group in self.groups[1:] for state in self._states(group[0].values)]
        return parsed + made

    def productions(self) -> list[ProductionRow]:
        writings: list[dict[int, Writing]] = [{} for _ in self.program.layers]
        repetitions: list[int | None] = [None] * len(self.program.layers)
        names = (*_CORNERS, _SAYS)
        shown = [self.program.registers.index(name) for name in names]
        first = 0
        for group in self.groups:
            for before, after in pairwise(group):
                assert after.layer is not None
                repetition = after.repetitions[-1] + 1 if after.repetitions else None
                if repetition is not None and group is self.groups[0]:
                    repetitions[after.layer] = repetition
                changed = before.values[0] != after.values[0]
                for cell in torch.nonzero(changed[:, shown].any(1)).flatten().tolist():
                    state = self._states(after.values[:, cell : cell + 1])[0]
                    new = {name: state[name] for name, i in zip(names, shown, strict=True) if changed[cell, i]}
                    writings[after.layer][first + cell] = Writing(new, repetition)
            first += group[0].values.shape[1]
        return [
            ProductionRow(layer.comment, made, repeated)
            for layer, made, repeated in zip(self.program.layers, writings, repetitions, strict=True)
        ]
