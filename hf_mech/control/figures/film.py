"""An episode as an animated GIF."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_GIF_COLOURS = 128
_FRAMES_SAMPLED = 12  # for the palette


def film(pictures: NDArray[np.uint8], frames_per_second: float = 35 / 4, scale: int = 1) -> bytes:
    """The file of a GIF that repeats itself; the last picture stays for a second.

    Args:
        pictures: [frames, height, width, 3].
        frames_per_second: a GIF's frame lasts a multiple of 10 ms.
        scale: every pixel becomes so many in both directions.

    Raises:
        ValueError: no pictures.
    """
    if len(pictures) == 0:
        raise ValueError("A film needs pictures, got none; make the environment with render_mode='rgb_array'.")
    pictures = pictures.repeat(scale, 1).repeat(scale, 2)
    # One palette for all frames: a GIF stores what changes, and colours that flicker change.
    some = pictures[np.linspace(0, len(pictures) - 1, min(_FRAMES_SAMPLED, len(pictures))).astype(int)]
    palette = Image.fromarray(some.reshape(-1, *some.shape[2:])).quantize(_GIF_COLOURS)
    frames = [Image.fromarray(one).quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    each = round(100 / frames_per_second) * 10
    written = io.BytesIO()
    frames[0].save(
        written,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[each] * (len(frames) - 1) + [1_000],
        loop=0,
        optimize=False,
    )
    return written.getvalue()
