"""Several sequences in one row, told apart by position ids that begin anew, are what they are alone."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from .batches import cast
from .case import ContractCase
from .compare import named


@pytest.mark.feature("several sequences packed into one row")
@pytest.mark.needs("packing")
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_packed_sequences_are_those_sequences_alone(case: ContractCase, implementation: str):
    model = case.model(_attn_implementation=implementation).double()
    alone = [cast(batch, torch.float64) for batch in case.sequences()]
    with torch.no_grad():
        expected = [model(**batch) for batch in alone]
        outputs = model(**case.packed(alone))
    assert case.position_outputs
    for name in case.position_outputs:
        assert_close(outputs[name], torch.cat([one[name] for one in expected], 1), msg=named(name))


@pytest.mark.lacking("packing")
def test_without_packing_it_is_refused(case: ContractCase):
    with pytest.raises((TypeError, ValueError), match=r"position_ids|packed|several sequences"):
        case.model()(**case.packed(case.sequences()))
