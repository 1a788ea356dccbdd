"""Secrets in texts, commands and tracebacks are replaced before these are written."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

# ----------------------------------------------------------------------------------------------------------------------
# Names of options, keys and environment variables whose values are secrets.


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


# ----------------------------------------------------------------------------------------------------------------------
# Secrets are removed here, once, from everything that is written or printed.
#
# Commands, addresses, settings, results and messages go through [`redact`]. It removes
#
# - known secrets wherever they occur: the values of environment variables with a secret's name (`HF_TOKEN`,
#   `OPENAI_API_KEY`, ...), the secrets on this process's command line, and those given to [`remember`];
# - values with a secret's name: `{"api_key": ...}`, also as JSON in a text, `--hub_token ...`, `password=...`;
# - user names and passwords in addresses, and parameters such as `?key=...`;
# - tokens of a known form (`hf_...`, `sk-...`, GitHub's, JSON web tokens) and `Authorization` headers.
#
# Known secrets of fewer than [`SHORTEST`] characters are removed only at their own place: "test" may be a password, and
# is a word.


REDACTED = "***"
"""The text in place of a secret; it needs no escape in JSON, addresses and file names."""

SHORTEST = 8
"""Known secrets of at least so many characters are removed wherever they occur."""

_remembered: set[str] = set()
_WORD = 200  # characters of a text whose clean form is kept

# Texts may be the megabytes of somebody's server: each pattern takes time in proportion to the text's length.
_STRING = r'b?"(?:[^"\\]|\\.)*"|b?\'(?:[^\'\\]|\\.)*\''
_PLAIN = r"""[^\s,;"'()<>\[\]{}]+"""
# The quotes of JSON in a JSON text have backslashes, as many on both sides.
_PAIR = re.compile(
    rf"""(?<!\\)(\\*["'])([\w.-]+)\1(\s*:\s*)"""
    rf"""(\1(?:(?!(?<!\\)\1).)*\1|{_STRING}|[^\s,}}\]"']+)""",
    re.DOTALL,
)
_SEVERAL = re.compile(r"""(?<!\\)(["'])([\w.-]+)\1\s*:\s*(?=[\[{])""")
_THEIRS = re.compile(rf"""[\[{{](?:{_STRING}|[^\[\]{{}}"'])*+[\]}}]""", re.DOTALL)
_ASSIGNMENT = re.compile(rf"""(?<![\w.?&-])(-{{0,2}}[A-Za-z][\w.-]*)=({_STRING}|[^\s,;&"'()<>\[\]{{}}]+)""", re.DOTALL)
_LINE = re.compile(rf"(?<![\w.?&-])([A-Za-z][\w.-]*)([ \t]*[:=][ \t]+|[ \t]+=)({_STRING}|{_PLAIN})", re.DOTALL)
_USERINFO = re.compile(r"""(://)((?:[^\s/?#"'<>]*|[^\s/?#@:"'<>]*:(?!\d{1,5}(?:[/?#\s]|$))[^\s"'<>]{0,999})@)""")
_PARAMETER = re.compile(r"([?&])([\w.%-]+)=([^\s&#\"'<>]+)")
_HEADER = re.compile(
    r"""(?i)\b((?:proxy-)?authorization\b["']?\s*[:=]\s*(?:b?["'])?+)((?:[a-z][\w-]*\s+)?[^\s"',;}]+)"""
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}")
_OPTION = re.compile(
    rf"""(?<![\w-])(--[A-Za-z][\w-]*\s+)({_STRING}|(?=[^\s-]*\d)[^\s,;"'-][^\s,;"']{{7,}})""", re.DOTALL
)
_FORMS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
    hf_(?=[A-Za-z]*[A-Z0-9])[A-Za-z0-9]{16,}            # Hugging Face
    | api_org_[A-Za-z0-9]{16,}
    | sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,}            # OpenAI, Anthropic and others
    | gh[oprsu]_[A-Za-z0-9]{20,} | github_pat_\w{20,}   # GitHub
    | glpat-[\w-]{20,} | npm_[A-Za-z0-9]{36}            # GitLab, npm
    | gsk_(?=[A-Za-z]*\d)[A-Za-z0-9]{20,} | AIza[\w-]{35} | AKIA[A-Z0-9]{16} | xox[abpr]-[\w-]{10,}  # others
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+                # JSON web token
    )""",
    re.VERBOSE,
)


def redact(value: Any, *secrets: str) -> Any:
    """`value` without secrets; a value without secrets stays as it is.

    Args:
        value: a text, or mappings and sequences of texts. Anything else is returned unchanged.
        secrets: further known secrets, of any length.

    >>> redact({"api_key": "abc", "url": "https://me:pass@host/v1?key=abc", "max_tokens": 5})
    {'api_key': '***', 'url': 'https://***@host/v1?key=***', 'max_tokens': 5}
    """
    known = _spellings({*_known_secrets(), *filter(None, secrets)})
    return _redact(value, known)


def redact_command(arguments: Sequence[str], *secrets: str) -> list[str]:
    """The arguments of a command line without secrets.

    >>> redact_command(["train.py", "--hub_token", "abc", "--steps", "5"])
    ['train.py', '--hub_token', '***', '--steps', '5']
    """
    known = _spellings({*_known_secrets(), *filter(None, secrets)})
    done: list[str] = []
    for argument, secret in _arguments(arguments):
        option, equals, value = argument.partition("=")
        if secret is None:
            inside = equals and option.startswith("-")
            done.append(f"{option}={_redact(value, known)}" if inside else _redact(argument, known))
        else:
            done.append(f"{option}={REDACTED}" if secret != argument else REDACTED)
    return done


def redact_known(text: str, *secrets: str) -> str:
    """`text` without the known secrets and `secrets`; nothing else changes. For texts that are data."""
    known = _spellings({*_known_secrets(), *filter(None, secrets)})
    return known.sub(REDACTED, text) if known else text


def redacted_traceback(error: BaseException) -> str | None:
    """The traceback of an error without secrets; None if it holds none, so that the error can be raised."""
    shown = "".join(traceback.format_exception(error))
    clean = redact(shown)
    return None if clean == shown else clean


def remember(*values: Any) -> None:
    """From now on, [`redact`] also knows these secrets.

    Args:
        values: texts are secrets; in mappings and sequences, the values with a secret's name are.
    """
    for value in values:
        _remembered.update({value} if isinstance(value, str) else _secrets_in(value))


def known_secrets() -> frozenset[str]:
    """The secrets that this process knows, for [`remember`] in a process that it starts."""
    return frozenset(_known_secrets())


def _known_secrets() -> Iterator[str]:
    environment = (value.strip() for name, value in os.environ.items() if is_secret_name(name))
    for secret in (*environment, *_remembered, *_secrets_of_command(tuple(sys.orig_argv))):
        if len(secret) >= SHORTEST:
            yield secret


def _spellings(secrets: set[str]) -> re.Pattern[str] | None:
    """Matches each secret as it is, and as JSON, `repr` and addresses write it."""
    return _pattern(frozenset(secrets))


@lru_cache(maxsize=8)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    written = set()
    for secret in secrets - {REDACTED}:
        written |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
        encodable = secret.encode(errors="surrogatepass")
        written |= {quote(encodable), quote(encodable, safe=""), quote_plus(encodable)}
    return re.compile("|".join(re.escape(text) for text in sorted(written, key=len, reverse=True))) if written else None


def _redact(value: Any, known: re.Pattern[str] | None) -> Any:
    if isinstance(value, str):
        return _redact_word(value, known) if len(value) <= _WORD else _redact_text(value, known)
    if isinstance(value, Mapping):
        return {_redact(key, known): _redact_entry(key, entry, known) for key, entry in value.items()}
    if isinstance(value, list | set | frozenset | tuple):
        entries = [_redact(entry, known) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def _redact_entry(name: Any, value: Any, known: re.Pattern[str] | None) -> Any:
    return REDACTED if _hides(name, value) else _redact(value, known)


@lru_cache(maxsize=4096, typed=True)
def _redact_word(text: str, known: re.Pattern[str] | None) -> str:
    """Names and settings come again and again: a results.json holds some thousand times the same few."""
    return _redact_text(text, known)


def _redact_text(text: str, known: re.Pattern[str] | None) -> str:
    text = _redact_json(text, known)
    if known is not None:
        text = known.sub(REDACTED, text)
    text = _USERINFO.sub(rf"\1{REDACTED}@", text)
    text = _PARAMETER.sub(lambda m: f"{m[1]}{m[2]}={REDACTED}" if is_parameter_name(m[2]) else m[0], text)
    text = _without_several(text)
    text = _HEADER.sub(rf"\1{REDACTED}", text)
    text = _BEARER.sub(rf"\1{REDACTED}", text)
    text = _PAIR.sub(_pair, text)
    text = _OPTION.sub(lambda m: f"{m[1]}{REDACTED}" if _hides(m[1], m[2]) else m[0], text)
    text = _ASSIGNMENT.sub(lambda m: f"{m[1]}={REDACTED}" if _hides(m[1], m[2]) else m[0], text)
    text = _LINE.sub(lambda m: f"{m[1]}{m[2]}{REDACTED}" if _hides(m[1], m[3]) and _is_no_word(m[3]) else m[0], text)
    return _FORMS.sub(REDACTED, text)


def _without_several(text: str) -> str:
    """The text without the lists and mappings under a secret's name."""
    done, end = [], 0
    for name in _SEVERAL.finditer(text):
        if name.start() >= end and is_secret_name(name[2]) and (theirs := _THEIRS.match(text, name.end())):
            done += [text[end : name.end()], f'"{REDACTED}"']
            end = theirs.end()
    return "".join([*done, text[end:]])


