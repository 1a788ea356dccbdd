"""Language models behind an OpenAI-compatible chat-completions endpoint: the services, vLLM, llama.cpp, Ollama, TGI."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import TIMEOUT_MAX
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from hf_mech.hub.redaction import redact, remember
from hf_mech.probing.bounded_post import DeepJSONError, ReplyTooLargeError, UnknownEncodingError, json_of, post
from hf_mech.probing.language_model_errors import (
    EndpointAnswerError,
    EndpointBusyError,
    EndpointKeyError,
    EndpointRefusedError,
    EndpointSettingsError,
    EndpointUnreachableError,
)
from hf_mech.probing.language_models import Question, Reply
from hf_mech.probing.retries import RETRIED, retrying

OPENAI = "https://api.openai.com/v1"

_CONNECT_SECONDS = 10.0
_MOST_READ = 20_000  # characters of an error


class ChatEndpoint:
    """A model behind `POST {base_url}/chat/completions`. Close it, or use it in a `with`, to close its connections.

    Greedy by default (temperature 0); the paper does not give its sampling.

    The client is httpx2, the one of huggingface_hub. `huggingface_hub.InferenceClient` itself does not fit: without a
    key it sends the user's Hugging Face token to the endpoint, in offline mode it refuses local servers too, it turns a
    redirected POST into a GET, and it has no retries.

    Args:
        model: the model's name at the endpoint.
        base_url: the address up to and including the version, such as `http://localhost:8000/v1`.
        api_key: sent as a bearer token; None sends none. It is never written to a file or message, also if the server
            repeats it.
        timeout: seconds for a whole reply, for each attempt; also if it comes drop by drop.
        retries: further attempts after a status of [`~hf_mech.probing.retries.RETRIED`], a lost connection or a
            time-out.
        backoff: seconds before the first retry; each later wait is about twice as long. A Retry-After header goes
            first. No wait is longer than a minute.
        deadline: seconds for a question: all attempts and the waits between them.
        max_reply_bytes: the most bytes of a reply, also after decompression.
        concurrency: simultaneous requests.
        max_tokens: the most tokens of a reply.
        request: further fields of the request's JSON; None removes a field. Reasoning models of OpenAI, for example,
            take `{"temperature": None, "max_tokens": None, "max_completion_tokens": 8192}`.

    Raises:
        EndpointSettingsError: if the settings do not make a valid request.
    """

    group = 1  # requests are independent

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
        for name, value, least in (
            ("retries", retries, 0),
            ("concurrency", concurrency, 1),
            ("max_tokens", max_tokens, 1),
            ("max_reply_bytes", max_reply_bytes, 1),
        ):
            if value < least:
                raise EndpointSettingsError(f"{name} must be {least} or more, got {value}.")
        if not 0 < timeout <= TIMEOUT_MAX or not 0 <= backoff <= TIMEOUT_MAX:
            raise EndpointSettingsError(
                f"timeout must be more than 0 seconds and backoff 0 or more, both finite, got {timeout} and {backoff}."
            )
        if not 0 < deadline <= TIMEOUT_MAX:
            raise EndpointSettingsError(f"deadline must be more than 0 seconds and finite, got {deadline}.")
        if api_key is not None and not (
            api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""
        ):
            raise EndpointSettingsError(
                "The API key is empty, or holds blanks or characters that no HTTP header takes."
            )
        fields = {"model": model, "temperature": 0, "max_tokens": max_tokens} | dict(request or {})
        if taken := {"messages", "stream", "n"} & fields.keys():
            raise EndpointSettingsError(f"{', '.join(sorted(taken))} cannot be among the request's further fields.")
        self.name = model
        self.url = _completions_url(base_url)
        self.timeout = timeout
        self.retries = retries
        self.deadline = deadline
        self.max_reply_bytes = max_reply_bytes
        self.concurrency = concurrency
        remember(api_key)
        self._request: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        self._attempts = retrying(retries, backoff, deadline)
        try:
            self._client = httpx2.Client(
                headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
                timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(max_keepalive_connections=concurrency),
                follow_redirects=False,  # a redirected POST would arrive as a GET
            )
            self._client.build_request("POST", self.url, json=self._request)
        except (TypeError, ValueError, ImportError) as error:  # ImportError: the environment asks for a SOCKS proxy
            raise EndpointSettingsError(
                f"No request to {self.url} can be made: {error}. Check --request and the proxy of the environment."
            ) from error

    def settings(self) -> dict[str, Any]:
        """The address and the request, without the key."""
        return {"kind": "chat endpoint", "url": self.url, **self._request}

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, in order, from up to `concurrency` simultaneous requests.

        Raises:
            LanguageModelError: see [`~hf_mech.probing.language_model_errors`].
        """
        waiting: deque[Future[Reply]] = deque()
        with ThreadPoolExecutor(self.concurrency) as pool:
            try:
                for question in questions:
                    waiting.append(pool.submit(self.reply, question))
                    # Not further ahead: replies after a failed question would be paid for and lost.
                    if len(waiting) == self.concurrency:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def reply(self, question: Question) -> Reply:
        """Ask one question.

        Raises:
            LanguageModelError: see [`~hf_mech.probing.language_model_errors`].
        """
        messages = [{"role": "user", "content": question.prompt}]
        if question.system is not None:
            messages.insert(0, {"role": "system", "content": question.system})
        tried, ends = 0, time.monotonic() + self.deadline

        def attempt() -> httpx2.Response:
            nonlocal tried
            tried += 1
            seconds = min(self.timeout, ends - time.monotonic())
            content = self._request | {"messages": messages}
            return post(self._client, self.url, content, seconds=seconds, most=self.max_reply_bytes)

        try:
            response = self._attempts(attempt)
        except (ReplyTooLargeError, UnknownEncodingError) as error:
            raise EndpointAnswerError(
                f"{self.url} answered with something that is not a chat completion: {error}. A chat "
                "completion is a few thousand bytes of JSON; --max-reply-bytes sets the limit."
            ) from error
        except httpx2.RequestError as error:
            raise EndpointUnreachableError(
                f"{self.url} did not answer after {tried - 1} retries ({_reason(error)}). Is the address "
                f"right and the server up? The limit for a reply is {self.timeout:g} s, and for all "
                f"attempts together {self.deadline:g} s."
            ) from error
        self._check_status(response, tried - 1)
        return self._read(response)

    def _check_status(self, response: httpx2.Response, tried: int) -> None:
        if (status := response.status_code) == 200:
            return
        said = self._excerpt(response)
        if status in (401, 403):
            raise EndpointKeyError(
                f"{self.url} refused the API key, or wants one (status {status}: {said}). Put the key into the "
                "environment variable that --api-key-env names."
            )
        if status in RETRIED or status >= 500:
            raise EndpointBusyError(
                f"{self.url} still answers with status {status} after {tried} retries: {said}. Run the command again "
                "later, with less --concurrency: it goes on from here."
            )
        raise EndpointRefusedError(
            f"{self.url} refused the request with status {status}: {said}. Check the model's name ({self.name!r}), the "
            "address and --request."
        )

    def _read(self, response: httpx2.Response) -> Reply:
        try:
            choice = json_of(response)["choices"][0]
            text, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f" ({error})" if isinstance(error, DeepJSONError) else ""
            raise EndpointAnswerError(
                f"{self.url} answered with something that is not a chat completion{reason}: {self._excerpt(response)}. "
                'Expected {"choices": [{"message": {"content": "..."}}]}.'
            ) from error
        # The protocol writes null for a reply without text, such as one whose tokens all went into reasoning.
        if not isinstance(text, str | None) or not isinstance(finish_reason, str | None):
            raise EndpointAnswerError(
                f"{self.url} answered with a message that is not text: {self._excerpt(response)}. Expected a string as "
                "content and as finish_reason."
            )
        return Reply(redact(text or ""), redact(finish_reason))

    def _excerpt(self, response: httpx2.Response, longest: int = 300) -> str:
        """The error message of a body in OpenAI's form, else the beginning of the body, without secrets."""
        said = response.text
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            said = str(json_of(response)["error"]["message"])
        said = redact(" ".join(said[:_MOST_READ].split()))
        return (said[:longest] + " ..." if len(said) > longest else said) or "(empty)"

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


def _completions_url(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, half a bracket
        whole = False
    if whole and "@" in parts.netloc:
        raise EndpointSettingsError(
            f"The endpoint's address must not hold a user name or password (at {parts.hostname}); an API key goes into "
            "the environment variable that --api-key-env names."
        )
    if not whole or "?" in base_url or "#" in base_url:
        raise EndpointSettingsError(
            "The endpoint's address must look like https://host/v1, got "
            f"{base_url.rpartition('@')[2].partition('?')[0]!r}; without ? and #, as /chat/completions is added to it."
        )
    return f"{base_url.rstrip('/').removesuffix('/chat/completions')}/chat/completions"


def _reason(error: BaseException) -> str:
    """The innermost cause, the one with the helpful text."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return f"{type(error).__name__}: {error}"
