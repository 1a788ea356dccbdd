"""A person's path through the explorer, in headless Chromium on this machine alone: `make test-browser`."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright import sync_api as playwright
from playwright.sync_api import expect

import hf_mech
from hf_mech.cli.explorer.views import all_views, menu
from hf_mech.hub.catalogue import located
from tests.viz.explorer.test_views import believer

pytestmark = pytest.mark.browser

SWAP = "Q B V D E A D E V B . Q F G H V K L A"
SWAPPED = ("K", "L", "V", "F", "G", "H", ".")
ACT2PASS = "Q x V y A y Was V By x . Q u V w A"
COPY = """registers: {symbol: 's', position: 'p'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    symbol[N] = symbol[n]
"""
PHONE, WIDE = {"width": 375, "height": 740}, {"width": 1440, "height": 900}
PATIENCE = 60_000  # ms: the machine may be busy

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The app in a process of its own, as a person starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from hf_mech.cli import app; app()", "explore", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(Path(hf_mech.__path__[0]).parent)}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            if server.poll() is not None:
                pytest.fail(f"the app ended: {server.stdout.read() if server.stdout else ''}")
            try:
                with urlopen(url, timeout=5):
                    break
            except OSError:
                time.sleep(0.5)
        yield url
    finally:
        server.terminate()
        server.communicate(timeout=30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: $CHROMIUM, one in the PATH, or playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as started:
        try:
            made = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.fail(
                f"no Chromium could be started ({found or 'none is in the PATH'}): {error.message}\nInstall one, for "
                "example with `python -m playwright install chromium` or `apt-get install chromium`, or name it: "
                "CHROMIUM=/path/to/chromium"
            )
        yield made
        made.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a page. At the end: no script has failed, and nothing outside this machine was asked."""
    faults: list[str] = []
    contexts = []

    def open_page(url: str, size: dict[str, int] = WIDE, scheme: str = "light") -> Any:
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme, has_touch=size is PHONE))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on("console", lambda said: faults.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("request", lambda asked: None if here(asked.url) else faults.append(f"asked: {asked.url}"))
        page.goto(url)
        if url.startswith("http:"):
            expect(run_page(page).locator("h1").first).to_be_visible()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def here(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "data:", "blob:", "file:", "about:"))


def run_page(page: Any) -> Any:
    """The page of the run in the visible tab."""
    return page.frame_locator("iframe:visible")


def open_tab(page: Any, name: str) -> Any:
    """Chooses a tab; its first page."""
    page.get_by_role("tab", name=name).click()
    expect(run_page(page).locator("h1").first).to_be_visible()
    return run_page(page)


def inner(page: Any) -> Any:
    """The same as a frame in which a script can be run."""
    return page.locator("iframe:visible").element_handle().content_frame()


def run(page: Any, prompt: str) -> Any:
    page.get_by_label("Prompt", exact=True).fill(prompt)
    page.get_by_role("button", name="Run").click()  # the one of the visible tab
    return run_page(page)


