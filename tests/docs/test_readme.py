"""Every Python block of the READMEs runs as printed: in order, in one namespace a file, in an empty folder."""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
READMES = sorted([*ROOT.glob("README.md"), *ROOT.glob("hf_mech/models/*/README.md")])


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(readme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    document = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], path=str(readme.parent)).parse(readme)
    monkeypatch.chdir(tmp_path)
    for example in document.examples():
        example.evaluate()


def test_there_is_a_readme_to_run():
    assert ROOT / "README.md" in READMES
