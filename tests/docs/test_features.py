"""docs/features.md is what the contract tests say today."""

from __future__ import annotations

import pytest

from tests.contract.features import PAGE, proofs, render

pytestmark = pytest.mark.docs


def test_the_page_is_rendered_from_the_tests() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "out of date: run make docs"


def test_there_are_features() -> None:
    assert len({proof.feature for proof in proofs()}) > 15
