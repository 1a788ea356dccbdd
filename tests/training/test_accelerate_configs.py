"""The configurations of training/accelerate_configs: two processes are one run with the same global batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser
from torch.testing import assert_close

from tests.contract.case import ContractCase
from tests.contract.compare import named
from tests.contract.registry import contract_cases
from tests.training.cases import LICENSE
from training.engine.run import files_named

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "training" / "accelerate_configs"
MODELS = ("BeliefStateForCausalLM", "MSATDecisionTransformer", "StackGPT2ForCausalLM", "StackLlamaForCausalLM")


def launch(program: list[str], config: str | None, folder: Path) -> str:
    """What the program prints: in one process, or in two of gloo."""
    launcher = ["-m", "accelerate.commands.launch", "--config_file", str(CONFIGS / config)] if config else []
    launcher += ["--main_process_port", "0"] if config else []
    done = subprocess.run(
        [sys.executable, *launcher, *program],
        cwd=folder,
        env={**os.environ, "ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "deepspeed"])
def test_accelerate_reads_the_file(name: str) -> None:
    config = load_config_from_file(str(CONFIGS / f"{name}.yaml"))
    assert config.num_processes == 2
    known = vars(launch_command_parser().parse_args(["script"]))
    assert {*config.fsdp_config, *config.deepspeed_config} <= known.keys()


# ----------------------------------------------------------------------------------------------------------------- DDP

# A command of ours, without dropout, which also notes how many processes its accelerator joins.
NOTING = """
import runpy, sys
import torch
from accelerate import Accelerator
prepare = Accelerator.prepare
def noting(self, *arguments, **settings):
    if torch.distributed.is_initialized():
        with open(f"joined.{self.process_index}", "w") as file:
            file.write(f"{torch.distributed.get_backend()} {self.num_processes}")
    for module in (part for model in arguments if isinstance(model, torch.nn.Module) for part in model.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return prepare(self, *arguments, **settings)
Accelerator.prepare = noting
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def outcome_of(program: list[str], config: str | None, folder: Path) -> dict[str, object]:
    """The one outcome of a command."""
    folder.mkdir()
    (folder / "noting.py").write_text(NOTING)
    folders = ["--output_dir", "runs", "--cards_dir", "cards", "--jobs", "1"]
    launch(["noting.py", *program, *folders], config, folder)
    joined = sorted((path.name, path.read_text()) for path in folder.glob("joined.*"))
    assert joined == ([("joined.0", "gloo 2"), ("joined.1", "gloo 2")] if config else [])
    (file,) = files_named(folder / "runs", "outcome.json")
    content: dict[str, object] = json.loads(file.read_text())
    return content


@pytest.mark.slow
def test_a_language_model_of_two_processes_is_that_of_one(tmp_path: Path) -> None:
    """The Trainer's batch is that of a process, so two take half of it."""
    options = [
        *("training.train_lm", *LICENSE, "--objective", "clm", "--use_stack", "true", "--num_seeds", "1"),
        *("--layers", "1", "--hidden", "16", "--heads", "2", "--vocabulary", "300", "--epochs", "4"),
        *("--max_train_characters", "8200", "--max_evaluation_blocks", "4"),  # 40 blocks
    ]
    one = outcome_of([*options, "--batch_size", "4"], None, tmp_path / "one")
    two = outcome_of([*options, "--batch_size", "2"], "ddp.yaml", tmp_path / "two")
    assert one["steps"] == two["steps"] == 40  # of whole batches: accelerate fills up the last one
    for name in ("perplexity_before", "validation_perplexity", "test_perplexity"):
        assert one[name] == pytest.approx(two[name], rel=1e-5), name


@pytest.mark.slow
def test_a_strips_transformer_of_two_processes_is_that_of_one(tmp_path: Path) -> None:
    """The curve of the loss, as the tracker has it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = [
        *("training.train_strips", "--domain", "simple", "--sizes", "48", "--num_seeds", "3", "--num_test", "100"),
        *("--max_steps", "60", "--eval_steps", "6", "--report_to", "tensorboard"),
    ]
    curves = []
    for name, config in (("one", None), ("two", "ddp.yaml")):
        outcome_of(options, config, tmp_path / name)
        (run,) = (path for path in (tmp_path / name / "runs" / "tracking").iterdir() if path.is_dir())
        curves.append([event.value for event in EventAccumulator(str(run)).Reload().Scalars("train/loss")])
    assert len(curves[0]) == 10
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)


# --------------------------------------------------------------------------------------------------------------- FSDP2

# Accelerate has FSDP for accelerators alone; told that the two processes have some, it does the same on a CPU.
TRAINS = """
import json
from pathlib import Path
import torch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from tests.contract.registry import contract_cases
from tests.contract.test_trainer import trainer
from tests.training.test_accelerate_configs import MODELS, logits_of

together = PartialState(cpu=True).num_processes
for case in contract_cases():
    if case.name not in MODELS:
        continue
    settings = {"max_steps": 6, "logging_steps": 1, "per_device_train_batch_size": 8 // together}
    settings |= {"optim": "sgd", "learning_rate": 0.1}  # Adam would make steps of mere rounding
    if together > 1:
        AcceleratorState._reset_state()
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        settings["accelerator_config"] = {"use_configured_state": True}
    run = trainer(case, Path(case.name), case.model(), **settings)
    run.train()
    run.save_model(f"{case.name}/saved")
    logits = logits_of(case, run.model_wrapped.eval())
    if PartialState().is_main_process:
        noted = {
            "processes": together,
            "kind": run.accelerator.distributed_type.value,
            "sharded": sorted({type(m).__name__ for m in run.model_wrapped.modules() if hasattr(m, "unshard")}),
            "losses": [entry["loss"] for entry in run.state.log_history if "loss" in entry],
        }
        Path(case.name, "noted.json").write_text(json.dumps(noted))
        torch.save(logits, f"{case.name}/logits.pt")
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the models that one process and two have trained."""
    folders = {}
    for name, config in (("one", None), ("two", "fsdp2.yaml")):
        folders[name] = tmp_path_factory.mktemp(name)
        (folders[name] / "trains.py").write_text(TRAINS)
        launch(["trains.py"], config, folders[name])
    return folders


def logits_of(case: ContractCase, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What the model makes of every position of a batch."""
    with torch.no_grad():
        found = model(**case.inputs(4, 7, 3))
    return {name: found[name] for name in case.position_outputs if found[name] is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_sharded_training_is_that_of_one_process(name: str, trained: dict[str, Path]) -> None:
    one, two = (json.loads((folder / name / "noted.json").read_text()) for folder in trained.values())
    assert (one["processes"], one["kind"], one["sharded"]) == (1, "NO", [])
    assert (two["processes"], two["kind"]) == (2, "FSDP")
    assert len(two["sharded"]) > 1  # its layers, besides the model itself
    assert len(one["losses"]) == 6
    assert one["losses"] == pytest.approx(two["losses"], rel=1e-5)
    (case,) = (case for case in contract_cases() if case.name == name)
    first, second = (case.model_class.from_pretrained(folder / name / "saved").eval() for folder in trained.values())
    start = dict(case.model().named_parameters())
    for (label, ours), theirs in zip(first.named_parameters(), second.parameters(), strict=True):
        assert_close(ours, theirs, rtol=0, atol=1e-5, msg=named(label))
    assert any(not torch.equal(start[label], value) for label, value in second.named_parameters())
    sharded, loaded = torch.load(trained["two"] / name / "logits.pt"), logits_of(case, second)
    assert sharded.keys() == loaded.keys() != set()
    for output, values in sharded.items():
        assert_close(values, loaded[output], rtol=0, atol=0, msg=named(output))
