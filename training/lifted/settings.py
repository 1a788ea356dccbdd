"""The settings of a cell: a domain, the kind of its log, and who learns from it."""

from __future__ import annotations

from dataclasses import dataclass

from hf_mech.planning.lifted.domains import DOMAINS
from hf_mech.planning.lifted.walks import LogSettings

from ..engine import Settings, axis, fixed, option

LEARNERS = ("code", "alternation", "locm")
BURN_IN = 30
CONDITIONS = {
    "clean": LogSettings(burn_in=BURN_IN),
    "habits": LogSettings(burn_in=BURN_IN, walk_bias=4),
    "wrong_action_2": LogSettings(burn_in=BURN_IN, wrong_action=0.02),
    "wrong_action_5": LogSettings(burn_in=BURN_IN, wrong_action=0.05),
    "missing_step_2": LogSettings(burn_in=BURN_IN, missing_step=0.02),
    "failures": LogSettings(burn_in=BURN_IN, failure_rate=0.1),
    "wrong_label_2": LogSettings(burn_in=BURN_IN, failure_rate=0.1, wrong_label=0.02),
    "goals": LogSettings(burn_in=BURN_IN, policy="expert", random_share=0.2),
}
"""How a log differs from uniform walks; the numbers are per cent. The traces of `goals` have 5 to 30 steps."""


@dataclass(frozen=True, kw_only=True)
class Cell(Settings):
    """A domain, a kind of log, a learner, a seed."""

    PRESETS = {"usual": {}}

    domain: str = axis("domains of hf_mech.planning.lifted.domains", DOMAINS, default=["all"])
    condition: str = axis("how the log differs from uniform walks", CONDITIONS, default=["clean"])
    learner: str = axis(
        "code: learn_lifted_domain; alternation: every predicate whose effects alternate in all traces, the test of "
        "SIFT; locm: macq's LOCM",
        LEARNERS,
        default=["code"],
    )
    seed: int = fixed("of the instances, the log and the test")
    actions: int = option("in the log, at most", default=2_000, least=8)
    length: int = option("steps of a trace", default=50, least=2)
    instances: int = option("small instances in the log; they share no objects", default=4, least=1)
    walks: int = option("test walks in three big instances, and as many contradictions", default=1_000, least=3)
    limit: int = option("seconds that the alternation test and LOCM may take", default=120, least=1)
    models: bool = option("also measure the learned model as AMLGym does: applicability, plans, syntax", default=False)
    problems: int = option("problems to plan for, with --models", default=5, least=1)
    plan_seconds: int = option("for each of them", default=10, least=1)
