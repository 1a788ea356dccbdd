"""A tab of the app: the fields of a view, its examples, and the pages below them, of one source or of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from hf_mech.cli.explorer.views import compared, menu, view_for
from hf_mech.viz.page import fault_page
from hf_mech.viz.view import Example, ExplorerError, View

EXAMPLES = 3
"""Buttons in a tab."""

_FAULTS = (ValueError, ImportError, OSError)
"""Of a program, a text, a checkpoint, a missing extra or a file; the message is for the reader."""


def make_tab(gradio: Any, opens: Callable[..., Any], view: View, source: str, text: str) -> None:
    """The components of a view; the first time that `opens` fires, an example is run.

    Args:
        gradio: the module.
        opens: the event of the tab, or of the page.
        view: of the tab.
        source: open at the start; by default the first of the menu.
        text: what it reads; by default the first example.
    """
    examples, filled_for = gradio.State([]), gradio.State("")
    gradio.Markdown(view.about, elem_classes="explorer-about")
    with gradio.Row(elem_classes="explorer-fields"):
        sources = gradio.Dropdown(
            [source] if source else [], value=source or None, label=view.source_label, allow_custom_value=True,
            scale=1, min_width=180,
        )  # fmt: skip
        beside = gradio.Dropdown(
            [], value=None, label="Beside it", allow_custom_value=True, scale=1, min_width=150,
        )  # fmt: skip
        prompt = gradio.Textbox(text, label=view.text_label, lines=1, max_lines=4, scale=4, min_width=240)
        if view.settings_in_view:
            settings = gradio.Textbox("", label=view.settings_label, lines=1, max_lines=4, scale=2, min_width=200)
        button = gradio.Button("Run", variant="primary", scale=0, min_width=90)
    with gradio.Row(elem_classes="explorer-examples"):
        buttons = [
            gradio.Button(f"Example {number}", size="sm", min_width=120, elem_classes="explorer-example")
            for number in range(1, EXAMPLES + 1)
        ]
    with gradio.Accordion("Settings", open=False, visible=not view.settings_in_view) as accordion:
        if not view.settings_in_view:
            settings = gradio.Textbox(
                "", label=view.settings_label, lines=1, max_lines=12, visible=bool(view.settings_label)
            )
        editor = gradio.Code("", label=view.source_label, show_label=False, lines=10, max_lines=16, visible=False)
    with gradio.Row(elem_classes="explorer-frames"):
        frame = gradio.HTML(elem_classes="explorer-frame", min_height=480)
        second = gradio.HTML(elem_classes="explorer-frame", visible=False)

    fields = [sources, prompt, settings, editor, beside]
    filled = [sources, beside, prompt, settings, editor, accordion, examples, filled_for, *buttons]

    def fill(source: str | None, given: str, choices: bool) -> list[Any]:
        """The fields for a source: its first example, its text, and the names of the examples."""
        shown, runs = source or "", _examples(view, source or "")
        example = runs[0] if runs else Example()
        own = view.written(shown)
        names = [
            gradio.update(value=name, visible=bool(name))
            for name in [*_names(view, runs), *[""] * (EXAMPLES - len(runs))]
        ]
        return [
            # A value that a person has typed meanwhile stays, unless there is one to show.
            gradio.update(choices=menu(view), **({"value": source} if source else {})) if choices else gradio.skip(),
            gradio.update(choices=list(compared(view))) if choices else gradio.skip(),
            given or example.text or gradio.skip(),
            example.settings,
            gradio.update(value=own, visible=bool(own)),
            gradio.update(
                label=_more(view, own),
                visible=bool(own or (view.settings_label and not view.settings_in_view)),
                open="\n" in example.settings,
            ),
            runs,
            shown,
            *names,
        ]

    def begin(source: str | None, given: str, shown: str | None) -> Any:
        if shown:
            return [gradio.skip()] * len(filled)
        try:
            first = source or next(iter(menu(view)), "")
            filling = fill(first, given, choices=True)
            if source:  # it may have been changed meanwhile
                filling[0] = gradio.update(choices=menu(view))
            return filling
        except _FAULTS as error:
            raise gradio.Error(str(error)) from error

    def change(source: str | None, before: str) -> list[Any]:
        """Another source; the same one, chosen again, leaves what a person has typed."""
        return [gradio.skip()] * len(filled) if source == before else fill(source, "", choices=False)

    def show(source: str | None, text: str, settings: str, written: str, beside: str | None) -> list[Any]:
        page = _page(view, source, text, settings, written)
        other = _beside(view, beside, text, settings) if beside else ""
        return [page, gradio.update(value=other, visible=bool(other))]

    def first(source: str | None, text: str, settings: str, written: str, beside: str | None, shown: str | None) -> Any:
        return [gradio.skip(), gradio.skip()] if shown else show(source, text, settings, written, beside)

    # One run after the other, so that the last answer is that of the last question; none is dropped for an earlier one.
    in_turn = {"concurrency_id": view.name, "concurrency_limit": 1, "show_progress": "full"}
    loads = {"show_progress": "full", "show_progress_on": [frame]}  # a checkpoint, for its examples
    opens(begin, [sources, prompt, frame], filled, concurrency_id=view.name, **loads).then(
        first, [*fields, frame], [frame, second], **in_turn
    )
    sources.input(change, [sources, filled_for], filled, **loads).then(show, fields, [frame, second], **in_turn)
    beside.input(show, fields, [frame, second], **in_turn)
    for event in (button.click, prompt.submit, *([settings.submit] if view.settings_in_view else [])):
        event(show, fields, [frame, second], trigger_mode="always_last", **in_turn)
    for number, example_button in enumerate(buttons):

        def take(runs: Sequence[Any], number: int = number) -> tuple[str, str]:
            return runs[number][0], runs[number][1]

        example_button.click(take, examples, [prompt, settings], show_progress="hidden").then(
            show, fields, [frame, second], **in_turn
        )


def _page(view: View, source: str | None, text: str, settings: str, written: str) -> str:
    """The frame of a run, or of its fault."""
    try:
        if not source:
            raise ExplorerError("Name a checkpoint: its folder, or its repository on the Hub, user/name.")
        page = view.page(source, text, settings=settings, written=written or None)
    except _FAULTS as error:
        page = fault_page(error, written)
    return _frame(page, f"{view.name}: {view.about}")


def _beside(view: View, source: str, text: str, settings: str) -> str:
    """The frame of the second source on the same input, in the view that reads it."""
    try:
        own = view if source in menu(view) else view_for(source)
        page = own.page(source, _for(own, view, text, settings), settings=settings if own is view else "")
    except _FAULTS as error:
        own, page = view, fault_page(error)
    return _frame(page, f"Beside it: {source}. {own.about}")


def _for(own: View, view: View, text: str, settings: str) -> str:
    """The text of one view as another one reads it: an end that has a field here stands in the text there."""
    return text if own is view else view.whole_text(text, settings)


def _examples(view: View, source: str) -> Sequence[Example]:
    """The source's examples; none while its name is being typed."""
    try:
        return view.examples(source)[:EXAMPLES]
    except _FAULTS:
        return ()


def _names(view: View, examples: Sequence[Example]) -> list[str]:
    """What stands on the examples' buttons: the text, and the settings where these tell one from another."""
    alike = len({example.text for example in examples}) < len(examples)
    names = []
    for example in examples:
        if not alike:
            parts = [example.text]
        else:
            parts = [example.settings, example.text] if view.settings_in_view else [example.settings or example.text]
        names.append(" · ".join(" ".join(part.split()) for part in parts if part))
    return names


def _more(view: View, own: str) -> str:
    """The name of the fields that are closed at first."""
    return f"Text of the {view.source_label.lower()}, to read and edit" if own else "Settings"


def _frame(page: str, title: str) -> str:
    """A page in a page: neither's style reaches the other."""
    return f'<iframe title="{escape(title)}" srcdoc="{escape(page)}"></iframe>'
