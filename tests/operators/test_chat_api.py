"""The chat client against a real HTTP server with scripted faults: every request one reply, every fault its own name."""

import json
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from operators.chat_api import UNAVAILABLE, ChatEndpoint, ChatUnavailable, Prices
from operators.chat_faults import Fault, redacted, retry_after, without_key
from operators.chat_pace import Pace
from operators.fingerprint import canonical, fingerprint
from tests.chat_server import Answer, ChatServer, Cut, Hang, Raw, Status

pytest.importorskip("openai", reason="the client is the optional package openai")
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)


def endpoint(server, **fields):
    patient = {"base_url": server.url, "timeout_seconds": 30.0, "retries": 2, "backoff_seconds": 0.01}
    return ChatEndpoint("tiny", key_variable="TEST_KEY", **{**patient, **fields})


def bodies(n):
    return [{"messages": [{"role": "user", "content": f"question {i}"}], "temperature": 0} for i in range(n)]


def number(body):
    return int(body["messages"][0]["content"].split()[-1])


def ask(script, n=1, **fields):
    with ChatServer(script, key=KEY) as server:
        replies = endpoint(server, **fields).connect().ask(bodies(n))
    return replies, server


def test_replies_come_in_order_once_each_and_in_parallel():
    replies, server = ask(lambda body, n: Answer(f"answer {number(body)}", seconds=0.02), 40, concurrency=8)
    assert [reply.text for reply in replies] == [f"answer {i}" for i in range(40)]
    assert len(server.requests) == 40 and 1 < server.most_in_flight <= 8
    assert replies[0].usage == {"prompt_tokens": 100, "completion_tokens": 10}


@pytest.mark.parametrize(
    ("what", "reason", "asked"),
    [
        (Answer("", "stop"), "empty_answer: the server answered without", 1),
        (Answer("  \n", "stop"), "empty_answer", 1),
        (Answer(None, "length"), "empty_answer: max_tokens", 1),
        (Answer("half an ans", "error"), "server_error: the server broke its answer off", 3),
        (Answer(None, refusal="I can't help with that"), "refusal: I can't help", 1),
        (Answer("half an ans", "content_filter"), "content_filter", 1),
        (Status(400, "flagged by our content policy", "content_filter"), "content_filter: HTTP 400", 1),
        (Status(400, "audio too long"), "bad_request: HTTP 400, scripted_error: audio too long", 1),
        (Status(413), "bad_request: HTTP 413", 1),
        (Status(400, f"key {KEY[:14]} is odd", KEY), "bad_request: HTTP 400, ***: key *** is odd", 1),
        (Status(500), "server_error: HTTP 500", 3),
        (Status(503), "server_error: HTTP 503", 3),
        (Cut(), "connection_lost", 3),
        pytest.param(Hang(30), "deadline: no whole answer within 1 s", 3, marks=pytest.mark.weights),
        pytest.param(
            Hang(30, drip=True), "deadline: no whole answer within 1 s", 3, marks=pytest.mark.weights
        ),
        (Raw(b"<html>a proxy's page</html>", "text/html"), "bad_reply", 3),
        (Raw(b'{"choices": []}'), "bad_reply", 3),
        (Raw(b'{"choices"'), "bad_reply", 3),
        (
            Raw(json.dumps({"choices": None, "error": {"code": 502, "message": f"busy {KEY}"}}).encode()),
            "bad_reply: the server's answer is no chat completion but 502: busy ***",
            3,
        ),
        (Answer([{"type": "text", "text": "B"}]), "bad_reply: the answer's content is no text but a list", 1),
        (Answer("Score: 0", "insufficient_system_resource"), "server_error: the server broke its answer", 3),
        (Answer("half an ans", "content_filter: RECITATION"), "content_filter: the server held", 1),
        (Answer("half an ans", "SAFETY"), "content_filter: the server held", 1),
        (
            Status(403, "your input was flagged", "moderation"),
            "content_filter: HTTP 403, moderation: your",
            1,
        ),
        (Raw(b"[" * 100_000), "bad_reply: the server's answer cannot be read (RecursionError)", 3),
        (Raw(b'{"choices": {"0": 1}}'), "bad_reply", 3),
        (Raw(b'{"choices": [{"message": "dog"}]}'), "bad_reply", 3),
        (Raw(b'{"choices": [{"finish_reason": "content_filter"}]}'), "content_filter", 1),
        (Status(400, "half a sign \ud83d"), "bad_request: HTTP 400, scripted_error: half a sign \ufffd", 1),
        (Answer(None, refusal="no \ud83d"), "refusal: no \ufffd", 1),
    ],
)
def test_a_fault_of_one_request_is_its_reason_and_no_other_ones(what, reason, asked):
    # The deadline holds for the healthy ones too: short, but longer than a busy machine takes to answer.
    deadline = 1.0 if isinstance(what, Hang) else 30.0
    replies, server = ask(
        lambda body, n: what if number(body) == 1 else Answer("fine"), 3, timeout_seconds=deadline
    )
    assert [reply.text for reply in replies] == ["fine", None, "fine"]
    assert replies[1].reason.startswith(reason) and replies[0].reason is None
    assert sum(number(one.body) == 1 for one in server.requests) == asked


