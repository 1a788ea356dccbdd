"""Productions as heads of common layers, (90a): the same function in fewer layers.

Between two repeat blocks, a production may share a layer with an earlier one, or overtake it, if nothing else changes:

| of two productions, the later one | its layer is |
|---|---|
| reads a register, in a test or as a value, that the earlier one assigns | a later layer |
| assigns a register that the earlier one assigns, and both may update the same cell | a later layer |
| assigns a register that the earlier one reads | the same layer or a later one: all heads read the layer's input |
| else | any |

Every production takes the first layer that these rules allow, so the number of layers is the longest chain of the first
two kinds of dependence, the least that keeps all of them. The states between the layers differ from those of the
program; at the end of each such run of productions, before and after every repetition of a block, they are the same. So
`until NO_CHANGE`, which compares whole repetitions, ends the same repetition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hf_mech.models.dat.dat_heads import conflicting, reads, writes
from hf_mech.models.dat.dat_program import Layer, constants_of
from hf_mech.models.dat.dat_program import read_program as read_dat_program
from hf_mech.models.dat.dat_values import ValueSpace
from hf_mech.programs.psl.language.errors import QKVLError
from hf_mech.programs.psl.qkvl import QKVLBlock, QKVLHeads, QKVLProduction, QKVLProgram, QKVLRepeat


def merge_heads(program: QKVLProgram) -> QKVLProgram:
    """The program with productions as heads of as few layers as possible.

    Raises:
        QKVLError: it has heads already.
    """
    if any(isinstance(layer, QKVLHeads) for layer in program.layers):
        raise QKVLError("the program has layers with heads already; merge the program that has one production a layer")
    json = program.to_json()
    resolved = read_dat_program(json, ValueSpace(1, constants_of(json, 1), 0))  # any T: only which names differ counts
    return replace(program, weights=_merged(program.weights, iter(resolved.productions)))


def _merged(blocks: Sequence[QKVLBlock], resolved: Iterator[Layer]) -> tuple[QKVLBlock, ...]:
    made: list[QKVLBlock] = []
    run: list[QKVLProduction] = []
    for block in blocks:
        if isinstance(block, QKVLProduction):
            run.append(block)
        elif isinstance(block, QKVLRepeat):
            made += _layers(run, resolved)
            made.append(replace(block, weights=_merged(block.weights, resolved)))
            run = []
    return (*made, *_layers(run, resolved))


def _layers(run: Sequence[QKVLProduction], resolved: Iterator[Layer]) -> list[QKVLBlock]:
    """The layers of productions between two repeat blocks."""
    made: list[QKVLBlock] = []
    for layer in schedule([next(resolved) for _ in run]):
        heads = tuple(run[index] for index in layer)
        comment = " + ".join(head.layer_comment or "?" for head in heads)
        made.append(heads[0] if len(heads) == 1 else QKVLHeads(heads, comment))
    return made


def schedule(productions: Sequence[Layer]) -> list[list[int]]:
    """The productions of every layer, by their indices in order."""
    layers: list[int] = []
    for later in productions:
        least = 0
        for earlier, layer in zip(productions, layers, strict=False):
            if writes(earlier) & reads(later) or conflicting(earlier, later):
                least = max(least, layer + 1)
            elif reads(earlier) & writes(later):
                least = max(least, layer)
        layers.append(least)
    return [[i for i, own in enumerate(layers) if own == layer] for layer in range(max(layers, default=-1) + 1)]
