"""The pages: one file that needs nothing else, whatever a prompt says; and the command and the Space that make them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result
from matplotlib.figure import Figure
from typer.testing import CliRunner

import hf_mech
from hf_mech.cli import app
from hf_mech.cli.explorer.app import make_app
from hf_mech.cli.explorer.views import all_views, compared, menu, view_for, view_of
from hf_mech.hub.catalogue import catalogue
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.explorer_view import VIEW
from hf_mech.programs.psl import compile_program, program_text
from hf_mech.viz.page import Section, fault_page, figures_page
from hf_mech.viz.palette import PAGE
from hf_mech.viz.view import ExplorerError

ROOT = Path(hf_mech.__path__[0]).parent
EVIL = "</script><script>alert(1)</script> <b>&amp; <!-- Q"
BROKEN = program_text("pargen").replace("region[N] = CQ\n", "region[N] = CX\n", 1)
LINE = BROKEN[: BROKEN.index("region[N] = CX")].count("\n") + 1


class Elements(HTMLParser):
    """The elements of a page: names and attributes, and the text of its data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.data, self._in_data = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in_data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False


def assert_alone(page: str) -> Elements:
    """Nothing in the page asks for another file, and its policy forbids it, too."""
    elements = Elements(page)
    for tag, attributes in elements.found:
        asked = [attributes.get(name) or "" for name in ("src", "srcset", "href", "xlink:href", "data", "action")]
        assert [url for url in asked if url and not url.startswith(("#", "data:"))] == [], tag
        assert tag not in ("link", "iframe", "object", "embed", "base")
    assert re.findall(r"url\((?!['\"]?(?:#|data:))|@import|\bfetch\(|XMLHttpRequest|\bimport\s*\(", page) == []
    assert "default-src 'none'" in page
    return elements


def hf(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# --------------------------------------------------------------------------------------------------------------- pages


def test_the_page_of_a_run_needs_nothing_else() -> None:
    elements = assert_alone(VIEW.page("pargen", "Q B V D E A D E V B . Q F G H V K L A"))
    assert json.loads(elements.data)["completion"] == ["K", "L", "V", "F", "G", "H", "."]


def test_a_prompt_is_text_and_never_markup() -> None:
    elements = assert_alone(VIEW.page("pargen", EVIL))
    assert json.loads(elements.data)["prompt"] == EVIL.split()
    assert [tag for tag, _ in elements.found].count("script") == 2  # the data and the page's own


def test_a_fault_is_shown_at_its_line() -> None:
    with pytest.raises(ProgramsError) as caught:
        VIEW.page("pargen", "Q", written=BROKEN)
    page = fault_page(caught.value, BROKEN)
    assert_alone(page)
    assert f"Line {LINE}" in page
    (marked,) = re.findall(r"<mark>(.*?)</mark>", page)
    assert "region[N] = CX" in marked
    assert str(LINE) in marked
    assert "CX" in page.partition("<pre")[0]  # the message names it


def test_other_faults_are_said_in_words() -> None:
    page = fault_page(ValueError(f"no such thing: {EVIL}"))
    assert [tag for tag, _ in assert_alone(page).found].count("script") == 0
    assert "no such thing: &lt;/script" in page


def test_a_page_of_figures_and_tables_escapes_its_text() -> None:
    figure = Figure(figsize=(1, 1))
    figure.text(0.1, 0.5, "drawn")
    page = figures_page("A & B", EVIL, [Section("<i>", "text", [figure], ["n<"], [["<td>"]])])
    assert "&lt;td&gt;" in page
    names = [tag for tag, _ in assert_alone(page).found]
    assert (names.count("svg"), names.count("i"), names.count("script")) == (1, 0, 0)


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_legible(scheme: int) -> None:
    grounds = {
        "ink": ("paper", "panel", "new", "read-fill", "wrong-fill"),
        "soft": ("paper", "panel", "new", "read-fill"),
        "accent": ("paper", "panel", "new"),
        "read": ("paper", "panel"),
        "wrong": ("paper", "panel"),
        "on-accent": ("accent",),
        "faint": ("paper", "panel"),
    }
    low = {
        (text, ground): round(ratio, 2)
        for text, others in grounds.items()
        for ground in others
        if (ratio := contrast(PAGE[text][scheme], PAGE[ground][scheme])) < 4.5
    }
    assert low == {}


# ------------------------------------------------------------------------------------------------------------- sources


def test_every_view_is_complete() -> None:
    views = all_views()
    assert views[0].sources
    types = [model_type for view in views for model_type in view.model_types]
    assert len(types) == len(set(types))
    assert [view.rank for view in views] == list(range(len(views)))
    for view in views:
        assert view.name
        assert view.about.endswith(".")
        assert view.source_label
        assert view.text_label


def test_a_file_a_checkpoint_and_a_name_have_their_view(tmp_path: Path) -> None:
    file = tmp_path / "own.psl"
    file.write_text(program_text("pargen"))
    folder = tmp_path / "compiled"
    model, tokenizer = compile_program(program_text("pargen"), max_position_embeddings=32, num_open_values=20)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for source in ("pargen", str(file), str(folder)):
        assert view_for(source) is VIEW
        run = json.loads(Elements(VIEW.page(source, "Q x y A y x Q z y A")).data)
        assert run["completion"] == ["y", "z"]
    assert run["text"] == ""  # the folder has no program.psl
    assert run["program"] == "compiled"


def test_an_unknown_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExplorerError, match=r"pargn.*pargen"):
        view_for("pargn")
    with pytest.raises(ExplorerError, match="no view of models of type 'bert'"):
        view_of("bert")
    with pytest.raises(ExplorerError, match="no checkpoint that can be loaded"):
        VIEW.page(str(tmp_path), "Q")


