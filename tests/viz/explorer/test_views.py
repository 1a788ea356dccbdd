"""The views of the other models, on models whose mechanism is known."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.cli.explorer.views import view_for
from hf_mech.control.explorer_view import VIEW as DECISIONS
from hf_mech.control.explorer_view import read_settings
from hf_mech.control.figures import film
from hf_mech.control.play import watch
from hf_mech.languages import formal_language_tokenizer
from hf_mech.languages.explorer_view import VIEW as STACKS
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.explorer_view import VIEW as BELIEFS
from hf_mech.lookahead.explorer_view import pair_probabilities
from hf_mech.lookahead.star_graphs import StarGraph, star_graph_tokenizer
from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM
from hf_mech.models.msat import MSATDecisionTransformer, MSATDecisionTransformerConfig
from hf_mech.models.stack import StackRobertaConfig, StackRobertaForMaskedLM
from hf_mech.models.strips import StripsError, StripsTransformer
from hf_mech.planning.explorer_view import VIEW as STRIPS
from hf_mech.planning.pddl import load_bundled
from hf_mech.probing import ProbingError
from hf_mech.probing.explorer_view import VIEW as BASELINES
from hf_mech.probing.state_probes import StateProbes
from hf_mech.programs.explorer_view import VIEW as PROGRAMS
from hf_mech.programs.psl import compile_file, program_text
from hf_mech.viz.view import ExplorerError, example_text


def rows(page: str, section: str) -> list[list[str]]:
    """The cells of a section's table."""
    parts = (part.removeprefix("<details><summary>") for part in page.split("<section>"))
    (part,) = (part for part in parts if part.startswith(f"<h2>{section}"))
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
    with pytest.raises(StripsError, match="fly"):
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
    pushing, popping, idle = (rows(page, f"Layer {number} as") for number in (1, 2, 3))
    answer = [row[1] for row in pushing][5:]  # a mask for each symbol
    assert [row[1] for row in pushing] == ["[BOS]", "a", "b", "b", "a", *["[MASK]"] * 4]
    assert answer == ["[MASK]"] * 4
    assert [row[4] for row in pushing[:4]] == ["[BOS]", "[BOS] a", "[BOS] a b", "[BOS] a b b"]
    assert [row[3] for row in pushing[1:5]] == ["a (1.00)", "b (1.00)", "b (1.00)", "a (1.00)"]
    assert {row[4] for row in [*popping, *idle]} == {"[BOS]"}
    heights = [column.count("<li>") for column in re.split("<li[^>]*><ol>", page.split('class="towers"')[1])[1:]]
    assert heights == list(range(9))  # every token but the first is pushed


def test_what_stacks_cannot_show_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "with")
    with pytest.raises(ExplorerError, match="2 to 40 tokens, got 1"):
        STACKS.page(str(folder), "")
    with pytest.raises(ExplorerError, match="cannot read 'a x'"):
        STACKS.page(str(folder), "a x")


def test_a_model_without_stacks_shows_its_answer_beside_one_with_them(tmp_path: Path) -> None:
    with_stack, without = checkpoint(tmp_path / "with"), checkpoint(tmp_path / "without", use_stack=False)
    pages = [STACKS.page(str(folder), "a b b a") for folder in (with_stack, without)]
    assert ["It has no stack." in page for page in pages] == [False, True]
    assert ["The stack of layer 1" in page for page in pages] == [True, False]
    for page in pages:
        answer = rows(page, "The answer, token by token")
        assert [row[0] for row in answer] == ["5", "6", "7", "8"]
        assert all("(" in row[-1] for row in answer)


# ------------------------------------------------------------------------------------------------------- belief states


