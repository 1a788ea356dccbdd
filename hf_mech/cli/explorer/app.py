"""The explorer as a Gradio app: a tab for each view."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mech.cli.explorer.tab import make_tab
from hf_mech.cli.explorer.views import all_views
from hf_mech.viz.palette import PAGE
from hf_mech.viz.view import ExplorerError, View

if TYPE_CHECKING:
    import gradio

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
                    make_tab(gradio, opens, own, *((source, text) if own is first else ("", "")))
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
            "The explorer's app needs gradio: pip install 'hf-mech[explore]'. Without it, --html FILE writes one run."
        ) from error
    return gradio


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
