"""The site builds without a warning, its links lead somewhere, and every public package has its page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import hf_mech.hub
import hf_mech.models.strips
import hf_mech.planning

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """The places that one can link to in a page, and what it links to or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places, self.links = {""}, set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the attributes of a tag."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src", "srcset") and value:
                self.links.add(value)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links within the site that lead nowhere, and those to other sites without a form that a browser knows."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https"):
                fits = bool(parts.netloc) and " " not in link
            elif parts.scheme in ("mailto", "data"):
                fits = True
            else:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                known = pages.get(target)
                place = unquote(parts.fragment)
                fits = place in known.places if known else target.is_file()
            if not fits:
                found.append(f"{path.name}: {link}")
    return found


def test_all_links_lead_somewhere(pages: dict[Path, Page]) -> None:
    assert len(pages) > 200
    assert sum(len(page.links) for page in pages.values()) > 10_000
    assert broken(pages) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    here = tmp_path / "here.html"
    here.touch()
    links = ["here.html#there", "#here", "gone.html", "here.html#gone", "https:///x"]
    page = Page("<p id='here'></p><p id='there'></p>" + "".join(f"<a href='{link}'></a>" for link in links))
    assert sorted(broken({here: page})) == [f"here.html: {link}" for link in sorted(links[2:])]


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text, path
        assert 'rel="stylesheet" type="text/css" href="http' not in text, path


@pytest.mark.parametrize("package", [hf_mech.hub, hf_mech.models.strips, hf_mech.planning], ids=lambda it: it.__name__)
def test_every_public_name_is_in_the_reference(site: Path, pages: dict[Path, Page], package: object) -> None:
    name = package.__name__
    page = pages[(site / f"docs/api/generated/{name}.html").resolve()]
    named = {public for public in package.__all__ if callable(getattr(package, public))}
    assert {public for public in named if f"{name}.{public}" not in page.places} == set()


def test_equations_lead_to_functions(site: Path) -> None:
    text = (site / "hf_mech/models/strips/README.html").read_text(encoding="utf-8")
    assert "generated/hf_mech.models.strips.html#hf_mech.models.strips.strips_attention_reference" in text


def test_a_formula_is_drawn_without_a_script(site: Path) -> None:
    text = (site / "hf_mech/models/belief_state/README.html").read_text(encoding="utf-8")
    assert "<math" in text
    assert re.search(r"<script[^>]*mathjax", text, re.IGNORECASE) is None


def test_notebooks_can_be_taken_away(site: Path) -> None:
    notebooks = list(site.glob("_downloads/*/*.ipynb"))
    assert len(notebooks) == len(list((ROOT / "docs" / "notebooks").glob("*.md")))
    for notebook in notebooks:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert "pip install" in "".join(code[0]["source"]), notebook
