"""torch.compile computes the same as the plain model, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.testing import assert_close

from .case import ContractCase
from .test_gradients import batch_for, objective


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
    plain, model = case.model().train(), case.model().train()
    compiled = torch.compile(model, backend=backend)
    batch = batch_for(case, 3, 8)
    expected, outputs = plain(**batch), compiled(**batch)
    for name in case.outputs:
        assert_close(outputs[name], expected[name])
    objective(case, expected).backward()
    objective(case, outputs).backward()
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert ours.grad is not None, name
        largest = theirs.grad.abs().max().item()  # rounding grows with the gradient
        assert_close(ours.grad, theirs.grad, rtol=1.3e-6, atol=1e-5 * max(1.0, largest))
