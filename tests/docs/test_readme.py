"""Every Python block of the READMEs and guides runs: in order, one process a file, in an empty folder, with a Hub."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.local_hub import LocalHub

ROOT = Path(__file__).parents[2]
READMES = sorted(
    [
        *ROOT.glob("README.md"),
        *(page for page in ROOT.glob("hf_mech/**/README.md") if "```python" in page.read_text(encoding="utf-8")),
        *(guide for guide in ROOT.glob("docs/*.md") if "```python" in guide.read_text(encoding="utf-8")),
    ]
)

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The process that runs the pages, with a Hub."""
    with LocalHub() as hub:
        with subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("run_pages.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=hub.environment(tmp_path_factory.mktemp("home")) | {"PYTHONPATH": str(ROOT)},
        ) as process:
            yield process
            assert process.stdin is not None
            process.stdin.close()


def python_blocks(text: str) -> str:
    """The Python blocks of a Markdown text, every other line blank: line numbers stay."""
    lines, fence = [], None
    for line in text.splitlines():
        if fence is None and line.startswith("```"):
            fence = line
        elif line.rstrip() == "```":
            fence = None
        elif fence == "```python":
            lines.append(line)
            continue
        lines.append("")
    if fence is not None:
        raise ValueError(f"The block {fence!r} is never closed; end it with a line of three backticks.")
    return "\n".join(lines)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(readme: Path, pages: subprocess.Popen[str], tmp_path: Path) -> None:
    program = python_blocks(readme.read_text(encoding="utf-8"))
    assert program.strip(), f"{readme} has no Python block"
    here, printed = tmp_path / "here", tmp_path / "printed"
    here.mkdir()
    (here / "model_cards").symlink_to(ROOT / "model_cards")  # a page is read in a clone
    page = {"name": str(readme), "program": program, "folder": str(here), "printed": str(printed)}
    assert pages.stdin is not None
    assert pages.stdout is not None
    pages.stdin.write(json.dumps(page) + "\n")
    pages.stdin.flush()
    assert pages.stdout.readline() == "0\n", printed.read_text(encoding="utf-8")[-6000:]


def test_line_numbers_stay() -> None:
    text = "# A\n```bash\nmake\n```\n\n```python\nx = 1\n```\n```text\n1\n```\n```python\nraise KeyError(x)\n```\n"
    program = python_blocks(text)
    assert [number for number, line in enumerate(program.splitlines(), 1) if line] == [7, 13]
    with pytest.raises(KeyError) as caught:
        exec(compile(program, "README.md", "exec"), {})
    assert caught.traceback[-1].lineno + 1 == 13
    with pytest.raises(ValueError, match="never closed"):
        python_blocks("```python\nx = 1\n")


def test_there_is_a_readme_to_run() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "belief_states.md"} <= set(READMES)
