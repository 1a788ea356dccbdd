"""No secret is left by `redact`, and no other text is changed by it."""

import json
import shlex
import string
import time
import timeit
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hf_mech.hub import redaction
from hf_mech.hub.redaction import REDACTED, redact, redact_command, redact_known, remember

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=8, max_size=40)
KEYS = st.text(string.ascii_letters + string.digits + "-_.~+/=", min_size=8, max_size=60)
NAMES = st.sampled_from(
    ["api_key", "apiKey", "API-KEY", "hub_token", "token", "HF_TOKEN", "password", "client_secret", "Authorization"]
)

IN_VALUES: dict[str, Callable[[str, str], Any]] = {
    "mapping": lambda name, secret: {"model": "m", name: secret},
    "nested": lambda name, secret: {"request": [{"extra": {name: secret}}], "seed": 0},
    "a list under the name": lambda name, secret: {name: [secret, {"also": secret}]},
    "JSON": lambda name, secret: json.dumps({"extra": {name: secret}}),
    "JSON without escapes": lambda name, secret: json.dumps([{name: secret}], ensure_ascii=False),
    "JSON in JSON": lambda name, secret: {"body": json.dumps({"body": json.dumps({name: secret})})},
    "JSON in a sentence": lambda name, secret: f"status 400: {json.dumps({name: secret})}. Check it.",
    "a mapping in a sentence": lambda name, secret: f"begun with { ({name: secret, 'seed': 1})!r}",
    "deep JSON": lambda name, secret: "[" * 700 + json.dumps({name: secret}) + "]" * 700,
    "JSON as JSON's text": lambda name, secret: json.dumps(json.dumps(json.dumps({name: secret}))),
    "a list in a sentence": lambda name, secret: f"got {json.dumps({'a': 'b', name: [secret, 'x']})}, expected no key",
    "a mapping in a mapping in a sentence": lambda name, secret: f"got { ({'headers': {name: secret}, 'n': 1})!r}.",
    "bytes in a sentence": lambda name, secret: f"sent { ({name.encode(): secret.encode()})!r}.",
    "the user of an address": lambda name, secret: f"at https://me:{quote(secret, safe='')}@host:80/v1 now",
    "a token as user": lambda name, secret: [f"https://{quote(secret, safe='')}@host/v1?page=2"],
    "a parameter": lambda name, secret: f"https://host/v1?page=2&{name}={quote_plus(secret)}#top",
}
IN_COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "value": lambda name, secret: [f"--{name}", secret, "--steps", "5"],
    "equals": lambda name, secret: ["--steps", "5", f"--{name}={secret}"],
    "JSON": lambda name, secret: ["--request", json.dumps({"a": {name: secret}})],
    "JSON behind equals": lambda name, secret: [f"--request={json.dumps({'a': {name: secret}})}"],
    "address": lambda name, secret: [f"--base-url=https://me:{quote(secret, safe='')}@host/v1"],
}


