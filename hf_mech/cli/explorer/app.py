"""The explorer: its views, a Gradio app with a tab for each, and the app as a Space for the Hub."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hf_mech
from hf_mech.viz.page import fault_page
from hf_mech.viz.palette import PAGE
from hf_mech.viz.view import Example, ExplorerError, View

if TYPE_CHECKING:
    import gradio


# ----------------------------------------------------------------------------------------------------------------------
# Finds the views of the explorer: a subject's room has one if it holds a module `explorer_view`, with `VIEW`.


def all_views() -> list[View]:
    """Every view; those that can show something without a checkpoint come first."""
    rooms = [room.name for room in pkgutil.iter_modules(hf_mech.__path__) if room.ispkg]
    names = sorted(f"hf_mech.{room}.explorer_view" for room in rooms)
    views: list[View] = [importlib.import_module(name).VIEW for name in names if importlib.util.find_spec(name)]
    return sorted(views, key=lambda view: not view.sources)


def view_of(model_type: str) -> View:
    """The view of a checkpoint.

    Raises:
        ExplorerError: no view reads such models.
    """
    for view in all_views():
        if model_type in view.model_types:
            return view
    known = sorted(known for view in all_views() for known in view.model_types)
    raise ExplorerError(
        f"the explorer has no view of models of type {model_type!r}; it has views of {', '.join(known)}"
    )


def view_for(source: str) -> View:
    """The view that reads a source: one that knows its name, or the one of the checkpoint's model type.

    Raises:
        ExplorerError: there is no such source, or no view of it.
    """
    for view in all_views():
        if source in view.sources or view.written(source):
            return view
    from transformers import AutoConfig

    try:
        model_type = AutoConfig.from_pretrained(source).model_type
    except (OSError, ValueError) as error:
        names = ", ".join(name for view in all_views() for name in view.sources)
        raise ExplorerError(
            f"{source!r} is no checkpoint's folder, no repository on the Hub, no file of PSL, and none of {names}: "
            f"{error}"
        ) from error
    return view_of(model_type)


# ----------------------------------------------------------------------------------------------------------------------
# The explorer as a Gradio app: a tab for each view, with fields for its source and text, and the page below them.


_STYLES = Path(__file__).with_name("app.css")
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
_MONO = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "monospace")


def make_app(source: str = "", text: str = "", view: View | None = None) -> gradio.Blocks:
    """The app. Nothing is sent anywhere: analytics are off.

    Args:
        source: open at the start; by default the first source of the first view.
        text: what it reads; by default the source's example.
        view: the view of `source`; by default the first.

    Raises:
        ExplorerError: gradio is not installed.
    """
    gradio = _gradio()
    views = all_views()
    first = views[0] if view is None else view
    with gradio.Blocks(title="hf_mech explorer", analytics_enabled=False, fill_width=True) as app:
        with gradio.Tabs(selected=first.name):
            for own in views:
                with gradio.Tab(own.name, id=own.name) as tab:
                    opens = app.load if own is first else tab.select
                    _tab(gradio, opens, own, *((source, text) if own is first else ("", "")))
    return app


def launch(
    app: gradio.Blocks, host: str = "127.0.0.1", port: int | None = None, share: bool = False, **how: Any
) -> Any:
    """Serves the app.

    Args:
        app: from `make_app`.
        host: the address to listen at.
        port: by default the first free one from 7860.
        share: whether Gradio makes a public address for it.
        how: further arguments of `Blocks.launch`.
    """
    return app.launch(
        server_name=host, server_port=port, share=share, theme=_theme(_gradio()), css=_styles(), footer_links=[],
        ssr_mode=False, **how,
    )  # fmt: skip


def _gradio() -> Any:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
    try:
        import gradio
    except ModuleNotFoundError as error:
        raise ExplorerError(
            "The explorer's app needs gradio: pip install 'hf_mech[explore]'. Without it, --html FILE writes one run."
        ) from error
    return gradio


def _tab(gradio: Any, opens: Callable[..., Any], view: View, source: str, text: str) -> None:
    """The fields of a view, and its page, which `opens` fills the first time."""
    source = source or next(iter(view.sources), "")
    given = _example(view, source)
    own = view.written(source)
    gradio.Markdown(view.about, elem_classes="explorer-about")
    with gradio.Row(elem_classes="explorer-fields"):
        sources = gradio.Dropdown(
            list(dict.fromkeys([*view.sources, *([source] if source else [])])), value=source or None,
            label=view.source_label, allow_custom_value=True, scale=1, min_width=180,
        )  # fmt: skip
        prompt = gradio.Textbox(
            text or given.text, label=view.text_label, lines=1, max_lines=4, scale=4, min_width=240, autofocus=True
        )
        button = gradio.Button("Run", variant="primary", scale=0, min_width=90)
    with gradio.Accordion(
        _more(view, own), open=bool(given.settings), visible=bool(own or view.settings_label)
    ) as accordion:
        settings = gradio.Textbox(
            given.settings, label=view.settings_label, lines=1, max_lines=12, visible=bool(view.settings_label)
        )
        editor = gradio.Code(
            own, label=view.source_label, show_label=False, lines=10, max_lines=16, visible=bool(own)
        )  # fmt: skip
    frame = gradio.HTML(elem_classes="explorer-frame")

    def show(source: str | None, text: str, settings: str, written: str) -> str:
        try:
            if not source:
                raise ExplorerError("Name a checkpoint: its folder, or its repository on the Hub, user/name.")
            page = view.page(source, text, settings=settings, written=written or None)
        except ValueError as error:  # of the program, the prompt or the checkpoint; its text is for the reader
            page = fault_page(error, written)
        return _frame(page, f"{view.name}: {view.about}")

    def first(source: str | None, text: str, settings: str, written: str, shown: str | None) -> Any:
        return gradio.skip() if shown else show(source, text, settings, written)

    def change(source: str | None) -> list[Any]:
        example = _example(view, source or "")
        own = view.written(source or "")
        return [
            example.text or gradio.skip(),
            example.settings,
            gradio.update(value=own, visible=bool(own)),
            gradio.update(
                label=_more(view, own), visible=bool(own or view.settings_label), open=bool(example.settings)
            ),
        ]

    fields = [sources, prompt, settings, editor]
    # One run after the other, so that the last answer is that of the last question; none is dropped for an earlier one.
    in_turn = {"concurrency_id": view.name, "concurrency_limit": 1, "show_progress": "minimal"}
    sources.change(change, sources, [prompt, settings, editor, accordion], show_progress="hidden").then(
        show, fields, frame, **in_turn
    )
    for event in (button.click, prompt.submit):
        event(show, fields, frame, trigger_mode="always_last", **in_turn)
    if source:
        opens(first, [*fields, frame], frame, **in_turn)


def _example(view: View, source: str) -> Example:
    """The source's example; an empty one while its name is being typed."""
    try:
        return view.example(source)
    except ValueError:
        return Example()


