"""LLM judges in a whole run: rated once, found again, and a judge that is not there fails the run."""

import dataclasses
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.chat_api import ChatEndpoint
from operators.judges.chain_judge import ChainJudge
from operators.judges.judge_table import RATINGS
from operators.prompts import Prompt
from pipelines.judging import NO_GOLD, blocked, judge_failures
from tests.chat_server import Answer, ChatServer, Status
from tests.pipelines.cli import TOY_PATH, evaluated

pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]


@pytest.fixture
def asked(tmp_path):
    """Two questions without audio, and two models' responses to them."""
    questions = [
        {"id": f"q{n}", "question": "Which?", "choices": ["dog", "cat"], "answer": "dog"} for n in range(2)
    ]
    said = [
        {"id": f"q{n}", "model": m, "response": f"{m} {n} [ANSWER] dog"} for n in range(2) for m in ("a", "b")
    ]
    for name, rows in (("q", questions), ("r", said)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return tmp_path


def run(folder, url):
    return evaluated(
        folder,
        TOY_PATH,
        "scorers=toy",
        "benchmark=manifest",
        f"benchmark.path={folder / 'q.jsonl'}",
        "benchmark.require_audio=false",
        "model=recorded",
        f"model.path={folder / 'r.jsonl'}",
        "judges=[deepseek]",
        f"judges.deepseek.chat.base_url={url}",
        "judges.deepseek.chat.key_variable=null",
    )


def test_every_response_is_rated_once_and_found_again(asked):
    def script(body, n):
        text = body["messages"][0]["content"].split("-----")[1]
        return Answer("no score" if "b 1" in text else f"Score: {'0.8' if 'a ' in text else '0.2'}")

    with ChatServer(script) as server:
        done = run(asked, server.url)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 4
        again = run(asked, server.url)
        assert again.returncode == 0, again.stderr
        # What failed is asked again; what was rated is not.
        assert len(server.requests) == 5
    rows = {row["model"]: row for row in pq.read_table(asked / "run" / "judges.parquet").to_pylist()}
    assert rows["a"]["score"] == pytest.approx(0.8) and rows["a"]["n_failed"] == 0
    assert rows["b"]["score"] == pytest.approx(0.2) and (rows["b"]["n_scored"], rows["b"]["n_failed"]) == (
        1,
        1,
    )
    assert rows["b"]["score_if_failed_0"] == pytest.approx(0.1)
    assert "deepseek" in done.stdout and "at worst" in done.stdout


def test_without_a_right_answer_only_a_judge_that_needs_none_rates():
    rows = pa.table(
        {
            "row_error": pa.array([None, "refusal: no", None], pa.string()),
            "gold_answer": pa.array(["dog", None, None], pa.string()),
        }
    )
    judge = ChainJudge(chat=ChatEndpoint("m"))
    assert blocked(judge, rows) == [None, "refusal: no", NO_GOLD]
    free = dataclasses.replace(judge, prompt=Prompt("cot_four_step"))  # takes question and choices alone
    assert blocked(free, rows) == [None, "refusal: no", None]


def test_a_judge_out_of_reach_fails_the_run(asked):
    from operators.chat_api import ChatUnavailable

    with (
        ChatServer(lambda body, n: Status(401, "bad key")) as server,
        pytest.raises(ChatUnavailable, match="key_refused"),
    ):
        run(asked, server.url)
    assert not (asked / "run" / "judges.parquet").exists()


def test_what_judges_failed_on_is_counted_beside_the_other_failures():
    """Two judges of three rows, of which one has no response: that is no fault of theirs."""
    place = {"model": ["m"] * 3, "benchmark": ["b"] * 3, "item_id": ["q1", "q2", "q3"], "trial": [0] * 3}
    rows = pa.table({**place, "row_error": [None, None, "response_error: x"]})
    said = {
        "strict": ["judge_unparsed: no line", "server_error: HTTP 500", "response_error: x"],
        "kind": [None, "judge_unparsed: no line", "response_error: x"],
    }
    ratings = pa.concat_tables(
        pa.table(
            {**place, "judge": [name] * 3, "score": [None] * 3, "reason": reasons, "details": [None] * 3},
            schema=RATINGS,
        )
        for name, reasons in said.items()
    )
    found = [tuple(row.values())[1:5] for row in judge_failures(rows, ratings).to_pylist()]
    assert found == [
        ("judge_strict", "judge_unparsed", 1, "q1"),
        ("judge_strict", "server_error", 1, "q2"),
        ("judge_kind", "judge_unparsed", 1, "q2"),
    ]
    assert judge_failures(rows, RATINGS.empty_table()).num_rows == 0
