"""A model behind a chat-completions endpoint: requests, retries, replies and errors, against a server on loopback."""

import contextlib
import gzip
import json
import socket
import threading
import time
import zlib

import httpx2
import pytest
from tenacity import RetryCallState

from hf_mech.probing.chat_endpoint import ChatEndpoint, api_key_from_environment
from hf_mech.probing.language_model_errors import (
    EndpointAnswerError,
    EndpointBusyError,
    EndpointKeyError,
    EndpointRefusedError,
    EndpointSettingsError,
    EndpointUnreachableError,
    LanguageModelError,
)
from hf_mech.probing.language_models import LanguageModel, Question, Reply
from hf_mech.probing.retries import LONGEST_WAIT, RetryWait
from hf_mech.programs.llm_test.variants import Variant, prompts_of
from tests.programs.llm_test.chat_server import ChatServer, completion, slow

SWAP = Question("Q B V D E A D E V B . Q F G H V K L A", "Complete the pattern.")


@pytest.fixture
def server():
    with ChatServer() as running:
        yield running


@pytest.fixture
def endpoint(server):
    """A client of the server that loses no time between attempts."""
    with ChatEndpoint("solver", server.url, api_key="secret-key", retries=2, backoff=0, timeout=30) as client:
        yield client


def questions(count):
    return [Question(prompt.text) for prompt in prompts_of(Variant(), count=count)]


def completions(count):
    return [prompt.completion for prompt in prompts_of(Variant(), count=count)]


def test_a_request_says_what_it_should(server, endpoint):
    assert endpoint.reply(SWAP) == Reply("K L V F G H .", "stop")
    ((headers, request),) = server.requests
    assert request == {
        "model": "solver",
        "temperature": 0,
        "max_tokens": 256,
        "messages": [
            {"role": "system", "content": "Complete the pattern."},
            {"role": "user", "content": SWAP.prompt},
        ],
    }
    assert headers["Authorization"] == "Bearer secret-key"
    assert isinstance(endpoint, LanguageModel)


def test_fields_can_be_added_and_removed_and_the_key_is_told_to_nobody(server):
    fields = {"temperature": None, "max_tokens": None, "max_completion_tokens": 99}
    with ChatEndpoint("m", server.url + "/chat/completions", api_key="secret-key", request=fields) as endpoint:
        endpoint.reply(Question(SWAP.prompt))
        assert endpoint.settings() == {
            "kind": "chat endpoint",
            "url": f"{server.url}/chat/completions",
            "model": "m",
            "max_completion_tokens": 99,
        }
    ((_, request),) = server.requests
    assert request == {
        "model": "m",
        "max_completion_tokens": 99,
        "messages": [{"role": "user", "content": SWAP.prompt}],
    }


def test_without_a_key_none_is_sent_not_even_that_of_netrc_or_of_the_hub(server, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HF_TOKEN", "hf_private")
    for key in (None, "mine"):
        with ChatEndpoint("m", server.url, api_key=key) as endpoint:
            endpoint.reply(SWAP)
    assert [headers.get("Authorization") for headers, _ in server.requests] == [None, "Bearer mine"]


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("A_KEY", " abc\n")
    monkeypatch.setenv("NO_KEY", "")
    assert [api_key_from_environment(name) for name in ("A_KEY", "NO_KEY", "NEVER_SET")] == ["abc", None, None]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server, endpoint, status):
    server.first.extend([(status, {}, "busy"), (status, {"Retry-After": "0"}, "{}")])
    assert endpoint.reply(SWAP).text == "K L V F G H ."
    assert len(server.requests) == 3


