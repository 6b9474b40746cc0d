"""Two checkpoints under one option have two names."""

import pytest
from omegaconf import OmegaConf

from pipelines.naming import name_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("overrides", "model", "name"),
    [
        ([], {"weights": {"source": "org/model"}}, "qwen2_audio"),
        (["model.rows_at_once=2"], {"weights": {"source": "org/model"}}, "qwen2_audio"),
        (["model.weights.source=org/tuned"], {"weights": {"source": "org/tuned"}}, "qwen2_audio (org/tuned)"),
        (["model.weights.source=/a/run1/last"], {"weights": {"source": "/a/run1/last"}}, "qwen2_audio (run1/last)"),
        (["model.weights={source: org/a}"], {"weights": {"source": "org/a"}}, "qwen2_audio (org/a)"),
        (["+model.weights.revision=x"], {"weights": {"revision": COMMIT}}, "qwen2_audio (01234567)"),
        (["model.adapter=lora/mine"], {"adapter": "lora/mine"}, "qwen2_audio (lora/mine)"),
        (["model.endpoint.model=m"], {"endpoint": {"model": "m"}}, "qwen2_audio (m)"),
        (["model.lm.weights.source=org/lm"], {"lm": {"weights": {"source": "org/lm"}}}, "qwen2_audio (org/lm)"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_the_commands_own_is_part_of_the_name(overrides, model, name):
    assert name_of("qwen2_audio", OmegaConf.create(model), overrides) == name
