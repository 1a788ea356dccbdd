"""What is saved is what is loaded, bit for bit, with hf_mech and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig, Trainer, TrainingArguments
from transformers.modeling_utils import PreTrainedModel

import hf_mech
from hf_mech.models import checkpoints as shared
from hf_mech.models.stack import stack_kernel_cpu
from hf_mech.models.strips import strips_kernel

from .case import LORA_LAYERS, ContractCase
from .registry import AUTO_CLASSES, contract_cases, registered_models


def everything(model: PreTrainedModel) -> dict[str, Tensor]:
    """All parameters and all buffers, those that are not saved too."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def assert_same(first: PreTrainedModel, second: PreTrainedModel) -> None:
    left, right = everything(first), everything(second)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        assert torch.equal(left[name], right[name]), name


@pytest.mark.feature("save and load, bit for bit, float32, float64, bfloat16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_every_auto_class_loads_every_tensor_exactly(case: ContractCase, dtype: torch.dtype, tmp_path: Path):
    model = case.model().to(dtype)
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"config.json", "model.safetensors"}
    assert load_file(tmp_path / "model.safetensors")
    for auto_class in registered_models()[case.model_class]:
        loaded, info = AUTO_CLASSES[auto_class].from_pretrained(tmp_path, dtype=dtype, output_loading_info=True)
        assert type(loaded) is case.model_class
        assert not any(info.values()), info
        assert {weight.dtype for weight in loaded.parameters()} == {weight.dtype for weight in model.parameters()}
        assert_same(model, loaded.to(dtype))  # buffers that are not saved are float32 in some stock models


def test_saving_twice_gives_the_same_bytes(case: ContractCase, tmp_path: Path):
    case.model().save_pretrained(tmp_path / "first")
    case.model_class.from_pretrained(tmp_path / "first").save_pretrained(tmp_path / "second")
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


def test_configuration_survives(case: ContractCase, tmp_path: Path):
    config = case.config()
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is type(config)
    assert loaded.to_diff_dict() == config.to_diff_dict()


def test_saved_code_is_the_original(one: ContractCase, tmp_path: Path):
    """A family's folder holds a stub of `checkpoints.py`; what is saved holds the whole file."""
    original = Path(shared.__file__).read_bytes()
    savers = {"model": one.model(), "config": one.config()}
    if one.processing is not None and (tokenizer := one.processing()[1])._auto_class:
        savers["tokenizer"] = tokenizer
    for name, saver in savers.items():
        saver.save_pretrained(tmp_path / name)
        assert (tmp_path / name / "checkpoints.py").read_bytes() == original, name


def test_a_subclass_made_in_a_notebook_takes_the_familys_code_along(one: ContractCase, tmp_path: Path):
    one.model().save_pretrained(tmp_path / "plain")
    mine = type("Mine", (one.model_class,), {"__module__": "__main__"})
    mine(one.config()).save_pretrained(tmp_path / "mine")
    plain, saved = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("plain", "mine"))
    assert saved["auto_map"] == plain["auto_map"]
    files = [{file.name for file in (tmp_path / name).glob("*.py")} for name in ("plain", "mine")]
    assert files[0] == files[1]


