"""The notebooks of docs/notebooks run from their first cell to their last, anywhere, and convert to .ipynb."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.md"))
SECONDS = 300  # for a cell, at most

pytestmark = pytest.mark.slow


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_it_runs_in_an_empty_folder(path: Path, tmp_path: Path):
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(path)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources=resources, skip_cells_with_tag="skip-execution"
    )
    client.execute()  # raises what a cell raises
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures, "a notebook ends in a picture"
    unseen = [output for output in outputs if output.get("data", {}).get("text/plain", "").startswith("<Figure")]
    assert all("image/png" in output.data for output in unseen), "a figure is not shown"


def test_as_a_download_it_installs_the_package_first(path: Path):
    import jupytext
    import nbformat

    notebook = nbformat.reads(jupytext.writes(jupytext.read(path), "ipynb"), as_version=4)
    nbformat.validate(notebook)
    first, *others = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert first.source == '%pip install -q "hf-mech[all]"'
    assert first.metadata.tags == ["skip-execution"]
    assert not any("skip-execution" in cell.metadata.get("tags", ()) for cell in others)
    assert any("assert " in cell.source for cell in others), "a notebook checks what its text says"


def test_it_needs_no_clone(path: Path):
    code = "\n".join(cell for cell in path.read_text("utf-8").split("```{code-cell}")[1:])
    code = "\n".join(block.partition("\n```")[0] for block in code.split("```{code-cell}"))
    assert "model_cards/" not in code


def test_there_is_one_a_family_and_one_on_logs():
    assert {path.stem for path in NOTEBOOKS} == {"stack", "belief_states", "strips", "programs", "msat", "logs"}
