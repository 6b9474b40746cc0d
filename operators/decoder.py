"""Decoding in a process of its own: a decoder that crashes or hangs on a file takes nothing else down.

The child is a plain `python -m operators.decoder`, so it does not matter what `__main__` is in the parent
or that the parent is a Ray actor. It reads one request a line on its standard input and answers one line of
JSON; it ends when its input does, that is, with its parent. An alarm that the child sets on itself ends it
also in the middle of C code.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from operators.audio import Probe, decode_bytes, pcm_hash
from operators.fetching import AudioError, fetch
from operators.locators import shown

_ROOT = str(Path(__file__).resolve().parents[1])


def _stop(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):  # what was still buffered has nobody left to read it
            stream.close()


class DecoderProcess:
    """One child that decodes clip after clip; started with the first, started anew after a crash."""

    def __init__(
        self, max_seconds: float, deadline_seconds: float, command: Sequence[str] | None = None
    ) -> None:
        limits = [str(max_seconds), str(deadline_seconds)]
        self._command = list(command or [sys.executable, "-P", "-m", "operators.decoder"]) + limits
        self._deadline_seconds = deadline_seconds
        self._process: subprocess.Popen | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child, None while there is none."""
        return self._process.pid if self._process else None

    def probe(self, uri: str) -> Probe:
        """Decode `uri` in the child. Never raises for what is wrong with a clip: the Probe's `error` says
        it."""
        try:
            # The child may not see what this process sees (memory://, credentials).
            payload = fetch(uri) if "://" in uri else None
        except AudioError as error:
            return Probe(None, None, str(error))
        answer, status = self._ask(uri, payload)
        if answer is None and status != -signal.SIGALRM:
            answer, status = self._ask(uri, payload)  # the first child may have died of something else
        if answer is not None:
            return Probe(**answer)
        if status == -signal.SIGALRM:
            detail = f"decoder_timeout: {shown(uri)} was not decoded within {self._deadline_seconds:g} s"
        else:
            detail = f"decoder_crashed: decoding {shown(uri)} ended the decoder (exit status {status})"
        return Probe(None, None, detail)

    def close(self) -> None:
        """End the child, if there is one."""
        if self._process:
            self._finalizer()
            self._process = None

    def _ask(self, uri: str, payload: bytes | None) -> tuple[dict | None, int | None]:
        process = self._running()
        size = None if payload is None else len(payload)
        request = json.dumps({"uri": uri, "bytes": size}).encode() + b"\n"
        try:
            process.stdin.write(request + (payload or b""))
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            return json.loads(line), None
        status = process.wait()
        self.close()
        return None, status

    def _running(self) -> subprocess.Popen:
        if self._process is None:
            path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no user text in the command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
            self._finalizer = weakref.finalize(self, _stop, self._process)
        return self._process


def _answer(request: dict, requests: BinaryIO, max_seconds: float) -> Probe:
    uri, size = request["uri"], request["bytes"]
    payload = None if size is None else requests.read(size)
    try:
        clip = decode_bytes(fetch(uri) if payload is None else payload, shown(uri), max_seconds)
    except AudioError as error:
        return Probe(None, None, str(error))
    return Probe(pcm_hash(clip), clip.seconds, None)


def serve(max_seconds: float, deadline_seconds: float) -> None:
    """Answer requests from standard input until it ends; the process dies of SIGALRM on one that takes too
    long."""
    import soundfile  # noqa: F401 - loaded before the first deadline runs

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Some codecs print; the answers stay clean.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    while line := requests.readline():
        signal.setitimer(signal.ITIMER_REAL, deadline_seconds)
        probe = _answer(json.loads(line), requests, max_seconds)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(vars(probe)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(float(sys.argv[1]), float(sys.argv[2]))