def test_the_menus_name_the_checkpoints_of_the_project() -> None:
    """Every one has a view; baselines may stand beside any other."""
    offered = [name for view in all_views() for name in menu(view)]
    assert len(offered) == len(set(offered))
    for entry in catalogue():
        assert view_for(entry.name) is view_of(entry.model_type)
        assert entry.name in menu(view_of(entry.model_type))
    baselines = {entry.name for entry in catalogue() if entry.model_type == "gpt2"}
    for view in all_views():
        assert {*menu(view), *baselines} == set(compared(view))


def test_the_app_is_made_without_torch() -> None:
    """Torch and transformers come when a tab is opened, so the first page does not wait for them."""
    script = """
import sys
from hf_mech.cli.explorer.app import make_app
make_app()
print(sorted({"torch", "transformers", "matplotlib"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


# --------------------------------------------------------------------------------------------------- command and Space


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    done = hf("explore", "pargen", "Q x y A y x Q z y A", "--html", file, "--set", "max_new_tokens: 1")
    assert (done.exit_code, done.stdout) == (0, f"Wrote {file}\n")
    assert json.loads(assert_alone(file.read_text("utf-8")).data)["completion"] == ["y"]


def test_the_command_names_what_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "broken.psl"
    broken.write_text(BROKEN)
    done = hf("explore", broken, "Q", "--html", tmp_path / "run.html")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"line {LINE}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run.html").exists()


def test_without_gradio_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(ExplorerError):
        make_app()
    done = hf("explore", "pargen")
    assert done.exit_code == 1
    assert "pip install 'hf-mech[explore]'" in done.stderr


def test_the_space_can_be_pushed_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "space"
    assert hf("explore", "--space", folder).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"README.md", "app.py", "requirements.txt"}
    header = (folder / "README.md").read_text("utf-8").split("---")[1]
    (version,) = re.findall(r"^gradio==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert f"sdk_version: {version}\n" in header
    assert "app_file: app.py\n" in header
    calls = {
        node.func.id
        for node in ast.walk(ast.parse((folder / "app.py").read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert calls == {"make_app", "launch"}
    again = hf("explore", "--space", folder)
    assert again.exit_code == 1
    assert "not empty" in again.stderr
