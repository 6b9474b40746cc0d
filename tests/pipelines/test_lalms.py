"""Whole runs with models that generate: a tiny checkpoint through `transformers`, and a real server that misbehaves."""

import json
import os

import pyarrow.parquet as pq
import pytest
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.benchmarks.mugen_sample import MugenSample
from operators.chat_api import ChatUnavailable
from operators.lalms.asking import Lalm, Said
from operators.lalms.hearing import Hearing
from pipelines.config import ConfigError
from pipelines.mugen_eval import evaluate as mugen_evaluate
from tests.chat_server import Answer, ChatServer, Cut, Status
from tests.operators.lalms.clips import tone
from tests.pipelines.cli import TOY_PATH, composed, evaluated, own_ray
from tests.tiny_lalms import qwen2_audio

pytestmark = pytest.mark.weights
KEY = "sk-very-secret-0123456789"
CHAIN = "[PERCEPTION] Entities: dog. [ANALYSIS] An animal. [REASONING] one two three [ANSWER] dog"


@pytest.fixture(scope="module", autouse=True)
def ray_session():
    """One Ray for the runs of this module; its workers inherit the key, as those of a user's run do."""
    os.environ["LALM_TEST_KEY"] = KEY
    with own_ray():
        yield
    del os.environ["LALM_TEST_KEY"]


def questions(folder, n, seconds=lambda number: 0.5):
    rows = []
    for number in range(n):
        tone(folder, f"c{number}", seconds(number), pitch=200 + 10 * number)
        row = {"id": f"q{number}", "question": f"Question {number}?", "choices": ["dog", "cat"]}
        rows.append(row | {"answer": "dog", "audio": f"c{number}.wav"})
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["benchmark=manifest", f"benchmark.path={path}", "scorers=toy", TOY_PATH]


def openai(server, *more):
    fast = {"model": "tiny", "base_url": server.url, "key_variable": "LALM_TEST_KEY", "retries": 1}
    fields = [f"model.endpoint.{name}={value}" for name, value in (fast | {"backoff_seconds": 0.01}).items()]
    return ["model=openai", *(("+" if "backoff" in f else "") + f for f in fields), *more]


def results(folder):
    return {row["item_id"]: row for row in pq.read_table(folder / "run" / "results.parquet").to_pylist()}


def asked_about(body):
    text = body["messages"][-1]["content"][-1]["text"]
    return int(text.split("Question: Question ")[1].split("?")[0])