def believer(folder: Path, **config: Any) -> BeliefStateForCausalLM:
    """A random model of one language's tokens, whose head's logits differ enough to be told apart."""
    torch.manual_seed(0)
    tokenizer = formal_language_tokenizer("reverse_string")
    sizes = {"vocab_size": len(tokenizer), "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 48, "head_width": 32}
    model = BeliefStateForCausalLM(BeliefStateConfig(**sizes, eos_token_id=tokenizer.pad_token_id, **config)).eval()
    with torch.no_grad():
        model.text_head.next.weight.mul_(30)
        if model.text_head.prev is not None:
            model.text_head.prev.weight.mul_(30)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def likeliest(logits: torch.Tensor) -> str:
    """The first token of a cell of the table, and its probability."""
    share, place = logits.softmax(-1).max(-1)
    return f"{formal_language_tokenizer('reverse_string').convert_ids_to_tokens(int(place))} ({float(share):.2f})"


@torch.no_grad()
def test_next_tokens_with_any_end_and_with_a_goal(tmp_path: Path) -> None:
    model = believer(tmp_path)
    assert view_for(str(tmp_path)) is BELIEFS
    tokenizer = formal_language_tokenizer("reverse_string")
    page = BELIEFS.page(str(tmp_path), "a b b a", settings="b a")
    ids = tokenizer("a b b a", return_tensors="pt")["input_ids"]
    goal = tokenizer("b a", return_tensors="pt", add_special_tokens=False)["input_ids"]
    found = rows(page, "The next token")
    assert [row[1] for row in found] == tokenizer.convert_ids_to_tokens(ids[0].tolist())
    for place, row in enumerate(found):  # each prefix by itself
        prefix = ids[:, : place + 1]
        assert row[2].startswith(likeliest(model(prefix).logits[0, -1]))
        assert row[3].startswith(likeliest(model(prefix, suffix_ids=goal).logits[0, -1]))
    assert page.count("<svg") == 1
    assert "probes" not in page


def navigator(folder: Path) -> StarGraph:
    """A random model of graphs G(2,3), with their tokenizer."""
    torch.manual_seed(0)
    graph = StarGraph(2, 3, 9)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": graph.row_length, "head_width": 32}
    config = BeliefStateConfig(vocab_size=len(graph.tokens), eos_token_id=graph.end_token, **sizes)
    BeliefStateForCausalLM(config).save_pretrained(folder)
    star_graph_tokenizer(graph).save_pretrained(folder)
    return graph


def test_a_goal_in_a_graph_asks_for_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = navigator(tmp_path)
    first, second, third = BELIEFS.examples(str(tmp_path))
    assert first.text == second.text != third.text
    assert first.settings != second.settings

    def right(_model: Any, ids: torch.Tensor, **_: Any) -> torch.Tensor:
        """Goes along the edges, from the goal back to the start."""
        rows = ids.numpy()
        parents = {int(child): int(parent) for parent, child in graph.edges_of(rows)[0]}
        path = [int(rows[0, -2])]
        while path[0] in parents:
            path.insert(0, parents[path[0]])
        return torch.cat([ids, torch.tensor([path])], 1)

    wrong = BELIEFS.page(str(tmp_path), *first[:1], settings=first.settings)
    assert "wrong: the path is" in wrong
    monkeypatch.setattr(BeliefStateForCausalLM, "generate", right)
    paths = []
    for example in (first, second):
        page = BELIEFS.page(str(tmp_path), example.text, settings=example.settings)
        (path,) = re.findall(r"The model goes ([0-9 →]+): the right path", page)
        assert path.split(" → ")[-1] == example.settings
        assert [row[1] for row in rows(page, "Step by step")] == path.split(" → ")
        paths.append(path)
    assert paths[0] != paths[1]
    prompt = BELIEFS.whole_text(first.text, first.settings)
    assert f"goes {paths[1]}: the right" in BELIEFS.page(
        str(tmp_path), prompt, settings=second.settings
    )  # another goal
    with pytest.raises(LookaheadError, match="must be an arm's last node"):
        BELIEFS.page(str(tmp_path), first.text, settings="77")
    with pytest.raises(LookaheadError, match="Write edges and the start"):
        BELIEFS.page(str(tmp_path), "hello", settings="1")
    larger = "1,2|2,3|3,4|1,5|5,6|6,7/1"
    with pytest.raises(ExplorerError, match="1 to 15 tokens, got 21"):
        BELIEFS.page(str(tmp_path), larger, settings="4")


# ----------------------------------------------------------------------------------------------------------- baselines


def test_a_baseline_says_and_shows_the_likeliest_words(tmp_path: Path) -> None:
    torch.manual_seed(0)
    graph = StarGraph(2, 5, 50)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": graph.row_length}
    config = GPT2Config(vocab_size=len(graph.tokens), bos_token_id=None, eos_token_id=graph.end_token, **sizes)
    model = GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer = star_graph_tokenizer(graph)
    tokenizer.save_pretrained(tmp_path)
    assert view_for(str(tmp_path)) is BASELINES
    examples = BASELINES.examples(str(tmp_path))
    assert len(examples) == 3
    page = BASELINES.page(str(tmp_path), examples[0].text)
    ids = tokenizer(examples[0].text, return_tensors="pt")["input_ids"]
    said = model.generate(ids, max_new_tokens=6, do_sample=False)[0, ids.shape[1] :]
    found = rows(page, "The completion")
    assert [row[1] for row in found] == tokenizer.convert_ids_to_tokens(said.tolist())
    assert all(row[2].startswith(f"{row[1]} (") for row in found)
    with pytest.raises(ExplorerError, match="1 to 32 tokens, got 0"):
        BASELINES.page(str(tmp_path), "")


@torch.no_grad()
def test_all_pairs_are_those_of_prefixes_and_suffixes_one_by_one(tmp_path: Path) -> None:
    model = believer(tmp_path).double()
    ids = formal_language_tokenizer("reverse_string")("a b b a", return_tensors="pt")["input_ids"]
    found = pair_probabilities(model, ids)
    count = ids.shape[1]
    assert {values.shape for values in found.values()} == {(count, count + 1)}
    pairs = 0
    for prefix in range(count):
        for suffix in range(count + 1):
            after, before = (values[prefix, suffix] for values in found.values())
            if suffix < prefix + 2:
                assert np.isnan([after, before]).all()
                continue
            pairs += 1
            output = model(ids[:, : prefix + 1], suffix_ids=ids[:, suffix:])
            assert after == pytest.approx(float(output.logits[0, -1].softmax(-1)[ids[0, prefix + 1]]), abs=1e-9)
            assert before == pytest.approx(float(output.prev_logits[0, -1].softmax(-1)[ids[0, suffix - 1]]), abs=1e-9)
    assert pairs == count * (count - 1) // 2


@torch.no_grad()
def test_probes_of_a_checkpoint_read_its_last_state(tmp_path: Path) -> None:
    model = believer(tmp_path)
    tokenizer = formal_language_tokenizer("reverse_string")
    probes = StateProbes(["first token", "last token"], 16, len(tokenizer), generator=torch.Generator().manual_seed(1))
    probes.second.normal_(generator=torch.Generator().manual_seed(2))
    probes.mean.fill_(0.1)
    probes.save(tmp_path)
    found = rows(BELIEFS.page(str(tmp_path), "a b b"), "What probes read")
    logits = probes(model.encode(tokenizer("a b b", return_tensors="pt")["input_ids"]))[:, 0]
    assert [row[0] for row in found] == ["first token", "last token"]
    for row, own in zip(found, logits, strict=True):
        assert row[1].startswith(likeliest(own))


def test_what_belief_states_cannot_show_is_refused(tmp_path: Path) -> None:
    believer(tmp_path / "forward", use_backward=False)
    page = BELIEFS.page(str(tmp_path / "forward"), "a b")
    assert "<svg" not in page
    with pytest.raises(ExplorerError, match="no backward encoder"):
        BELIEFS.page(str(tmp_path / "forward"), "a b", settings="a")
    with pytest.raises(ExplorerError, match="no checkpoint"):
        BELIEFS.page(str(tmp_path / "none"), "a b")
    broken = tmp_path / "probes.safetensors"
    broken.write_bytes(b"{}")
    with pytest.raises(ProbingError, match="holds no probes"):
        StateProbes.load(broken)
    with pytest.raises(ProbingError, match="states of size 4, got 5"):
        StateProbes(["a"], 4, 3)(torch.zeros(1, 5))


# ----------------------------------------------------------------------------------------------- decision transformers


def player(folder: Path, **config: Any) -> MSATDecisionTransformer:
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "context_length": 5}
    model = MSATDecisionTransformer(MSATDecisionTransformerConfig(**sizes | config)).eval()
    model.save_pretrained(folder)
    return model


