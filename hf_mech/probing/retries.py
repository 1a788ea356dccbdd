"""Retries of a request: the replies and errors that are retried, the number of attempts, the waits between them."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import httpx2
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential_jitter,
)
from tenacity.wait import wait_base

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""The statuses after which the same request may succeed."""

LONGEST_WAIT = 60.0
"""Seconds between two attempts, at most, also after a longer Retry-After header."""


def retrying(retries: int, backoff: float, deadline: float) -> Retrying:
    """Call a function that returns an `httpx2.Response`, again and again, until its reply is final.

    A status of [`RETRIED`], a lost connection and a time-out are retried. After the last attempt, the reply is returned
    or the error raised as it came.

    Args:
        retries: further attempts after the first.
        backoff: seconds before the first retry; see [`RetryWait`].
        deadline: seconds after which no attempt begins.
    """
    return Retrying(
        retry=retry_if_exception_type(httpx2.TransportError)
        | retry_if_result(lambda response: response.status_code in RETRIED),
        stop=stop_after_attempt(retries + 1) | stop_before_delay(deadline),
        wait=RetryWait(backoff),
        retry_error_callback=_last_outcome,
    )


def _last_outcome(state: RetryCallState) -> httpx2.Response:
    """The reply of the last attempt; its error is raised."""
    assert state.outcome is not None
    return state.outcome.result()


class RetryWait(wait_base):
    """Seconds before the next attempt, at most [`LONGEST_WAIT`].

    A Retry-After header decides. Without one, the wait is `backoff` before the first retry and doubles with each
    further one; up to `backoff` seconds are added at random, so that simultaneous requests come back apart.
    """

    def __init__(self, backoff: float) -> None:
        self._doubling = wait_exponential_jitter(multiplier=backoff, max=LONGEST_WAIT, jitter=backoff)

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        seconds = None if outcome is None or outcome.failed else retry_after(outcome.result())
        return self._doubling(retry_state) if seconds is None else min(seconds, LONGEST_WAIT)


def retry_after(response: httpx2.Response) -> float | None:
    """Seconds until the time in the Retry-After header, 0 for a past one; None without a valid header (RFC 9110)."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