def _pair(match: re.Match[str]) -> str:
    quotes, name, colon, value = match.groups()
    if not _hides(name, value):
        return match[0]
    return f"{quotes}{name}{quotes}{colon}{quotes}{REDACTED}{quotes}"


def _redact_json(text: str, known: re.Pattern[str] | None) -> str:
    try:
        content = _json(text)
        clean = _redact(content, known)
        return text if clean == content else json.dumps(clean, ensure_ascii=False)
    except RecursionError:  # deeply nested; the patterns for texts remain
        return text


def _hides(name: Any, value: Any) -> bool:
    """Whether the value under a name is a secret. A number of few digits under `token` is the id of a token."""
    if not is_secret_name(name) or not _is_secret_value(value):
        return False
    number = str(value).lstrip("-").isdigit() and len(str(value)) < SHORTEST
    return not (number and name.lower().endswith("token"))


def _is_no_word(value: str) -> bool:
    """Behind a colon or between blanks stand words, too: `The secret: nobody knows`."""
    return len(value) >= SHORTEST and any(char.isdigit() for char in value)


def _is_secret_value(value: Any) -> bool:
    """Whether a value with a secret's name is one. A flag is none."""
    if isinstance(value, str):
        return value.strip("\"'\\").lower() not in {"", "true", "false", "yes", "no", "none", "null", "0", "1"}
    return value is not None and not isinstance(value, bool)