def test_retry_after_is_heeded(server, endpoint):
    server.first.append((429, {"Retry-After": "1"}, "{}"))
    begin = time.monotonic()
    assert endpoint.reply(SWAP).text == "K L V F G H ."
    assert time.monotonic() - begin >= 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        ("3600", LONGEST_WAIT),
        ("9" * 5_000, LONGEST_WAIT),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
        (None, 4),
        ("", 4),
        ("-1", 4),
        ("soon", 4),
        ("\u00b2", 4),
    ],
)
def test_a_retry_after_of_any_form_is_a_wait_of_a_minute_at_most(value, seconds):
    """The third attempt failed: without a valid header, the wait is 4 times the backoff, and up to one more."""
    headers = {} if value is None else {"Retry-After": value.encode("latin-1")}
    state = RetryCallState(None, None, (), {})
    state.attempt_number = 3
    state.set_result(httpx2.Response(429, headers=headers))
    assert seconds <= RetryWait(1.0)(state) <= seconds + (seconds == 4)


def test_waits_double_up_to_a_minute():
    state = RetryCallState(None, None, (), {})
    waits = []
    for number in range(1, 9):
        state.attempt_number = number
        state.set_exception((OSError, OSError("lost"), None))
        waits.append(RetryWait(1.0)(state))
    assert all(2**n <= wait <= 2**n + 1 for n, wait in enumerate(waits[:6]))
    assert waits[6:] == [LONGEST_WAIT] * 2


def test_a_reply_that_breaks_off_is_asked_for_again(server, endpoint):
    server.first.append((200, {"Content-Length": "999"}, '{"choices": ['))
    assert endpoint.reply(SWAP).text == "K L V F G H ."
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [429, 500])
def test_what_does_not_pass_ends_after_the_retries(server, endpoint, status):
    server.first.extend([(status, {}, '{"error": {"message": "slow\\n down"}}')] * 9)
    with pytest.raises(EndpointBusyError, match=rf"status {status} after 2 retries: slow down\. .*goes on from here"):
        endpoint.reply(SWAP)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, EndpointKeyError, "environment variable that --api-key-env names"),
        (403, EndpointKeyError, "no such thing"),
        (400, EndpointRefusedError, "status 400: no such thing. Check the model's name \\('solver'\\)"),
        (404, EndpointRefusedError, "status 404"),
        (302, EndpointRefusedError, "status 302"),
        (204, EndpointRefusedError, "status 204"),
    ],
)
def test_a_refusal_is_not_repeated_and_does_not_show_the_key(server, endpoint, status, error, said):
    body = "" if status == 204 else '{"error": {"message": "no such thing"}}'
    server.first.append((status, {"Location": "/elsewhere"} if status == 302 else {}, body))
    with pytest.raises(error, match=said) as caught:
        endpoint.reply(SWAP)
    assert len(server.requests) == 1
    assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_that_the_server_repeats_is_not_shown(server, endpoint, status):
    server.first.extend([(status, {}, '{"error": {"message": "no model for secret-key"}}')] * 3)
    with pytest.raises(LanguageModelError, match=r"no model for \*\*\*") as caught:
        endpoint.reply(SWAP)
    assert "secret-key" not in str(caught.value)


def test_a_status_that_is_not_retried_says_so(server, endpoint):
    server.first.append((501, {}, "never"))
    with pytest.raises(EndpointBusyError, match="status 501 after 0 retries: never"):
        endpoint.reply(SWAP)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "<html>a proxy's page</html>",
        "",
        "3",
        "null",
        "[]",
        "{}",
        '{"choices": []}',
        '{"choices": {}}',
        '{"choices": [null]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {}}]}',
        '{"choices": [{"message": {"content": [{"type": "text", "text": "K L"}]}}]}',
        '{"choices": [{"message": {"content": 7}}]}',
        '{"choices": [{"message": {"content": "K"}, "finish_reason": 1}]}',
        '{"error": {"message": "in a reply of status 200"}}',
    ],
)
def test_what_is_no_chat_completion(server, endpoint, body):
    server.first.append((200, {}, body))
    with pytest.raises(EndpointAnswerError, match=r"not (a chat completion|text): .*Expected"):
        endpoint.reply(SWAP)


