"""A push is one commit that holds everything, or it is a clear error and the repository is as it was."""

import dataclasses
import importlib
import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import HfApi
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from hf_mech.hub import HubError, PushError, Results, push_checkpoint
from hf_mech.hub.checkpoint import check_self_contained, load_checkpoint, load_processing_class, save_checkpoint
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig
from tests.hub.local_hub import LocalHub
from tests.hub.toy import ToyConfig, ToyForCausalLM, ToyModel

REPO = "tester/toy"


@pytest.fixture
def model() -> ToyForCausalLM:
    """A head of the toy family."""
    return ToyForCausalLM(ToyConfig())


def test_one_commit_holds_everything(
    model: ToyForCausalLM, hub: LocalHub, api: HfApi, card_folder: Path, tmp_path: Path
) -> None:
    domain = tmp_path / "domain.json"
    domain.write_text("{}")
    commit = push_checkpoint(model, REPO, api=api, card_folder=card_folder, extra_files={"data/domain.json": domain})
    history = hub.repository(REPO).history()
    assert [c.title for c in history] == ["Upload model", "init"]
    assert history[0].sha == commit.oid
    assert history[0].files.keys() == {
        ".gitattributes",
        "README.md",
        "SHA256SUMS",
        "config.json",
        "configuration_toy.py",
        "data/domain.json",
        "loss.png",
        "model.safetensors",
        "modeling_toy.py",
        "results.json",
        "toy_layer.py",
    }


@pytest.mark.parametrize(
    "model",
    [
        ToyForCausalLM(ToyConfig()),
        StripsTransformer(StripsTransformerConfig(num_actions=4, num_propositions=2)),
        GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_checkpoint_loads_as_the_class_that_saved_it(model: torch.nn.Module, tmp_path: Path) -> None:
    save_checkpoint(model, tmp_path)
    loaded = load_checkpoint(tmp_path)
    assert type(loaded) is type(model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))


def test_a_tokenizer_goes_with_the_model(tmp_path: Path) -> None:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=2, n_embd=4, n_layer=1, n_head=1, n_positions=8))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
    assert load_processing_class(tmp_path) is None
    save_checkpoint(model, tmp_path, processing_class=tokenizer)
    loaded = load_processing_class(tmp_path)
    assert loaded is not None
    assert loaded.get_vocab() == {"a": 0, "b": 1}
    assert not list(tmp_path.glob("*.py"))


# ----------------------------------------------------------------------------------------- refused, and nothing is sent


def test_a_card_with_no_run_behind_it_is_refused(
    model: ToyForCausalLM, hub: LocalHub, api: HfApi, card_folder: Path, results: Results
) -> None:
    card = card_folder / "README.md"
    card.write_text(card.read_text().replace("0.75", "0.99"))
    with pytest.raises(HubError, match=r"README.md, line"):
        push_checkpoint(model, REPO, api=api, card_folder=card_folder)
    invented = dataclasses.asdict(results)
    invented["results"][0]["mean"] = 0.99
    (card_folder / "results.json").write_text(json.dumps(invented))
    with pytest.raises(HubError, match=r"mean of accuracy is 0.99"):
        push_checkpoint(model, REPO, api=api, card_folder=card_folder)
    assert not hub.requests


class Unregistered(ToyModel):
    """Not registered for an Auto class."""

    _auto_class = None


def test_a_class_that_nobody_could_load_is_refused(hub: LocalHub, api: HfApi) -> None:
    with pytest.raises(HubError, match=r"Unregistered\.register_for_auto_class"):
        push_checkpoint(Unregistered(ToyConfig()), REPO, api=api)
    assert not hub.requests


@pytest.mark.parametrize(
    ("name", "message"),
    [("../x", "must be a path in the repository"), ("config.json", "would replace config.json")],
)
def test_extra_files_stay_in_their_place(
    model: ToyForCausalLM, hub: LocalHub, api: HfApi, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "x").write_text("x")
    with pytest.raises(HubError, match=message):
        push_checkpoint(model, REPO, api=api, extra_files={name: tmp_path / "x"})
    with pytest.raises(HubError, match="which is not a file"):
        push_checkpoint(model, REPO, api=api, extra_files={"y": tmp_path / "y"})
    assert not hub.requests


def test_a_wrong_name_is_refused(model: ToyForCausalLM, hub: LocalHub, api: HfApi) -> None:
    with pytest.raises(HubError, match="is not a name for a repository"):
        push_checkpoint(model, "a/b/c", api=api)
    with pytest.raises(HubError, match="not both"):
        push_checkpoint(model, REPO, api=api, token="x")
    assert not hub.requests


