"""The life of an engine that runs in a process of its own: that it died is noticed, and it is started again.

One dead engine, or one request that kills every engine, must not take a run down with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from operators.lalms.asking import Request, Said

WATCH_SECONDS = 0.5


@contextmanager
def watched(engine: Any, patience_seconds: float) -> Iterator[None]:
    """While requests wait for `engine`: one that is gone, or finishes none for `patience_seconds`, raises vLLM's error.

    Without it they wait for ever: when its engine process is killed, vLLM 0.32 stops listening and tells only who asks next.
    """
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(engine.llm_engine, patience_seconds, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(running: Any, patience_seconds: float, done: threading.Event) -> None:
    client = running.engine_core
    if not hasattr(client, "resources"):  # the engine lives in this process: it dies with it
        return
    left, since = None, time.monotonic()
    while not done.wait(WATCH_SECONDS):
        waiting = running.get_num_unfinished_requests()
        if waiting != left:
            left, since = waiting, time.monotonic()
        elif waiting and time.monotonic() - since > patience_seconds:
            client.shutdown(timeout=0)  # kills its process and marks it as dead
        if client.resources.engine_dead:
            client.outputs_queue.put(dead_engines()[0]())
            return


class Restarting:
    """An engine that is started again when it dies; the requests that it held are asked again, in halves.

    A request that kills every engine is found by halving and given up with a reason (`engine_died`), however many there
    are. After `restarts` requests given up one after the other, with no answer between, everything that is left gets that
    reason, because then it is not the requests. An engine that serves nothing ends after log2(batch) + 2 * restarts deaths
    at most: the first request costs one death per halving, two neighbours share their last.
    """

    def __init__(self, start_engine: Callable[[], Any], restarts: int) -> None:
        self._start, self._restarts, self._lost_in_a_row = start_engine, restarts, 0
        self.engine = start_engine()

    def answers(self, requests: list[Request], ask: Callable[[list[Request]], list[Said]]) -> list[Said]:
        """`ask(requests)`, whatever the engine does."""
        if self.engine is None:
            return [Said(reason="engine_died: it was started again too often")] * len(requests)
        try:
            said = ask(requests)
        except dead_engines():
            pass
        except refusals() as error:  # of one request; no ValueError, so the caller would not look for it
            raise ValueError(str(error)) from error
        else:
            self._lost_in_a_row = 0
            return said
        self._restart(lost=len(requests) == 1)
        if len(requests) == 1:
            return [Said(reason="engine_died: the engine did not survive this row")]
        half = len(requests) // 2
        return self.answers(requests[:half], ask) + self.answers(requests[half:], ask)

    def _restart(self, lost: bool) -> None:
        self.engine, self._lost_in_a_row = None, self._lost_in_a_row + lost
        if self._lost_in_a_row < max(1, self._restarts):
            self.engine = self._start()


def dead_engines() -> tuple[type[Exception], ...]:
    """What vLLM raises when its engine is gone."""
    from vllm.v1.engine.exceptions import EngineDeadError
    from zmq import ZMQError

    return EngineDeadError, ZMQError  # the second: its sockets were closed while a request was on its way


def refusals() -> tuple[type[Exception], ...]:
    """What vLLM raises when it will not, or could not, serve one request: too long a prompt, too many clips."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine.exceptions import EngineGenerateError

    return VLLMValidationError, EngineGenerateError
