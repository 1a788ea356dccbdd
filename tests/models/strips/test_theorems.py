"""Theorems 3, 4 and 6 and Definition 5 of the STRIPS Transformer paper, on random domains and traces."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.planning.brasp import compile_theta, run, strips_program
from hf_mech.planning.equivalence import find_distinguishing_trace
from tests.models.strips.definition_1 import f_m
from tests.models.strips.strategies import ACTIONS, PROPOSITIONS, domains_with_traces


@settings(max_examples=40)
@given(domains_with_traces())
def test_theorems_3_and_4_the_program_and_the_transformer_compute_f_m(case):
    """And the transformer's heads are the vectors of the program; Definition 5 brings back the domain."""
    domain, trace = case
    program = strips_program(domain)
    vectors = run(program, trace)
    assert vectors["Z"][-1] == f_m(domain, trace)
    if not domain.propositions:
        return
    model = StripsTransformer.from_domain(domain)
    assert torch.equal(model.theta[0], torch.from_numpy(compile_theta(program)))
    output = model(torch.tensor([domain.encode(trace)]))
    assert output.trace_inapplicability.tolist() == [[f_m(domain, trace)]]
    assert output.inapplicability[0, :, 0].tolist() == domain.labels(trace)
    for p, proposition in enumerate(domain.propositions):
        assert output.head_outputs[0, :, 0, p].tolist() == vectors[f"Y_{proposition}"].tolist()
    assert model.to_domain(name=domain.name) == domain


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_theorem_6_the_extracted_domain_is_what_the_binarized_transformer_computes(heads, actions, data):
    config = StripsTransformerConfig(actions=list(ACTIONS[:actions]), propositions=list(PROPOSITIONS[:heads]))
    model = StripsTransformer(config).eval()
    size = model.theta.numel()
    weights = data.draw(st.lists(st.floats(0, 1, width=32), min_size=size, max_size=size))
    model.theta.data = torch.tensor(weights).reshape(model.theta.shape)
    domain = model.to_domain()
    model.binarize()
    assert model.to_domain() == domain
    trace = data.draw(st.lists(st.sampled_from(domain.action_names), min_size=1, max_size=12))
    assert model(torch.tensor([domain.encode(trace)])).trace_inapplicability.tolist() == [[f_m(domain, trace)]]
    assert find_distinguishing_trace(domain, StripsTransformer.from_domain(domain).to_domain()).equivalent