def _more(view: View, own: str) -> str:
    """The name of the fields that are closed at first."""
    return f"Text of the {view.source_label.lower()}, to read and edit" if own else "Settings"


def _frame(page: str, title: str) -> str:
    """A page in a page: neither's style reaches the other."""
    return f'<iframe title="{escape(title)}" srcdoc="{escape(page)}"></iframe>'


def _styles() -> str:
    return _STYLES.read_text(encoding="utf-8") + f".dark {{ --color-accent: {PAGE['accent'][1]}; }}\n"


def _theme(gradio: Any) -> Any:
    """Gradio's plain theme in the palette's colours, with the machine's own fonts: nothing is fetched."""
    colours = {
        "body_background_fill": "paper",
        "body_text_color": "ink",
        "body_text_color_subdued": "soft",
        "background_fill_primary": "paper",
        "background_fill_secondary": "panel",
        "block_background_fill": "paper",
        "block_label_text_color": "soft",
        "block_title_text_color": "soft",
        "border_color_primary": "line",
        "input_background_fill": "paper",
        "input_border_color": "edge",
        "button_primary_background_fill": "accent",
        "button_primary_background_fill_hover": "accent",
        "button_primary_text_color": "on-accent",
        "button_primary_border_color": "accent",
        "input_border_color_focus": "accent",
        "color_accent": "accent",
    }  # color_accent has no dark form: the style sheet has it
    both = [
        (f"{name}{end}", PAGE[colour][at])
        for name, colour in colours.items()
        for at, end in ((0, ""), (1, "_dark"))
        if f"{name}{end}" != "color_accent_dark"
    ]
    theme = gradio.themes.Base(font=_FONTS, font_mono=_MONO)
    widths = {"input_border_width": "1px", "input_border_width_dark": "1px"}
    return theme.set(**widths, **dict(both))


# ----------------------------------------------------------------------------------------------------------------------
# The explorer as a Space: a folder to be pushed to the Hub as it is.


_FOLDER = Path(__file__).with_name("space")
_FILES = ("README.md", "app.py", "requirements.txt")


def write_space(folder: Path) -> list[Path]:
    """Copies the Space's files into a new or empty folder, and returns their paths.

    Raises:
        ExplorerError: the folder holds something else, or is a file.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExplorerError(f"{folder} is not empty, or is a file; name a new folder for the Space")
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(_FOLDER / name, folder / name)) for name in _FILES]
