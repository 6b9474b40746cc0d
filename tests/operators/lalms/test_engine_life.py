"""An engine that dies is started again and its requests are asked again; one that no engine survives is found."""

import queue
from types import SimpleNamespace

import pytest

from operators.lalms import engine_life
from operators.lalms.asking import Request, Said
from operators.lalms.engine_life import Restarting, watched
from operators.lalms.vllm_chat import VllmChat
from operators.weights import Weights, WeightsError


class Dead(Exception):
    """As vLLM's own error: no RuntimeError, so nobody takes it for a row's."""


class Refused(Exception):
    """As vLLM's own validation error."""


class Engine:
    """Answers with each request's number; dies of the numbers in `poison`, and for good."""

    started = 0

    def __init__(self, poison):
        Engine.started += 1
        self.poison, self.alive = poison, True

    def ask(self, requests):
        if not self.alive or any(one.seed in self.poison for one in requests):
            self.alive = False
            raise Dead
        return [Said(str(one.seed)) for one in requests]


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    Engine.started = 0
    monkeypatch.setattr(engine_life, "dead_engines", lambda: (Dead,))
    monkeypatch.setattr(engine_life, "refusals", lambda: (Refused,))


def asked(poison, n=8, restarts=8):
    running = Restarting(lambda: Engine(poison), restarts)
    requests = [Request([], [], seed) for seed in range(n)]
    return running.answers(requests, lambda some: running.engine.ask(some))


def test_the_one_poisonous_request_is_found_and_the_others_are_answered():
    said = asked({5})
    assert [one.text for one in said] == ["0", "1", "2", "3", "4", None, "6", "7"]
    assert said[5].reason == "engine_died: the engine did not survive this row"
    # Eight, then 4..7, then 4..5, then 5 alone: four deaths after the first start.
    assert Engine.started == 5


def test_without_deaths_nothing_is_restarted():
    assert all(one.text for one in asked(set())) and Engine.started == 1


@pytest.mark.parametrize(
    ("rows", "batch", "poison"),
    [(256, 64, {5, 70}), (256, 64, {5, 6}), (512, 512, {0}), (256, 64, set(range(0, 256, 3)))],
    ids=["two", "neighbours", "first of 512", "every third"],
)
def test_poisonous_requests_cost_nobody_else_an_answer(rows, batch, poison):
    running = Restarting(lambda: Engine(poison), 8)
    said = []
    for first in range(0, rows, batch):
        requests = [Request([], [], seed) for seed in range(first, first + batch)]
        said += running.answers(requests, lambda some: running.engine.ask(some))
    assert [one.text for one in said] == [None if n in poison else str(n) for n in range(rows)]
    assert {said[n].reason for n in poison} == {"engine_died: the engine did not survive this row"}


def test_an_engine_that_dies_of_everything_is_given_up():
    said = asked(set(range(8)), restarts=3)
    assert all(one.reason.startswith("engine_died") for one in said)
    # Dead of eight, four, two, row 0, row 1, rows 2 and 3, row 2: the third row lost in a row ends it at the seventh engine.
    assert Engine.started == 7
    assert [one.reason for one in said].count("engine_died: it was started again too often") == 5


def test_a_fault_of_one_request_is_not_a_death():
    running = Restarting(lambda: Engine(set()), 8)

    def ask(requests):
        raise Refused("too long")

    with pytest.raises(ValueError, match="too long"):
        running.answers([Request([], [], 0)], ask)
    assert Engine.started == 1


class Client:
    """As vLLM's client of an engine process: results come through a queue, and nobody tells it of a death."""

    def __init__(self, dead, unfinished):
        self.resources, self.outputs_queue = SimpleNamespace(engine_dead=dead), queue.Queue()
        self.engine = SimpleNamespace(
            llm_engine=SimpleNamespace(engine_core=self, get_num_unfinished_requests=lambda: unfinished)
        )

    def shutdown(self, timeout):
        self.resources.engine_dead = True


@pytest.mark.parametrize(("dead", "unfinished"), [(True, 1), (False, 1)], ids=["killed", "hung"])
def test_who_waits_for_a_dead_or_hung_engine_is_told(monkeypatch, dead, unfinished):
    monkeypatch.setattr(engine_life, "WATCH_SECONDS", 0.001)
    client = Client(dead, unfinished)
    with watched(client.engine, patience_seconds=0.01):
        assert isinstance(client.outputs_queue.get(timeout=10), Dead)
    assert client.resources.engine_dead


def test_an_engine_that_has_nothing_to_do_is_not_hung(monkeypatch):
    monkeypatch.setattr(engine_life, "WATCH_SECONDS", 0.001)
    client = Client(dead=False, unfinished=0)
    with watched(client.engine, patience_seconds=0.0), pytest.raises(queue.Empty):
        client.outputs_queue.get(timeout=0.05)
    assert not client.resources.engine_dead


def test_without_vllm_the_check_says_where_it_lives(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsError, match="environment of its own"):
        VllmChat(weights=Weights("org/name", "0" * 40)).check()
