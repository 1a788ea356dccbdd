"""The collections of the Hub on this machine: made, read, and added to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hub.local_hub import _Handler


def _create(request: _Handler) -> None:
    asked = request.json()
    slug = f"{asked['namespace']}/{re.sub('[^a-z0-9]+', '-', asked['title'].lower())}-{'0' * 24}"
    if slug in request.hub.collections:
        request.answer({"error": "exists", "slug": slug}, status=409)
        return
    request.hub.collections[slug] = {
        "_id": "0" * 24,
        "slug": slug,
        "title": asked["title"],
        "owner": {"name": asked["namespace"]},
        "items": [],
        "lastUpdated": "2025-01-01T00:00:00.000Z",
        "position": 0,
        "private": asked["private"],
        "theme": "blue",
        "upvotes": 0,
        "description": asked.get("description"),
    }
    _answer(request, slug)


def _get(request: _Handler, slug: str) -> None:
    _answer(request, slug)


def _add(request: _Handler, slug: str) -> None:
    asked = request.json()
    items = request.hub.collections[slug]["items"]
    item = {"_id": f"{len(items):024x}", "position": len(items), "note": {"text": asked.get("note")}, **asked["item"]}
    if item["id"] in {there["id"] for there in items}:
        request.answer({"error": "already in the collection"}, status=409)
        return
    items.append(item)
    _answer(request, slug)


def _answer(request: _Handler, slug: str) -> None:
    request.answer(json.loads(json.dumps(request.hub.collections[slug])))


_SLUG = r"/api/collections/(?P<slug>[^/]+/[^/]+)"
ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("POST", "/api/collections", _create),
    ("GET", _SLUG, _get),
    ("POST", f"{_SLUG}/items", _add),
]
