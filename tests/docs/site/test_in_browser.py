"""Pages of the site in headless Chromium, without a network: `make test-browser`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api as playwright

pytestmark = pytest.mark.browser

PAGES = (
    "docs/index",
    "README",
    "docs/guides",
    "docs/data_sets",
    "docs/notebooks/stack",
    "docs/logs",
    "docs/results/strips",
    "docs/results/strips-simple/README",
    "hf_mech/models/belief_state/README",
    "hf_mech/models/stack/README",
    "model_cards/README",
    "docs/api/index",
    "docs/api/generated/hf_mech.models.strips",
    "search",
)
"""One of each kind."""
PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def chromium() -> Iterator[playwright.Browser]:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[PHONE, WIDE], ids=["phone", "wide"])
def page(request: pytest.FixtureRequest, chromium: playwright.Browser, scheme: Any) -> Iterator[playwright.Page]:
    context = chromium.new_context(viewport=request.param, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_by_all(page: playwright.Page, site: Path, name: str) -> None:
    page.goto((site / f"{name}.html").as_uri())
    findings = Axe().run(page).response["violations"]
    serious = [
        f"{finding['id']}: {finding['help']}: {finding['nodes'][0]['html'][:300]}"
        for finding in findings
        if finding["impact"] in ("serious", "critical")
    ]
    assert serious == []
    beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert beyond <= 0, "the page is wider than the screen"


def test_search_finds_a_function(chromium: playwright.Browser, site: Path) -> None:
    page = chromium.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=stack_attention_reference")
    page.locator("#search-results li").first.wait_for()
    assert "stack_attention_reference" in page.locator("#search-results").inner_text()


def test_the_theme_shows_its_picture(chromium: playwright.Browser, site: Path) -> None:
    for scheme, shown in (("light", "heads-light"), ("dark", "heads-dark")):
        page = chromium.new_page(color_scheme=scheme)
        page.goto((site / "docs/index.html").as_uri())
        sources = [image.get_attribute("src") for image in page.locator("article img").all() if image.is_visible()]
        assert len(sources) == 5
        assert shown in sources[0]
