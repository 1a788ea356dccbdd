"""Every Python block of the READMEs and guides runs: in order, one process a file, in an empty folder, with a Hub."""

from __future__ import annotations

import subprocess
import sys
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

# Compiled under the README's own name, so that a traceback shows its lines.
RUN = "import sys; exec(compile(sys.stdin.read(), sys.argv[1], 'exec'), {'__name__': '__main__'})"


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
def test_python_blocks_run(readme: Path, tmp_path: Path) -> None:
    program = python_blocks(readme.read_text(encoding="utf-8"))
    assert program.strip(), f"{readme} has no Python block"
    here = tmp_path / "here"
    here.mkdir()
    with LocalHub() as hub:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(readme)],
            input=program,
            env=hub.environment(tmp_path / "home") | {"PYTHONPATH": str(ROOT)},
            cwd=here,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"


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