def traces(secret: str) -> set[str]:
    """The spellings of a secret in files and messages."""
    as_json = {json.dumps(secret, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
    return as_json | {secret, repr(secret)[1:-1], quote(secret, safe=""), quote_plus(secret)}


def leaks(secret: str, written: Any) -> bool:
    texts = [str(written), json.dumps(written), json.dumps(written, ensure_ascii=False)]
    return any(trace in text for trace in traces(secret) for text in texts)


@pytest.mark.parametrize("place", IN_VALUES)
@example(name="Authorization", secret=";0000000")
@given(name=NAMES, secret=WORDS)
def test_no_secret_is_left_in_a_value(place: str, name: str, secret: str) -> None:
    whole = IN_VALUES[place](name, secret)
    assume(not leaks(secret, IN_VALUES[place](name, "")))
    assume(REDACTED not in secret)
    clean = redact(whole)
    assert not leaks(secret, clean)
    assert redact(clean) == clean


@pytest.mark.parametrize("place", IN_COMMANDS)
@given(name=NAMES, secret=WORDS)
def test_no_secret_is_left_in_a_command(place: str, name: str, secret: str) -> None:
    assume(not secret.startswith("--"))
    assume(not leaks(secret, [*IN_COMMANDS[place](name, ""), REDACTED]))
    clean = redact_command(["train.py", *IN_COMMANDS[place](name, secret)])
    assert not leaks(secret, clean)
    assert not leaks(secret, shlex.join(clean))
    assert redact_command(clean) == clean


@given(secret=WORDS, before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_known_secret_is_left_nowhere(secret: str, before: str, after: str) -> None:
    assume(secret == secret.strip() and "\0" not in secret and not leaks(secret, [before, after, REDACTED]))
    texts = [f"{before}{trace}{after}" for trace in traces(secret)]
    value = {"texts": texts, secret: {"deep": [tuple(texts)]}}
    for known in ("environment", "remembered", "given"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redaction, "_remembered", set())
            if known == "environment":
                patch.setenv("SOME_SERVICE_API_KEY", secret)
            elif known == "remembered":
                remember({"request": {"api_key": secret}})
            clean = redact(value, *([secret] if known == "given" else []))
            assert not leaks(secret, list(clean)[1])
            assert not any(trace in text for text in clean["texts"] for trace in traces(secret))
            assert not leaks(secret, redact_known(texts[0], *([secret] if known == "given" else [])))


def test_a_secret_of_the_command_line_is_known_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["python", "x.py", "--hub_token", "not-of-a-form", "--url=https://me:pass-word@host", "--key-file", "k"]
    command += ["--request", '{"a": [{"password": "of-a-json"}]}']
    monkeypatch.setattr("sys.orig_argv", command)
    said = "the server says: not-of-a-form, pass-word, of-a-json, k"
    assert redact(said) == "the server says: ***, ***, ***, k"


@pytest.mark.parametrize(
    "text",
    [
        "hf_" + "aB3" * 11,
        "sk-proj-" + "a1B2" * 10,
        "ghp_" + "a1B2" * 9,
        "Authorization: Bearer abc",
        "{'Authorization': 'Basic dXNlcjpwYXNz'}",
        "Bearer a1-b2-c3-d4",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "glpat-" + "a1B2" * 5,
        "gsk_" + "a1B2" * 13,
        "AIza" + "a1B2c" * 7,
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
        "npm_" + "a1B2" * 9,
        "X-Api-Key: a1b2c3d4e5",
        "OPENAI_API_KEY: a1b2c3d4e5",
        "password = a1b2c3d4e5",
    ],
)
def test_tokens_of_a_known_form(text: str) -> None:
    clean = redact(f"before {text}, after")
    assert REDACTED in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert text.rpartition(" ")[2].strip("'}") not in clean


@pytest.mark.parametrize("value", [True, False, None, "", "true", "no"])
def test_a_flag_is_no_secret(value: Any) -> None:
    assert redact({"use_auth_token": value}) == {"use_auth_token": value}


@pytest.mark.parametrize(
    "command",
    [
        "python -m training.train_lm --max_new_tokens 5 --eos_token '</s>' --pad_token=x --steps 100",
        "hf-mech test-llm token-classifier --base-url http://localhost:8000/v1 --api-key-env MY_API_KEY",
        """hf-mech test-llm m --request '{"temperature": null, "max_tokens": null, "stop": ["."], "bias": {"5": 1}}'""",
        "python x.py --token_path /a/token --tokenizer gpt2 --num_tokens 7 --keys a b --key left --author me",
        "python x.py --model hf-internal-testing/tiny-random-gpt2 sk-learn-a-long-name-of-no-secret hf_mech_strips",
        "pip install git+https://github.com/user/repo@v1.0 https://medium.com/@user/a?page=3&lang=en",
        "accelerate launch -m training.train_strips --preset paper --seeds 0..4 --learning_rate 1e-3",
        "python -c 'key = sort(key=len); token_type_ids = 5; a=b; max_tokens=3'",
    ],
)
def test_ordinary_commands_stay(command: str) -> None:
    assert redact(command) == command
    assert redact_command(shlex.split(command)) == shlex.split(command)


@pytest.mark.parametrize(
    "value",
    [
        "The password, the token and the API key are missing; the authorization failed.",
        "an unknown token: foo, the next token is 'a', and a bearer of news",
        "a@b.com wrote to http://host:8080/@me and to git@github.com:user/repo.git at 10:30",
        {"max_tokens": 256, "eos_token": "</s>", "keys": ["a"], "key": "left", "tokens": ["x"], "token_ids": [1]},
        {"tokenizer": "t", "add_bos_token": True, "task": "token-classification", "commit": "a" * 40, "none": None},
        "The secret: nobody knows. A token: the unit; token = word, token_id: 12345678",
        {"token": 318, "token_str": " is", "start_token": 2},
        "{'token': 318, 'score': 0.5}, pop_token=5",
        (1, 2.5, [b"bytes"], {"a"}),
        {1: "x", ("a", "b"): 3},
    ],
)
def test_ordinary_values_stay(value: Any) -> None:
    assert redact(value) == value


def test_the_current_folder_is_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/somebody")
    monkeypatch.setenv("OLDPWD", "/home/somebody/else")
    assert redact("see /home/somebody/else") == "see /home/somebody/else"


def test_a_short_password_in_the_environment_is_a_word_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PASSWORD", "test")
    assert redact("split=test, --split test") == "split=test, --split test"
    assert redact({"password": "test"}) == {"password": REDACTED}


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "--a-",
        "http://",
        "http://a:b",
        "a=",
        "--a ",
        '"',
        "bearer ",
        '"a":"',
        "'a':\\",
        "authorization ",
        "eyJ",
        "sk-",
        "[a-b.",
        "x?a=",
        "[",
        "a: ",
        "hf_A",
        "a:",
        "_",
        '\\"a\\": \\"',
        '{"a":',
        '"a":[',
        '"key":["',
        '"api_key":[',
        '"api_key":{"a":',
        "\\",
        "a  ",
        '"a"  ',
        "eyJaaaaaaaa.",
        "@",
        "?key=",
    ],
)
def test_a_long_text_costs_time_in_proportion(piece: str) -> None:
    """The text may come from a server, which must not stop a command by it."""
    seconds = []
    for length in (20_000, 160_000):
        text = piece * (length // len(piece))
        seconds.append(min(timeit.repeat(partial(redact, text), timer=time.process_time, number=1, repeat=3)))
    assert seconds[1] < max(20 * seconds[0], 0.5)


def test_named_tuples() -> None:
    pair = namedtuple("pair", ["name", "request"])
    assert redact(pair("m", {"api_key": "abc"})) == pair("m", {"api_key": REDACTED})


TEXTS = st.text("abc xyz:/{}[],.'\"=-", max_size=30)
ORDINARY = st.recursive(
    st.none() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "model", "eos_token"]), inner),
)


@given(ORDINARY)
def test_a_value_without_a_secret_stays(value: Any) -> None:
    assert redact(value) == value
