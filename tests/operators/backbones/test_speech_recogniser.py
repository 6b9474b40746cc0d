"""Whisper: what is trusted, and that it hears speech and stays silent on noise."""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from operators.audio import Clip, decode
from operators.backbones.speech_recogniser import SpeechRecogniser, trusted
from operators.fingerprint import canonical
from operators.weights import Weights, WeightsError
from tests.shared_data import shared


@dataclass(frozen=True)
class Segment:
    """What faster-whisper reports of a stretch of sound."""

    text: str
    avg_logprob: float = -0.3
    compression_ratio: float = 1.0


def test_only_likely_and_varied_segments_with_words_are_trusted() -> None:
    segments = [
        Segment(" Hello there."),
        Segment(" you", avg_logprob=-1.2),
        Segment(" oh, oh, oh, oh,", compression_ratio=9.0),
        Segment(" ."),
        Segment(" Good bye. "),
    ]
    assert trusted(segments, -1.0, 2.4) == "Hello there. Good bye."


def test_a_limit_itself_is_still_trusted() -> None:
    assert trusted([Segment("edge", -1.0, 2.4)], -1.0, 2.4) == "edge"


def test_a_text_three_times_in_a_row_is_a_loop_but_twice_is_speech() -> None:
    assert trusted([Segment("Oof!")] * 3 + [Segment("Stop.")], -1.0, 2.4) == "Stop."
    assert trusted([Segment("No.")] * 2, -1.0, 2.4) == "No. No."


def test_threads_and_device_are_not_identity_but_limits_are() -> None:
    base = SpeechRecogniser()
    assert canonical(base) == canonical(replace(base, cpu_threads=7, device="cpu"))
    assert canonical(base) != canonical(replace(base, min_log_probability=-0.5))


@pytest.mark.parametrize("files", [(), ("model.bin",)])
def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path, files: tuple[str, ...]) -> None:
    pytest.importorskip("faster_whisper")
    for name in files:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(WeightsError, match=r"tokenizer\.json" if files else r"model\.bin"):
        SpeechRecogniser(Weights(str(tmp_path))).load()


def test_a_broken_model_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    (tmp_path / "model.bin").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(WeightsError, match=re.escape(str(tmp_path))):
        SpeechRecogniser(Weights(str(tmp_path)), device="cpu").load()


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.casefold())


@pytest.mark.weights
def test_it_hears_what_is_said() -> None:
    folder = shared("crema_d")
    with (folder / "labels.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))[::25]
    texts = SpeechRecogniser().load().transcribe([decode(str(folder / row["file"])) for row in rows])
    hits = sum(len({*words(text)} & {*words(row["sentence"])}) for text, row in zip(texts, rows, strict=True))
    assert hits >= 0.7 * sum(len({*words(row["sentence"])}) for row in rows)


@pytest.mark.weights
def test_a_minute_is_heard_to_its_end_and_clips_do_not_see_each_other() -> None:
    folder = shared("crema_d")
    clip = decode(str(folder / "1001_ITH_SAD_XX.wav"))  # "I think I have a doctor's appointment."
    silence = np.zeros(57 * clip.sample_rate, np.float32)
    long = Clip(np.concatenate([silence, clip.samples]), clip.sample_rate)
    recogniser = SpeechRecogniser().load()
    together = recogniser.transcribe([long, clip])
    assert "appointment" in together[0]
    assert together[1] == recogniser.transcribe([clip])[0]


@pytest.mark.weights
@pytest.mark.parametrize("seconds", [0.0, 0.025, 5.0])
def test_silence_says_nothing(seconds: float) -> None:
    clip = Clip(np.zeros(int(seconds * 16_000), np.float32), 16_000)
    assert SpeechRecogniser().load().transcribe([clip]) == [""]
