"""The views of the other models, on models whose mechanism is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from hf_mech.formal_languages import formal_language_tokenizer
from hf_mech.models.stack import StackRobertaConfig, StackRobertaForMaskedLM
from hf_mech.models.strips import StripsTransformer, TraceError
from hf_mech.planning.bundled import load_bundled
from hf_mech.viz.explorer.views import ExplorerError, view_for
from hf_mech.viz.explorer.views.stack import VIEW as STACKS
from hf_mech.viz.explorer.views.strips import VIEW as STRIPS


def rows(page: str, section: str) -> list[list[str]]:
    """The cells of a section's table."""
    (part,) = (part for part in page.split("<section>") if part.startswith(f"<h2>{section}"))
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", part)][1:]


# -------------------------------------------------------------------------------------------------------------- STRIPS


def test_the_heads_say_which_action_is_inapplicable_and_why() -> None:
    """Figure 1's domain: its own labels of the trace, and its own preconditions."""
    domain = load_bundled("simple").domain
    trace = ["a", "c", "a", "c", "b", "b"]
    found = rows(STRIPS.page("simple", " ".join(trace)), "The trace")
    assert [action for _, action, _, _ in found] == trace
    assert [int(y) for _, _, y, _ in found] == domain.labels(trace)
    for step, (_, action, y, verdict) in enumerate(found):
        false = domain.unmask(domain.falsified(trace[:step]))
        pre = next(own.pre for own in domain.actions if own.name == action)
        assert verdict == (f"inapplicable: {', '.join(sorted(pre & false))} is false" if int(y) else "applicable")


def test_a_checkpoint_shows_the_domain_in_its_weights(tmp_path: Path) -> None:
    domain = load_bundled("blocksworld-2b").domain
    StripsTransformer.from_domain(domain).save_pretrained(tmp_path)
    assert view_for(str(tmp_path)) is STRIPS
    page = STRIPS.page(str(tmp_path), "pick-up(a) put-down(a)")
    assert "exactly 0 or 1" in page
    for name, *parts in rows(page, "The domain"):
        action = next(own for own in domain.actions if own.name == name)
        assert [frozenset(filter(None, re.split(r", (?![^(]*\))", part))) for part in parts] == [
            action.pre,
            action.add,
            action.delete,
        ]
    assert page.count("<svg") == 1


@pytest.mark.parametrize("source", ["simple", "ferry-1c", "blocksworld-2b"])
def test_the_example_of_a_bundled_domain_ends_with_its_first_fault(source: str) -> None:
    trace = STRIPS.example(source).text.split()
    assert load_bundled(source).domain.labels(trace) == [0] * (len(trace) - 1) + [1]


def test_what_strips_cannot_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="fly"):
        STRIPS.page("simple", "a fly")
    with pytest.raises(ExplorerError, match="1 to 24 actions"):
        STRIPS.page("simple", "")
    with pytest.raises(ExplorerError, match="no checkpoint"):
        STRIPS.page(str(tmp_path), "a")


# -------------------------------------------------------------------------------------------------------------- stacks


def checkpoint(folder: Path, use_stack: bool = True) -> Path:
    """Three layers, each with one operation for every token: push, pop and no-op."""
    tokenizer = formal_language_tokenizer("reverse_string")
    config = StackRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=48, use_stack=use_stack, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=None,
    )  # fmt: skip
    model = StackRobertaForMaskedLM(config)
    if use_stack:
        for operation, layer in enumerate(model.roberta.encoder.layer):
            with torch.no_grad():
                for parameter in layer.stack.parameters():
                    parameter.zero_()
                wanted = [module for module in layer.stack.modules() if getattr(module, "out_features", 0) == 3]
                assert len(wanted) == 1
                wanted[0].bias[operation] = 30.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_stacks_of_layers_that_push_pop_and_do_nothing(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    assert view_for(str(folder)) is STACKS
    page = STACKS.page(str(folder), "a b b a")
    pushing, popping, idle = (rows(page, f"Layer {number}") for number in (1, 2, 3))
    assert [row[1] for row in pushing] == ["[BOS]", "a", "b", "b", "a"]
    assert [row[4] for row in pushing] == ["[BOS]", "[BOS] a", "[BOS] a b", "[BOS] a b b", "[BOS] a b b a"]
    assert [row[3] for row in pushing[1:]] == ["a (1.00)", "b (1.00)", "b (1.00)", "a (1.00)"]
    assert {row[4] for row in [*popping, *idle]} == {"[BOS]"}


def test_what_stacks_cannot_show_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "with")
    with pytest.raises(ExplorerError, match="2 to 40 tokens, got 1"):
        STACKS.page(str(folder), "")
    with pytest.raises(ExplorerError, match="cannot read 'a x'"):
        STACKS.page(str(folder), "a x")
    without = checkpoint(tmp_path / "without", use_stack=False)
    with pytest.raises(ExplorerError, match="no stacks"):
        STACKS.page(str(without), "a b")
