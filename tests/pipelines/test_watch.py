"""Nodes that die under a job, with nodes that are only listed."""

import socket

import pytest

from pipelines import watch
from pipelines.room import Share
from pipelines.watch import NodesDied, Watch, have_died


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(watch, "LOOK_EVERY", 0.0)


def node(cards, port=1):
    return {
        "Resources": {"CPU": 8.0, "GPU": cards},
        "NodeManagerAddress": "127.0.0.1",
        "NodeManagerPort": port,
    }


def step(before, left, actors):
    """One step of a job on the nodes `before` of which `left` are alive; whether its workers were dismissed."""
    dismissed = []
    looking = Watch([Share((), actors, 1.0, 1.0)], before, lambda: left, lambda: dismissed.append(True))
    try:
        looking.on_execution_step(None)
    except NodesDied as died:
        return str(died), bool(dismissed)
    return None, bool(dismissed)


def test_a_job_goes_on_while_its_nodes_live_or_the_others_have_room():
    two = {"a": node(2), "b": node(2)}
    assert step(two, two, actors=4) == (None, False)
    assert step(two, {"a": node(2)}, actors=2) == (None, False), "Ray starts the lost ones on the other node"
    assert step(two, {"a": node(2), "c": node(2)}, actors=4) == (None, False), "a new node came"


def test_a_job_without_room_ends_and_its_workers_with_it():
    two = {"a": node(2), "b": node(2)}
    assert step(two, {"a": node(2)}, actors=3) == ("nodes died: b", True)


def test_a_job_that_never_had_room_is_not_taken_for_one_that_lost_nodes():
    assert step({"a": node(2)}, {"a": node(2)}, actors=3) == (None, False)


def test_a_node_that_answers_is_alive():
    with socket.create_server(("127.0.0.1", 0)) as server:
        nodes = {"a": node(2, server.getsockname()[1])}
        assert not have_died(nodes, lambda: nodes)
        assert have_died(nodes, dict), "unless Ray says that it is dead"


def test_a_silent_node_is_dead_once_ray_knows_it_too():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    nodes, looks = {"a": node(2, port)}, iter([True, True, False, False])
    asked = []

    def alive():
        asked.append(True)
        return nodes if next(looks) else {}

    assert have_died(nodes, alive)
    assert len(asked) >= 3, "it waits for Ray to learn of it"


def test_a_silent_node_that_ray_holds_to_be_alive_is_taken_for_alive_in_the_end(monkeypatch):
    monkeypatch.setattr(watch, "KNOWN_WITHIN", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    nodes = {"a": node(2, port)}
    assert not have_died(nodes, lambda: nodes), (
        "or a job that fails for another reason would be tried for ever"
    )
