"""A picture of a compiled program at work: a prompt's cells, its completion, and the writes of every production."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.figure import Figure
from torch import Tensor

from hf_mech.models.dat.dat_trace import LayerState
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.psl.program_grid import Cell, ProductionRow, Writing, program_figure


def trace_figure(
    model: DATForCausalLM,
    tokenizer: DATTokenizer,
    prompt: str,
    registers: Mapping[str, str],
    *,
    corners: Sequence[str],
    symbol: str,
    colour_by: str,
    neutral: Sequence[str] = (),
) -> Figure:
    """The run of one prompt, cell by cell and production by production.

    Prompt cells are shown as they are when they are parsed: in the last layer in which the parse register of the last
    cell holds `1`, or after all layers if the program has no such register. Generated cells are shown as they are
    before the first layer.

    Args:
        model, tokenizer: a compiled program, for example from `compile_program`.
        prompt: the words.
        registers: short name of a register to its name in the picture.
        corners: the registers in the corners of a cell.
        symbol: the register in the middle of a cell.
        colour_by: the register whose values colour the cells.
        neutral: values of `colour_by` that are left grey.
    """
    batch = tokenizer(prompt, return_tensors="pt")
    room = model.config.max_position_embeddings - batch["input_ids"].shape[1]
    said = model.generate(**batch, max_new_tokens=room)
    groups = model.dat.trace(said)
    trace = _Trace(model, tokenizer, groups, (*corners, symbol))
    completion = tokenizer.decode(said[0, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return program_figure(
        trace.cells(),
        trace.productions(),
        dict(registers),
        colour_by=colour_by,
        corners=tuple(corners),
        says=symbol,
        neutral=tuple(neutral),
        title=f"{prompt}   →   {completion}",
    )


class _Trace:
    """The states of all cells of one prompt and its completion, in words."""

    def __init__(
        self,
        model: DATForCausalLM,
        tokenizer: DATTokenizer,
        groups: Sequence[Sequence[LayerState]],
        shown: Sequence[str],
    ) -> None:
        self.program, self.groups, self.shown = model.dat.program, groups, shown
        self.names = tokenizer.convert_ids_to_tokens
        self.parsing = groups[0][-1]
        if (parse := self.program.parts.get("parse")) is not None:
            name = self.program.registers[parse]
            own = (state for state in reversed(groups[0]) if self._states(state.values)[-1].get(name) == "1")
            self.parsing = next(own, self.parsing)

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
        shown = [self.program.registers.index(name) for name in self.shown]
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
                    new = {name: state[name] for name, i in zip(self.shown, shown, strict=True) if changed[cell, i]}
                    writings[after.layer][first + cell] = Writing(new, repetition)
            first += group[0].values.shape[1]
        return [
            ProductionRow(layer.comment, made, repeated)
            for layer, made, repeated in zip(self.program.layers, writings, repetitions, strict=True)
        ]
