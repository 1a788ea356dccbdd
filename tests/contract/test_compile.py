"""torch.compile computes the same as the plain model, forward and backward."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import torch
from torch.testing import assert_close

from .batches import cast
from .case import ContractCase
from .test_gradients import batch_for, objective

close = functools.partial(assert_close, rtol=1.3e-6, atol=1e-5)
"""The bounds of `assert_close` in float32."""


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.feature("`torch.compile`")
# Where the graph breaks, dynamo looks at `.grad` of the tensors that cross, and hides the warning from the screen only.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf Tensor:UserWarning")
# inductor's own modules still use torch.jit.
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_is_eager(case: ContractCase, backend: str):
    plain, model = (case.model().to(case.compile_dtype).train() for _ in range(2))
    compiled = torch.compile(model, backend=backend)
    batch = cast(batch_for(case, 3, 8), case.compile_dtype)
    expected, outputs = plain(**batch), compiled(**batch)
    for name in case.outputs:
        close(outputs[name], expected[name])
    objective(case, expected).backward()
    objective(case, outputs).backward()
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert ours.grad is not None, name
        close(ours.grad, theirs.grad)