@pytest.mark.parametrize(
    "line",
    ["from hf_mech.x import y", "import hf_mech", "from . import y", "from ..x import y", "from .absent import y"],
)
def test_code_that_needs_the_package_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("import numba, numpy, safetensors, torch\nfrom .modeling import z\n")
    (tmp_path / "modeling.py").write_text(f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}\n")
    with pytest.raises(HubError, match=r"modeling.py, line 3: .*would not load where"):
        check_self_contained(tmp_path)


def test_code_that_cannot_be_copied_flat_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "modeling_deep.py"
    source.write_text(
        "from transformers import AutoModel, GPT2Config, GPT2Model\n"
        "class DeepConfig(GPT2Config):\n    model_type = 'deep'\n"
        "class DeepModel(GPT2Model):\n    config_class = DeepConfig\n"
        "    def save(self):\n        from .kernels.fast import kernel\n"
        "AutoModel.register(DeepConfig, DeepModel, exist_ok=True)\n"
        "DeepModel.register_for_auto_class()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(source.stem)
    model = module.DeepModel(module.DeepConfig(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8))
    with pytest.raises(HubError, match="modeling_deep imports a file that cannot be copied"):
        save_checkpoint(model, tmp_path / "checkpoint")


def test_a_checkpoint_that_lacks_weights_is_refused(model: ToyForCausalLM, tmp_path: Path) -> None:
    save_checkpoint(model, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in weights.items() if "lm_head" not in name}, tmp_path / "model.safetensors"
    )
    with pytest.raises(HubError, match=r"lacks 2 of the weights of ToyForCausalLM.*lm_head"):
        load_checkpoint(tmp_path)


# ------------------------------------------------------------------------------------------------ failures on the way


@pytest.mark.parametrize(
    ("method", "pattern", "action"),
    [
        ("PUT", "/_lfs/", "close"),
        ("PUT", "/_lfs/", 500),
        ("POST", "/objects/batch", 503),
        ("POST", "/preupload/", 500),
    ],
)
def test_a_passing_failure_is_repeated(
    model: ToyForCausalLM, hub: LocalHub, api: HfApi, method: str, pattern: str, action: int | str
) -> None:
    hub.fail(method, pattern, action)
    push_checkpoint(model, REPO, api=api)
    assert hub.faults[0].times == 0
    assert [c.title for c in hub.repository(REPO).history()] == ["Upload model", "init"]


@pytest.mark.parametrize(
    ("method", "pattern", "action"),
    [
        ("PUT", "/_lfs/", "close"),
        pytest.param("PUT", "/_lfs/", 500, marks=pytest.mark.slow),
        pytest.param("POST", "/commit/", "close", marks=pytest.mark.slow),
        ("POST", "/commit/", 403),
    ],
)
def test_a_lasting_failure_leaves_the_last_good_commit(
    model: ToyForCausalLM, hub: LocalHub, api: HfApi, method: str, pattern: str, action: int | str
) -> None:
    first = push_checkpoint(model, REPO, api=api)
    files = hub.repository(REPO).history()[0].files
    changed = ToyForCausalLM(ToyConfig())
    hub.fail(method, pattern, action, times=99)
    with pytest.raises(PushError, match=f"still holds its last good commit {first.oid}. Push again") as caught:
        push_checkpoint(changed, REPO, api=api)
    assert caught.value.__cause__ is not None
    assert hub.repository(REPO).history()[0].sha == first.oid
    assert hub.repository(REPO).history()[0].files == files
    hub.faults.clear()
    again = push_checkpoint(changed, REPO, api=api)
    assert [c.sha for c in hub.repository(REPO).history()[:2]] == [again.oid, first.oid]


def test_what_went_wrong_before_anything_was_sent(model: ToyForCausalLM, hub: LocalHub, api: HfApi) -> None:
    hub.fail("POST", "/repos/create", 401, times=99)
    with pytest.raises(PushError, match=r"Nothing was sent. Check the address, the token"):
        push_checkpoint(model, REPO, api=api)
    assert not hub.repositories


def test_a_hub_that_has_gone_is_said_to_be_gone(model: ToyForCausalLM, hub: LocalHub, api: HfApi) -> None:
    first = push_checkpoint(model, REPO, api=api)
    hub.fail("POST", "/preupload/", 400)
    hub.fail("GET", "/api/models/", 404, skip=1, times=99)
    with pytest.raises(PushError, match=f"does not answer now.*the last good commit before this push was {first.oid}"):
        push_checkpoint(ToyForCausalLM(ToyConfig()), REPO, api=api)
