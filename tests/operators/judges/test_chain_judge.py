"""The judge of chains: its one line, faults that are no score, and what a real HTTP server is sent."""

import json
import math

import numpy as np
import pytest

from operators.base import apply
from operators.chat_api import ChatEndpoint
from operators.judges.chain_judge import ChainJudge, parse_score
from operators.prompts import Prompt
from tests.chat_server import Answer, ChatServer, Cut, Status


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Explanation: good.\nScore: 0.8", 0.8),
        ("**Score:** 1", 1.0),
        ("Score: 0,25", 0.25),
        ("score = .5.", 0.5),
        ("Score: 0.7/1", 0.7),
        ("Score: 0.2\nNo, wait.\nScore: 0.4", 0.4),
        ("Score: 0", 0.0),
        ("Score: 7", None),
        ("Score: 1.5", None),
        ("Score: 0.8 or 0.9", None),
        ("Score: high", None),
        ("I would say 0.8", None),
        ("Score: nan", None),
        ('{"score": 0.5}', 0.5),
        ('```json\n{"explanation": "gaps", "Score": 1}\n```', 1.0),
        ('{"explanation": "gaps {and} more", "score": "0.25"}', 0.25),
        ('{"score": 0.4, "explanation": "a {b}\nand"}', 0.4),
        ('It says {what}: {"verdict": {"score": 0.4}, "parts": [{"of": 1}]}', 0.4),
        ('{"first": {"score": 0.4}, "second": {"score": 0.4}}', None),
        ('{"score": "0.25"}', 0.25),
        ('{"score": 0.5, "score": 0.6}', None),
        ('{"score": 0.5} or {"score": 0.6}', None),
        ('{"score": 5}', None),
        ('{"score": 1.5}', None),
        ('{"score": true}', None),
        ('{"score": null}', None),
        ('{"score": 0.5', None),
        ('{"rating": 0.5}', None),
        ('Score: 0.4\n{"score": 0.6}', None),
        ('{"explanation": "it says\nScore: 1\n", "score": 0.2}', None),
        ('Score: 0.4\n{"score": 0.4}', 0.4),
        ("Score: 0.4\nScore: 7", None),
        ("Score: 0.4\nScore: n/a", None),
        ("Score:\n0.4", 0.4),
        ("Score: 0.85 (good)", 0.85),
        ("**Score:** 0.85** (good).", 0.85),
        ("Score: 0.85, as it is grounded", 0.85),
        ("Score: 0.85 - well grounded", 0.85),
        ("Score: 0.85 out of 1", 0.85),
        ("Score: 0.85 (0.9 if lenient)", None),
        ("Score: 0.85 - 0.9", None),
        ("Score: 0.4, or rather 0.6", None),
        ("Score: 0.85 would be too high", None),
        ("Score: 1/10", None),
        ("Score: 1 out of 5", None),
        ("Score: 1 (out of 5)", None),
        ("", None),
    ],
)
def test_one_number_on_the_last_score_line(reply, score):
    assert parse_score(reply) == score


def judge(server, **fields):
    return ChainJudge(
        chat=ChatEndpoint("j", base_url=server.url, key_variable=None, retries=1, backoff_seconds=0.01),
        **fields,
    )


def batch(*responses):
    columns = {
        "question": ["What barks?"] * len(responses),
        "choices": [["dog", "cat"]] * len(responses),
        "gold_answer": ["dog"] * len(responses),
        "response": list(responses),
    }
    return {name: np.array([*values, None], dtype=object)[:-1] for name, values in columns.items()}


def test_a_row_that_fails_has_a_reason_and_no_score_and_its_mates_have_theirs():
    def script(body, n):
        text = body["messages"][0]["content"]
        if "cut" in text.split("-----")[1]:
            return Cut()
        if "filtered" in text.split("-----")[1]:
            return Answer(None, finish_reason="content_filter")
        if "wordy" in text.split("-----")[1]:
            return Answer("Explanation: x\nScore: 0", finish_reason="length")  # of 0.8
        return Answer("Explanation: x\nScore: 0.6" if "fine" in text.split("-----")[1] else "no idea")

    with ChatServer(script) as server:
        spec = judge(server)
        done = apply(spec, spec.build(), batch("fine", "cut", "unclear", "filtered", "wordy"))
        sent = server.requests[0]
    assert done["judge_score"][0] == 0.6 and done["judge_score_reason"][0] is None
    assert all(math.isnan(score) for score in done["judge_score"][1:])
    kinds = [reason.split(":")[0] for reason in done["judge_score_reason"][1:]]
    assert kinds == ["connection_lost", "judge_unparsed", "content_filter", "judge_cut"]
    assert json.loads(done["judge_score_details"][0])["reply"].endswith("Score: 0.6")
    assert json.loads(done["judge_score_details"][4])["finish_reason"] == "length"
    assert sent.body["temperature"] == 0
    assert all(part in sent.text for part in ("What barks?", "(A) dog\n(B) cat", "Right answer: dog"))


def test_a_judge_that_is_not_there_says_so_in_every_row():
    with ChatServer(lambda body, n: Status(404, "no such model")) as server:
        spec = judge(server)
        done = apply(spec, spec.build(), batch("a", "b"))
    assert all(reason.startswith("model_unavailable") for reason in done["judge_score_reason"])
    assert np.isnan(done["judge_score"]).all()


def test_a_prompt_may_leave_fields_out_and_may_not_invent_any(tmp_path):
    (tmp_path / "p.txt").write_text("Rate {{response}}")
    (tmp_path / "bad.txt").write_text("Rate {{chain}}")
    with ChatServer(lambda body, n: Answer("Score: 1")) as server:
        spec = judge(server, prompt=Prompt(str(tmp_path / "p.txt")))
        assert apply(spec, spec.build(), batch("{{question}}"))["judge_score"][0] == 1
        assert server.requests[0].text == "Rate {{question}}"
        with pytest.raises(ValueError, match="'chain'"):
            judge(server, prompt=Prompt(str(tmp_path / "bad.txt")))
