"""Gives every test of this folder that asks for a `case` all the models it applies to, and no others.

`@pytest.mark.needs("sdpa")` keeps a test for the models that have the capability, `@pytest.mark.lacking("sdpa")` for
those that do not. What does not apply is not collected.
"""

from __future__ import annotations

import pytest

from .case import CAPABILITIES, ContractCase
from .registry import contract_cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", contract_cases(), ids=lambda case: case.name, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _applies(item)]


def _applies(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
    if not isinstance(case, ContractCase):
        return True
    for marker, wanted in (("needs", True), ("lacking", False)):
        for mark in item.iter_markers(marker):
            (capability,) = mark.args
            if capability not in CAPABILITIES:
                raise pytest.UsageError(f"{item.nodeid}: no capability {capability!r}; there are {list(CAPABILITIES)}.")
            if case.has(capability) is not wanted:
                return False
    return True