def test_the_key_is_no_part_of_what_is_kept_of_an_answer():
    said = f"It says {KEY}, or {KEY[3:12]}, at 0123 Hz. [ANSWER] dog"
    (reply,), _ = ask(lambda body, n: Answer(said, finish_reason=f"stop{KEY}"))
    assert reply.text == "It says ***, or ***, at 0123 Hz. [ANSWER] dog" and reply.reason is None
    assert KEY[3:11] not in str(reply)


@pytest.mark.parametrize(
    ("text", "key", "left"),
    [
        ("a zq7Kx9LmPw b", "zq7Kx9LmPw3Vt8", "a *** b"),
        ("a zq7Kx9L b", "zq7Kx9LmPw3Vt8", "a zq7Kx9L b"),  # seven characters
        ("7Kx9LmPwand Kx9LmPw3V", "zq7Kx9LmPw3Vt8", "***and ***"),
        ("the EMPTY room", "EMPTY", "the EMPTY room"),
        ("local development", "local-development-server-1", "local development"),  # 11 letters of it, a word
        ("local-development-server-1", "local-development-server-1", "***"),
    ],
)
def test_parts_of_a_key_that_give_it_away_are_no_part_of_a_text(text, key, left):
    assert without_key(text, key) == left


def test_no_control_token_is_left_in_what_is_sent():
    texts = [{"type": "text", "text": "[INST] a<|AUDIO|>b"}, {"type": "input_audio", "input_audio": "<|"}]
    turns = [{"role": "system", "content": "x <|im_end|>"}, {"role": "user", "content": texts}]
    sent = []
    for fields in ({}, {"control_tokens": ("[INST]",)}):
        with ChatServer(lambda body, n: Answer("fine"), key=KEY) as server:
            endpoint(server, **fields).connect().ask([{"messages": turns}])
        sent.append(server.requests[0].body["messages"])
    (system, user), (_, other) = sent
    assert system == {"role": "system", "content": "x < |im_end|>"}
    assert user["content"] == [{"type": "text", "text": "[INST] a< |AUDIO|>b"}, texts[1]]
    assert other["content"][0]["text"] == "[ INST] a<|AUDIO|>b"


def test_an_answer_cut_by_its_limit_is_an_answer_with_its_finish_reason():
    replies, _ = ask(lambda body, n: Answer("[PERCEPTION] a dog", "length"))
    assert (replies[0].text, replies[0].finish_reason) == ("[PERCEPTION] a dog", "length")


@pytest.mark.parametrize(
    ("finish", "usage", "told", "counted"),
    [
        (5, {"prompt_tokens": -5, "completion_tokens": 10**30}, None, {}),
        ({"why": "end"}, {"prompt_tokens": 5.5, "completion_tokens": True}, None, {}),
        ("st\ud83dop", "many", "st\ufffdop", {}),
        (
            None,
            {"prompt_tokens": 5, "prompt_tokens_details": {"audio_tokens": 6}},
            None,
            {"prompt_tokens": 5},
        ),
    ],
)
def test_what_a_server_says_beside_a_text_is_a_word_and_whole_numbers_or_nothing(
    finish, usage, told, counted
):
    choice = {"message": {"role": "assistant", "content": "dog"}, "finish_reason": finish}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    ((reply,), _) = ask(lambda *_: Raw(body), 1)
    assert (reply.text, reply.reason) == ("dog", None)
    assert (reply.finish_reason, reply.usage) == (told, counted)


