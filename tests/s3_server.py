"""A real S3-compatible server, and a proxy in front of it that misbehaves on demand: errors with S3's codes, cut connections."""

import http.client
import os
import re
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fsspec

from operators.remote import open_filesystem

STATUS = {
    "SlowDown": 503,
    "ServiceUnavailable": 503,
    "InternalError": 500,
    "ExpiredToken": 400,
    "RequestTimeTooSkewed": 403,
    "AccessDenied": 403,
    "SignatureDoesNotMatch": 403,
}
KEY = "secret-key-of-the-test"
SECRET = "SECRET-THAT-A-SERVER-REPEATS"


class Proxy:
    """`url` answers as the server at `port` does; before that it plays the `faults` that match, once each, in order.

    A fault is (method, name): a code of STATUS, "empty 503" (no body), "cut" (no answer, after the server did its part)
    or "cut body" (half of an answer). `break_first` lets one file of the bucket fail for good.
    """

    def __init__(self, port):
        self.faults, self.played, self._lock = deque(), [], threading.Lock()
        self.requests = []
        self._broken, self.broken_path = None, None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(port))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def fail(self, method, *names, on=""):
        """`on`: only where the path holds this."""
        self.faults.extend((method, on, name) for name in names)

    def break_first(self, method, *fragments, fault):
        """Play the fault on every such request for the first path that holds the fragments; `broken_path` tells which it is."""
        self._broken, self.broken_path = (method, fragments, fault), None

    def _next(self, method, path):
        with self._lock:
            self.requests.append((method, path))
            if self._broken and method == self._broken[0] and all(one in path for one in self._broken[1]):
                self.broken_path = self.broken_path or path
                if path == self.broken_path:
                    return self._broken[2]
            if self.faults and self.faults[0][0] == method and self.faults[0][1] in path:
                fault = self.faults.popleft()[-1]
                self.played.append(fault)
                return fault
        return None

    def _handler(self, port):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy._next(self.command, self.path)
                if fault in STATUS or fault == "empty 503":
                    return self.refuse(fault)
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                upstream.request(self.command, self.path, sent, dict(self.headers))
                reply = upstream.getresponse()
                body = reply.read()
                upstream.close()
                if fault == "cut":
                    return self.hang_up()
                self.give(reply.status, reply.getheaders(), body, whole=fault != "cut body")

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

            def refuse(self, code):
                message = f"<Message>{SECRET}</Message><AWSAccessKeyId>{SECRET}</AWSAccessKeyId>"
                body = f'<?xml version="1.0"?><Error><Code>{code}</Code>{message}</Error>'.encode()
                self.give(STATUS.get(code, 503), [], b"" if code not in STATUS else body)

            def give(self, status, headers, body, whole=True):
                self.send_response_only(status)
                length = str(len(body))
                for name, value in headers:
                    if name.lower() == "content-length":
                        length = value  # of a HEAD: without a body
                    elif name.lower() not in ("transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body if whole else body[: len(body) // 2])
                if not whole:
                    self.hang_up()

            def hang_up(self):
                self.wfile.flush()
                self.close_connection = True

        return Handler


@contextmanager
def moto():
    """The port of a moto server in a process of its own."""
    command = [sys.executable, "-c", "from moto.server import main; main(['-H', '127.0.0.1', '-p', '0'])"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            if told := re.search(r"Running on http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise AssertionError("moto_server ended before it served")
        # Whatever it says later must not fill the pipe.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield int(told[1])
    finally:
        process.kill()
        process.wait()


@contextmanager
def in_front_of(port, monkeypatch, bucket):
    """S3 as the environment names it, with one bucket, reached through a Proxy."""
    one = Proxy(port)
    environment = {
        "AWS_ACCESS_KEY_ID": f"id-{KEY}",
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": one.url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3").clear_instance_cache()
    files, _ = open_filesystem(f"s3://{bucket}")
    if not files.exists(bucket):
        files.mkdir(bucket)
    try:
        yield one
    finally:
        fsspec.filesystem("s3").clear_instance_cache()
        one.close()
