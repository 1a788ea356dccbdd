"""Frames as the M-SAT Decision Transformer reads them: resized by nearest neighbour, RGB, channels first, uint8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from transformers.image_processing_utils import BaseImageProcessor, BatchFeature

from .checkpoints import CarriesCode
from .configuration_msat import MSATDecisionTransformerConfig, MSATError

CHANNELS = 3
WIDER_MODES = ("I", "F")
"""How Pillow's modes of larger numbers begin; to convert them cuts off all above 255."""


class MSATImageProcessor(CarriesCode, BaseImageProcessor):
    r"""Makes `states` of frames; numbers stay integers from 0 to 255, because the model scales them.

    Args:
        size (`dict`, *optional*): height and width of the result, by default `{"height": 72, "width": 128}`.
        do_resize (`bool`, *optional*, defaults to `True`): resize by nearest neighbour, as OpenCV and torch do,
            and as the frames of `hf_mech/vizdoom_trajectories` are made. Without it, frames of another size are
            refused. Pillow takes other pixels: the one that each new pixel's centre falls into.

    Raises:
        MSATError: a size that is none.

    Example:

    ```python
    >>> import numpy as np
    >>> from hf_mech.models.msat import MSATImageProcessor

    >>> frames = np.zeros((2, 120, 160, 3), dtype=np.uint8)  # of two environments
    >>> MSATImageProcessor(size={"height": 72, "width": 128})(frames, return_tensors="pt")["states"].shape
    torch.Size([2, 3, 72, 128])

    ```
    """

    model_input_names = ["states"]
    _auto_class = "AutoImageProcessor"  # saved with its code, loads without the package

    def __init__(self, size: Mapping[str, int] | None = None, do_resize: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = _size({"height": 72, "width": 128} if size is None else size)
        self.do_resize = do_resize

    @classmethod
    def of_config(cls, config: MSATDecisionTransformerConfig) -> MSATImageProcessor:
        """The processor that makes a model's frames.

        Raises:
            MSATError: a model of vectors, or of frames that are not RGB.
        """
        if not config.reads_frames or config.state_shape[0] != CHANNELS:
            raise MSATError(f"The model reads states {list(config.state_shape)}; the processor makes RGB frames.")
        _, height, width = config.state_shape
        return cls(size={"height": height, "width": width})

    def preprocess(
        self,
        images: Any,
        do_resize: bool | None = None,
        size: Mapping[str, int] | None = None,
        return_tensors: str | None = None,
    ) -> BatchFeature:
        """`states`, [frames, 3, height, width], uint8.

        Args:
            images: a frame or several: Pillow images, arrays or tensors, in a list or stacked. Arrays are
                [height, width], [height, width, channels] or [channels, height, width]; channels are 1, 3 or 4.
            do_resize, size: instead of the processor's own.
            return_tensors: `"pt"` or `"np"`; without it, a list of arrays.

        Raises:
            MSATError: no frames, a frame that is no image, numbers that are not integers from 0 to 255, or a frame of
                another size if resizing is off.
        """
        resize = self.do_resize if do_resize is None else do_resize
        wanted = self.size if size is None else _size(size)
        height, width = wanted["height"], wanted["width"]
        states: list[np.ndarray] = []
        for number, image in enumerate(_frames(images)):
            frame = _rgb(image, number)
            if frame.shape[:2] != (height, width):
                if not resize:
                    raise MSATError(
                        f"Frame {number} is {frame.shape[0]} x {frame.shape[1]} (height x width), the model reads "
                        f"{height} x {width}, and do_resize is off. Resize it, or set do_resize=True."
                    )
                frame = nearest(frame, height, width)
            states.append(np.ascontiguousarray(np.moveaxis(frame, -1, 0)))
        if not states:
            raise MSATError("There are no frames; give at least one.")
        return BatchFeature({"states": states}, tensor_type=return_tensors)


def nearest(frame: np.ndarray, height: int, width: int) -> np.ndarray:
    """A frame [height, width, ...] of another size: pixel i of n comes from pixel floor(i * m / n) of m."""
    rows, columns = (np.arange(new) * old // new for new, old in zip((height, width), frame.shape, strict=False))
    return frame[rows[:, None], columns]


def _size(size: Any) -> dict[str, int]:
    if not isinstance(size, Mapping) or not {"height", "width"} <= set(size):
        raise MSATError(f'size must be {{"height": ..., "width": ...}}, got {size!r}.')
    found = {name: size[name] for name in ("height", "width")}
    if not all(type(value) is int and value >= 1 for value in found.values()):
        raise MSATError(f"size must have a height and a width of at least 1, got {found}.")
    return found


def _frames(images: Any) -> list[Any]:
    """One frame or several, as a list."""
    if isinstance(images, Sequence) and not isinstance(images, str):
        parts = [_frames(image) for image in images]
        return [frame for part in parts for frame in part]
    if getattr(images, "ndim", 0) >= 4:
        return [frame for image in images for frame in _frames(image)]
    return [images]


def _rgb(image: Any, number: int) -> np.ndarray:
    """A frame as uint8 [height, width, 3]."""
    if hasattr(image, "convert") and hasattr(image, "mode") and not image.mode.startswith(WIDER_MODES):
        image = image.convert("RGB")  # Pillow knows the colours of its modes
    try:
        frame = np.asarray(image)
    except (TypeError, ValueError) as wrong:
        raise MSATError(f"Frame {number} is a {type(image).__name__}, expected an image or an array.") from wrong
    if frame.ndim == 2:
        frame = frame[..., None]
    if frame.ndim == 3 and frame.shape[-1] not in (1, 3, 4) and frame.shape[0] in (1, 3, 4):
        frame = np.moveaxis(frame, 0, -1)
    if frame.ndim != 3 or frame.shape[-1] not in (1, 3, 4) or 0 in frame.shape:
        raise MSATError(
            f"Frame {number} has the shape {list(frame.shape)}; expected [height, width], [height, width, channels] or "
            "[channels, height, width] with 1, 3 or 4 channels."
        )
    if not np.issubdtype(frame.dtype, np.integer):
        raise MSATError(
            f"Frame {number} holds {frame.dtype}; expected integers from 0 to 255. Do not scale frames: the model does."
        )
    if frame.dtype != np.uint8:
        if frame.min() < 0 or frame.max() > 255:
            raise MSATError(
                f"Frame {number} holds numbers from {frame.min()} to {frame.max()}; expected integers from 0 to 255."
            )
        frame = frame.astype(np.uint8)
    return np.repeat(frame, CHANNELS, -1) if frame.shape[-1] == 1 else frame[..., :CHANNELS]
