"""The language-model writer against a real HTTP server with scripted replies."""

import json

import pytest

from operators.chat_api import ChatEndpoint, ChatUnavailable
from operators.columns import RowError
from operators.construction.audits.sources import script_of
from operators.construction.audits.writers import LanguageModelWriter, json_object
from tests.chat_server import Answer, ChatServer, Status

pytestmark = pytest.mark.weights
pytest.importorskip("openai", reason="the client is the optional package openai")
TURNS = [
    {"speaker": "user", "text": "A hotel near the lake."},
    {"speaker": "assistant", "text": "The Lakeside has a room."},
    {"speaker": "user", "text": "And a table at six."},
    {"speaker": "assistant", "text": "Your table is booked."},
    {"speaker": "user", "text": "Send me the details."},
]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_WRITER_KEY", "sk-writer")


def written(reply, kind="single_turn_emotions", rows=None, tries=2):
    rows = rows or [{"id": "s", "sentence": "It is {late}.", "emotions": ["angry", "sad"]}]
    with ChatServer(reply, key="sk-writer") as server:
        endpoint = ChatEndpoint(
            "tiny", base_url=server.url, key_variable="TEST_WRITER_KEY", retries=0, give_up_after=1
        )
        return LanguageModelWriter(endpoint, tries=tries).load()(kind, rows), server


def test_responses_come_from_json_in_prose_and_the_prompt_holds_the_row():
    said = 'Here you are:\n```json\n{"responses": ["I will hurry.", "Rest a little."]}\n```\nDone.'
    (found,), server = written(lambda body, n: Answer(said))
    assert found == {"responses": ["I will hurry.", "Rest a little."]}
    prompt = server.requests[0].body["messages"][0]["content"]
    assert 'Sentence: "It is {late}."' in prompt and "Tone A: angry" in prompt and "Tone B: sad" in prompt


def test_goals_become_a_positional_script_whose_branches_agree():
    goals = [
        {"turn": 2, "goal": "a hotel", "failure": "I found none.", "response": "Sorry about the hotel."},
        {"turn": 4, "goal": "a table", "failure": "They are full.", "response": "Sorry about the table."},
    ]
    row = {"id": "h", "turns": TURNS}
    (found,), server = written(
        lambda body, n: Answer(json.dumps({"goals": goals})), "positional_emotion", [row]
    )
    assert "2 (assistant): The Lakeside has a room." in server.requests[0].body["messages"][0]["content"]
    script = script_of("positional_emotion", {**row, **found}, "test", 0, "empathetic")
    assert [said.text for said in script.branches[0]] == [said.text for said in script.branches[1]]
    assert script.branches[0][1].text == "I found none."


def test_an_unreadable_reply_is_asked_again_and_then_discarded_with_its_reason():
    replies = iter(["no idea", '{"responses": ["a", "b"]}'])
    (found,), server = written(lambda body, n: Answer(next(replies)))
    assert found == {"responses": ["a", "b"]} and len(server.requests) == 2
    (gone,), server = written(lambda body, n: Answer("no idea"))
    assert (
        isinstance(gone, RowError) and str(gone).startswith("writer_unreadable") and len(server.requests) == 2
    )
    (given_up,), _ = written(lambda body, n: Answer("Impossible."), tries=1)
    assert str(given_up).startswith("writer_gave_up")


def test_a_row_that_cannot_be_asked_about_costs_no_request():
    rows = [{"id": "s", "sentence": "It is late.", "emotions": ["angry", "angry"]}]
    (found,), server = written(lambda body, n: Answer("{}"), rows=rows)
    assert str(found).startswith("same_emotion") and not server.requests


def test_a_server_that_refuses_ends_the_build():
    with pytest.raises(ChatUnavailable):
        written(lambda body, n: Status(401))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('x {"a": {"b": 1}} y', {"a": {"b": 1}}),
        ("{", None),
        ("} {", None),
        ("[1]", None),
        ('{"a": 1', None),
        ("", None),
    ],
)
def test_the_object_from_the_first_brace_to_the_last(text, value):
    assert json_object(text) == value
