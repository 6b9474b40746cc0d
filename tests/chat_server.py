"""A real HTTP server that speaks the chat API and misbehaves on request.

    with ChatServer(lambda body, n: Answer("B")) as server:       # n: how many requests came before
        ... base_url=server.url ...
    server.requests                                               # what was asked, in order of arrival

The script says per request what happens: Answer, Status, Hang, Cut, Raw.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    text: str | None = "The answer is A"
    finish_reason: str = "stop"
    refusal: str | None = None
    prompt_tokens: int = 100
    completion_tokens: int = 10
    audio_tokens: int = 0
    seconds: float = 0.0  # how long it thinks


@dataclass
class Status:
    """An HTTP error with the body and headers that real servers send."""

    code: int
    message: str = "scripted"
    kind: str = "scripted_error"
    headers: dict = field(default_factory=dict)


@dataclass
class Hang:
    """No answer for so many seconds; with `drip`, a byte every now and then."""

    seconds: float
    drip: bool = False


class Cut:
    """The connection ends in the middle of the answer."""


@dataclass
class Raw:
    """Any body with status 200."""

    body: bytes
    content_type: str = "application/json"


@dataclass
class Asked:
    body: dict
    authorization: str | None
    at: float

    @property
    def audio(self):
        """The audio parts of all messages, in order."""
        contents = [m["content"] for m in self.body["messages"] if isinstance(m["content"], list)]
        return [part for content in contents for part in content if part["type"] == "input_audio"]

    @property
    def text(self):
        """All text that was asked, clips as <clip>."""
        shown = []
        for message in self.body["messages"]:
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            shown += [part["text"] if part["type"] == "text" else "<clip>" for part in parts]
        return "\n".join(shown)


class ChatServer:
    def __init__(self, script=None, key=None):
        """`script`: (body, number of earlier requests) -> what happens. `key`: the only one that is accepted."""
        self.script, self.key = script or (lambda body, n: Answer()), key
        self.requests, self.in_flight, self.most_in_flight = [], 0, 0
        self._lock, self._ended = threading.Lock(), threading.Event()

    def __enter__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer._serve(self)

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass  # a client that gave up

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        authorization = handler.headers["Authorization"]
        with self._lock:
            number = len(self.requests)
            self.requests.append(Asked(body, authorization, time.monotonic()))
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.key is not None and authorization != f"Bearer {self.key}":
                what = Status(401, f"Incorrect API key provided: {authorization}", "invalid_api_key")
            else:
                what = self.script(body, number)
            self._do(handler, body, what)
        finally:
            with self._lock:
                self.in_flight -= 1

    def _do(self, handler, body, what):
        if isinstance(what, Answer):
            self._ended.wait(what.seconds)
            self._send(handler, 200, json.dumps(completion(body, what)).encode())
        elif isinstance(what, Status):
            error = {"error": {"message": what.message, "type": what.kind, "code": what.kind}}
            self._send(handler, what.code, json.dumps(error).encode(), what.headers)
        elif isinstance(what, Raw):
            self._send(handler, 200, what.body, {}, what.content_type)
        elif isinstance(what, Hang):
            self._hang(handler, what)
        else:
            data = json.dumps(completion(body, Answer())).encode()
            self._head(handler, 200, len(data), {}, "application/json")
            handler.wfile.write(data[: len(data) // 2])
            handler.wfile.flush()
            handler.close_connection = True

    def _hang(self, handler, what):
        if not what.drip:
            self._ended.wait(what.seconds)
            handler.close_connection = True
            return
        self._head(handler, 200, 100_000, {}, "application/json")
        until = time.monotonic() + what.seconds
        while time.monotonic() < until and not self._ended.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()
        handler.close_connection = True

    def _send(self, handler, code, data, headers=None, content_type="application/json"):
        self._head(handler, code, len(data), headers or {}, content_type)
        handler.wfile.write(data)

    def _head(self, handler, code, length, headers, content_type):
        handler.send_response(code)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(length))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()


def completion(body, answer):
    usage = {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "prompt_tokens_details": {"audio_tokens": answer.audio_tokens},
    }
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    choice = {"index": 0, "finish_reason": answer.finish_reason, "message": message}
    return {
        "id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice], "usage": usage
    }  # fmt: skip