def test_a_reply_without_text_is_an_empty_one(server, endpoint):
    server.first.append((200, {}, completion(None, "length")))
    assert endpoint.reply(SWAP) == Reply("", "length")


def test_a_long_error_is_cut(server, endpoint):
    server.first.append((400, {}, "x" * 5_000))
    with pytest.raises(EndpointRefusedError) as caught:
        endpoint.reply(SWAP)
    assert len(str(caught.value)) < 800


def test_no_answer_in_time(server):
    server.first.extend([slow(1.0)] * 2)
    with ChatEndpoint("m", server.url, timeout=0.15, retries=1, backoff=0) as endpoint:
        with pytest.raises(EndpointUnreachableError, match=r"1 retries .*The limit for a reply is 0\.15 s"):
            endpoint.reply(SWAP)
    assert len(server.requests) == 2


def test_nobody_there():
    with socket.socket() as taken:  # bound, and never listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with ChatEndpoint("m", url, retries=1, backoff=0) as endpoint:
            with pytest.raises(EndpointUnreachableError, match="Connection refused"):
                endpoint.reply(SWAP)


def test_replies_keep_the_order_of_the_questions(server):
    server.first.append(slow(0.3))
    with ChatEndpoint("m", server.url, concurrency=4) as endpoint:
        assert [reply.text for reply in endpoint.replies(questions(12))] == completions(12)
    assert len(server.requests) == 12


def test_what_was_answered_before_a_failure_is_given_and_little_is_asked_behind_it(server):
    asked = questions(40)

    def answer(request):
        content = request["messages"][-1]["content"]
        return 5 if content == asked[6].prompt else completions(40)[[q.prompt for q in asked].index(content)]

    server.answer = answer
    given = []
    with ChatEndpoint("m", server.url, concurrency=3) as endpoint:
        with pytest.raises(EndpointAnswerError):
            given.extend(reply.text for reply in endpoint.replies(asked))
    assert given == completions(40)[:6]
    assert len(server.requests) <= 6 + 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "localhost:8000/v1"}, "must look like https://host/v1, got 'localhost:8000/v1'"),
        ({"base_url": "http:///v1"}, "must look like"),
        ({"base_url": "https://h/v1?key=1"}, "must look like"),
        ({"base_url": "https://h/v1?"}, "must look like"),
        ({"base_url": "https://h/v1#top"}, "must look like"),
        ({"base_url": "http://h:99999999/v1"}, "must look like"),
        ({"base_url": "http://[/v1"}, "must look like"),
        ({"base_url": "https://me:hidden@h/v1"}, "must not hold a user name or password"),
        ({"base_url": "ftp://me:hidden@h/v1"}, "must look like https://host/v1, got 'h/v1'"),
        ({"retries": -1}, "retries must be 0 or more, got -1"),
        ({"concurrency": 0}, "concurrency must be 1 or more, got 0"),
        ({"max_tokens": 0}, "max_tokens must be 1 or more"),
        ({"timeout": 0.0}, "timeout must be more than 0"),
        ({"timeout": float("nan")}, "timeout must be more than 0"),
        ({"timeout": float("inf")}, "both finite, got inf"),
        ({"backoff": -1.0}, "backoff 0 or more"),
        ({"backoff": float("nan")}, "backoff 0 or more"),
        ({"api_key": "a\nb"}, "no HTTP header takes"),
        ({"request": {"messages": [], "n": 2}}, "messages, n cannot be among"),
        ({"request": {"top_p": float("nan")}}, "No request to .* can be made: .*Check --request"),
        ({"request": {"user": "\ud800"}}, "can be made: .*surrogates not allowed"),
        ({"request": {"stop": {"."}}}, "can be made: .*not JSON serializable"),
    ],
)
def test_settings_of_which_no_request_can_be_made(settings, said):
    with pytest.raises(EndpointSettingsError, match=said) as caught:
        ChatEndpoint("m", **settings)
    assert "hidden" not in str(caught.value)