def test_saving_and_pushing_in_one_call(one: ContractCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """transformers would upload the stub, before it is replaced; `push_to_hub` saves again and then uploads."""
    pushed: list[dict[str, object]] = []
    monkeypatch.setattr(one.model_class, "push_to_hub", lambda self, **arguments: pushed.append(arguments))
    one.model().save_pretrained(tmp_path / "mine", push_to_hub=True, private=True)
    one.model().save_pretrained(tmp_path / "mine", push_to_hub=True, repo_id="me/other", commit_message="Again")
    assert pushed == [{"private": True, "repo_id": "mine"}, {"repo_id": "me/other", "commit_message": "Again"}]


# ------------------------------------------------------------------------------------------- without the package

ELSEWHERE = """
import json, sys
sys.modules["hf_mech"] = None
from pathlib import Path
import torch
import transformers

def load(folder, auto_class, **arguments):
    model = getattr(transformers, auto_class).from_pretrained(folder, trust_remote_code=True, **arguments)
    assert type(model).__module__.startswith("transformers_modules"), type(model)
    return model.eval()

for folder in map(Path, sys.argv[1:]):
    plan = json.loads((folder / "plan.json").read_text())
    for auto_class in plan["own"]:
        model = load(folder, auto_class)
        with torch.no_grad():
            outputs = model(**torch.load(folder / "inputs.pt"))
        torch.save({name: outputs[name] for name in plan["outputs"]}, folder / f"{auto_class}.pt")
        model.save_pretrained(folder / "again" / auto_class)
    for auto_class, arguments in plan["others"].items():
        model = load(folder, auto_class, **arguments)
        torch.save((type(model).__name__, model.state_dict()), folder / f"{auto_class}.pt")
        model.save_pretrained(folder / "again" / auto_class)
        load(folder / "again" / auto_class, auto_class)
"""


def other_heads(case: ContractCase) -> dict[str, ContractCase]:
    """The other models of the configuration, by their Auto classes."""
    others = {
        auto_class: other
        for other in contract_cases()
        for auto_class in registered_models()[other.model_class]
        if other.model_class.config_class is case.model_class.config_class
        and other.model_class is not case.model_class
        and not other.variant
    }
    if case.refuses_partial is None:
        return others
    held = bare_names(case.model())  # a head with weights of its own is refused
    return {auto_class: other for auto_class, other in others.items() if bare_names(other.model()) <= held}


def arguments_for(case: ContractCase, other: ContractCase) -> dict[str, object]:
    """The arguments with which another head loads a checkpoint: its differences from the configuration.

    As with stock models, a head whose weights have the same names but other shapes draws its own only if told to.
    """
    ours, theirs = case.config(), other.config()
    arguments: dict[str, object] = {
        name: value for name, value in theirs.to_diff_dict().items() if getattr(ours, name, value) != value
    }
    held = case.model().state_dict()
    if any(held[name].shape != tensor.shape for name, tensor in other.model().state_dict().items() if name in held):
        arguments["ignore_mismatched_sizes"] = True
    return arguments


def bare_names(model: PreTrainedModel) -> set[str]:
    """The names of the weights in the model without a head."""
    return {name.removeprefix(f"{model.base_model_prefix}.") for name in model.state_dict()}


def asks_for_other_heads(session: pytest.Session) -> bool:
    """As the slow suite does. In the quick one the process has no numba: half of its time would be compiling."""
    name = "test_loads_as_every_other_head_without_the_package"
    return any(getattr(item, "originalname", "") == name for item in session.items)


@pytest.fixture(scope="module")
def checkpoints(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Plainly saved checkpoints, loaded and run by every head where hf_mech cannot be imported.

    Of every model that a test of this session asks for, in one process: transformers and our code are loaded once.
    """
    root = tmp_path_factory.mktemp("elsewhere")
    asking = [item for item in request.session.items if "checkpoints" in getattr(item, "fixturenames", ())]
    cases = {item.callspec.params["case"].name: item.callspec.params["case"] for item in asking}  # type: ignore[attr-defined]
    wants_others = asks_for_other_heads(request.session)
    # The folders of a family have one name, as their code is one: transformers imports and numba compiles it once.
    folders = {case.name: root / case.name / case.config().model_type for case in cases.values()}
    for case in cases.values():
        folder = folders[case.name]
        case.model().save_pretrained(folder)
        torch.save(case.questions(3, 7, 0), folder / "inputs.pt")
        heads = other_heads(case) if wants_others else {}
        others = {auto_class: arguments_for(case, other) for auto_class, other in heads.items()}
        plan = {"own": registered_models()[case.model_class], "outputs": case.outputs, "others": others}
        (folder / "plan.json").write_text(json.dumps(plan))
    program = ELSEWHERE if wants_others else f'import sys\nsys.modules["numba"] = None\n{ELSEWHERE}'
    environment = {**os.environ, "HF_MODULES_CACHE": str(root / "modules")}
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, folders.values())],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folders


def test_names_every_head(case: ContractCase, checkpoints: dict[str, Path]):
    heads = json.loads((checkpoints[case.name] / "config.json").read_text())["auto_map"]
    wanted = {
        auto_class: f"{model_class.__module__.split('.')[-1]}.{model_class.__name__}"
        for model_class, auto_classes in registered_models().items()
        for auto_class in auto_classes
        if model_class.config_class is case.model_class.config_class
    }
    assert heads == {**wanted, "AutoConfig": heads["AutoConfig"]}


def test_a_checkpoint_of_trainer_names_every_head(
    case: ContractCase, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    Trainer(case.model(), TrainingArguments(str(tmp_path), report_to="none", use_cpu=True)).save_model(str(tmp_path))
    plain = checkpoints[case.name]
    maps = [json.loads((folder / "config.json").read_text())["auto_map"] for folder in (plain, tmp_path)]
    assert maps[0] == maps[1]
    assert {file.name for file in tmp_path.glob("*.py")} == {file.name for file in plain.glob("*.py")}


@pytest.mark.feature("every head loads from the checkpoint of any other")
@pytest.mark.slow
def test_loads_as_every_other_head_without_the_package(case: ContractCase, checkpoints: dict[str, Path]):
    folder, held = checkpoints[case.name], case.model()
    saved = {name.removeprefix(f"{held.base_model_prefix}."): tensor for name, tensor in held.state_dict().items()}
    for auto_class, other in other_heads(case).items():
        name, state = torch.load(folder / f"{auto_class}.pt")
        assert name == other.name
        shared = {key: key.removeprefix(f"{held.base_model_prefix}.") for key in state}
        shared = {key: bare for key, bare in shared.items() if bare in saved and saved[bare].shape == state[key].shape}
        assert len(shared) >= min(len(state), len(saved)) - 6
        for key, bare in shared.items():
            assert torch.equal(state[key], saved[bare]), (auto_class, key)


def test_saved_again_without_the_package_it_is_the_same(case: ContractCase, checkpoints: dict[str, Path]):
    folder = checkpoints[case.name]
    for again in (folder / "again").iterdir():
        assert {file.name for file in again.glob("*.py")} == {file.name for file in folder.glob("*.py")}
        maps = [json.loads((place / "config.json").read_text())["auto_map"] for place in (folder, again)]
        assert maps[0] == maps[1]


@pytest.mark.feature("loads with `trust_remote_code` where hf_mech is not installed")
def test_loads_and_computes_the_same_without_the_package(
    case: ContractCase, checkpoints: dict[str, Path], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    folder = checkpoints[case.name]
    if not asks_for_other_heads(request.session):
        for kernel in (stack_kernel_cpu, strips_kernel):
            monkeypatch.setattr(kernel, "available", False)
    with torch.no_grad():
        outputs = case.model()(**torch.load(folder / "inputs.pt"))
    for auto_class in registered_models()[case.model_class]:
        elsewhere = torch.load(folder / f"{auto_class}.pt")
        for name in case.outputs:
            assert torch.equal(outputs[name], elsewhere[name]), (auto_class, name)


def test_its_code_never_names_the_package(case: ContractCase, checkpoints: dict[str, Path]):
    for file in checkpoints[case.name].glob("*.py"):
        imports = [line for line in file.read_text().splitlines() if line.lstrip().startswith(("import ", "from "))]
        assert not [line for line in imports if hf_mech.__name__ in line and ">>>" not in line], file.name


# -------------------------------------------------------------------------------------------------- ways of loading


def test_loads_a_state_dict(case: ContractCase):
    model = case.model()
    loaded = case.model_class.from_pretrained(None, config=model.config, state_dict=model.state_dict())
    assert_same(model, loaded)


def test_loads_shards_subfolders_and_pickles(case: ContractCase, tmp_path: Path):
    model = case.model()
    model.save_pretrained(tmp_path / "shards", max_shard_size="1KB")
    model.save_pretrained(tmp_path / "folder" / "sub")
    model.config.save_pretrained(tmp_path / "pickle")
    torch.save(model.state_dict(), tmp_path / "pickle" / "pytorch_model.bin")
    assert_same(model, case.model_class.from_pretrained(tmp_path / "shards", device_map="cpu"))
    assert_same(model, case.model_class.from_pretrained(tmp_path / "folder", subfolder="sub", use_safetensors=True))
    assert_same(model, case.model_class.from_pretrained(tmp_path / "pickle", use_safetensors=False))


def test_loads_onto_a_disk(case: ContractCase, tmp_path: Path):
    """Weights that stay on the meta device until they are used."""
    model = case.model()
    model.save_pretrained(tmp_path / "model")
    layers = [name for name, part in model.named_modules() if type(part).__name__ in model._no_split_modules]
    places = {"": "disk"}
    if layers:
        parts = {name.rpartition(".")[0] for name in [*everything(model), *model.state_dict()]}
        places = {part: "cpu" for part in parts if not part.startswith(layers[-1])} | {layers[-1]: "disk"}
    loaded = case.model_class.from_pretrained(tmp_path / "model", device_map=places, offload_folder=tmp_path / "disk")
    batch = case.questions(2, 5, 0)
    with torch.no_grad():
        outputs, wanted = loaded(**batch), model(**batch)
    for name in case.outputs:
        assert torch.equal(outputs[name], wanted[name]), name


@pytest.mark.needs("lora")
# GPT-2's own layers store their matrix transposed, ours do not; peft sees that, and says so.
@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning")
# peft 0.21 reads the attribute under the name that transformers 5.23 deprecates.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_loads_an_adapter_with_its_base(case: ContractCase, tmp_path: Path):
    from peft import LoraConfig, get_peft_model

    case.model().save_pretrained(tmp_path / "base")
    model = case.model_class.from_pretrained(tmp_path / "base")
    layers = (LORA_LAYERS[0], LORA_LAYERS[-1])  # linear layers, ours and GPT-2's
    targets = [name for name, module in model.named_modules() if isinstance(module, layers)][:2]
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=targets, init_lora_weights=False)).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = case.model_class.from_pretrained(tmp_path / "adapter").eval()
    batch = case.questions(2, 5, 0)
    with torch.no_grad():
        outputs, wanted, plain = loaded(**batch), adapted(**batch), case.model()(**batch)
    for name in case.outputs:
        assert torch.equal(outputs[name], wanted[name]), name
    assert any(not torch.equal(wanted[name], plain[name]) for name in case.outputs)
