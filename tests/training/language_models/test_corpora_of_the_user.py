"""Text of the user's own: files with a stock checkpoint, and a data set of the Hub."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from transformers import AutoTokenizer

from hf_mech.hub import Results, check_folder
from tests.hub.local_hub import Blob, LocalHub, Repository
from tests.languages.text.programs import SPLITS, program
from tests.training.commands import printed_by
from tests.training.language_models.sizes import TINY
from training.language_models.experiment import EXPERIMENT
from training.language_models.models import new_model
from training.language_models.run import data_folder

SCRIPT = EXPERIMENT.folder.with_name("train_lm.py")


def test_text_files_and_a_stock_checkpoint(output_dir: Path, tmp_path: Path):
    tokenizer = AutoTokenizer.from_pretrained(data_folder(output_dir, "prepared") / "tokenizer")
    stock = new_model("mlm", "vanilla", tokenizer, layers=1, hidden=16, heads=2, stock=True)
    stock.save_pretrained(tmp_path / "stock")
    tokenizer.save_pretrained(tmp_path / "stock")
    files = []
    for number, split in enumerate(SPLITS):
        (tmp_path / f"{split}.txt").write_text(program(number) + program(number + 10))
        files += [f"--{split}_file", str(tmp_path / f"{split}.txt")]
    printed_by(
        EXPERIMENT,
        *(*files, "--model_name_or_path", str(tmp_path / "stock"), "--objective", "mlm", "--use_stack", "true"),
        *("--stack_gate", "true", "--multi_pop", "2", "--num_seeds", "1", *TINY, "--epochs", "1"),
        *("--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")),
    )
    (file,) = (tmp_path / "runs").glob("*/*/outcome.json")
    outcome = EXPERIMENT.load(file.parent)
    assert file.parent.name.startswith("mlm-checkpoint-gated-cpu-")
    assert file.parent.name.endswith("-multi_pop=2-seed0")
    assert outcome.logits_difference == 0
    assert outcome.data["corpus"] == "text"
    assert outcome.data["vocabulary"] == len(tokenizer)
    check_folder(tmp_path / "cards" / "stack-lm-text")


@pytest.mark.slow
def test_a_data_set_of_the_hub(tmp_path: Path):
    """The script in a process of its own, whose Hub holds a small data set in WikiText's shape."""
    readme = "---\nconfigs:\n- config_name: wikitext-2-raw-v1\n  data_files:\n"
    readme += (
        "".join(f"  - split: {split}\n    path: wikitext-2-raw-v1/{split}.parquet\n" for split in SPLITS) + "---\n"
    )
    files = {"README.md": Blob(readme.encode(), lfs=False)}
    for number, split in enumerate(SPLITS):
        rows = ["", f" = Article {number} = \n", *program(number, lines=60).splitlines(keepends=True)]
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"text": rows}), buffer)
        files[f"wikitext-2-raw-v1/{split}.parquet"] = Blob(buffer.getvalue(), lfs=True)
    with LocalHub() as hub:
        hub.repositories["dataset", "Salesforce/wikitext"] = repository = Repository("Salesforce/wikitext", False)
        repository.commit(files, "data")
        done = subprocess.run(
            [
                *(sys.executable, str(SCRIPT), "--dataset_name", "Salesforce/wikitext"),
                *("--dataset_config_name", "wikitext-2-raw-v1", "--objective", "mlm", "--use_stack", "true"),
                *("--num_seeds", "1", *TINY),
                *("--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")),
            ],
            cwd=tmp_path,
            env=hub.environment(tmp_path / "home"),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert any(path.endswith("train.parquet") for _, path in hub.requests)
    assert "from scratch" in done.stdout
    card = tmp_path / "cards" / "stack-lm-wikitext-2-raw-v1"
    check_folder(card)
    figure = Results.load(card / "results.json").results[0]
    assert (figure.task, figure.config) == ("Salesforce/wikitext", "wikitext-2-raw-v1")
    assert figure.paper is not None
    assert (figure.paper.mean, figure.paper.std, figure.paper.where) == (64.75, 1.75, "Table 3")
    assert math.isfinite(figure.mean)