def test_a_proxy_that_the_client_does_not_know(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "ftp://me:hidden@127.0.0.1:1")
    with pytest.raises(EndpointSettingsError, match="proxy of the environment") as caught:
        ChatEndpoint("m")
    assert "hidden" not in str(caught.value)


# --------------------------------------------------------------------------------------------------- bounds of a reply


@pytest.fixture
def raw_server():
    """Starts servers that read a request and then write whatever the given function sends."""
    stop, sockets = threading.Event(), []

    def serve(send):
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)

        def accept():
            with contextlib.suppress(OSError):
                while not stop.is_set():
                    connection, _ = listening.accept()
                    threading.Thread(target=talk, args=(connection,), daemon=True).start()

        def talk(connection):
            with connection, contextlib.suppress(OSError):
                with connection.makefile(
                    "rb"
                ) as request:  # all of it: closing with a part unread resets the connection
                    head = iter(request.readline, b"\r\n")
                    lengths = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")]
                    request.read(sum(lengths))
                send(connection, stop)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}/v1"

    yield serve
    stop.set()
    for listening in sockets:
        listening.close()


def dripping(start):
    """Sends `start`, then a byte at a time, for ever."""

    def send(connection, stop):
        connection.sendall(start)
        while not stop.wait(0.02):
            connection.sendall(b"x")

    return send


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nX-Header: ", b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n"],
    ids=["head", "body"],
)
@pytest.mark.parametrize("limits", [{"timeout": 0.3}, {"deadline": 0.3}])
def test_a_reply_drop_by_drop_ends_in_time(raw_server, start, limits):
    url, begin = raw_server(dripping(start)), time.monotonic()
    with ChatEndpoint("m", url, **{"retries": 1, "backoff": 0, **limits}) as endpoint:
        with pytest.raises(EndpointUnreachableError, match=r"no whole reply in 0\.[23]"):
            endpoint.reply(SWAP)
    assert time.monotonic() - begin < 20


def test_the_waits_between_attempts_end_in_time(server):
    server.first.extend([(429, {"Retry-After": "50"}, "busy")] * 9)
    begin = time.monotonic()
    with ChatEndpoint("m", server.url, deadline=5, retries=6) as endpoint:
        with pytest.raises(EndpointBusyError, match="status 429 after 0 retries: busy"):
            endpoint.reply(SWAP)
    assert time.monotonic() - begin < 20
    assert len(server.requests) == 1


