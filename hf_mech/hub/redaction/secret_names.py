"""Names of options, keys and environment variables whose values are secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALWAYS = _words(
    "apikey authorization auth bearer cookie credential credentials jwt passphrase passwd password passwords secret "
    "secrets"
)
"""Last words of a name whose value is always a secret."""

_OF_KEYS = _words(
    "access account anthropic api auth azure client comet encryption gemini groq hf hub kaggle master mistral openai "
    "private secret service shared signing subscription wandb"
)
"""Words before "key" (or "keys", "tokens") that make it a secret."""

_OF_TEXT = _words(
    "added additional audio begin bor bos boi cls current decoder empty end eoi eop eos eot eow eor fake fill first "
    "forced generated image input language last mask max min new next nil num output pad padding per predicted prefix "
    "previous prompt sep separator special split start stop suffix target task text token unk unknown video word"
)
"""Words before "token" that make it a part of a text."""

_PARAMETERS = frozenset({"key", "pwd", "sas", "sig", "signature", "x-amz-signature", "x-amz-security-token"})


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    *before, last = [word for word in re.split(r"[^a-z0-9]+", words) if word] or [""]
    if last in _ALWAYS:
        return True
    if last == "pwd":
        return bool(before)  # $PWD is the current folder
    if last == "token":
        return not before or before[-1] not in _OF_TEXT
    return last in {"key", "keys", "tokens"} and bool(before) and before[-1] in _OF_KEYS


def is_secret_name(name: Any) -> bool:
    """Whether the value of an option, a key or a variable is a secret, by its name.

    >>> [is_secret_name(name) for name in ("--hub_token", "api-key", "apiKey", "HF_TOKEN", "password")]
    [True, True, True, True, True]
    >>> [is_secret_name(name) for name in ("max_new_tokens", "eos_token", "key", "--api-key-env", "token_path")]
    [False, False, False, False, False]
    """
    return isinstance(name, str) and _is_secret(name)


def is_parameter_name(name: str) -> bool:
    """Whether the value of an address's parameter is a secret: also that of `?key=`.

    >>> is_parameter_name("key"), is_parameter_name("page")
    (True, False)
    """
    return name.lower() in _PARAMETERS or is_secret_name(name)