def test_a_server_that_stumbles_is_asked_again():
    replies, server = ask(lambda body, n: (Status(500), Cut(), Answer("at last"))[min(n, 2)])
    assert replies[0].text == "at last" and len(server.requests) == 3


@pytest.mark.weights
def test_a_storm_of_429_slows_down_and_loses_nothing():
    seen = Counter()

    def script(body, n):
        seen[number(body)] += 1
        return Status(429, headers={"Retry-After": "0.05"}) if seen[number(body)] <= 2 else Answer("ok")

    with ChatServer(script, key=KEY) as server:
        client = endpoint(server, concurrency=8, retries=0).connect()
        replies = client.ask(bodies(16))
    assert [reply.text for reply in replies] == ["ok"] * 16
    assert set(seen.values()) == {3}
    assert client._pace.limit < 8


def test_retry_after_holds_for_everybody():
    with ChatServer(
        lambda body, n: Status(429, headers={"Retry-After": "0.2"}) if n == 0 else Answer()
    ) as server:
        endpoint(server, concurrency=1).connect().ask(bodies(3))
    moments = [one.at for one in server.requests]
    assert moments[1] - moments[0] >= 0.2


def test_5xx_does_not_slow_down_and_429_halves_once_per_storm():
    with ChatServer(lambda body, n: Status(500)) as server:
        client = endpoint(server, concurrency=8, retries=0).connect()
        client.ask(bodies(4))
    assert client._pace.limit == 8
    pace = Pace(8)
    sent = time.monotonic()
    for _ in range(5):  # five requests of one moment: 8 / 2 = 4
        pace.slow_down(sent, 0.0)
    assert pace.limit == 4
    pace.slow_down(time.monotonic(), 0.0)
    assert pace.limit == 2
    pace.speed_up()  # 2 + 1/2
    assert pace.limit == 2.5


@pytest.mark.parametrize("headers", [{}, {"retry-after-ms": "0.001"}])
def test_patience_with_429_ends_where_nobody_says_to_wait(headers):
    """Neither the config nor the server makes anybody wait: 0.05 s are waited all the same, twice within 0.12 s."""
    replies, server = ask(
        lambda body, n: Status(429, headers=headers) if n < 30 else Answer(),
        backoff_seconds=0,
        patience_seconds=0.12,
    )
    assert replies[0].reason.startswith("rate_limited") and len(server.requests) == 3


def test_attempts_have_no_last_number():
    client = ChatEndpoint("m", key_variable=None, backoff_seconds=0).connect()
    assert client._backoff(5000, Fault("retry", "x")) == 0


def test_patience_with_429_ends():
    replies, server = ask(
        lambda body, n: Status(429, "slow down", headers={"Retry-After": "0.05"}), patience_seconds=0.12
    )
    assert replies[0].reason.startswith("rate_limited: HTTP 429") and len(server.requests) == 3


@pytest.mark.parametrize(("code", "said"), [(429, "rate_limited"), (503, "server_error")])
def test_a_server_that_asks_for_a_day_is_not_waited_for(code, said):
    """Neither by the request that was told so nor by the others."""

    def script(body, n):
        return Answer("ok") if n else Status(code, headers={"Retry-After": "86400"})

    with ChatServer(script) as server:
        replies = endpoint(server, concurrency=1, patience_seconds=1).connect().ask(bodies(3))
    assert replies[0].reason.startswith(f"{said}: HTTP {code}")
    assert [reply.text for reply in replies[1:]] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (
            Status(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
            "key_refused: AuthenticationError",
        ),
        (Status(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), "key_refused: "),
        (Status(400, "look at the details", "API_KEY_INVALID"), "key_refused: BadRequestError, HTTP 400"),
        (Status(403, f"{KEY} may not"), "key_refused: PermissionDeniedError"),
        (Status(404, "no such model"), "refused: HTTP 404, scripted_error: no such model"),
        (Status(402, "pay first"), "refused: HTTP 402"),
        (Status(429, "You exceeded your current quota", "insufficient_quota"), "quota_exhausted: HTTP 429"),
    ],
)
def test_a_fault_of_the_server_stops_everything_and_finished_replies_stay(what, said):
    with ChatServer(lambda body, n: Answer("fine") if n < 2 else what) as server:
        client = endpoint(server, concurrency=1).connect()
        replies = client.ask(bodies(5))
        again = client.ask(bodies(2))
    assert [reply.text for reply in replies] == ["fine", "fine", None, None, None]
    assert all(reply.reason.startswith(f"{UNAVAILABLE}: tiny at http") for reply in [*replies[2:], *again])
    assert said in replies[2].reason and client.unavailable == replies[2].reason
    assert len(server.requests) == 3, "nothing is sent to a server that is gone"
    assert not any(KEY in reply.reason for reply in replies[2:])


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_no_question_follows_a_redirect(code):
    with ChatServer() as other:
        there = {"Location": f"{other.url.replace('127.0.0.1', 'localhost')}/chat/completions?sig={KEY}"}
        replies, server = ask(lambda body, n: Status(code, headers=there), 3, concurrency=1)
    assert not other.requests and len(server.requests) == 1
    assert (
        f"refused: HTTP {code}: the server sends on to localhost, which is not followed" in replies[0].reason
    )
    assert "sig" not in replies[0].reason and all(one.reason.startswith(UNAVAILABLE) for one in replies)