def write(page: Any, program: str) -> None:
    """Replaces the text in the editor."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(program)


def words(frame: Any, *expected: str) -> None:
    expect(frame.locator("#words button[data-step]:not([data-step='0'])")).to_have_text(list(expected))


def scrolls_sideways(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


# ------------------------------------------------------------------------------------------------------------ the app


def test_from_a_program_to_the_registers_of_a_cell(address: str, opened: Open) -> None:
    page = opened(address)
    page.get_by_label("Program", exact=True).click()
    page.get_by_role("option", name="pargen", exact=True).click()
    frame = run(page, ACT2PASS)
    words(frame, "w", "Was", "V", "By", "u", ".")
    expect(frame.locator("h1")).to_have_text("pargen")

    # The V of the cue reads the V of the example in P5b, and becomes a delimiter of its field.
    row = frame.get_by_role("row").filter(has=frame.get_by_role("button", name="layer 14, P5b"))
    row.locator('td[data-cell="13"]').click()
    registers = frame.locator("#cell-registers tbody tr")
    expect(frame.locator("#cell h2")).to_have_text("Cell 14: V")
    expect(registers.filter(has_text="type")).to_have_count(2)  # type and prev_type
    expect(registers.filter(has=frame.get_by_text(re.compile("^type")))).to_contain_text("D")
    field = registers.filter(has=frame.get_by_text(re.compile("^field")))
    expect(field.locator("td")).to_have_text(["14", "3", "3"])  # before, after, in the cell that was read
    expect(frame.locator("#cell")).to_contain_text("3 → 14")
    expect(frame.locator("#cell pre")).to_contain_text("field[N] = field[n]")
    expect(frame.locator("td.is-read")).to_have_attribute("data-cell", "2")

    frame.get_by_role("button", name="cell 3, V").click()  # n itself
    expect(frame.locator("#cell h2")).to_have_text("Cell 3: V")


def test_the_layer_has_its_qkvl_and_its_weights(address: str, opened: Open) -> None:
    page = opened(address)
    frame = run(page, SWAP)
    words(frame, *SWAPPED)
    frame.get_by_role("button", name="layer 14, P5b").click()
    expect(frame.get_by_role("tab", name="Layer")).to_have_attribute("aria-selected", "true")
    match = frame.locator("#match tbody tr").filter(has=frame.locator("th", has_text=re.compile("^s`$")))
    expect(match.locator("td")).to_have_text(["s", "s"])
    weights = frame.locator("#weights tbody tr")
    expect(weights.filter(has_text="Wv[f → f]").locator("td")).to_have_text("1 I + 0 J")
    expect(weights.filter(has_text="bv[t]").locator("td")).to_have_text("1 e(D) + 0 1")
    frame.get_by_role("tab", name="Program").click()
    expect(frame.locator("#program mark").first).to_contain_text("where parse[N] == 1 and region[n] == XQ")


def test_the_generation_step_by_step(address: str, opened: Open) -> None:
    page = opened(address)
    frame = run(page, SWAP)
    columns = frame.locator("thead th[data-cell]")
    expect(columns).to_have_count(19)
    frame.get_by_role("button", name="Next step").click()
    expect(columns).to_have_count(20)
    expect(columns.last).to_contain_text("K")
    expect(frame.locator("#where")).to_contain_text("writes word 2, L")
    frame.get_by_role("button", name="generated word 7").click()
    expect(columns).to_have_count(26)
    expect(frame.locator("#where")).to_contain_text("ends the completion")
    expect(frame.get_by_role("button", name="Next step")).to_be_disabled()
    frame.get_by_role("button", name="Previous step").click()
    expect(columns).to_have_count(25)


def test_the_shown_registers_layers_and_values_are_chosen(address: str, opened: Open) -> None:
    page = opened(address)
    frame = run(page, SWAP)
    rows = frame.locator("tbody tr[data-row]")
    expect(rows.first).to_be_visible()
    few = rows.count()
    frame.get_by_label("all layers").check()
    assert rows.count() > few
    frame.get_by_label("all layers").uncheck()
    cell = frame.locator('tr[data-row="0"] td[data-cell="0"]')
    expect(cell).not_to_contain_text("p*")
    frame.get_by_text("Registers", exact=True).click()
    frame.get_by_role("checkbox", name="prev_position").check()
    expect(cell).to_contain_text("p*0")
    frame.get_by_label("unchanged values").check()
    expect(cell).to_contain_text("sQ")


def test_by_keyboard_alone(address: str, opened: Open) -> None:
    page = opened(address)
    page.get_by_label("Prompt", exact=True).fill(SWAP)
    page.get_by_label("Prompt", exact=True).press("Enter")
    frame = run_page(page)
    words(frame, *SWAPPED)
    chosen = frame.locator('td[aria-selected="true"]')
    expect(chosen).to_have_count(1)
    chosen.focus()
    for key in ("Home", "PageUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(chosen).to_be_focused()
    expect(chosen).to_have_attribute("data-cell", "1")
    expect(frame.locator("#cell")).to_contain_text("after layer 1, P0")
    expect(chosen).to_have_attribute("aria-label", re.compile("cell 2, B; .*region becomes R"))


def test_pointing_at_a_cell_shows_all_its_registers(address: str, opened: Open) -> None:
    page = opened(address)
    frame = run(page, SWAP)
    words(frame, *SWAPPED)
    frame.locator('tr[data-row="0"] td[data-cell="3"]').hover()
    tip = frame.get_by_role("tooltip")
    expect(tip).to_contain_text("prev_position0")
    expect(tip).to_contain_text("symbolD")


def test_an_error_of_a_program_is_shown_at_its_line_and_mended(address: str, opened: Open) -> None:
    page = opened(address)
    words(run(page, SWAP), *SWAPPED)
    page.get_by_text("Text of the program").click()
    write(page, COPY.replace("symbol[N]", "simbol[N]"))
    frame = run(page, "red green blue")
    alert = frame.get_by_role("alert")
    expect(alert.get_by_role("heading")).to_contain_text("Line 4")
    expect(alert).to_contain_text("Did you mean `symbol`?")
    expect(alert.locator("mark")).to_contain_text("simbol[N] = symbol[n]")

    write(page, COPY)
    frame = run(page, "red green blue")
    expect(frame.locator("h1")).to_have_text("pargen, edited")
    expect(frame.locator('#words button[data-step="1"]')).to_have_text("green")


def test_an_error_of_a_prompt_is_said_in_words(address: str, opened: Open) -> None:
    page = opened(address)
    words(run(page, SWAP), *SWAPPED)
    expect(run(page, "  ").get_by_role("alert")).to_contain_text("the prompt has no word; give at least one")


def test_a_turing_machine_whose_table_stands_in_the_prompt(address: str, opened: Open) -> None:
    page = opened(address)
    page.get_by_label("Program", exact=True).click()
    page.get_by_role("option", name="universal", exact=True).click()
    frame = run_page(page)
    expect(frame.locator("h1")).to_have_text("universal")
    expect(frame.locator("thead th[data-cell]")).to_have_count(12)
    expect(page.get_by_label("Registers that the prompt sets")).to_have_value(re.compile("^from_state: right"))


def test_another_models_view_in_its_tab(address: str, opened: Open) -> None:
    page = opened(address)
    open_tab(page, "STRIPS")
    frame = run_page(page)
    expect(frame.locator("h1")).to_contain_text("simple: 3 propositions")
    page.get_by_label("Actions").fill("a c a c b b")
    page.get_by_role("button", name="Run").click()
    verdicts = frame.locator("section").first.locator("tbody tr")
    expect(verdicts).to_have_count(6)
    expect(verdicts.nth(2)).to_contain_text("inapplicable")
    expect(frame.locator("figure svg")).to_be_visible()
    page.get_by_label("Actions").fill("a fly")
    page.get_by_role("button", name="Run").click()
    expect(frame.get_by_role("alert")).to_contain_text("fly")


# ------------------------------------------------------------------------------------------ small, dark, and by itself


def test_a_checkpoint_and_the_settings_of_its_view(address: str, opened: Open, tmp_path: Path) -> None:
    believer(tmp_path)
    page = opened(address)
    open_tab(page, "Belief states")

    def field(label: str) -> Any:
        return page.get_by_label(label).locator("visible=true").first

    def ask(goal: str) -> None:
        field("End").fill(goal)
        page.get_by_role("button", name="Run").locator("visible=true").click()

    shown = run_page(page)
    expect(shown.locator("h1").first).to_be_visible()
    field("Checkpoint").fill(str(tmp_path))
    field("Checkpoint").press("Enter")
    expect(shown.get_by_role("heading", level=1)).to_contain_text(f"{tmp_path}: a b a b")  # on an example
    field("Text").fill("a b b a")
    ask("b a")
    expect(shown.get_by_role("heading", level=1)).to_have_text(f"{tmp_path}: a b b a … b a")
    expect(shown.get_by_role("columnheader", name="end: b a")).to_be_visible()
    expect(shown.locator("figure svg")).to_have_count(1)
    ask("x")  # not of the language
    expect(shown.get_by_role("alert")).to_contain_text("the tokenizer cannot read 'x'")


def test_no_tab_is_empty(address: str, opened: Open) -> None:
    """Each whose checkpoints are here shows a run of its first source, has three examples, and runs each of them."""
    page = opened(address)
    for view in all_views():
        names = menu(view)
        if not names or (names[0] not in view.sources and not Path(located(names[0])).is_dir()):
            continue  # of the project's checkpoints, none of this kind is in this clone yet
        shown = open_tab(page, view.name)
        expect(shown.get_by_role("alert")).to_have_count(0)
        examples = page.locator(".explorer-example:visible")
        expect(examples).to_have_count(3)
        before = shown.locator("body").inner_html()
        examples.nth(2).focus()
        page.keyboard.press("Enter")
        expect(shown.locator("body")).not_to_have_js_property("innerHTML", before)
        expect(shown.get_by_role("alert")).to_have_count(0)


def test_a_second_source_reads_the_same_input(address: str, opened: Open) -> None:
    """By keyboard: a learned or another program beside the first; without one there is a single frame."""
    page = opened(address)
    expect(run(page, "a b c").locator("h1")).to_have_text("pargen")
    beside = page.get_by_label("Beside it").locator("visible=true")
    beside.fill("reverse")
    beside.press("Enter")
    expect(page.locator("iframe:visible")).to_have_count(2)
    other = page.frame_locator("iframe:visible >> nth=1")
    expect(other.locator("h1")).to_have_text("reverse")
    words(other, "c", "b", "a")
    left, right = (page.locator("iframe:visible").nth(number).bounding_box() for number in (0, 1))
    assert left["x"] + left["width"] <= right["x"]


def test_a_checkpoint_that_is_not_there_is_named_in_a_sentence(address: str, opened: Open) -> None:
    page = opened(address)
    open_tab(page, "Stacks")
    field = page.get_by_label("Checkpoint").locator("visible=true").first
    field.fill("/no/such/folder")
    field.press("Enter")
    expect(run_page(page).get_by_role("alert")).to_contain_text("'/no/such/folder' is no checkpoint that can be loaded")


def test_on_a_phone(address: str, opened: Open) -> None:
    page = opened(address, PHONE)
    frame = run(page, SWAP)
    words(frame, *SWAPPED)
    assert not scrolls_sideways(page)
    assert not scrolls_sideways(inner(page))
    frame.locator('tr[data-row="0"] td[data-cell="1"]').tap()
    expect(frame.locator("#cell h2")).to_have_text("Cell 2: B")
    corner = frame.locator("thead .corner")
    left = corner.bounding_box()["x"]
    frame.locator("#scroller").evaluate("element => element.scrollTo({left: 400, top: 300, behavior: 'instant'})")
    assert corner.bounding_box()["x"] == left  # the headers stay
    expect(corner).to_be_in_viewport()


def test_the_dark_scheme(address: str, opened: Open) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        page = opened(address, WIDE, scheme)
        words(run(page, SWAP), *SWAPPED)
        for frame in (page, inner(page)):
            colour = frame.evaluate("getComputedStyle(document.body).backgroundColor")
            grounds.append(sum(map(int, re.findall(r"\d+", colour)[:3])) / 3)
    light, light_frame, dark, dark_frame = grounds
    assert min(light, light_frame) > 240
    assert max(dark, dark_frame) < 40


def test_the_exported_page_opens_by_itself(opened: Open, tmp_path: Path) -> None:
    from hf_mech.programs.explorer_view import VIEW

    file = tmp_path / "run.html"
    file.write_text(VIEW.page("pargen", SWAP), encoding="utf-8")
    for size in (PHONE, WIDE):
        page = opened(file.as_uri(), size)
        words(page, *SWAPPED)
        assert not scrolls_sideways(page)
        page.locator('tr[data-row="0"] td[data-cell="1"]').click()
        expect(page.locator("#cell h2")).to_have_text("Cell 2: B")
