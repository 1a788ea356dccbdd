"""Several sequences in one row, told apart by position ids that begin anew, are what they are alone."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from .batches import Batch, cast
from .case import ContractCase
from .compare import named

LENGTHS = (5, 3, 7)


def sequences(case: ContractCase) -> list[Batch]:
    """Sequences without padding, hence without a mask."""
    batches = [case.inputs(1, length, seed) for seed, length in enumerate(LENGTHS)]
    for batch in batches:
        batch.pop("attention_mask")
        batch["position_ids"] = torch.arange(batch["input_ids"].shape[1])[None] + case.first_position
    return batches


@pytest.mark.feature("packed rows")
@pytest.mark.needs("packing")
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_packed_sequences_are_those_sequences_alone(case: ContractCase, implementation: str):
    model = case.model(_attn_implementation=implementation).double()
    alone = [cast(batch, torch.float64) for batch in sequences(case)]
    packed = {name: torch.cat([batch[name] for batch in alone], 1) for name in alone[0] if alone[0][name].dim() > 1}
    without = [{name: values for name, values in batch.items() if "label" not in name} for batch in alone]
    with torch.no_grad():
        expected = [model(**batch) for batch in without]
        outputs = model(**{name: values for name, values in packed.items() if "label" not in name})
    for name in case.position_outputs:
        assert_close(outputs[name], torch.cat([one[name] for one in expected], 1), msg=named(name))


@pytest.mark.lacking("packing")
def test_without_packing_position_ids_are_refused(case: ContractCase):
    """Unless the model takes position ids for other uses, and has no output for each position."""
    if case.position_outputs:
        with pytest.raises((TypeError, ValueError), match="position_ids"):
            case.model()(**case.inputs(1, 5, 0), position_ids=torch.tensor([[0, 1, 2, 0, 1]]))
    else:
        assert case.row_outputs