def everything_written(folder):
    """All bytes of all files, and what the compressed ones hold."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    tables = [str(pq.read_table(path).to_pydict()).encode() for path in files if path.suffix == ".parquet"]
    return b"".join([*(path.read_bytes() for path in files), *tables])


def test_a_checkpoint_of_ones_own_through_the_whole_pipeline(tmp_path):
    weights = qwen2_audio(tmp_path / "tiny")
    run = [*questions(tmp_path, 4), "model=transformers", f"model.weights.source={weights}"]
    run += ["model.dtype=float32", "model.max_new_tokens=12", "model.temperature=1"]
    done = evaluated(tmp_path, *run)
    assert done.returncode == 0, done.stderr
    rows = results(tmp_path)
    assert len(rows) == 4 and all(
        row["response"] and row["audio_seconds_used"] == 0.5 for row in rows.values()
    )
    written = sum(json.loads(row["usage"])["completion_tokens"] for row in rows.values())
    assert (
        f"new responses took {sum(json.loads(r['usage'])['prompt_tokens'] for r in rows.values()):,}"
        in done.stdout
    )
    run_json = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run_json["stages"]["generate"]["usage"]["completion_tokens"] == written > 4
    assert run_json["stages"]["generate"]["encoded"] == {"decoded": 4, "spectra": 4, "clips": 4}
    again = evaluated(tmp_path, *run)
    assert "computed 0 responses" in again.stdout and results(tmp_path) == rows


def test_every_fault_of_the_server_is_a_row_and_the_rest_is_scored(tmp_path):
    faults = {
        1: Answer(None, refusal="no"), 3: Answer("ha", "content_filter"), 4: Answer(""), 6: Status(500), 7: Cut(),
        8: Status(400, f"bad {KEY[:12]}", KEY), 9: Answer(CHAIN, "length"), 10: Answer(f"{KEY} {CHAIN}"),
    }  # fmt: skip
    run = questions(tmp_path, 12)
    with ChatServer(lambda body, n: faults.get(asked_about(body), Answer(CHAIN)), key=KEY) as server:
        prices = "model.endpoint.prices={_target_: operators.chat_api.Prices, prompt: 1, completion: 10}"
        done = evaluated(tmp_path, *run, *openai(server, prices))
    assert done.returncode == 0, done.stderr
    rows = results(tmp_path)
    reasons = {
        name: row["response_error"].split(":")[0] for name, row in rows.items() if row["response_error"]
    }
    assert reasons == {
        "q1": "refusal", "q3": "content_filter", "q4": "empty_answer", "q6": "server_error",
        "q7": "connection_lost", "q8": "bad_request",
    }  # fmt: skip
    assert (
        rows["q9"]["finish_reason"] == "length" and rows["q9"]["correct"] and rows["q0"]["aria"] is not None
    )
    assert all(rows[name]["aria"] is None for name in reasons), "nothing is scored 0 because a request failed"
    # Nine answers of 100 and 10 tokens were paid for (6 good ones, a refusal, a filtered and an empty one):
    # 9 x (100 x 1 + 10 x 10) / 1e6 = 0.0018.
    assert "900 prompt tokens, 90 completion tokens, cost 0.0018" in done.stdout
    assert KEY[:12].encode() not in everything_written(tmp_path) and KEY not in done.stdout + done.stderr
    assert rows["q10"]["response"] == f"*** {CHAIN}"
    # The next run asks only for what is missing.
    with ChatServer(lambda body, n: Answer(CHAIN), key=KEY) as server:
        evaluated(tmp_path, *run, *openai(server))
    assert sorted(map(lambda one: asked_about(one.body), server.requests)) == [1, 3, 4, 6, 7, 8]
    assert all(row["response"] for row in results(tmp_path).values())


@pytest.mark.parametrize(
    "what", [Status(401, f"Incorrect API key provided: {KEY}"), Status(404, "no such model"), None]
)
def test_a_server_that_is_gone_fails_the_run_and_keeps_what_is_finished(tmp_path, what):
    run = questions(tmp_path, 24)
    with ChatServer(lambda body, n: Answer(CHAIN) if n < 5 else what, key=KEY) as server:
        reachable = openai(server, "model.endpoint.concurrency=1")
        if what is not None:
            with pytest.raises(
                ChatUnavailable, match=r"model_unavailable: tiny at http.* responses are missing"
            ) as error:
                evaluated(tmp_path, *run, *reachable)
            assert len(server.requests) == 6, "nothing is sent to a server that is gone"
            assert KEY not in str(error.value)
    if what is None:
        with pytest.raises(ChatUnavailable, match="unreachable"):
            evaluated(tmp_path, *run, *reachable)
        return
    assert not (tmp_path / "run").exists()
    parts = (tmp_path / "store" / "responses").rglob("*.parquet")
    assert sum(pq.read_metadata(part).num_rows for part in parts) == 5
    if what.code != 401:
        return
    with ChatServer(lambda body, n: Answer(CHAIN), key=KEY) as server:
        done = evaluated(tmp_path, *run, *openai(server))
    assert done.returncode == 0 and len(server.requests) == 24 - 5


def test_a_missing_key_is_said_before_anything_starts(tmp_path):
    with (
        ChatServer() as server,
        pytest.raises(ChatUnavailable, match="set the environment variable NO_SUCH_KEY"),
    ):
        evaluated(
            tmp_path, *questions(tmp_path, 1), *openai(server), "model.endpoint.key_variable=NO_SUCH_KEY"
        )
    assert not server.requests and not (tmp_path / "store").exists()


def test_the_money_ends_and_the_finished_rows_stay(tmp_path):
    run = questions(tmp_path, 12)
    prices = "model.endpoint.prices={_target_: operators.chat_api.Prices, prompt: 0, completion: 100}"
    # An answer costs 10 x 100 / 1e6 = 0.001 and may cost 20 x 100 / 1e6 = 0.002: the fourth would need 0.003 + 0.002.
    limits = [
        prices,
        "model.endpoint.spend_limit=0.0045",
        "model.max_new_tokens=20",
        "model.endpoint.concurrency=1",
        "cluster.generate.actors=4",  # one client, one limit, whatever the cluster has
    ]
    with ChatServer(lambda body, n: Answer(CHAIN), key=KEY) as server:
        done = evaluated(tmp_path, *run, *openai(server, *limits))
        assert done.returncode == 0 and len(server.requests) == 3
        assert sum(row["response"] is not None for row in results(tmp_path).values()) == 3
        assert "spend_limit" in done.stdout and "9 of 12 rows were not asked" in done.stderr
        evaluated(tmp_path, *run, *openai(server, "model.max_new_tokens=20"))
    assert len(server.requests) == 12 and all(row["response"] for row in results(tmp_path).values())


def test_clips_beyond_a_limit_stop_the_run_before_anything_is_asked(tmp_path):
    run = questions(tmp_path, 3, seconds=[1.0, 3.0, 2.0].__getitem__)
    # 2 s at 16 kHz travel as 0.08 MiB, 1 s as 0.04.
    small = "model.max_request_mb=0.07"
    with ChatServer(lambda body, n: Answer(CHAIN), key=KEY) as server:
        limit = openai(server, "model.limits.max_seconds=2")
        with pytest.raises(ConfigError, match=r"1 items pass a limit .*'q1': audio_too_long.*over_long=skip"):
            evaluated(tmp_path, *run, *limit)
        with pytest.raises(ConfigError, match=r"2 items .*'q1': request_too_large: 0\.1 MB.*over_long=skip"):
            evaluated(tmp_path, *run, *openai(server, small))
        assert not server.requests
        evaluated(tmp_path, *run, *limit, small, "model.limits.over_long=skip")
        rows = results(tmp_path)
        assert rows["q1"]["response_error"].startswith("audio_too_long") and rows["q0"]["response"]
        assert rows["q2"]["response_error"].startswith("request_too_large")
        evaluated(tmp_path, *run, *limit, "model.limits.over_long=truncate")
        rows = results(tmp_path)
        assert [rows[f"q{n}"]["audio_seconds_used"] for n in range(3)] == [1.0, 2.0, 2.0]
        cut = [json.loads(rows[f"q{n}"]["usage"])["audio_truncated"] for n in range(3)]
        assert cut == [False, True, False]


def test_too_many_clips_are_refused_in_the_plan_already(tmp_path):
    run = questions(tmp_path, 1)
    row = json.loads((tmp_path / "q.jsonl").read_text())
    (tmp_path / "q.jsonl").write_text(json.dumps(row | {"audio": ["c0.wav", "c0.wav"]}) + "\n")
    with pytest.raises(ConfigError, match=r"takes at most 1 clips, and 1 items need more \(item 'q0': 2\)"):
        evaluated(tmp_path, *run, "model=r1_aqa", "dry_run=true")


def test_a_strategy_asks_with_its_own_instruction_and_every_clip_is_sent(tmp_path):
    with ChatServer(lambda body, n: Answer("Audio 2"), key=KEY) as server:
        run = [
            "benchmark=mugen_sample",
            "benchmark.limit=3",
            "strategy=[apsc]",
            "n_trials=2",
            *openai(server),
        ]
        run += [f"store.root={tmp_path / 'store'}", f"out={tmp_path / 'run'}"]
        mugen_evaluate(composed(*run, pipeline="mugen_eval"), tmp_path / "run", "tiny")
    items = MugenSample(limit=3).load().to_pylist()
    assert len(server.requests) == 2 * len(items)
    sent = sorted(len(one.audio) for one in server.requests)
    assert sent == sorted(2 * [len(item["audio_uris"]) for item in items])
    audio = json.loads((tmp_path / "run" / "run.json").read_text())["audio"]
    assert audio["encoder_calls"] == audio["clips_presented"] == sum(sent) and audio["cache_hits"] == 0
    distinct = len({uri for item in items for uri in item["audio_uris"]})
    assert audio["clips_decoded"] == 2 * distinct, "once to be hashed, once to be sent, whatever the trials"
    for one in server.requests:
        lines = one.text.split("\n")
        assert [line for line in lines if line.startswith("Audio ") and line.endswith(":")] == [
            f"Audio {n}:" for n in range(1, 6)
        ]
        assert "[PERCEPTION]" not in one.text and lines[-2:] == ["Audio 5:", "<clip>"]
        assert lines.index("Audio 1:") == 1 + next(
            i for i, x in enumerate(lines) if "Reply with the label" in x
        )


def test_the_trials_of_an_item_are_decoded_and_encoded_once_per_clip(tmp_path):
    run = [
        "benchmark=mugen_sample",
        "benchmark.limit=2",
        "strategy=[apsc]",
        "n_trials=2",
        "model=transformers",
    ]
    run += [f"model.weights.source={qwen2_audio(tmp_path / 'tiny')}", "model.dtype=float32"]
    run += ["model.max_new_tokens=2", "model.temperature=1", f"store.root={tmp_path / 'store'}"]
    mugen_evaluate(composed(*run, pipeline="mugen_eval"), tmp_path / "run", "tiny")
    items = MugenSample(limit=2).load().to_pylist()
    distinct = len({uri for item in items for uri in item["audio_uris"]})
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["stages"]["generate"]["encoded"] == dict.fromkeys(("decoded", "spectra", "clips"), distinct)
    audio = told["audio"]
    assert audio["clips_presented"] == 2 * 2 * 5 and audio["encoder_calls"] == distinct < 2 * 2 * 5
    assert audio["cache_hits"] == 2 * 2 * 5 - distinct


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class Fragile(Lalm):
    """A model whose process does not survive one of its questions."""

    version = 1

    def ready(self):
        def ask(requests):
            if any("Question 1?" in one.text for one in requests):
                os._exit(1)
            return [Said(CHAIN, "stop", {}) for _ in requests]

        return Hearing(self.limits, None), ask


def test_a_row_that_kills_the_process_costs_itself(tmp_path):
    done = evaluated(tmp_path, *questions(tmp_path, 3), "model=fragile")
    assert done.returncode == 0, done.stderr
    rows = results(tmp_path)
    assert [name for name, row in sorted(rows.items()) if row["response"] is None] == ["q1"]
    assert rows["q1"]["response_error"].startswith("worker_died")
