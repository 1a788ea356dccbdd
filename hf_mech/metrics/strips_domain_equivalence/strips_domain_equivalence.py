"""Whether learned STRIPS domains accept the same traces as the hidden ones (STRIPS Transformer paper, Theorem 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import datasets
import evaluate

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.equivalence import find_distinguishing_trace

_DESCRIPTION = """
The share of predicted STRIPS domains that have exactly the positive traces (Definition 1) of their references, whatever
their propositions are called. Decided by search, not by sampling traces.
"""

_INPUTS = """
Args:
    predictions, references: domains over the same actions: `StripsDomain`, `StripsDomain.to_dict()` or that as JSON.
    max_pairs: how many pairs of states to store before a comparison is given up as undecided; 1,000,000.
Returns:
    equivalent: the share of pairs that were shown to be equivalent; those left undecided are not among them.
    undecided: how many comparisons were given up.
    verdicts: for each pair True (equivalent), False (told apart) or None (undecided).
    distinguishing_traces: for each pair a shortest trace that only one of the two accepts; None unless told apart.
Examples:
    >>> from hf_mech.metrics import load
    >>> from hf_mech.planning import load_bundled
    >>> domain = load_bundled("simple").domain
    >>> load("strips_domain_equivalence").compute(predictions=[domain], references=[domain])
    {'equivalent': 1.0, 'undecided': 0, 'verdicts': [True], 'distinguishing_traces': [None]}
"""


class StripsDomainEquivalence(evaluate.Metric):
    """Domains are passed as JSON text, because their propositions and actions differ."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """One pair of domains."""
        super().add(prediction=_as_json(prediction), reference=_as_json(reference), **kwargs)

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Several pairs of domains."""
        super().add_batch(
            predictions=[_as_json(p) for p in predictions], references=[_as_json(r) for r in references], **kwargs
        )

    def _compute(self, predictions: list[str], references: list[str], max_pairs: int = 1_000_000) -> dict[str, Any]:
        found = [
            find_distinguishing_trace(_domain(p), _domain(r), max_pairs)
            for p, r in zip(predictions, references, strict=True)
        ]
        return {
            "equivalent": sum(f.equivalent is True for f in found) / len(found),
            "undecided": sum(f.equivalent is None for f in found),
            "verdicts": [f.equivalent for f in found],
            "distinguishing_traces": [f.trace for f in found],
        }


def _as_json(domain: StripsDomain | Mapping[str, Any] | str) -> str:
    if isinstance(domain, StripsDomain):
        domain = domain.to_dict()
    return domain if isinstance(domain, str) else json.dumps(domain)


def _domain(text: str) -> StripsDomain:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Expected a domain as JSON, from StripsDomain.to_dict(); got {text[:80]!r}: {error}."
        ) from error
    return StripsDomain.from_dict(data)
