"""A model as an ONNX file, run by onnxruntime, computes what it computes in PyTorch, for any batch and length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.utils import _pytree

from .batches import Batch
from .case import ContractCase

pytestmark = [
    pytest.mark.slow,
    # torch's exporter meets its own old names, and says which of two names of a dimension it takes.
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:# The axis name:UserWarning"),
]


def given(case: ContractCase, batch: int, length: int) -> Batch:
    """Inputs with padding on the left of one row, if the model takes a mask."""
    questions = case.questions(batch, length, 0)
    if "attention_mask" in questions and batch > 1:
        questions["attention_mask"][0, ..., :2] = 0
    return questions


def exported(case: ContractCase) -> tuple[Any, Any]:
    """The model, and the program that torch.onnx makes of it with inputs of two rows and nine positions."""
    model, example = case.model(use_cache=False), given(case, 2, 9)
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    shapes = {
        name: {0: batch} | ({case.length_dim: length} if tensor.dim() > case.length_dim else {})
        for name, tensor in example.items()
    }
    return model, torch.onnx.export(model, (), kwargs=example, dynamic_shapes=shapes, dynamo=True, verbose=False)


@pytest.mark.feature("ONNX, any batch and length")
@pytest.mark.needs("export")
def test_onnxruntime_computes_the_same(case: ContractCase, tmp_path: Path):
    model, program = exported(case)
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for size, length in ((1, 7), (3, 14)):
        batch = given(case, size, length)
        with torch.no_grad():
            expected = _pytree.tree_leaves(model(**batch))
        # A model may leave out inputs that change nothing.
        taken = {found.name: batch[found.name].numpy() for found in session.get_inputs()}
        mask = batch.get("attention_mask", torch.ones(size, length)).bool().numpy()
        for ours, theirs in zip(session.run(None, taken), expected, strict=True):
            # A belief-state file keeps a column for the suffixes' end token, which PyTorch cuts where no row needs it.
            assert all(0 <= more <= 1 for more in np.subtract(ours.shape, theirs.shape))
            ours = ours[tuple(slice(size) for size in theirs.shape)]
            of_tokens = ours.shape[: mask.ndim] == mask.shape
            ours, theirs = (values[mask] if of_tokens else values for values in (ours, theirs.numpy()))
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.lacking("export")
def test_without_export_it_is_refused(case: ContractCase):
    with pytest.raises(torch.onnx.errors.OnnxExporterError):
        exported(case)