def test_a_connection_that_cannot_be_made_says_what_is_in_its_way(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with ChatServer() as server:
        secure = server.url.replace("http:", "https:")
        (no_tls,) = endpoint(server, retries=0, base_url=secure).connect().ask(bodies(1))
        monkeypatch.setenv("HTTPS_PROXY", server.url.replace("http://", "http://user:hidden-word@"))
        (no_proxy,) = (
            endpoint(server, retries=0, base_url="https://somewhere.test/v1").connect().ask(bodies(1))
        )
    assert no_tls.reason.startswith(UNAVAILABLE) and "no secure connection (https) to it" in no_tls.reason
    assert (
        no_proxy.reason.startswith(UNAVAILABLE) and "the proxy that the environment names" in no_proxy.reason
    )
    for proxy in ("nonsense://user:hidden-word@host", "socks9://user:hidden-word@host"):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(ChatUnavailable, match="cannot be made in this environment") as error:
            endpoint(server).check()
        assert "HTTPS_PROXY" in str(error.value) and "hidden-word" not in str(error.value)
    monkeypatch.setenv("HTTPS_PROXY", "localhost:99999")  # no socket takes this port
    (reply,) = endpoint(server, retries=0, base_url="https://somewhere.test/v1").connect().ask(bodies(1))
    assert reply.reason.startswith(UNAVAILABLE) and "unreachable" in reply.reason


@pytest.mark.parametrize(
    "wrong", ["sk-secret\n0123456789", "sk-secret-\u043a012345", "\u200bsk-secret-0123456789"]
)
def test_a_key_that_no_header_takes_is_told_before_anything_is_sent(wrong, monkeypatch):
    monkeypatch.setenv("TEST_KEY", wrong)
    with pytest.raises(ChatUnavailable, match="TEST_KEY holds no key that can be sent for tiny") as error:
        ChatEndpoint("tiny", key_variable="TEST_KEY").check()
    assert wrong not in str(error.value)


def test_nobody_there_is_unavailable():
    with ChatServer() as server:
        pass
    (reply,) = endpoint(server).connect().ask(bodies(1))
    assert reply.reason.startswith(UNAVAILABLE) and "unreachable" in reply.reason


def test_a_server_that_only_fails_is_given_up():
    replies, server = ask(lambda body, n: Status(500), 30, retries=0, concurrency=1, give_up_after=5)
    assert len(server.requests) == 5
    assert replies[3].reason.startswith("server_error") and replies[4].reason.startswith(UNAVAILABLE)


def test_requests_that_are_themselves_at_fault_do_not_condemn_the_server():
    replies, server = ask(lambda body, n: Status(400), 8, give_up_after=3)
    assert len(server.requests) == 8 and all(reply.reason.startswith("bad_request") for reply in replies)


def test_costs_by_hand_and_a_spend_limit_that_stops_cleanly():
    # 100 prompt tokens of which 40 are audio: (60 x 2 + 40 x 10 + 10 x 5) / 1e6 = 570e-6.
    prices = Prices(prompt=2, completion=5, audio=10)
    assert prices.cost({"prompt_tokens": 100, "audio_tokens": 40, "completion_tokens": 10}) == pytest.approx(
        570e-6
    )
    assert Prices(1, 1).cost({}) == 0
    # Each answer may cost 200 x 5 / 1e6 = 1000e-6 at most, and a prompt 520e-6 as the first one did: a second one may be
    # asked for (570 + 520 + 1000 < 2200), a third one not (2 x 570 + 520 + 1000 > 2200).
    with ChatServer(lambda body, n: Answer("ok", audio_tokens=40)) as server:
        client = endpoint(server, prices=prices, spend_limit=2.2e-3, concurrency=1).connect()
        replies = client.ask(bodies(4))
    assert [reply.text for reply in replies] == ["ok", "ok", None, None]
    assert replies[2].reason.startswith("spend_limit: 0.0011 of 0.0022 are spent")
    assert replies[0].usage["cost"] == pytest.approx(570e-6) and client.spent == pytest.approx(1140e-6)
    assert len(server.requests) == 2


def test_dear_prompts_do_not_pass_the_limit_unnoticed():
    # An answer costs 10 x 1 / 1e6 = 10e-6, its prompt 100 x 10 / 1e6 = 1000e-6: two are 2020e-6, a third would be 3030e-6.
    with ChatServer(lambda body, n: Answer("ok")) as server:
        prices = Prices(prompt=10, completion=1)
        client = endpoint(server, prices=prices, spend_limit=2.5e-3, concurrency=1).connect()
        replies = client.ask(bodies(4))
    assert [reply.text for reply in replies] == ["ok", "ok", None, None]
    assert client.spent == pytest.approx(2020e-6) and len(server.requests) == 2


def test_requests_in_flight_count_against_the_limit():
    with ChatServer(lambda body, n: Answer("ok", seconds=0.05)) as server:
        client = endpoint(server, prices=Prices(0, 10), spend_limit=0.005, concurrency=8).connect()
        client.ask(bodies(8))
    # 200 x 10 / 1e6 = 0.002 at most each: two fit into 0.005 at once.
    assert len(server.requests) == 2 and client.spent <= 0.005


@pytest.mark.parametrize(
    "what",
    [Cut(), Raw(b'{"choices": []}'), pytest.param(Hang(30), marks=pytest.mark.weights)],
    ids=["cut", "unreadable", "hung"],
)
def test_an_attempt_of_which_nobody_says_the_cost_counts_towards_the_limit_as_its_worst_case(what):
    # An answer costs 10 x 10 / 1e6 = 0.1e-3 and may cost 200 x 10 / 1e6 = 2e-3; the first two attempts at question 1 are lost.
    lost = Counter()

    def script(body, n):
        lost[number(body)] += 1
        return what if number(body) == 1 and lost[1] <= 2 else Answer("ok")

    fields = {"prices": Prices(0, 10), "concurrency": 1, "timeout_seconds": 1.0}
    with ChatServer(script) as server:
        client = endpoint(server, spend_limit=1.0, **fields).connect()
        first, second = client.ask(bodies(2))
    assert (first.usage["cost"], second.usage["cost"]) == pytest.approx((0.1e-3, 0.1e-3)), "what replies say"
    assert client.spent == pytest.approx(4.2e-3)
    lost.clear()
    with ChatServer(script) as server:
        client = endpoint(server, spend_limit=4e-3, **fields).connect()
        first, second = client.ask(bodies(2))
    # 0.1e-3 + 2e-3 are spent after the first lost attempt: another one of 2e-3 would pass 4e-3.
    assert first.text == "ok" and second.reason.startswith("spend_limit") and len(server.requests) == 2
    assert client.spent == pytest.approx(2.1e-3) and second.usage == {}


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 5}, {"completion_tokens": 5, "total_tokens": 9}])
def test_a_reply_without_a_whole_usage_has_no_known_cost_and_counts_towards_the_limit(usage):
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [said],
        "usage": usage,
    }
    with ChatServer(lambda _, n: Raw(json.dumps(body).encode())) as server:
        client = endpoint(server, prices=Prices(0, 10), spend_limit=1.0).connect()
        (reply,) = client.ask(bodies(1))
    assert reply.text == "ok" and "cost" not in reply.usage
    assert client.spent == pytest.approx(2e-3)  # 200 x 10 / 1e6


