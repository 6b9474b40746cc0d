"""Models that see as well as hear: tiny random checkpoints generate from one and from six clips."""

import json
import os
import subprocess
import sys

import pytest

from tests.operators.lalms.vision import HAS_VISION, with_vision
from tests.pipelines.cli import ROOT

pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(
        not HAS_VISION,
        reason="torchvision, timm and peft are not beside this environment: make test puts them there",
    ),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeing")
    command = [sys.executable, "-m", "tests.operators.lalms.seeing", str(folder)]
    environment = with_vision({**os.environ, "HF_HUB_OFFLINE": "1"})
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["gemma3n", "phi4_multimodal"])
def test_every_clip_becomes_one_span(told, name):
    # A row whose spans are not as many as its clips has the reason audio_spans and no tokens.
    assert all(error is None or error.startswith("empty_answer") for error in told[name]["error"])
    assert [usage["n_audio"] for usage in told[name]["usage"]] == [1, 6, 0]
    assert told[name]["response"] == told[name]["alone"], "batch-mates change nothing"
    one, six, none = (usage["prompt_tokens"] for usage in told[name]["usage"])
    # Gemma: 188 tokens a clip, whatever its length. Phi-4: a token for every 8 frames of 10 ms; 1 s has 98 frames and
    # 13 tokens, six clips of 1 to 2.25 s have 123 or so.
    least, most = {"gemma3n": (5 * 188, 5 * 188 + 150), "phi4_multimodal": (100, 300)}[name]
    assert least < six - one < most and none < one


def test_phi_4_hears_through_its_adapter(told):
    assert told["phi4_multimodal"]["response"] != told["unadapted"]["response"]
    assert "vision-lora is no adapter that this model can load" in told["no adapter"]
