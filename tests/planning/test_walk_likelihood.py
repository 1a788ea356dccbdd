"""The likelihood of walks: its forms agree, and for a domain's own theta it counts what Definition 1 allows."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.strips import StripsTransformer
from hf_mech.planning import load_bundled
from hf_mech.planning.traces import TraceSettings, generate_traces
from hf_mech.planning.walk_likelihood import next_inapplicability, next_inapplicability_reference, walk_loss

MEMBERS, HEADS, ACTIONS = 3, 4, 5


@pytest.mark.parametrize("exact", [0.0, 0.5, 1.0])
def test_the_compiled_form_is_the_recurrence(exact: float):
    """Value and gradient in float64; `exact` of the weights are 0 or 1, a quarter of the actions padding."""
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        theta = torch.rand(MEMBERS, HEADS, ACTIONS, 3, generator=generator, dtype=torch.float64)
        theta = torch.where(torch.rand(theta.shape, generator=generator) < exact, theta.round(), theta).requires_grad_()
        ids = torch.randint(0, ACTIONS, (4, 9), generator=generator)
        ids[torch.rand(ids.shape, generator=generator) < 0.25] = -1
        forms = [form(theta, ids) for form in (next_inapplicability, next_inapplicability_reference)]
        mixture = torch.rand(forms[0].shape, generator=generator, dtype=torch.float64)
        gradients = [torch.autograd.grad(form, theta, mixture)[0] for form in forms]
        assert_close(*forms, rtol=1e-12, atol=1e-13)
        assert_close(*gradients, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("failure_rate", [0.0, 0.3])
def test_a_domains_own_theta_counts_what_contradicts_no_trace(failure_rate: float):
    problem = load_bundled("ferry-1c")
    domain = problem.domain
    settings = TraceSettings(num_train=20, num_test=2, max_train_length=12, failure_rate=failure_rate)
    traces = generate_traces(problem, settings).train
    model = StripsTransformer.from_domain(domain)
    for trace in traces:
        ids, labels = torch.tensor([trace.actions]), torch.tensor([trace.labels])
        terms = []
        for place, label in enumerate(trace.labels):
            if label == 0:
                before = zip(trace.actions[:place], trace.labels[:place], strict=True)
                done = [domain.actions[a].name for a, failed in before if not failed]
                allowed = sum(not any(domain.labels([*done, action.name])[-1:]) for action in domain.actions)
                terms.append(math.log(allowed))
        found = walk_loss(model.theta, ids, labels)
        assert_close(found, torch.tensor([sum(terms) / len(trace.actions)]), rtol=1e-5, atol=1e-6)


def test_the_loss_is_the_mean_over_traces_and_members_do_not_interact():
    theta = torch.rand(MEMBERS, HEADS, ACTIONS, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ids, labels = torch.tensor([[0, 1, 2, 3], [4, 0, 5, 5]]), torch.tensor([[0, 0, 0, 1], [0, 0, -100, -100]])
    whole = walk_loss(theta, ids, labels)
    assert whole.shape == (MEMBERS,)
    assert_close(whole, (walk_loss(theta, ids[:1], labels[:1]) + walk_loss(theta, ids[1:, :2], labels[1:, :2])) / 2)
    assert_close(whole[1:2], walk_loss(theta[1:2], ids, labels))
