"""The walls of a scenario, read from its map: experts know them, observations do not show them."""

from __future__ import annotations

import re
import struct
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hf_mech.control.errors import EngineError
from hf_mech.control.vizdoom.engine import SCENARIO_FOLDER

_BLOCK = re.compile(r"(\w+)\s*(?://[^\n]*)?\s*\{([^}]*)\}")
_FIELD = re.compile(r"(\w+)\s*=\s*([^;]+);")


@cache
def walls(scenario: str, opaque: bool = False) -> NDArray[np.float64]:
    """The lines that stop a player.

    Args:
        scenario: its name in the vizdoom package.
        opaque: only those that stop looks and bullets too.

    Returns:
        [walls, 2, 2]: the two ends of each, (x, y) in map units.

    Raises:
        EngineError: the scenario's file is not a map in the UDMF format.
    """
    text = _lump((SCENARIO_FOLDER / f"{scenario}.wad").read_bytes(), b"TEXTMAP", scenario).decode("latin-1")
    blocks = [(kind, dict(_FIELD.findall(body))) for kind, body in _BLOCK.findall(text)]
    vertices = np.array([[float(v["x"]), float(v["y"])] for kind, v in blocks if kind == "vertex"])
    lines = [line for kind, line in blocks if kind == "linedef"]
    solid = [line for line in lines if "sideback" not in line or (line.get("blocking") == "true" and not opaque)]
    return vertices[[[int(line["v1"]), int(line["v2"])] for line in solid]]


def _lump(wad: bytes, wanted: bytes, scenario: str) -> bytes:
    """One part of a WAD file: a header, the parts, and a directory of offsets, sizes and names."""
    kind, count, directory = struct.unpack_from("<4sii", wad)
    for entry in range(count if kind == b"PWAD" else 0):
        offset, size, name = struct.unpack_from("<ii8s", wad, directory + 16 * entry)
        if name.rstrip(b"\0") == wanted:
            return wad[offset : offset + size]
    raise EngineError(f"The map of {scenario} in the vizdoom package is not in the UDMF format; install vizdoom again.")
