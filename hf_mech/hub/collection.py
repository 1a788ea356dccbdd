"""A collection of the published checkpoints: the text of its page, and the collection on the Hub."""

from __future__ import annotations

from collections.abc import Sequence

from huggingface_hub import Collection, HfApi

from hf_mech.hub.catalogue import CatalogueEntry
from hf_mech.hub.files import PushError
from hf_mech.hub.push import first_line

TITLE = "hf_mech: trained checkpoints"
DESCRIPTION = "Small transformers whose mechanism can be read: world models, stacks, belief states, programs, players."
"""At most 150 characters, the Hub's limit."""

_MOST_IN_A_NOTE = 500


def collection_page(entries: Sequence[CatalogueEntry], organization: str) -> str:
    """The text of the collection's page, in Markdown: each checkpoint with its task, figure, size and loading line."""
    rows = [
        f"| [{entry.name}](https://huggingface.co/{organization}/{entry.name}) | {_cell(entry.task)} | "
        f"{_cell(entry.headline)} | {size_in_words(entry.bytes)} | `{entry.auto_class}` |"
        for entry in entries
    ]
    first = entries[0]
    return "\n".join(
        [
            f"# {TITLE}",
            "",
            DESCRIPTION,
            "",
            "| checkpoint | what it does | figure | size | loads with |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "Each loads by its name, without our package:",
            "",
            "```python",
            f"from transformers import {first.auto_class}",
            "",
            f'model = {first.auto_class}.from_pretrained("{organization}/{first.name}", trust_remote_code=True)',
            "```",
            "",
        ]
    )


def size_in_words(count: int) -> str:
    """The size of a file.

    >>> size_in_words(812), size_in_words(70_400), size_in_words(5_660_000)
    ('812 B', '70 kB', '5.7 MB')
    """
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1e3:.0f} kB" if count < 999_500 else f"{count / 1e6:.1f} MB"


def publish_collection(entries: Sequence[CatalogueEntry], organization: str, api: HfApi) -> Collection:
    """Make the collection, or add to it the checkpoints that it lacks.

    Raises:
        PushError: the server refuses it, or has no collections.
    """
    try:
        collection = api.create_collection(TITLE, namespace=organization, description=DESCRIPTION, exists_ok=True)
        there = {item.item_id for item in collection.items}
        for entry in entries:
            if (repo_id := f"{organization}/{entry.name}") not in there:
                note = f"{entry.task}: {entry.headline}"[:_MOST_IN_A_NOTE]
                collection = api.add_collection_item(collection.slug, repo_id, "model", note=note, exists_ok=True)
    except Exception as error:  # the client raises errors of several libraries; the cause stays attached
        raise PushError(
            f"The repositories are there, but the collection {TITLE!r} of {organization} could not be made: "
            f"{first_line(error)}. "
            "Run the command again, or make it by hand; --page writes its text."
        ) from error
    return collection


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
