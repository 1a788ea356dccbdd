"""Theorems 3, 4 and 6 and Definition 5 of the STRIPS Transformer paper, on random domains and traces."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.planning.brasp import compile_theta, run, strips_program
from hf_mech.planning.equivalence import find_distinguishing_trace
from tests.models.strips.definition_1 import f_m
from tests.models.strips.strategies import ACTIONS, PROPOSITIONS, domains, domains_with_traces


@given(domains_with_traces())
def test_theorem_3_the_program_computes_f_m(case):
    domain, trace = case
    assert run(strips_program(domain), trace)["Z"][-1] == f_m(domain, trace)


@given(domains_with_traces())
def test_theorem_4_the_transformer_computes_f_m(case):
    domain, trace = case
    if not domain.propositions:
        return
    model = StripsTransformer.from_domain(domain)
    output = model(torch.tensor([domain.encode(trace)]))
    assert output.trace_inapplicability.tolist() == [[f_m(domain, trace)]]
    assert output.inapplicability[0, :, 0].tolist() == domain.labels(trace)


@given(domains_with_traces())
def test_the_heads_are_the_vectors_of_the_program(case):
    domain, trace = case
    if not domain.propositions:
        return
    program = strips_program(domain)
    model = StripsTransformer.from_domain(domain)
    assert torch.equal(model.theta[0], torch.from_numpy(compile_theta(program)))
    heads = model(torch.tensor([domain.encode(trace)])).head_outputs[0, :, 0]  # [length, F]
    vectors = run(program, trace)
    for p, proposition in enumerate(domain.propositions):
        assert heads[:, p].tolist() == vectors[f"Y_{proposition}"].tolist()


@given(domains())
def test_definition_5_brings_back_the_domain(domain):
    if domain.propositions:
        assert StripsTransformer.from_domain(domain).to_domain(name=domain.name) == domain


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
