import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from operators.audio import ProbeAudio
from operators.backbones.causal_lm import CausalLM
from operators.backbones.clap import Clap
from operators.backbones.entailment import SequenceClassifier
from operators.backbones.sentence_encoder import SentenceEncoder
from operators.backbones.speech_recogniser import SpeechRecogniser
from operators.backbones.yamnet import Yamnet
from operators.fingerprint import canonical, execution_field, fingerprint, key_columns, row_keys
from operators.lalms.openai_chat import OpenAIChat
from operators.lalms.transformers_chat import TransformersChat
from operators.weights import Weights

STRICT = ConfigDict(extra="forbid")


# How something is computed bears on no fingerprint, but on whether it can be computed.
@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        (TransformersChat, "rows_at_once", 0),
        (TransformersChat, "rows_at_once", -1),
        (TransformersChat, "voting_temperature", -0.2),
        (OpenAIChat, "max_request_mb", 0),
        (ProbeAudio, "deadline_seconds", 0),
        (CausalLM, "tokens_per_batch", 0),
        (SentenceEncoder, "tokens_per_batch", 0),
        (SequenceClassifier, "tokens_per_batch", 0),
        (Clap, "windows_per_batch", 0),
        (Yamnet, "threads", 0),
        (SpeechRecogniser, "cpu_threads", -1),
    ],
)
def test_a_number_with_which_nothing_can_be_computed_is_refused_when_it_is_given(spec, field, value):
    with pytest.raises(ValidationError, match=f"{field}\n.*greater than"):
        spec(**{field: value})


@dataclass(frozen=True, config=STRICT)
class Scorer:
    reads: ClassVar[tuple[str, ...]] = ("text", "audio_uris", "audio_hashes")
    writes: ClassVar[tuple[str, ...]] = ("score",)
    version: ClassVar[int] = 1
    weights: Weights
    limit: int = 3
    tokens_per_batch: int = execution_field(8)

    def build(self):
        raise AssertionError("a fingerprint must not load anything")


@dataclass(frozen=True, config=STRICT)
class Newer(Scorer):
    version: ClassVar[int] = 2


PINNED = Weights("org/model", "0" * 40)


def test_what_bears_on_the_result_changes_the_fingerprint():
    base = fingerprint(Scorer(PINNED))
    assert base == fingerprint(Scorer(PINNED))
    assert fingerprint(Scorer(PINNED, limit=4)) != base
    assert fingerprint(Scorer(Weights("org/model", "1" * 40))) != base
    assert fingerprint(Newer(PINNED)) != base


def test_how_it_is_computed_does_not():
    assert fingerprint(Scorer(PINNED, tokens_per_batch=4096)) == fingerprint(Scorer(PINNED))


def test_fingerprints_are_the_same_in_another_process():
    code = (
        "from operators.fingerprint import canonical, fingerprint;"
        "from operators.weights import Weights; print(canonical(Weights('org/model', '0'*40)))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert other == str(canonical(PINNED))


@pytest.mark.parametrize("value", [lambda: 0, object(), b"bytes", float("nan"), float("inf")])
def test_what_cannot_be_written_down_exactly_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        canonical({"field": value})


def test_a_locator_is_not_part_of_a_key_but_the_sound_is():
    def keys(uri, sound, text="t"):
        cells = {"text": [text], "audio_uris": [[uri]], "audio_hashes": [[sound]]}
        return row_keys(Scorer(PINNED), {name: _column(cell) for name, cell in cells.items()})

    assert key_columns(Scorer(PINNED)) == ("text", "audio_hashes")
    assert keys("a.wav", "h1") == keys("b.wav", "h1")
    assert keys("a.wav", "h1") != keys("a.wav", "h2")
    assert keys("a.wav", "h1") != keys("a.wav", "h1", text="u")


def test_keys_tell_apart_what_joins_alike():
    def key(hashes):
        cells = {"text": ["x"], "audio_uris": [[]], "audio_hashes": [hashes]}
        return row_keys(Scorer(PINNED), {name: _column(cell) for name, cell in cells.items()})[0]

    assert len({key(["ab"]), key(["a", "b"]), key([]), key([""]), key(None)}) == 5


def test_keys_take_any_text():
    column = _column(["\ud800 lone surrogate", "\0", "🔊", "שלום"])
    rows = {"text": column, "audio_uris": column, "audio_hashes": column}
    assert len(set(row_keys(Scorer(PINNED), rows))) == 4


def _column(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = [cell for cell in cells] if not isinstance(cells[0], list) else None
    for row, cell in enumerate(cells):
        column[row] = cell
    return column
