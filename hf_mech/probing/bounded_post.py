"""A request whose reply is bounded in time and in size, also if the server sends it drop by drop or compressed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, TypeVar

import httpx2

T = TypeVar("T")

_COMPRESSED = {"gzip": 31, "x-gzip": 31, "deflate": 47}  # zlib's wbits


class ReplyTooLargeError(httpx2.RequestError):
    """A reply with more bytes than allowed."""


class UnknownEncodingError(httpx2.RequestError):
    """A reply that is compressed in a way that was not asked for."""


class DeepJSONError(ValueError):
    """JSON that is nested too deeply to be read."""


def post(client: httpx2.Client, url: str, content: Any, *, seconds: float, most: int) -> httpx2.Response:
    """POST JSON and return the whole reply.

    Args:
        client: its own time-outs stay: they end a request that hangs before `seconds` are over.
        url: the address.
        content: JSON.
        seconds: the most time for the connection, the headers and the body together.
        most: the most bytes of the reply, as sent and as decompressed. The rest of an error's body is left out.

    Raises:
        httpx2.ReadTimeout: after `seconds`.
        ReplyTooLargeError, UnknownEncodingError: if a reply of status 200 is too large or cannot be decompressed.
        httpx2.RequestError: if there is no reply.
    """
    given_up = Event()

    def whole_reply() -> httpx2.Response:
        # A compressed reply can be a thousand times as large as the bytes that come.
        with client.stream("POST", url, json=content, headers={"Accept-Encoding": "identity"}) as response:
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > most or given_up.is_set():
                    break
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY]
            text = _decompressed(bytes(body), response, most)
            return httpx2.Response(response.status_code, headers=headers, content=text, request=response.request)

    return within(seconds, whole_reply, given_up)


_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")


def _decompressed(body: bytes, response: httpx2.Response, most: int) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in _COMPRESSED and body:
        try:
            body = zlib.decompressobj(_COMPRESSED[encoding]).decompress(body, most + 1)
        except zlib.error as error:
            raise httpx2.DecodingError(f"the reply is no {encoding}: {error}", request=response.request) from error
    elif encoding not in ("", "identity") and response.status_code == 200:
        raise UnknownEncodingError(f"the reply is compressed as {encoding!r}, asked for: not compressed")
    if len(body) > most and response.status_code == 200:
        raise ReplyTooLargeError(f"the reply has more than {most:,} bytes")
    return body[:most]


def within(seconds: float, function: Callable[[], T], given_up: Event) -> T:
    """The function's result, if it comes in time. A client's time-outs begin anew with each byte; this one does not.

    Args:
        seconds: the most time.
        function: runs in a thread of its own, which ends by itself after `given_up` is set.
        given_up: set when the time is over.

    Raises:
        httpx2.ReadTimeout: if it does not.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:  # noqa: BLE001  (raised by the caller)
            failed.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if found:
        return found[0]
    if failed:
        raise failed[0]
    given_up.set()
    raise httpx2.ReadTimeout(f"no whole reply in {seconds:.3g} s")


def json_of(response: httpx2.Response) -> Any:
    """The reply's JSON.

    Raises:
        ValueError: if it is none.
        DeepJSONError: if it is nested too deeply.
    """
    try:
        return json.loads(response.content)
    except RecursionError:
        raise DeepJSONError("the JSON is nested too deeply") from None
