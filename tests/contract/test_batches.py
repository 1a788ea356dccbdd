"""A row's outputs depend on that row alone: not on padding, not on its neighbours, not on how it is computed."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch.testing import assert_close

from .batches import cast, row
from .case import ContractCase

DOUBLE = torch.float64


def run(case: ContractCase, batch: dict[str, torch.Tensor], dtype: torch.dtype = DOUBLE, **config: Any) -> Any:
    model = case.model(**config).to(dtype)
    with torch.no_grad():
        return model(**cast(batch, dtype))


@pytest.mark.feature("padding on either side changes nothing")
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(case: ContractCase, side: Literal["left", "right"]):
    batch = case.inputs(3, 8, 0)
    plain, padded = run(case, batch), run(case, case.pad(batch, 4, side))
    real = slice(4, None) if side == "left" else slice(None, 8)
    for name in case.position_outputs:
        assert_close(padded[name][:, real], plain[name])
    for name in case.row_outputs:
        assert_close(padded[name], plain[name])
    if case.has("loss"):
        assert_close(padded["loss"], plain["loss"])


def test_a_batch_of_one_is_that_row_of_a_larger_batch(case: ContractCase):
    batch = case.questions(4, 8, 0)
    together = run(case, batch)
    for index in range(4):
        alone = run(case, row(batch, index))
        for name in case.outputs:
            assert_close(alone[name][0], together[name][index])


@pytest.mark.feature("`step`: one token at a time, constant memory")
@pytest.mark.needs("stream")
@pytest.mark.parametrize("side", ["left", "right"])
def test_streaming_is_forward(case: ContractCase, side: Literal["left", "right"]):
    assert case.stream is not None
    batch = case.pad(case.questions(3, 8, 0), 2, side)
    model = case.model().to(DOUBLE)
    real = slice(2, None) if side == "left" else slice(None, 8)
    with torch.no_grad():
        outputs, streamed = model(**cast(batch, DOUBLE)), case.stream(model, cast(batch, DOUBLE))
    assert streamed
    for name, values in streamed.items():
        assert_close(values[:, real], outputs[name][:, real], check_dtype=False)


@pytest.mark.feature("`attn_implementation='sdpa'`")
@pytest.mark.needs("sdpa")
@pytest.mark.parametrize("side", ["left", "right"])
def test_eager_is_sdpa(case: ContractCase, side: Literal["left", "right"]):
    batch = case.pad(case.inputs(3, 8, 0), 3, side)
    real = slice(3, None) if side == "left" else slice(None, 8)
    eager = run(case, batch, case.eager_dtype, _attn_implementation="eager")
    sdpa = run(case, batch, case.eager_dtype, _attn_implementation="sdpa")
    for name in case.position_outputs:
        assert_close(sdpa[name][:, real], eager[name][:, real])
    for name in case.row_outputs:
        assert_close(sdpa[name], eager[name])
