"""Language models behind an OpenAI-compatible chat-completions endpoint: the services, vLLM, llama.cpp, Ollama, TGI."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.util.retry import Retry

from hf_mech.llm_test.language_models import (
    EndpointAnswerError,
    EndpointBusyError,
    EndpointKeyError,
    EndpointRefusedError,
    EndpointSettingsError,
    EndpointUnreachableError,
    Question,
    Reply,
)

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""The statuses after which the same request may succeed."""

OPENAI = "https://api.openai.com/v1"

_CONNECT_SECONDS = 10.0
_LONGEST_WAIT = 60.0  # seconds between two attempts, whatever a Retry-After header says


class ChatEndpoint:
    """A model behind `POST {base_url}/chat/completions`. Close it, or use it in a `with`, to close its connections.

    Greedy by default (temperature 0); the paper does not say how it sampled.

    Args:
        model: the model's name at the endpoint.
        base_url: the address up to and including the version, such as `http://localhost:8000/v1`.
        api_key: sent as a bearer token; None sends none. It stands in no file and no message.
        timeout: seconds to wait for a reply, for each attempt.
        retries: further attempts after a status of [`RETRIED`], a lost connection or a time-out.
        backoff: seconds before the second retry; each later wait is twice as long. A Retry-After header goes first. No
            wait is longer than a minute.
        concurrency: requests under way at once.
        max_tokens: the most tokens of a reply.
        request: further fields of the request's JSON; None removes a field. Reasoning models of OpenAI, for example,
            take `{"temperature": None, "max_tokens": None, "max_completion_tokens": 8192}`.

    Raises:
        EndpointSettingsError: if one of these makes no sense.
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
        concurrency: int = 4,
        max_tokens: int = 256,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise EndpointSettingsError(
                f"The endpoint's address must look like https://host/v1, got {base_url!r}; "
                "/chat/completions is added to it."
            )
        for name, value, least in (
            ("retries", retries, 0),
            ("concurrency", concurrency, 1),
            ("max_tokens", max_tokens, 1),
        ):
            if value < least:
                raise EndpointSettingsError(f"{name} must be {least} or more, got {value}.")
        if not timeout > 0 or not backoff >= 0:
            raise EndpointSettingsError(
                f"timeout must be more than 0 seconds and backoff 0 or more, got {timeout} and {backoff}."
            )
        if api_key is not None and not (
            api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""
        ):
            raise EndpointSettingsError(
                "The API key is empty, or holds blanks or characters that no HTTP header takes."
            )
        self.name = model
        self.url = f"{base_url.rstrip('/').removesuffix('/chat/completions')}/chat/completions"
        self.timeout = timeout
        self.retries = retries
        self.concurrency = concurrency
        asked = {"model": model, "temperature": 0, "max_tokens": max_tokens} | dict(request or {})
        if taken := {"messages", "stream", "n"} & asked.keys():
            raise EndpointSettingsError(f"{', '.join(sorted(taken))} cannot be among the request's further fields.")
        self._request: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        self._session = requests.Session()
        self._session.auth = _Bearer(api_key)
        waits = _Waits(
            total=retries,
            redirect=0,
            status_forcelist=RETRIED,
            allowed_methods={"POST"},
            backoff_factor=backoff,
            backoff_max=_LONGEST_WAIT,
            raise_on_status=False,  # the last reply says more than that there were too many
            raise_on_redirect=False,
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=waits, pool_maxsize=concurrency))

    def settings(self) -> dict[str, Any]:
        """The address and the request; not the key."""
        return {"kind": "chat endpoint", "url": self.url, **self._request}

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, in order; up to `concurrency` requests are under way at once.

        Raises:
            LanguageModelError: see the classes of [`~hf_mech.llm_test.language_models`].
        """
        waiting: deque[Future[Reply]] = deque()
        with ThreadPoolExecutor(self.concurrency) as pool:
            try:
                for question in questions:
                    waiting.append(pool.submit(self.reply, question))
                    # No further ahead than this: what is answered behind a question that fails is lost, and was paid.
                    if len(waiting) == self.concurrency:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def reply(self, question: Question) -> Reply:
        """Ask one question.

        Raises:
            LanguageModelError: see the classes of [`~hf_mech.llm_test.language_models`].
        """
        messages = [{"role": "user", "content": question.prompt}]
        if question.system is not None:
            messages.insert(0, {"role": "system", "content": question.system})
        try:
            response = self._session.post(
                self.url,
                json=self._request | {"messages": messages},
                timeout=(_CONNECT_SECONDS, self.timeout),
                allow_redirects=False,  # a redirected POST would arrive as a GET
            )
        except requests.RequestException as error:
            raise EndpointUnreachableError(
                f"{self.url} did not answer after {self.retries} retries ({_reason(error)}). Is the address right and "
                f"the server up? The limit for a reply is {self.timeout:g} s."
            ) from error
        self._check_status(response)
        return self._read(response)

    def _check_status(self, response: requests.Response) -> None:
        status, said = response.status_code, _excerpt(response)
        if status == 200:
            return
        if status in (401, 403):
            raise EndpointKeyError(
                f"{self.url} refused the API key, or wants one (status {status}: {said}). Put the key into the "
                "environment variable that --api-key-env names."
            )
        if status in RETRIED or status >= 500:
            raise EndpointBusyError(
                f"{self.url} still answers with status {status} after {self.retries} retries: {said}. Run the command "
                "again later, with less --concurrency: it goes on from here."
            )
        raise EndpointRefusedError(
            f"{self.url} refused the request with status {status}: {said}. Check the model's name ({self.name!r}), the "
            "address and --request."
        )

    def _read(self, response: requests.Response) -> Reply:
        try:
            choice = response.json()["choices"][0]
            text, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise EndpointAnswerError(
                f"{self.url} answered with something that is not a chat completion: {_excerpt(response)}. Expected "
                '{"choices": [{"message": {"content": "..."}}]}.'
            ) from error
        # null is what the protocol has for a reply without text, such as one whose tokens all went into reasoning.
        if not isinstance(text, str | None) or not isinstance(finish_reason, str | None):
            raise EndpointAnswerError(
                f"{self.url} answered with a message that is not text: {_excerpt(response)}. Expected a string as "
                "content and as finish_reason."
            )
        return Reply(text or "", finish_reason)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> ChatEndpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def api_key_from_environment(variable: str) -> str | None:
    """The API key in the environment variable; None where it is unset or empty, as for a local server."""
    return os.environ.get(variable, "").strip() or None


class _Bearer(AuthBase):
    """The key as a bearer token. Set even without a key: requests would otherwise look into ~/.netrc."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class _Waits(Retry):
    """urllib3's retries, but a Retry-After header never makes us wait longer than a minute."""

    def get_retry_after(self, response: Any) -> float | None:
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, _LONGEST_WAIT)


def _excerpt(response: requests.Response, longest: int = 300) -> str:
    """The error's message where the body has one in OpenAI's form, else the beginning of the body."""
    said = response.text
    with suppress(ValueError, LookupError, TypeError):
        said = response.json()["error"]["message"]
    said = " ".join(str(said).split())
    return (said[:longest] + " ..." if len(said) > longest else said) or "(empty)"


def _reason(error: Exception) -> str:
    """The innermost cause, whose text is the one that helps."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return f"{type(error).__name__}: {error}"