@pytest.mark.parametrize("shown", [{"completion_tokens": 20}, {}])
def test_what_was_generated_and_not_shown_is_counted_and_paid(shown):
    """Gemini's thinking stands in the total alone: 480 - 100 = 380 tokens, (100 x 1 + 380 x 10) / 1e6."""
    message = {"role": "assistant", "content": "ok"}
    usage = {"prompt_tokens": 100, "total_tokens": 480, **shown}
    body = {"choices": [{"finish_reason": "stop", "message": message}], "usage": usage}
    with ChatServer(lambda _, n: Raw(json.dumps(body).encode())) as server:
        client = endpoint(server, prices=Prices(1, 10), spend_limit=1.0).connect()
        (reply,) = client.ask(bodies(1))
    assert reply.usage == {"prompt_tokens": 100, "completion_tokens": 380, "cost": pytest.approx(3.9e-3)}
    assert client.spent == pytest.approx(3.9e-3)


def test_an_error_that_a_server_states_costs_nothing():
    with ChatServer(lambda body, n: Status(500)) as server:
        client = endpoint(server, prices=Prices(0, 10), spend_limit=1.0).connect()
        assert client.ask(bodies(1))[0].usage == {} and client.spent == 0


def test_no_key_and_a_key_in_the_wrong_place_are_told_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(ChatUnavailable, match="set the environment variable TEST_KEY to the key for tiny"):
        ChatEndpoint("tiny", key_variable="TEST_KEY").check()
    for wrong in (KEY, "AIzaSyA1234567890", "a b", ""):
        with pytest.raises(ValidationError, match="never the key itself") as error:
            ChatEndpoint("tiny", key_variable=wrong)
        assert not wrong or wrong not in str(error.value)
    with pytest.raises(ValidationError, match="api_key holds a key") as error:
        ChatEndpoint("tiny", extra={"api_key": KEY})
    assert KEY not in str(error.value)
    ChatEndpoint("tiny", key_variable=None).check()
    with pytest.raises(ValidationError, match="spend_limit needs prices"):
        ChatEndpoint("tiny", spend_limit=1.0)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000/v1",
        "http:/localhost/v1",
        "ftp://host/v1",
        "https://",
        "http://[::1/v1",
        "http://h:99999",
        " http://h",
        "http://h\x00/v1",
        "",
    ],
)
def test_what_is_no_address_is_told_before_anything_is_sent(address):
    with pytest.raises(ValidationError, match="write it like http://localhost:8000/v1"):
        ChatEndpoint("m", base_url=address)
    for fine in ("http://[::1]:8000/v1", "https://generativelanguage.googleapis.com/v1beta/openai/", None):
        assert ChatEndpoint("m", base_url=fine).base_url == fine


