"""A model behind the API, asked through a real HTTP server: clips as parts, faults as reasons, keys nowhere."""

import base64
import dataclasses
import io
import json

import numpy as np
import pytest
import soundfile

from operators.audio import decode, sampling_rate
from operators.base import apply
from operators.chat_api import ChatEndpoint, ChatUnavailable
from operators.fingerprint import canonical, fingerprint
from operators.lalms.hearing import AudioLimits
from operators.lalms.openai_chat import OpenAIChat, audio_part
from tests.chat_server import Answer, ChatServer, Status
from tests.operators.lalms.clips import batch, tone

pytest.importorskip("openai", reason="the client is the optional package openai")
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)


def model(server, limits=None, **fields):
    endpoint = ChatEndpoint(
        "tiny", base_url=server.url, key_variable="TEST_KEY", retries=0, backoff_seconds=0.01
    )
    return OpenAIChat(endpoint=endpoint, limits=limits or AudioLimits(), **{"prompt": None, **fields})


def asked(spec, rows):
    return apply(spec, spec.build(), batch(rows))


def test_one_and_six_clips_become_as_many_audio_parts_in_order(tmp_path):
    clips = [tone(tmp_path, f"c{n}", 1 + n / 4) for n in range(6)]
    choices = [f"Audio {n}" for n in range(1, 6)]
    with ChatServer(lambda body, n: Answer("Audio 3"), key=KEY) as server:
        done = asked(model(server), [("Q", choices, clips, 0), ("Q", ["x", "y"], clips[:1], 0)])
    assert list(done["response"]) == ["Audio 3", "Audio 3"] and done["response_error"][0] is None
    six, one = sorted(server.requests, key=lambda request: -len(request.audio))
    assert six.text.split("\n") == [
        "Reference:",
        "<clip>",
        "Q",
        "Audio 1:",
        "<clip>",
        "Audio 2:",
        "<clip>",
        "Audio 3:",
        "<clip>",
        "Audio 4:",
        "<clip>",
        "Audio 5:",
        "<clip>",
    ]
    seconds = []
    for part in six.audio:
        assert part["input_audio"]["format"] == "wav"
        samples, rate = soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))
        seconds.append(len(samples) / rate)
    assert seconds == [1.0, 1.25, 1.5, 1.75, 2.0, 2.25] and len(one.audio) == 1
    sent, _ = soundfile.read(io.BytesIO(base64.b64decode(one.audio[0]["input_audio"]["data"])))
    assert np.array_equal(sent, soundfile.read(clips[0][0])[0]), "16-bit sound travels unchanged"
    usage = json.loads(done["usage"][0])
    assert (usage["n_audio"], usage["prompt_tokens"], usage["audio_seconds_used"]) == (6, 100, 9.75)


def test_decoding_fields_go_along_and_seeds_differ_by_trial(tmp_path):
    clip = tone(tmp_path, "c", 1.0)
    with ChatServer() as server:
        spec = model(server, temperature=0.7, top_p=0.9, max_new_tokens=33, system_prompt="Listen.")
        asked(spec, [("Q", ["x"], [clip], trial) for trial in range(2)])
        asked(model(server, temperature=None, send_seed=False), [("Q", ["x"], [clip], 0)])
    first, second, plain = (request.body for request in server.requests)
    assert (first["temperature"], first["top_p"], first["max_tokens"]) == (0.7, 0.9, 33)
    assert first["messages"][0] == {"role": "system", "content": "Listen."}
    assert first["seed"] != second["seed"] and 0 <= first["seed"] < 2**31
    assert not {"temperature", "top_p", "seed"} & set(plain)


def test_rows_have_reasons_and_batch_mates_their_answers(tmp_path):
    clip = tone(tmp_path, "c", 1.0)
    script = {
        "refuse": Answer(None, refusal="no"),
        "filter": Answer("ha", "content_filter"),
        "empty": Answer(""),
        "broken": Status(500),
        "long": Answer("[PERCEPTION] a", "length"),
    }
    with ChatServer(
        lambda body, n: script.get(body["messages"][-1]["content"][-1]["text"], Answer("fine"))
    ) as server:
        done = asked(model(server), [(name, ["x"], [clip], 0) for name in [*script, "good"]])
    heads = [None if e is None else e.split(":")[0] for e in done["response_error"]]
    assert heads == ["refusal", "content_filter", "empty_answer", "server_error", None, None]
    assert list(done["response"][4:]) == ["[PERCEPTION] a", "fine"]
    assert list(done["finish_reason"][4:]) == ["length", "stop"]


@pytest.mark.weights
def test_a_request_that_is_too_large_is_not_sent(tmp_path):
    clips = [tone(tmp_path, "small", 1.0), tone(tmp_path, "large", 60.0)]
    with ChatServer() as server:
        done = asked(model(server, max_request_mb=1.0), [("Q", ["x"], [clip], 0) for clip in clips])
    assert done["response"][0] and done["response_error"][1].startswith("request_too_large: 2.4 MB of audio")
    assert len(server.requests) == 1


def test_what_will_be_too_large_is_told_by_lengths_and_rates(tmp_path):
    clip = tone(tmp_path, "one", 1.0)
    uri, _ = clip
    rate = sampling_rate(uri)
    sent = len(audio_part(decode(uri))["input_audio"]["data"]) / 2**20
    with ChatServer() as server:
        for most, said in ((sent, None), (sent * 0.999, "request_too_large")):
            found = model(server, max_request_mb=most).too_large([uri], [1.0])
            assert (found and found.split(":")[0]) == said
        assert rate == 16000
        # Two clips of 60 s at 8 kHz: 2 x 60 x 8000 x 2 bytes x 4/3 = 2.44 MiB; of which 20 s each are a third.
        limits = {"max_seconds": 20, "over_long": "truncate"}
        slow = model(server, sample_rate=8000, max_request_mb=1.0)
        assert (
            slow.too_large(["a", "b"], [60, 60])
            == "request_too_large: 2.4 MB of audio, the server takes 1 MB"
        )
        assert dataclasses.replace(slow, limits=AudioLimits(**limits)).too_large(["a", "b"], [60, 60]) is None
        assert dataclasses.replace(slow, limits=AudioLimits(over_long="skip")).too_large(["a"], [600]) is None
        # A clip that is gone, whose rate nobody knows, is for its row to tell.
        assert model(server, max_request_mb=1.0).too_large([str(tmp_path / "none.wav")], [600]) is None


def test_without_a_key_the_check_fails_and_a_worker_says_so_for_every_row(tmp_path, monkeypatch):
    monkeypatch.delenv("TEST_KEY")
    clip = tone(tmp_path, "c", 1.0)
    with ChatServer() as server:
        spec = model(server)
        with pytest.raises(ChatUnavailable, match="set the environment variable TEST_KEY"):
            spec.check()
        done = asked(spec, [("Q", ["x"], [clip], 0)])
    assert done["response_error"][0].startswith("model_unavailable: set the environment variable TEST_KEY")
    assert not server.requests


def test_the_place_of_the_server_and_the_key_are_no_identity():
    here = OpenAIChat(endpoint=ChatEndpoint("m", base_url="http://a", key_variable="A"))
    there = OpenAIChat(endpoint=ChatEndpoint("m", base_url="http://b", key_variable="B"))
    assert fingerprint(here) == fingerprint(there)
    assert fingerprint(here) != fingerprint(OpenAIChat(endpoint=ChatEndpoint("m"), max_new_tokens=1))
    assert KEY not in json.dumps(canonical(here))
