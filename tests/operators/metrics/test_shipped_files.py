"""What the files that ship with the project say is identity: an edited file makes other scores, under another name."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from operators import prompts
from operators.backbones.causal_lm import CausalLM
from operators.backbones.entailment import MiniLMAdapter
from operators.backbones.tag_grounding import TagGrounding
from operators.backbones.word_vectors import GloVe
from operators.fingerprint import canonical, fingerprint
from operators.lalms.cascade import Cascade
from operators.metrics.acoustic_grounding import AcousticGrounding
from operators.metrics.audio_lexical_density import AudioLexicalDensity
from operators.metrics.chain_coverage import ChainCoverage
from operators.metrics.reasoning_progress import ReasoningProgress
from operators.weights import Weights

SOME = Weights("package:some-weights==1.0/model")
M1, M5 = AcousticGrounding(TagGrounding()), ReasoningProgress(MiniLMAdapter(SOME))
M6 = AudioLexicalDensity(GloVe(SOME), SOME)
FILES = {
    "prior": (M1, "backbone"),
    "other_names": (M1, "backbone"),
    "adapter": (M5, "backbone"),
    "extra_stop_words": (M6, None),
    "audio_words": (M6, None),
}


def with_file(spec, holder, field, path):
    if holder is None:
        return dataclasses.replace(spec, **{field: Weights(str(path))})
    inner = dataclasses.replace(getattr(spec, holder), **{field: Weights(str(path))})
    return dataclasses.replace(spec, **{holder: inner})


@pytest.mark.parametrize("field", FILES)
def test_a_changed_byte_of_a_shipped_file_changes_the_fingerprint(field, tmp_path):
    spec, holder = FILES[field]
    shipped = Path(getattr(getattr(spec, holder) if holder else spec, field).source)
    copied = tmp_path / shipped.name
    (shutil.copytree if shipped.is_dir() else shutil.copy)(shipped, copied)
    assert fingerprint(with_file(spec, holder, field, copied)) == fingerprint(spec), (
        "what counts is the content"
    )
    for file in [copied] if copied.is_file() else sorted(copied.glob("[!.]*.[!m]*")):
        before = file.read_bytes()
        file.write_bytes(bytes([before[0] ^ 1]) + before[1:] + b" ")
        assert fingerprint(with_file(spec, holder, field, copied)) != fingerprint(spec), file.name
        file.write_bytes(before)
    assert "sha256" in json.dumps(canonical(spec))


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("rcc_scorer", ChainCoverage(CausalLM(SOME))),
        *((f"cascade_{part}", Cascade(CausalLM(SOME))) for part in ("evidence", "chain", "answer")),
    ],
)
def test_a_changed_prompt_changes_the_fingerprint(name, spec, tmp_path, monkeypatch):
    before = fingerprint(spec)
    folder = shutil.copytree(prompts.PROMPTS, tmp_path / "prompts")
    monkeypatch.setattr(prompts, "PROMPTS", folder)
    assert fingerprint(spec) == before
    with (folder / f"{name}.txt").open("a", encoding="utf-8") as file:
        file.write("!")
    assert fingerprint(spec) != before
