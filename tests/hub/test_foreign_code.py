"""What SECURITY.md says of loading: with hf_mech installed, no code of a checkpoint runs, and no code in pickles."""

import pickle
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

CARDS = Path(__file__).parents[2] / "model_cards"


class Runs:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_files_of_a_checkpoint_do_not_run(tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(CARDS / "dat-pargen")
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(CARDS / "dat-pargen").save_pretrained(tmp_path)
    files = list(tmp_path.glob("*.py"))
    assert {"modeling_dat.py", "tokenization_dat.py"} <= {file.name for file in files}
    for file in files:
        file.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n")
    assert type(AutoModelForCausalLM.from_pretrained(tmp_path)) is type(model)
    AutoTokenizer.from_pretrained(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_pickles_with_code_are_refused(tmp_path: Path) -> None:
    checkpoint, mark = tmp_path / "strips", tmp_path / "ran"
    shutil.copytree(CARDS / "strips-ferry-1c", checkpoint)
    (checkpoint / "model.safetensors").unlink()
    torch.save({"theta": Runs(mark)}, checkpoint / "pytorch_model.bin")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        AutoModel.from_pretrained(checkpoint)
    assert not mark.exists()
    torch.load(checkpoint / "pytorch_model.bin", weights_only=False)
    assert mark.exists()  # it would have run
