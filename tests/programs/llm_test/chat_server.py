"""A chat-completions endpoint on this machine that solves every prompt from its text, unless told to do otherwise."""

import json
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.programs.templatic.regex_solver import solve


class ChatServer:
    """The server. `first` holds what the next requests get instead of an answer: a reply's status, headers and body, or
    a callable of the request's JSON that returns such a reply. `answer` makes the text of every other reply.

        with ChatServer() as server:
            server.first.append((429, {"Retry-After": "0"}, "{}"))
            httpx2.post(f"{server.url}/chat/completions", json=...)
    """

    def __init__(self):
        self.answer = lambda request: solve(request["messages"][-1]["content"])
        self.first = deque()
        self.requests = []  # (headers, JSON) of each, as they came
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer._post(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _post(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        request = json.loads(body)
        with self.lock:
            self.requests.append((dict(handler.headers), request))
            special = self.first.popleft() if self.first else None
        if handler.path != "/v1/chat/completions":
            special = (404, {}, '{"error": {"message": "no such path"}}')
        status, headers, text = (special(request) if callable(special) else special) or self._completion(request)
        content = text.encode()
        try:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            if "Content-Length" in headers:  # a wrong one, on purpose: nothing more comes
                handler.close_connection = True
            else:
                handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except ConnectionError:
            pass  # the client did not wait

    def _completion(self, request):
        return 200, {"Content-Type": "application/json"}, completion(self.answer(request))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def completion(text, finish_reason="stop"):
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    return json.dumps({"object": "chat.completion", "choices": [{"message": message, "finish_reason": finish_reason}]})


def slow(seconds):
    """For `ChatServer.first`: the right answer, late."""

    def reply(request):
        time.sleep(seconds)
        return 200, {}, completion(solve(request["messages"][-1]["content"]))

    return reply
