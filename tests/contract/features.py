"""The table feature x model of docs/features.md, read off the contract tests: a cell without a test cannot be written.

`python -m tests.contract.features` writes it; tests/docs checks that it is up to date.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .case import ContractCase
from .registry import contract_cases, family, is_made_on_demand, registered_models

PAGE = Path(__file__).parents[2] / "docs" / "features.md"
HEAD = """\
# Features of every model

Rendered by `make docs` from the tests of [tests/contract](../tests/contract), which run for every registered model. A
cell says yes if the tests of its row run for the model. If not, its number leads to the reason, which a test checks.
"""


#: The test files that the tables begin with.
FIRST = ("save_load", "trainer", "pipelines", "sft", "lora")


@dataclass(frozen=True)
class Proof:
    """A contract test with its markers."""

    module: str
    name: str
    marks: tuple[Any, ...]

    @property
    def feature(self) -> str | None:
        return next((mark.args[0] for mark in self.marks if mark.name == "feature"), None)

    def says(self, case: ContractCase) -> str:
        """What the cell says if the test runs: yes, or the strings that the mark's `says` makes of the case."""
        made = (mark.kwargs["says"](case) for mark in self.marks if "says" in mark.kwargs)
        return ", ".join(next(made, ["yes"]))

    @property
    def where(self) -> str:
        return f"[{self.name}](../tests/contract/{self.module}.py)"

    def missing(self, case: ContractCase) -> list[str]:
        """The capabilities that the test needs and the model does not have."""
        return [mark.args[0] for mark in self.marks if mark.name == "needs" and not case.has(mark.args[0])]


def proofs() -> Iterator[Proof]:
    """Every contract test with a feature."""
    order = {f"test_{name}": number for number, name in enumerate(FIRST)}
    for path in sorted(
        Path(__file__).parent.glob("test_*.py"), key=lambda path: (order.get(path.stem, len(order)), path.stem)
    ):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        of_module = getattr(module, "pytestmark", [])
        of_module = of_module if isinstance(of_module, list) else [of_module]
        for name, test in vars(module).items():
            if name.startswith("test_") and test.__module__ == module.__name__:
                proof = Proof(path.stem, name, (*of_module, *getattr(test, "pytestmark", ())))
                if proof.feature:
                    yield proof


def render() -> str:
    """The whole page: one table for each family and configuration, and the reasons."""
    rows: dict[str, list[Proof]] = {}
    for proof in proofs():
        rows.setdefault(str(proof.feature), []).append(proof)
    parts: list[str] = [HEAD]
    reasons: list[str] = []
    for config_class in dict.fromkeys(case.model_class.config_class for case in contract_cases()):
        cases = [case for case in contract_cases() if case.model_class.config_class is config_class]
        made = ", by `add_stack`: one decoder for all" if is_made_on_demand(config_class) else ""
        parts += [
            f"## `{config_class.model_type}`{made} ([hf_mech.models.{family(cases[0].model_class)}]"
            f"(../hf_mech/models/{family(cases[0].model_class)}/README.md))\n",
            "| | " + " | ".join(f"`{case.name}`" for case in cases) + " |",
            "|---" * (len(cases) + 1) + "|",
            "| Auto class | " + " | ".join(", ".join(registered_models()[case.model_class]) for case in cases) + " |",
        ]
        for feature, tests in rows.items():
            cells = [_cell(case, tests, reasons) for case in cases]
            parts.append(f"| {feature} | " + " | ".join(cells) + " |")
        parts.append("")
    parts += ["## Reasons\n", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1)), ""]
    parts += ["## Tests\n", "| feature | tests |", "|---|---|"]
    parts += [f"| {feature} | {', '.join(test.where for test in tests)} |" for feature, tests in rows.items()]
    return "\n".join(parts) + "\n"


def _cell(case: ContractCase, tests: list[Proof], reasons: list[str]) -> str:
    missing = [capability for test in tests for capability in test.missing(case)]
    if not missing:
        return tests[0].says(case)
    reason = f"{case.lacks[missing[0]]}."
    if reason not in reasons:
        reasons.append(reason)
    return f"no ({reasons.index(reason) + 1})"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(PAGE.name, "written.")
