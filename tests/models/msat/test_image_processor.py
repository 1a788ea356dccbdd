"""The image processor: nearest neighbour, RGB, channels first, integers; saved with the checkpoint and its code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoProcessor

from hf_mech.control.vizdoom.environment import NearestNeighbour
from hf_mech.models.msat import MSATDecisionTransformer, MSATError, MSATImageProcessor

from .contract import config, inputs

SIZE = {"height": 36, "width": 64}


def frames(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


@pytest.mark.parametrize("size", [(72, 128), (36, 64), (60, 80), (50, 131)], ids=str)
@pytest.mark.parametrize("given", [(120, 160), (72, 128), (61, 50), (37, 131)], ids=str)
def test_resizing_is_the_nearest_neighbour_of_the_training_data(given: tuple[int, int], size: tuple[int, int]):
    """What an engine draws becomes what the model was trained on; ViZDoom's sizes among others."""
    frame = frames(*given, 3)
    (state,) = MSATImageProcessor(size=dict(zip(("height", "width"), size, strict=True)))(frame)["states"]
    assert state.dtype == np.uint8
    assert np.array_equal(state, NearestNeighbour(given, size)(frame).transpose(2, 0, 1))
    torchs = torch.nn.functional.interpolate(torch.from_numpy(frame).permute(2, 0, 1)[None].double(), size)
    assert np.array_equal(state, torchs[0].numpy())


def test_frames_in_every_form_are_the_same_states():
    many = frames(2, 40, 70, 3)
    processor = MSATImageProcessor(size=SIZE)
    expected = processor(many, return_tensors="pt")["states"]
    assert expected.shape == (2, 3, 36, 64)
    assert expected.dtype == torch.uint8
    for form in (
        list(many),
        [[many[0]], [many[1]]],
        torch.from_numpy(many),
        many.astype(np.int64),
        many.transpose(0, 3, 1, 2),
        [Image.fromarray(frame) for frame in many],
        np.concatenate([many, many[..., :1]], -1),  # alpha
    ):
        assert torch.equal(processor(form, return_tensors="pt")["states"], expected)
    gray = processor(many[0, :, :, 0], return_tensors="np")["states"]
    assert np.array_equal(gray[0, 0], gray[0, 2])
    assert np.array_equal(gray[0, 0], expected[0, 0].numpy())
    palette = Image.fromarray(many[0]).convert("P")
    assert processor(palette, return_tensors="pt")["states"].shape == (1, 3, 36, 64)


@pytest.mark.parametrize(
    ("said", "given"),
    [
        (r"40 x 70 \(height x width\), the model reads 36 x 64, and do_resize is off", frames(40, 70, 3)),
        ("float64; expected integers from 0 to 255. Do not scale", frames(36, 64, 3, dtype=np.float64) / 255),
        ("numbers from 0 to 510", frames(36, 64, 3, dtype=np.int32) * 2),
        (r"shape \[36, 64, 5\]", frames(36, 64, 5)),
        (r"shape \[36\]", frames(36)),
        ("Frame 1 .*40 x 64", [frames(36, 64, 3), frames(40, 64, 3)]),
        ("expected", ["a frame"]),
        ("expected", [None]),
        ("no frames", []),
        ("float32; expected integers", Image.fromarray(np.full((36, 64), 0.5, np.float32))),
        ("numbers from 0 to 65535", Image.fromarray(np.linspace(0, 65535, 36 * 64).astype(np.uint16).reshape(36, 64))),
    ],
)
def test_frames_that_cannot_be(said: str, given: object):
    with pytest.raises(MSATError, match=said):
        MSATImageProcessor(size=SIZE, do_resize=False)(given)


@pytest.mark.parametrize(
    "size", [{"height": 36}, 36, {"height": 0, "width": 64}, {"height": 36.5, "width": 64}], ids=str
)
def test_a_size_that_is_none(size: object):
    with pytest.raises(MSATError, match="size must"):
        MSATImageProcessor(size=size)


def test_a_checkpoint_has_its_processor(tmp_path: Path):
    model = MSATDecisionTransformer(config()).eval()
    model.save_pretrained(tmp_path)
    for auto_class in (AutoImageProcessor, AutoProcessor):
        processor = auto_class.from_pretrained(tmp_path)
        assert type(processor) is MSATImageProcessor
        assert processor.size == {"height": 36, "width": 36}
    states = processor(frames(2, 120, 160, 3), return_tensors="pt")
    assert model.act(**states, context=model.start_context(2), returns_to_go=1.8).shape == (2, 3)
    assert inputs(1, 2, 0)["states"].shape[2:] == states["states"].shape[1:]


def test_a_processor_of_your_own_stays(tmp_path: Path):
    MSATImageProcessor(size={"height": 36, "width": 36}, do_resize=False).save_pretrained(tmp_path)
    MSATDecisionTransformer(config()).save_pretrained(tmp_path)
    assert not AutoImageProcessor.from_pretrained(tmp_path).do_resize


def test_models_of_vectors_have_none(tmp_path: Path):
    MSATDecisionTransformer(config(state_shape=[4])).save_pretrained(tmp_path)
    assert not (tmp_path / "preprocessor_config.json").exists()
    with pytest.raises(MSATError, match="RGB"):
        MSATImageProcessor.of_config(config(state_shape=[4]))
