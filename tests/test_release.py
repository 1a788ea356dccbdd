"""What dist/ is before it is published: `make release-check` builds it, and runs these tests of it."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
import yaml
from readme_renderer import markdown

from hf_mech import __version__ as VERSION
from tests.docs.test_readme import python_blocks

ROOT = Path(__file__).parents[1]
WHEEL, SDIST = (ROOT / "dist" / name for name in (f"hf_mech-{VERSION}-py3-none-any.whl", f"hf_mech-{VERSION}.tar.gz"))
TAG = os.environ.get("TAG", "")
"""The tag of the release, if it is one: `make release-check TAG=v1.2.3`."""

pytestmark = pytest.mark.release


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel() -> dict[str, bytes]:
    return contents(WHEEL)


@pytest.fixture(scope="module")
def metadata(wheel: dict[str, bytes]) -> Message:
    return email.message_from_bytes(wheel[f"hf_mech-{VERSION}.dist-info/METADATA"])


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The files of the repository."""
    return set(subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z"], text=True, encoding="utf-8").split("\0"))


def test_one_version_everywhere(metadata: Message) -> None:
    assert metadata["Version"] == VERSION
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == VERSION
    changes = re.findall(r"^## \[(.+?)\](.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert changes[0][0] in {VERSION, "Unreleased"}
    if TAG:
        assert f"v{VERSION}" == TAG, "hf_mech.__version__ is the version; the tag is v and the version"
        assert changes[0][0] == VERSION, "the changelog's first section is the release: `## [1.2.3] - 2030-01-31`"
        assert re.fullmatch(r" - \d{4}-\d\d-\d\d", changes[0][1])
        assert "/OWNER/" not in metadata.as_string(), "name the repository's owner in pyproject.toml"


def test_the_sdist_is_of_the_repository_and_makes_the_same_wheel(
    wheel: dict[str, bytes], tracked: set[str], tmp_path: Path
) -> None:
    with tarfile.open(SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    sources = tmp_path / SDIST.name.removesuffix(".tar.gz")
    inside = {path.relative_to(sources).as_posix() for path in sources.rglob("*") if path.is_file()}
    assert inside - tracked == {"PKG-INFO"}
    assert inside >= {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "Makefile", "constraints.txt"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=sources, check=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    again = contents(tmp_path / WHEEL.name)
    assert [name for name in wheel.keys() | again.keys() if wheel.get(name) != again.get(name)] == []


def test_the_page_on_pypi(metadata: Message, tracked: set[str]) -> None:
    """As PyPI renders it: every link and picture is of a file that the tag will have; the examples are as they were."""
    readme = str(metadata.get_payload())
    assert python_blocks(readme) == python_blocks((ROOT / "README.md").read_text("utf-8"))
    page = markdown.render(readme)
    assert page is not None
    places = re.findall(r'(?:href|src|srcset)="([^"]*)"', page)
    assert {place.partition(":")[0] for place in places if not place.startswith("#")} == {"https"}
    anchors = {"#" + name for name in re.findall(r'id="([^"]*)"', page)}
    assert {place for place in places if place.startswith("#")} <= anchors
    files = [found[1] for place in places if (found := re.search(rf"/hf_mech/(?:blob/)?v{VERSION}/([^#]+)", place))]
    folders = {parent.as_posix() for name in tracked for parent in Path(name).parents}
    assert len(files) > 20
    assert set(files) - tracked - folders == set()


def test_all_that_is_shipped_may_be_shipped(wheel: dict[str, bytes], metadata: Message) -> None:
    """Under our licence, which lies in the wheel; no file says that it is somebody else's."""
    assert metadata["License-Expression"] == "Apache-2.0"
    assert wheel[f"hf_mech-{VERSION}.dist-info/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    cards = [name for name in wheel if re.fullmatch(r"hf_mech/hub/checkpoints/[^/]+/README\.md", name)]
    licences = {yaml.safe_load(wheel[name].split(b"---")[1])["license"] for name in cards}
    assert len(cards) == 5
    assert licences == {"apache-2.0"}
    notice = re.compile(rb"(?i)copyright (\(c\)|\xc2\xa9|[0-9])|SPDX-License|all rights reserved|GNU (lesser )?general")
    ours = {name for name in wheel if not name.endswith((".safetensors", "/LICENSE"))}
    assert {name for name in ours if notice.search(wheel[name])} == set()


def test_it_is_small_enough_to_install_at_once() -> None:
    assert WHEEL.stat().st_size < 10e6
    assert SDIST.stat().st_size < 30e6