def test_identity_is_what_is_asked_not_where_or_how_fast():
    one = ChatEndpoint("m", base_url="http://a", concurrency=1, prices=Prices(1, 1), timeout_seconds=1)
    assert fingerprint(one) == fingerprint(ChatEndpoint("m"))
    others = [
        ChatEndpoint("n"),
        ChatEndpoint("m", max_tokens=9),
        ChatEndpoint("m", extra={"reasoning_effort": "low"}),
    ]
    assert len({fingerprint(spec) for spec in [one, *others]}) == 4
    pinned = [ChatEndpoint("m", revision=one * 40) for one in "ab"]
    assert len({fingerprint(spec) for spec in [one, *pinned]}) == 3
    with pytest.raises(ValidationError, match="revision"):
        ChatEndpoint("m", revision="main")
    # Responses that were stored before an endpoint could name a revision are still found.
    assert fingerprint(one) == "e0b33aa44c302e30" and "revision" not in canonical(one)
    assert KEY not in json.dumps(canonical(one))


def test_extra_fields_and_the_name_of_the_limit_reach_the_server():
    fields = {
        "extra": {"reasoning_effort": "high", "modalities": ["text"]},
        "token_field": "max_completion_tokens",
    }
    _, server = ask(None, max_tokens=7, **fields)
    body = server.requests[0].body
    assert (body["reasoning_effort"], body["modalities"], body["max_completion_tokens"]) == (
        "high",
        ["text"],
        7,
    )
    assert "max_tokens" not in body and body["temperature"] == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 31 Dec 2023 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 +99999999999999999999"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_as_seconds_or_as_a_date(headers, seconds):
    assert retry_after(headers, datetime(2024, 1, 1, tzinfo=UTC)) == seconds


def test_words_of_a_server_lose_keys_lines_and_length():
    said = redacted(f"bad key {KEY}\nor Bearer abcdefgh12345 and AIzaSyA-1234567890", KEY)
    assert said == "bad key *** or *** and ***"
    assert len(redacted("x " * 500, KEY)) == 200
