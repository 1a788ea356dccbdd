"""Gives every test of this folder that asks for a `case` all the models it applies to, and no others.

`@pytest.mark.needs("sdpa")` keeps a test for the models that have the capability, `@pytest.mark.lacking("sdpa")` for
those that do not. What does not apply is not collected. A test that asks for `one` gets one case of each configuration.

In the quick suite a test runs for one head of every configuration, the first that it applies to; for the others it is
slow.
"""

from __future__ import annotations

import pytest

from .case import CAPABILITIES, ContractCase
from .registry import contract_cases, one_case_each


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", contract_cases(), ids=lambda case: case.name, scope="module")
    if "one" in metafunc.fixturenames:
        ids = [type(case.config()).__name__ for case in one_case_each()]
        metafunc.parametrize("one", one_case_each(), ids=ids, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _applies(item)]
    bodies = set()
    for item in items:
        case, test = _case_of(item), item.nodeid.partition("[")[0]
        if case:
            others = [str(value) for name, value in item.callspec.params.items() if name != "case"]  # type: ignore[attr-defined]
            one = (test, case.model_class.config_class, *others)
            if one in bodies and not item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.slow)
            bodies.add(one)


def _case_of(item: pytest.Item) -> ContractCase | None:
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
    return case if isinstance(case, ContractCase) else None


def _applies(item: pytest.Item) -> bool:
    if (case := _case_of(item)) is None:
        return True
    for marker, wanted in (("needs", True), ("lacking", False)):
        for mark in item.iter_markers(marker):
            (capability,) = mark.args
            if capability not in CAPABILITIES:
                raise pytest.UsageError(f"{item.nodeid}: no capability {capability!r}; there are {list(CAPABILITIES)}.")
            if case.has(capability) is not wanted:
                return False
    return True
