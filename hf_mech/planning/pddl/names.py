"""Names of propositions and actions as PDDL names, and back.

`on(a,b)` is written `on--a--b`. A PDDL name starts with a letter, contains letters, digits, `-` and `_`, and ignores
case. Every other character is written as `__` and two hexadecimal digits for each byte of its UTF-8 form, and so is a
`-` or `_` that is not between two letters or digits. The prefix `x__00` has no meaning: it is put before names that
would begin wrongly, be a keyword, or be taken already.
"""

from __future__ import annotations

import re

MARK = "x__00"
_GROUND = re.compile(r"[^(),]+\([^(),]+(,[^(),]+)*\)", re.DOTALL)
_PLAIN = re.compile(r"[a-z0-9]|(?<=[a-z0-9])[-_](?=[a-z0-9])")
_ESCAPED = re.compile(r"(?:__[0-9a-f]{2})+|--|.", re.DOTALL)

KEYWORDS = frozenset(
    re.findall(
        r"\S+",
        """
        define domain problem requirements types constants objects predicates functions action parameters precondition
        effect init goal metric minimize maximize and or not imply forall exists when either object number increase
        decrease assign scale-up scale-down total-cost total-time always sometime within over at start end all
        preference durative-action duration condition derived constraints
        """,
    )
)


def encode_name(name: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """The PDDL name of a proposition or action; `decode_name` is its inverse. Never one of `taken` nor a keyword."""
    parts = re.split(r"[(,]", name[:-1]) if _GROUND.fullmatch(name) else [name]
    encoded = "--".join(_encode_part(part) for part in parts)
    if encoded.startswith(MARK):
        encoded = "__78" + encoded.removeprefix("x")
    if not encoded[:1].isalpha() or encoded in KEYWORDS:
        encoded = MARK + encoded
    while encoded in taken:
        encoded = MARK + encoded
    return encoded


def decode_name(encoded: str) -> str:
    """The name that `encode_name` wrote; other PDDL names are unchanged, except for `--` and `__`."""
    while encoded.startswith(MARK) and encoded != MARK:
        encoded = encoded.removeprefix(MARK)
    pieces = [""]
    for token in _ESCAPED.findall(encoded):
        if token == "--":
            pieces.append("")
        else:
            pieces[-1] += _unescape(token)
    functor, *arguments = pieces
    return f"{functor}({','.join(arguments)})" if arguments else functor


def _encode_part(part: str) -> str:
    escape = "".join
    return escape(
        part[i] if _PLAIN.match(part, i) else escape(f"__{byte:02x}" for byte in part[i].encode())
        for i in range(len(part))
    )


def _unescape(token: str) -> str:
    if not token.startswith("__"):
        return token
    try:
        return bytes.fromhex(token.replace("__", "")).decode()
    except UnicodeDecodeError:  # a foreign name that looks like an encoded one
        return token
