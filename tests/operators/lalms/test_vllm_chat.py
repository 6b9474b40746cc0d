"""vLLM's CPU engine, really run: one and six clips per prompt, the same answers as `transformers`, and its own API server."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")

from operators.base import apply
from operators.chat_api import ChatEndpoint
from operators.lalms.hearing import AudioLimits
from operators.lalms.openai_chat import OpenAIChat
from operators.lalms.transformers_chat import TransformersChat
from operators.lalms.vllm_chat import Restarting, VllmChat, answering, start
from operators.weights import Weights
from tests.operators.lalms.clips import batch, tone
from tests.tiny_lalms import BUILDERS

pytestmark = pytest.mark.weights
OPTIONS = [f"Audio {n}" for n in range(1, 6)]
SHARED = {"prompt": None, "max_new_tokens": 8, "limits": AudioLimits(max_clips=6)}


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    return [tone(folder, f"c{n}", 1 + n / 4, pitch=200 + 100 * n) for n in range(6)]


@pytest.fixture(scope="module")
def rows(clips):
    return batch(
        [
            ("Which is it?", ["a", "b"], clips[:1], 0),
            ("Which is it?", OPTIONS, clips, 0),
            ("What do both share?", ["a", "b"], clips[2:4], 0),
            ("What is this?", ["a", "b"], clips[5:], 0),
        ]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return BUILDERS["qwen2_audio"](tmp_path_factory.mktemp("tiny") / "qwen2_audio")


@pytest.fixture(scope="module")
def running(folder):
    """One engine for the tests that need the same model."""
    return Restarting(lambda: start(model(folder)), restarts=8)


@pytest.fixture(scope="module")
def engine(folder, running):
    spec = model(folder)
    return spec, answering(spec, running)


def model(folder, **fields):
    engine = {"enforce_eager": True}
    fixed = {"weights": Weights(str(folder)), "dtype": "float32", "context_length": 4096, "engine": engine}
    return VllmChat(**{**SHARED, **fixed, **fields})


def by_transformers(folder, rows):
    processor = "Qwen2AudioProcessor" if "omni" in folder.name else None
    spec = TransformersChat(weights=Weights(str(folder)), dtype="float32", processor=processor, **SHARED)
    return apply(spec, spec.build(), rows)


def failures(done):
    """What went wrong beyond a random model's silence."""
    return [reason for reason in done["response_error"] if reason and not reason.startswith("empty_answer")]


def test_one_and_six_clips_and_the_same_greedy_answers_as_transformers(engine, folder, rows):
    spec, op = engine
    done, plain = apply(spec, op, rows), by_transformers(folder, rows)
    # Random weights also write nothing but white space at times; then both backends say so.
    for column in ("response", "response_error", "finish_reason"):
        assert list(done[column]) == list(plain[column])
    assert any(done["response"]) and failures(done) == []
    here, there = ([json.loads(text) for text in table["usage"]] for table in (done, plain))
    assert here == there and [usage["n_audio"] for usage in here] == [1, 6, 2, 1]


def test_sampled_answers_repeat_and_differ_by_trial(running, folder, clips):
    spec = model(folder, temperature=1.0)
    op = answering(spec, running)
    trials = batch([("Which?", ["a", "b"], clips[:1], trial) for trial in range(3)])
    first, second = (list(apply(spec, op, trials)["response"]) for _ in range(2))
    assert first == second and len(set(first)) == 3


def test_a_prompt_that_is_too_long_costs_its_row(engine, clips):
    spec, op = engine
    rows = batch(
        [
            ("Which?", ["a", "b"], clips[:1], 0),
            ("word " * 5000, ["a"], clips[:1], 0),
            ("Which?", ["a"], clips[:1], 1),
        ]
    )
    done = apply(spec, op, rows)
    (reason,) = failures(done)
    assert (
        reason == done["response_error"][1] and reason.startswith("generation_failed: ") and "4096" in reason
    )


def test_an_engine_that_is_killed_is_started_again_and_its_rows_are_answered(engine, rows):
    import psutil

    spec, op = engine
    before = list(apply(spec, op, rows)["response"])
    cores = [
        child
        for child in psutil.Process().children(recursive=True)
        if "EngineCore" in " ".join(child.cmdline())
    ]
    assert cores, "the engine is a process of its own"
    for core in cores:
        core.send_signal(signal.SIGKILL)
    assert list(apply(spec, op, rows)["response"]) == before


def test_another_architecture(tmp_path, rows):
    """Qwen2.5-Omni is not here: its processor wants torchvision, which has no wheel that loads beside a CPU torch."""
    spec = model(BUILDERS["audio_flamingo3"](tmp_path / "audio_flamingo3"))
    done = apply(spec, spec.build(), rows)
    assert failures(done) == []
    assert [json.loads(text)["n_audio"] for text in done["usage"]] == [1, 6, 2, 1]


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    """vLLM's own server with the same checkpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--model",
        str(folder),
        "--served-model-name",
        "tiny",
        "--dtype",
        "float32",
        "--max-model-len",
        "4096",
    ]
    options += [
        "--enforce-eager",
        "--limit-mm-per-prompt",
        '{"audio": 6}',
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    options += ["--chat-template-content-format", "openai", "--generation-config", "vllm"]
    log = (tmp_path_factory.mktemp("server") / "log.txt").open("w+")
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *options]
    server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def wait_for(url, server, log):
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if server.poll() is not None:
            log.seek(0)
            pytest.fail(f"the server ended: {log.read()[-3000:]}")
        try:
            urllib.request.urlopen(url, timeout=5)
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the server does not answer")


def test_the_api_client_and_a_real_server_give_the_answers_of_the_engine(address, engine, rows):
    spec, op = engine
    endpoint = ChatEndpoint("tiny", base_url=address, key_variable=None)
    api = OpenAIChat(endpoint=endpoint, **SHARED)
    done, inside = apply(api, api.build(), rows), apply(spec, op, rows)
    # The server drops half a character at the end of an answer: what it gives is the beginning of what the engine wrote.
    for short, whole in zip(done["response"], inside["response"], strict=True):
        assert whole.startswith((short or "").rstrip("\ufffd"))
    assert any(done["response"])
    here, there = ([json.loads(text) for text in table["usage"]] for table in (done, inside))
    for name in ("prompt_tokens", "completion_tokens", "n_audio"):
        assert [usage[name] for usage in here] == [usage[name] for usage in there]


def test_seven_clips_are_a_row_of_their_own_fault_at_the_server(address, clips):
    rows = batch([("Which?", ["a", "b"], clips[:1], 0), ("Which?", ["a", "b"], [*clips, clips[0]], 0)])
    api = OpenAIChat(
        endpoint=ChatEndpoint("tiny", base_url=address, key_variable=None), prompt=None, max_new_tokens=4
    )
    done = apply(api, api.build(), rows)
    (reason,) = failures(done)
    assert reason == done["response_error"][1] and reason.startswith("bad_request: HTTP 400")
