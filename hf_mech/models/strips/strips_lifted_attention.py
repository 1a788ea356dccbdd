"""Attention of the lifted STRIPS Transformer: a head for each ground atom, theta shared by all groundings.

A head is a predicate and its objects. An action matches the head through the patterns (cells) that put these objects
there. Without an object twice in an action, one pattern matches at most, and the head's query, key and value (Eq.
11-13) are that cell's. Several patterns of an action that match one atom are joined by [`pool`].

theta is [members, cells, 3] here; `input_ids` [batch, length], negative at padding; `objects` [batch, length, places].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .strips_attention import failing, strips_attention, strips_attention_reference
from .strips_cells import Cells

#: Up to this size all atoms are padded to the one with most events, which is fastest.
MOST_PADDED = 1_000_000


def pool(theta: Tensor, sets: Tensor) -> Tensor:
    """Query, key and value of an atom for an action that matches it through a set of cells.

    Over the cells c of the set, OR as in Eq. 17:

        query = OR theta(c, 1)      key = OR theta(c, 2)      added = OR theta(c, 2) (1 - theta(c, 3))
        value = 1 - added / key

    For binary theta: needed if any cell needs it, affected if any affects it, added if any adds it (as in PDDL). For a
    single cell: its three numbers.

    Args:
        theta: [members, cells, 3].
        sets: the cells of each set, [sets, most], the number of cells beyond a set's end.

    Returns:
        [members, 1, sets, 3]: a theta of one head, whose actions are the sets.
    """
    chosen = torch.cat([theta, theta.new_zeros(len(theta), 1, 3)], 1)[:, sets]  # [members, sets, most, 3]
    if sets.shape[1] == 1:
        return chosen.squeeze(2).unsqueeze(1)
    query, key, value = chosen.unbind(-1)
    affected, added = _any(key), _any(key * (1 - value))
    deleted = 1 - added / affected.clamp(min=torch.finfo(theta.dtype).tiny)
    single = sets[:, 1] == theta.shape[1]
    return torch.stack([_any(query), affected, torch.where(single, value[..., 0], deleted)], -1).unsqueeze(1)


# ---------------------------------------------------------------------------------------------------- the reference


def unroll(
    theta: Tensor, cells: Cells, ids: Sequence[int], objects: Sequence[Sequence[int]]
) -> tuple[Tensor, list[tuple[int, ...]]]:
    """The propositional theta of some ground actions.

    Args:
        theta: [members, cells, 3].
        cells: what theta's cells stand for.
        ids: of the actions, [actions]; negative ones have no atom.
        objects: of each action.

    Returns:
        [members, atoms, actions, 3], and the atoms, each its predicate's number and its objects.
    """
    atoms = cells.atoms(ids, objects)
    where = [(head, position) for head, matches in enumerate(atoms.values()) for position in matches]
    sets = [own for matches in atoms.values() for own in matches.values()]
    most = max(map(len, sets), default=1)
    padded = [own + [theta.shape[1]] * (most - len(own)) for own in sets]
    found = pool(theta, torch.tensor(padded, device=theta.device).view(-1, most).long())
    head, position = torch.tensor(where, device=theta.device).view(-1, 2).long().unbind(1)
    ground = theta.new_zeros(len(theta), len(atoms), len(ids), 3)
    ground[:, head, position] = found[:, 0]
    return ground, list(atoms)


def lifted_attention_reference(
    theta: Tensor, cells: Cells, input_ids: Tensor, objects: Tensor, failed: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Eq. 11-17 exactly as in the paper, on each row's ground atoms.

    Args:
        failed: where an action is known to have failed, so that it changed nothing, bool [batch, length].

    Returns:
        y_p [batch, length, members, predicates], the OR over a predicate's heads; y [batch, length, members]; the
        scores S' of Eq. 15 [batch, members, heads, length, length], a row's heads followed by zeros; the heads' atoms
        [batch, heads, 1 + arguments], each a predicate's number and its objects, -1 where there is none.
    """
    batch, length = input_ids.shape
    predicates, arguments = len(cells.predicates), cells.places.shape[1]
    rows = []
    for number, ids in enumerate(input_ids):
        ground, atoms = unroll(theta, cells, ids.tolist(), objects[number].tolist())
        positions = torch.where(ids >= 0, torch.arange(length, device=ids.device), -1)[None]
        if failed is not None:
            ground, positions = failing(ground, positions, failed[number][None])
        heads, scores, attention = strips_attention_reference(ground, positions)
        rows.append((heads[0], scores[0], attention[0], atoms))
    most = max(len(atoms) for *_, atoms in rows)
    outputs = theta.new_zeros(batch, length, len(theta), predicates)
    attentions = theta.new_zeros(batch, len(theta), most, length, length)
    named = torch.full((batch, most, 1 + arguments), -1)
    for number, (heads, _, attention, atoms) in enumerate(rows):
        attentions[number, :, : len(atoms)] = attention
        for head, atom in enumerate(atoms):
            named[number, head, : len(atom)] = torch.tensor(atom)
        for predicate in range(predicates):
            own = [head for head, atom in enumerate(atoms) if atom[0] == predicate]
            outputs[number, :, :, predicate] = _any(heads[:, :, own])
    return outputs, torch.stack([scores for _, scores, *_ in rows]), attentions, named.to(input_ids.device)


# -------------------------------------------------------------------------------------------------------- the fast form