def _json(text: str) -> Any:
    """The list, mapping or text that a text holds as JSON, or None."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _arguments(arguments: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Each argument, and the secret that it holds by its option's name: all of it, or the part behind `=`."""
    named = False
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if named and not re.match("--[A-Za-z]", argument) and _is_secret_value(argument):
            yield argument, argument
        elif option.startswith("--") and equals and is_secret_name(option) and _is_secret_value(value):
            yield argument, value
        else:
            yield argument, None
        named = option.startswith("--") and not equals and is_secret_name(option)


@lru_cache(maxsize=8)
def _secrets_of_command(arguments: tuple[str, ...]) -> frozenset[str]:
    found = set()
    for argument, secret in _arguments(arguments):
        found |= {secret} if secret is not None else _secrets_in(argument.partition("=")[2])
        found |= _secrets_in(argument)
    return frozenset(found)


def _secrets_in(value: Any) -> set[str]:
    """The texts with a secret's name in mappings, sequences and JSON, and the passwords and parameters of addresses."""
    if isinstance(value, str):
        with suppress(RecursionError):
            if (content := _json(value)) is not None:
                return _secrets_in(content)
        found = {match[3] for match in _PARAMETER.finditer(value) if is_parameter_name(match[2])}
        for match in _USERINFO.finditer(value):
            found.add(match[2][:-1].partition(":")[2] or match[2][:-1])
        return found
    if isinstance(value, Mapping):
        found = set()
        for name, entry in value.items():
            found |= set(_texts(entry)) if _hides(name, entry) else _secrets_in(entry)
        return found
    if isinstance(value, list | tuple | set | frozenset):
        return {secret for entry in value for secret in _secrets_in(entry)}
    return set()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            yield from _texts(entry)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
