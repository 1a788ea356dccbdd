"""Secrets become `***` in the files that hf_mech writes, and in commands, titles, settings and errors that it shows.

A secret is

- the value of an environment variable with a secret's name, such as `HF_TOKEN` or `OPENAI_API_KEY`;
- a value given to [`remember`]: the token of a push, the key of an endpoint;
- a token of a usual form: `hf_...`, `sk-...`, those of GitHub, AWS, Google and Slack, JSON web tokens;
- the user and password in an address.

[`~hf_mech.hub.files.write_text_atomically`] calls [`redact`]; it writes results, cards and outcomes. What is not
written by it, or is compared or wrapped first, calls it too: the command line, a commit's title, a tracker's settings,
an error's message, an endpoint's reply.

detect-secrets, the library for this, marks lines for a person to look at: it has no rule for Hugging Face and
Anthropic, and takes every commit and checksum for a secret.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

REDACTED = "***"
"""The text in place of a secret; it needs no escape in JSON, addresses and file names."""

SHORTEST = 8
"""Shorter values stay: a password such as "test" is also a word. So do whole numbers, which figures contain."""

_remembered: set[str] = set()

_SECRET_NAME = re.compile(
    r"(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(API|ACCESS|ACCOUNT|AUTH|ENCRYPTION|MASTER|OPENAI|PRIVATE|SECRET|SERVICE|SIGNING|SUBSCRIPTION)_?KEY)S?$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"""(://)[^\s/?#"'<>:@]*:[^\s/?#"'<>]*@""")
_FORMS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
    hf_(?=[A-Za-z]*[A-Z0-9])[A-Za-z0-9]{16,} | api_org_[A-Za-z0-9]{16,}     # Hugging Face
    | sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,}                                # OpenAI, Anthropic and others
    | gh[oprsu]_[A-Za-z0-9]{20,} | github_pat_\w{20,}                       # GitHub
    | AKIA[A-Z0-9]{16} | AIza[\w-]{35} | xox[abpr]-[\w-]{10,}               # AWS, Google, Slack
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+                                    # JSON web token
    )""",
    re.VERBOSE,
)


def redact(value: Any) -> Any:
    """`value` without secrets: a text, or texts in mappings, lists and tuples. Anything else is returned unchanged.

    >>> redact({"url": "https://me:password@host/v1", "token": "hf_abcdefghijklmnop1234", "max_tokens": 5})
    {'url': 'https://***@host/v1', 'token': '***', 'max_tokens': 5}
    """
    if isinstance(value, str):
        for secret in _known():
            for spelling in {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}:
                value = value.replace(spelling, REDACTED)
        return _FORMS.sub(REDACTED, _ADDRESS.sub(rf"\1{REDACTED}@", value))
    if isinstance(value, Mapping):
        return {name: redact(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(redact, value))
    return value


def redacted_traceback(error: BaseException) -> str | None:
    """The traceback of an error with its secrets replaced; None if it has none, so that it can be raised as it is."""
    shown = "".join(traceback.format_exception(error))
    clean = redact(shown)
    return None if clean == shown else clean


def remember(secret: str | bool | None) -> None:
    """From now on, [`redact`] also knows this secret. None, True and False name no secret."""
    if isinstance(secret, str):
        _remembered.add(secret)


def _known() -> list[str]:
    """The known secrets, the longest first."""
    environment = {value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    found = (secret for secret in environment | _remembered if len(secret) >= SHORTEST and not secret.isdigit())
    return sorted(found, key=len, reverse=True)