class Events(NamedTuple):
    """The actions that match each ground atom of a batch, one after the other: by atom, then by time.

    Args:
        sets: the cells through which an action matches an atom, [sets, most], see `pool`.
        ids: the set of each event, [events + 1]; -1 at the last, which is none.
        failed: the events that changed nothing, bool [events + 1].
        slots: for each position and predicate its events, [batch, length, predicates, most].
        rows: the events of some atoms, [atoms, longest] each; the last one beyond an atom's end.
    """

    sets: Tensor
    ids: Tensor
    failed: Tensor
    slots: Tensor
    rows: tuple[Tensor, ...]


def lifted_attention(
    theta: Tensor, cells: Cells, input_ids: Tensor, objects: Tensor, failed: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The fast form: each head reads only the actions that match its atom, in linear time (`strips_attention`).

    Args:
        theta: [members, cells, 3].
        cells: which pattern each cell is.
        input_ids: actions, [batch, length].
        objects: their arguments, [batch, length, parameters].
        failed: where an action is known to have failed, bool [batch, length].

    Returns:
        The first two results of [`lifted_attention_reference`], values and gradients equal to rounding: y_p [batch,
        length, members, predicates] and y [batch, length, members].
    """
    return _lifted_attention(theta, cells, input_ids, objects, failed)


@torch.compiler.disable
def _lifted_attention(
    theta: Tensor, cells: Cells, input_ids: Tensor, objects: Tensor, failed: Tensor | None
) -> tuple[Tensor, Tensor]:
    events = find_events(cells, input_ids, objects, failed)
    table = pool(theta, events.sets.to(theta.device))
    found = []
    for row in events.rows:  # an atom is a row, and the sets of cells are its actions
        shown, ids = table, events.ids[row].to(theta.device)
        if bool(events.failed[row].any()):
            shown, ids = failing(table, ids, events.failed[row].to(theta.device))
        heads, _ = strips_attention(shown, ids)  # [atoms, longest, members, 1]
        found.append(heads[ids >= 0].squeeze(-1))
    order = torch.cat([row[row < len(events.ids) - 1] for row in events.rows]).argsort()
    flat = torch.cat([torch.cat(found)[order.to(theta.device)], theta.new_zeros(1, len(theta))])
    outputs = _any(flat[events.slots.to(theta.device)].transpose(-1, -2)).transpose(-1, -2)
    return outputs, _any(outputs)


def find_events(cells: Cells, input_ids: Tensor, objects: Tensor, failed: Tensor | None) -> Events:
    """The events of a batch; arguments as for [`lifted_attention`]."""
    ids, objs = input_ids.cpu().numpy(), objects.cpu().numpy()
    batch, length = ids.shape
    lost = np.zeros(ids.shape, bool) if failed is None else failed.cpu().numpy()

    # Each match of a pattern: its row, column, cell and atom.
    row, column = np.nonzero(ids >= 0)
    number = cells.of_action[ids[row, column]]
    which, slot = np.nonzero(number >= 0)
    cell, row, column = number[which, slot], row[which], column[which]
    _, named = np.unique(objs, return_inverse=True)  # objects may have any numbers
    named = named.reshape(objs.shape)
    atom = row * len(cells.predicates) + cells.predicate[cell]
    for place in cells.places[cell].T:
        own = np.where(place >= 0, named[row, column, place] + 1, 0) if objs.shape[2] else 0
        _, atom = np.unique(atom * (named.size + 1) + own, return_inverse=True)

    # Each event: an atom and a position, by the atom and then by time; it may have several matches.
    keys, first, event = np.unique(atom * length + column, return_index=True, return_inverse=True)
    of_atom = keys // length
    order = np.argsort(event, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(event[order], event[order])
    sets = np.full((len(keys), 1 + rank.max(initial=0)), len(cells.all), np.int64)
    sets[event[order], rank] = cell[order]
    sets, kind = np.unique(sets, axis=0, return_inverse=True)

    none = len(keys)
    slots = np.full((batch, length, len(cells.predicates), 1 + cells.rank.max(initial=0)), none, np.int64)
    slots[row[first], column[first], cells.predicate[cell[first]], cells.rank[cell[first]]] = np.arange(none)
    of_event = np.append(kind.reshape(-1), -1)
    nothing = np.append(lost[row[first], column[first]], False)
    rows = tuple(map(torch.from_numpy, _rows(np.bincount(of_atom, minlength=1))))
    as_tensor = torch.from_numpy
    return Events(as_tensor(sets), as_tensor(of_event), as_tensor(nothing), as_tensor(slots), rows)


def _rows(counts: np.ndarray) -> list[np.ndarray]:
    """The numbers of each atom's events, [atoms, longest], from how many it has; atoms of like numbers together."""
    ends = counts.cumsum()
    size = np.ceil(np.log2(counts.clip(1))).astype(int)
    if len(counts) * counts.max() <= MOST_PADDED:
        size[:] = 0
    rows = []
    for kind in np.unique(size):
        own = np.flatnonzero(size == kind)
        longest = np.arange(counts[own].max())
        rows.append(np.where(longest < counts[own, None], (ends - counts)[own, None] + longest, ends[-1]))
    return rows


def _any(parts: Tensor) -> Tensor:
    """The real-valued OR over the last dimension, as in Eq. 17."""
    return 1 - (1 - parts).prod(-1)
