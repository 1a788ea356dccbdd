"""Language models behind an OpenAI-compatible chat-completions endpoint: the services, vLLM, llama.cpp, Ollama, TGI.

The client is httpx2, as in huggingface_hub. `huggingface_hub.InferenceClient` itself does not fit: without a key it
sends the user's Hugging Face token to the endpoint, in offline mode it refuses local servers too, it turns a redirected
POST into a GET, and it has no retries. `openai.OpenAI` does not fit either: without a key it sends the one in
OPENAI_API_KEY to any server, and it bounds neither a reply that comes drop by drop or never ends, nor the time of all
attempts together.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from hf_mech.hub.redaction import redact, remember
from hf_mech.probing import ProbingError
from hf_mech.probing.language_models import Question, Reply

OPENAI = "https://api.openai.com/v1"

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""The statuses after which the same request may succeed."""

LONGEST_WAIT = 60.0
"""Seconds between two attempts, at most, also after a longer Retry-After header."""

_CONNECT_SECONDS = 10.0
_MOST_READ = 20_000  # characters of an error


class ChatEndpoint:
    """A model behind `POST {base_url}/chat/completions`. Close it, or use it in a `with`, to close its connections.

    Greedy by default (temperature 0); Smolensky et al. (2024) do not say how they sampled.

    Args:
        model: the model's name at the endpoint.
        base_url: the address up to and including the version, such as `http://localhost:8000/v1`.
        api_key: sent as a bearer token; None sends none. It is never written to a file or message, also if the server
            repeats it.
        timeout: seconds for the whole reply of one attempt, even if it comes drop by drop.
        retries: further attempts after a status of `RETRIED`, a lost connection or a time-out.
        backoff: seconds before the first retry; each later wait is about twice as long. A Retry-After header
            takes precedence. No wait is longer than `LONGEST_WAIT`.
        deadline: seconds for a question: all attempts and the waits between them.
        max_reply_bytes: the most bytes of a reply, also after decompression.
        concurrency: simultaneous requests.
        max_tokens: the most tokens of a reply.
        request: further fields of the request's JSON; None removes a field. Reasoning models of OpenAI, for example,
            take `{"temperature": None, "max_tokens": None, "max_completion_tokens": 8192}`.

    Raises:
        ProbingError: if the settings do not make a valid request.
    """

    group = 1  # see `LanguageModel`: no reply depends on another

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
        *,
        api_key: str | None = None,
        timeout: float = 120.0,
        retries: int = 6,
        backoff: float = 1.0,
        deadline: float = 600.0,
        max_reply_bytes: int = 4_000_000,
        concurrency: int = 4,
        max_tokens: int = 256,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        positive = {"timeout": timeout, "deadline": deadline, "max_reply_bytes": max_reply_bytes}
        positive |= {"concurrency": concurrency, "max_tokens": max_tokens}
        for name, value in positive.items():
            if not 0 < value < math.inf:
                raise ProbingError(f"{name} must be more than 0, and finite, got {value}.")
        for name, value in (("retries", retries), ("backoff", backoff)):
            if not 0 <= value < math.inf:
                raise ProbingError(f"{name} must be 0 or more, and finite, got {value}.")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ProbingError("The API key holds characters that no HTTP header takes.")
        fields = {"model": model, "temperature": 0, "max_tokens": max_tokens} | dict(request or {})
        if taken := {"messages", "stream", "n"} & fields.keys():
            raise ProbingError(f"{', '.join(sorted(taken))} cannot be among the request's further fields.")
        self.name = model
        self.url = _completions_url(base_url)
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.deadline = deadline
        self.max_reply_bytes = max_reply_bytes
        self.concurrency = concurrency
        if api_key is not None:
            remember(api_key)
        self._request: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        try:
            self._client = httpx2.Client(
                headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
                limits=httpx2.Limits(max_keepalive_connections=concurrency),
                follow_redirects=False,  # a redirected POST would arrive as a GET
            )
            self._client.build_request("POST", self.url, json=self._request)
        except (TypeError, ValueError, ImportError) as error:  # ImportError: the environment asks for a SOCKS proxy
            raise ProbingError(
                f"No request to {self.url} can be made: {redact(str(error))}. Check --request and the proxy of the "
                "environment."
            ) from error

    def settings(self) -> dict[str, Any]:
        """The address and the request, without the key."""
        return {"kind": "chat endpoint", "url": self.url, **self._request}

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, in order, from up to `concurrency` simultaneous requests.

        Raises:
            ProbingError: as in [`reply`], at the first question without an answer.
        """
        waiting: deque[Future[Reply]] = deque()
        with ThreadPoolExecutor(self.concurrency) as pool:
            try:
                for question in questions:
                    waiting.append(pool.submit(self.reply, question))
                    # No further ahead: replies to questions behind one that failed would be paid for and lost.
                    if len(waiting) == self.concurrency:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def reply(self, question: Question) -> Reply:
        """Ask one question.

        Raises:
            ProbingError: no whole reply in time, a status other than 200, or a reply that is no chat completion; the
                message says which, and what to do.
        """
        messages = [{"role": "user", "content": question.prompt}]
        if question.system is not None:
            messages.insert(0, {"role": "system", "content": question.system})
        content = self._request | {"messages": messages}
        ends, retried = time.monotonic() + self.deadline, 0
        while True:
            response, body, failure = None, b"", None
            try:
                response, body = self._post(content, min(self.timeout, max(ends - time.monotonic(), 0.001)))
            except httpx2.RequestError as error:
                failure = error
            if response is not None and response.status_code not in RETRIED:
                break
            seconds = self._wait(retried, response)
            if retried == self.retries or time.monotonic() + seconds >= ends:
                break
            time.sleep(seconds)
            retried += 1
        if response is None:
            raise ProbingError(
                f"{self.url} did not answer after {retried} retries ({redact(_reason(failure))}). Is the address right "
                f"and the server up? The limit for a reply is {self.timeout:g} s, and for all attempts together "
                f"{self.deadline:g} s."
            ) from failure
        self._check_status(response.status_code, body, retried)
        return self._read(body)

    def _post(self, content: Any, seconds: float) -> tuple[httpx2.Response, bytes]:
        """A response and its body; reading stops at the first part that goes beyond `max_reply_bytes`."""
        ends, body = time.monotonic() + seconds, bytearray()
        # The client's time-outs begin anew with each part of the reply; `ends` does not.
        timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        with self._client.stream("POST", self.url, json=content, timeout=timeout) as response:
            for part in response.iter_bytes():
                body += part
                if time.monotonic() > ends:
                    raise httpx2.ReadTimeout(f"no whole reply in {seconds:.3g} s")
                if len(body) > self.max_reply_bytes:
                    break
        return response, bytes(body)

    def _wait(self, retried: int, response: httpx2.Response | None) -> float:
        """Seconds before the next attempt: those of a Retry-After header, else `backoff`, doubled by each retry.

        Up to `backoff` seconds are added at random, so that simultaneous requests come back apart.
        """
        seconds = None if response is None else retry_after(response)
        if seconds is None:
            seconds = self.backoff * 2 ** min(retried, 10) + random.uniform(0, self.backoff)
        return min(seconds, LONGEST_WAIT)

    def _check_status(self, status: int, body: bytes, retried: int) -> None:
        if status == 200:
            return
        said = _excerpt(body)
        if status in (401, 403):
            raise ProbingError(
                f"{self.url} refused the API key, or wants one (status {status}: {said}). Put the key into the "
                "environment variable that --api-key-env names."
            )
        if status in RETRIED or status >= 500:
            raise ProbingError(
                f"{self.url} still answers with status {status} after {retried} retries: {said}. Run the command again "
                "later, with less --concurrency: it goes on from here."
            )
        raise ProbingError(
            f"{self.url} refused the request with status {status}: {said}. Check the model's name ({self.name!r}), the "
            "address and --request."
        )

    def _read(self, body: bytes) -> Reply:
        if len(body) > self.max_reply_bytes:
            raise ProbingError(
                f"{self.url} answered with something that is not a chat completion: the reply has more than "
                f"{self.max_reply_bytes:,} bytes. A chat completion is a few thousand bytes of JSON; --max-reply-bytes "
                "sets the limit."
            )
        try:
            choice = json.loads(body)["choices"][0]
            text, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ProbingError(
                f"{self.url} answered with something that is not a chat completion: {_excerpt(body)}. "
                'Expected {"choices": [{"message": {"content": "..."}}]}.'
            ) from error
        # The protocol writes null for a reply without text, such as one whose tokens all went into reasoning.
        if not isinstance(text, str | None) or not isinstance(finish_reason, str | None):
            raise ProbingError(
                f"{self.url} answered with a message that is not text: {_excerpt(body)}. Expected a string as content "
                "and as finish_reason."
            )
        return Reply(redact(text or ""), redact(finish_reason))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def api_key_from_environment(variable: str) -> str | None:
    """The API key in the environment variable; None where it is unset or empty, as for a local server."""
    return os.environ.get(variable, "").strip() or None


def retry_after(response: httpx2.Response) -> float | None:
    """The seconds that a Retry-After header asks for, 0 for a past time; None without a valid header (RFC 9110)."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _completions_url(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, half a bracket
        whole = False
    if whole and "@" in parts.netloc:
        raise ProbingError(
            f"The endpoint's address must not hold a user name or password (at {parts.hostname}); an API key goes into "
            "the environment variable that --api-key-env names."
        )
    if not whole or "?" in base_url or "#" in base_url:
        shown = base_url.rpartition("@")[2].partition("?")[0]
        raise ProbingError(
            f"The endpoint's address must look like https://host/v1, without ? and #, got {shown!r}; /chat/completions "
            "is added to it."
        )
    return f"{base_url.rstrip('/').removesuffix('/chat/completions')}/chat/completions"


def _excerpt(body: bytes, longest: int = 300) -> str:
    """The error message of a body in OpenAI's form, else the beginning of the body, without secrets."""
    said = body.decode("utf-8", errors="replace")
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        said = str(json.loads(body)["error"]["message"])
    said = redact(" ".join(said[:_MOST_READ].split()))
    return (said[:longest] + " ..." if len(said) > longest else said) or "(empty)"


def _reason(error: BaseException | None) -> str:
    """The innermost cause, the one with the helpful text."""
    while error is not None and (inner := error.__cause__ or error.__context__):
        error = inner
    return f"{type(error).__name__}: {error}"