def test_decisions_in_an_environment_of_vectors(tmp_path: Path) -> None:
    model = player(tmp_path, action_sizes=[3, 3], state_shape=[2])
    assert view_for(str(tmp_path)) is DECISIONS
    page = DECISIONS.page(str(tmp_path), "hf_mech/Doorway-v0", settings="target_return: 0.5\nrounds: 7")
    found = rows(page, "The decisions")
    watched = watch(model, "hf_mech/Doorway-v0", 0, target_return=0.5, rounds=7)
    assert [row[2] for row in found] == [f"{first} {second}" for first, second in watched.episode.actions.tolist()]
    assert found[0][1] == "0.5"
    assert len(found) == 7
    assert "Steps 2 to 6" in page  # the context
    assert page.count("<svg") == 1
    assert page.count("data:image/gif") == 1  # the robots at the door


@pytest.mark.slow
def test_an_episode_with_frames_is_a_film(tmp_path: Path) -> None:
    model = player(tmp_path, action_sizes=[3, 3], state_shape=[3, 36, 48], context_length=30)
    page = DECISIONS.page(str(tmp_path), "hf_mech/Rooms-v0", settings="episode: 1")
    frames = {"frame_size": (36, 48), "render_mode": "rgb_array"}
    watched = watch(model, "hf_mech/Rooms-v0", 1, target_return=1.0, **frames)
    assert [b64decode(one) for one in re.findall(r'src="data:image/gif;base64,([^"]*)"', page)] == [
        film(watched.pictures, scale=8)
    ]
    assert len(rows(page, "The decisions")) == watched.score.length
    assert len(set(re.findall(r'id="(frame-s\d+)"', page))) == 5  # the key states


