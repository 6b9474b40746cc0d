"""The speech endpoint against a real HTTP server on this machine."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import soundfile

from operators.fingerprint import canonical
from operators.speech.endpoint import SpeechEndpoint
from operators.speech.rendering import Line, RenderingError, SpeechError

pytestmark = pytest.mark.weights
pytest.importorskip("openai", reason="the client is the optional package openai")
KEY = "sk-speech-0123456789"
LINE = Line("Where is my <parcel>?", "angry", "echo")


def wav(seconds=0.5):
    file = io.BytesIO()
    samples = 0.2 * np.sin(2 * np.pi * 220 * np.arange(int(24_000 * seconds)) / 24_000)
    soundfile.write(file, samples, 24_000, format="WAV", subtype="PCM_16")
    return file.getvalue()


def streamed(data):
    """A WAV header written before its length was known, as servers that stream write it."""
    size = b"\xff\xff\xff\xff"
    place = data.index(b"data")
    return data[:4] + size + data[8 : place + 4] + size + data[place + 8 :]


class Server:
    def __init__(self, status=200, body=b""):
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                outer.requests.append((self.path, self.headers, json.loads(self.rfile.read(length))))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def endpoint(url, **fields):
    return SpeechEndpoint(
        model="tiny-tts",
        voices=("echo",),
        instructions={"angry": "Speak angrily."},
        base_url=url,
        key_variable="TEST_SPEECH_KEY",
        retries=0,
        **fields,
    )


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_SPEECH_KEY", KEY)


@pytest.mark.parametrize("body", [wav(), streamed(wav())], ids=["whole", "streamed"])
def test_the_request_says_what_and_how_and_the_reply_is_decoded(body):
    with Server(body=body) as server:
        sound = endpoint(server.url).load()(LINE, 0)
    assert sound.sample_rate == 24_000 and sound.seconds == pytest.approx(0.5)
    path, headers, sent = server.requests[0]
    assert path == "/v1/audio/speech" and headers["Authorization"] == f"Bearer {KEY}"
    assert sent == {
        "model": "tiny-tts", "voice": "echo", "input": LINE.text, "instructions": "Speak angrily.", "response_format": "wav",
    }  # fmt: skip


def test_the_key_is_no_part_of_the_configuration_and_its_absence_is_said(monkeypatch):
    assert KEY not in json.dumps(canonical(endpoint("http://127.0.0.1:1/v1")))
    monkeypatch.delenv("TEST_SPEECH_KEY")
    with pytest.raises(SpeechError, match="set the environment variable TEST_SPEECH_KEY"):
        endpoint("http://127.0.0.1:1/v1").load()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_an_unknown_model_ends_the_build(status):
    told = b'{"error": {"message": "sk-speech-0123456789 is wrong"}}'
    with Server(status, told) as server, pytest.raises(SpeechError) as raised:
        endpoint(server.url).load()(LINE, 0)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"oops", "speech_server"),
        (200, b"<html>", "not_audio"),
        (200, b"", "empty_file"),
        (200, wav()[:5000], "truncated_audio"),
    ],
)
def test_a_failed_attempt_has_a_reason(status, body, reason):
    with Server(status, body) as server, pytest.raises(RenderingError, match=reason):
        endpoint(server.url).load()(LINE, 0)


def test_nobody_there_is_a_failed_attempt():
    with pytest.raises(RenderingError, match="speech_server: APIConnectionError"):
        endpoint("http://127.0.0.1:9/v1").load()(LINE, 0)