def endless(connection, stop):
    """Up to 100 MB, as long as somebody reads."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    for _ in range(1_600):
        connection.sendall(b"[" * 65_536)


def test_a_huge_reply_is_not_read_to_its_end(raw_server):
    sent = []

    class Counting:
        def __init__(self, connection):
            self.connection = connection

        def sendall(self, data):
            self.connection.sendall(data)
            sent.append(len(data))

    url = raw_server(lambda connection, stop: endless(Counting(connection), stop))
    with ChatEndpoint("m", url, max_reply_bytes=1_000_000) as endpoint:
        with pytest.raises(EndpointAnswerError, match=r"more than 1,000,000 bytes.*--max-reply-bytes"):
            endpoint.reply(SWAP)
    assert sum(sent) < 50_000_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
def test_a_compressed_bomb_is_not_unpacked(raw_server, encoding, status, monkeypatch):
    body = gzip.compress(bytes(60_000_000), 1) if encoding == "gzip" else zlib.compress(bytes(60_000_000), 1)
    assert len(body) < 500_000
    head = f"HTTP/1.1 {status}\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    url = raw_server(lambda connection, stop: connection.sendall(head.encode() + body))
    unpacked, real = [], zlib.decompressobj

    class Counting:
        def __init__(self, wbits):
            self.real = real(wbits)

        def decompress(self, data, most=0):
            unpacked.append(self.real.decompress(data, most))
            return unpacked[-1]

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    with ChatEndpoint("m", url, max_reply_bytes=1_000_000) as endpoint:
        with pytest.raises(LanguageModelError, match="more than 1,000,000 bytes" if status[0] == "2" else "status 400"):
            endpoint.reply(SWAP)
    assert [len(text) for text in unpacked] == [1_000_001]


def test_a_compressed_reply_that_was_not_asked_for_is_read(raw_server):
    body = gzip.compress(completion("K L .").encode())
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    url = raw_server(lambda connection, stop: connection.sendall(head + body))
    with ChatEndpoint("m", url) as endpoint:
        assert endpoint.reply(SWAP).text == "K L ."


@pytest.mark.parametrize("body", ["[" * 600 + "]" * 600, '{"error": {"message": ' + "[" * 800 + "]" * 800 + "}}"])
@pytest.mark.parametrize(("status", "error"), [(200, EndpointAnswerError), (400, EndpointRefusedError)])
def test_json_that_is_just_not_too_deep(server, endpoint, body, status, error):
    server.first.append((status, {}, body))
    with pytest.raises(error, match=r"\[\[\["):
        endpoint.reply(SWAP)


@pytest.mark.parametrize("status", [200, 400])
def test_a_long_reply_takes_no_time(server, endpoint, status):
    text = "a." * 500_000
    body = {"choices": [{"message": {"content": text}}]} if status == 200 else {"error": {"message": text}}
    server.first.append((status, {}, json.dumps(body)))
    before = time.monotonic()
    if status == 200:
        assert endpoint.reply(SWAP).text == text
    else:
        with pytest.raises(EndpointRefusedError, match=r"a\.a\.a"):
            endpoint.reply(SWAP)
    assert time.monotonic() - before < 2


def test_an_encoding_that_nobody_knows(server, endpoint):
    server.first.append((200, {"Content-Encoding": "br"}, "x"))
    with pytest.raises(EndpointAnswerError, match="compressed as 'br'"):
        endpoint.reply(SWAP)


@pytest.mark.parametrize(
    "body", ["[" * 200_000, '{"choices":' * 100_000, '{"choices": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
@pytest.mark.parametrize("status", [200, 400])
def test_deep_json(server, endpoint, body, status):
    server.first.append((status, {}, body))
    error, said = (EndpointAnswerError, "nested too deeply") if status == 200 else (EndpointRefusedError, "status 400")
    with pytest.raises(error, match=said) as caught:
        endpoint.reply(SWAP)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_gets_neither_key_nor_prompt(server, endpoint, status):
    with ChatServer() as elsewhere:
        server.first.append((status, {"Location": f"{elsewhere.url}/chat/completions"}, ""))
        with pytest.raises(EndpointRefusedError, match=f"status {status}"):
            endpoint.reply(SWAP)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"deadline": 0.0}, "deadline must be more than 0"),
        ({"deadline": float("nan")}, "deadline must be more than 0"),
        ({"max_reply_bytes": 0}, "max_reply_bytes must be 1 or more"),
    ],
)
def test_bounds_that_make_no_sense(settings, said):
    with pytest.raises(EndpointSettingsError, match=said):
        ChatEndpoint("m", **settings)


# ------------------------------------------------------------------------------------------------------------- secrets


@pytest.fixture(autouse=True)
def _forgets(monkeypatch):
    monkeypatch.setattr("hf_mech.hub.redaction._remembered", set())


def test_a_reply_with_the_key_in_it_is_kept_without_it(server, endpoint):
    server.first.append((200, {}, completion("your key is secret-key", "secret-key")))
    assert endpoint.reply(SWAP) == Reply("your key is ***", "***")


@pytest.mark.parametrize("url", ["https://h/v1?key=hidden", "https://h/v1?api_key=hidden#x", "https://me:hid/den@h/v1"])
def test_an_address_with_a_key_is_refused_without_it(url):
    with pytest.raises(EndpointSettingsError) as caught:
        ChatEndpoint("m", url)
    assert "hid" not in str(caught.value)