# ------------------------------------------------------------------------------------------------------------ examples


def test_a_checkpoint_of_any_family_runs_on_an_example(tmp_path: Path) -> None:
    """As `hf-mech explore CHECKPOINT --html FILE`."""
    checkpoint(tmp_path / "stacks")
    believer(tmp_path / "beliefs")
    StripsTransformer.from_domain(load_bundled("simple").domain).save_pretrained(tmp_path / "strips")
    player(tmp_path / "player", action_sizes=[3, 3], state_shape=[2])
    compile_file("count", tmp_path / "count")
    (tmp_path / "own.psl").write_text(program_text("count").replace("#   a b a c ? a", "#   b a b"))
    compile_file(str(tmp_path / "own.psl"), tmp_path / "own")
    wanted = {"stacks": "b b a b a", "beliefs": "a b a b a b a b", "strips": STRIPS.example("simple").text}
    wanted |= {"player": "hf_mech/Doorway-v0", "count": "a b a c ? a", "own": "b a b"}
    for name, text in wanted.items():
        source = str(tmp_path / name)
        assert view_for(source).example(source).text == text
        done = CliRunner().invoke(app, ["explore", source, "--html", str(tmp_path / "page.html")])
        assert done.exit_code == 0, done.output
        assert len((tmp_path / "page.html").read_text("utf-8")) > 5_000


def test_every_example_of_a_source_that_needs_no_checkpoint_runs() -> None:
    for view in (STRIPS, PROGRAMS):
        for source in view.sources:
            examples = view.examples(source)
            assert len({*examples}) == 3, source
            for example in examples[: 3 if source in ("pargen", "simple") else 1]:
                assert len(view.page(source, example.text, settings=example.settings)) > 5_000


def test_an_example_is_of_the_tokens_of_the_model() -> None:
    assert example_text(star_graph_tokenizer(StarGraph(2, 3, 9)), ["0,1|2,3|0,2|1,4/0,4="]).endswith("/0,4=")
    assert example_text(star_graph_tokenizer(StarGraph(1, 2, 2)), ["0,1|2,3|0,2|1,4/0,4="]) == "0 1 | = 0 1 | ="


def test_what_decision_transformers_cannot_show_is_refused(tmp_path: Path) -> None:
    player(tmp_path, action_sizes=[3, 2], state_shape=[2])
    with pytest.raises(ValueError, match="No environment has the id 'Nowhere-v0'"):
        DECISIONS.page(str(tmp_path), "Nowhere-v0")
    with pytest.raises(ValueError, match=r"the model's \[3, 2\]"):
        DECISIONS.page(str(tmp_path), "hf_mech/Rooms-v0")
    with pytest.raises(ExplorerError, match="target_return must be a number, got 'high'"):
        read_settings("target_return: high")
    with pytest.raises(ExplorerError, match="lines `name: value`"):
        read_settings("just words")
    with pytest.raises(ExplorerError, match="no checkpoint"):
        DECISIONS.page(str(tmp_path / "none"), "hf_mech/Doorway-v0")
