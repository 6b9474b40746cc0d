"""Piper voices on this machine (optional: `piper-tts` is GPL-3.0-or-later and no dependency of this project).

Piper follows tempo and volume, and varies its melody with `noise`; it has no manner for an emotion. So most renderings
of an emotion fail the audio scorer, and say so. Its noise is drawn inside the model: attempts differ, and a build with
it does not repeat to the sample.
"""

from __future__ import annotations

import importlib.util

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.speech.rendering import Line, Render, RenderingError, SpeechError
from operators.versions import installed
from operators.weights import Weights


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PiperManner:
    """length: factor on durations, above 1 is slower. volume: factor. noise, noise_width: variation of sound and tempo."""

    length: float = Field(1.0, gt=0)
    volume: float = Field(1.0, gt=0)
    noise: float = Field(0.667, ge=0)
    noise_width: float = Field(0.8, ge=0)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PiperVoices:
    """models: {voice: its .onnx file}, with the .onnx.json beside it. manners: {emotion: how it is spoken}."""

    models: dict[str, Weights]
    manners: dict[str, PiperManner]

    @property
    def voices(self) -> tuple[str, ...]:
        """The voices' names."""
        return tuple(self.models)

    @property
    def emotions(self) -> frozenset[str]:
        """The manners' names."""
        return frozenset(self.manners)

    @property
    def generator(self) -> str:
        """What the items say."""
        return f"Piper {installed(('piper-tts',))['piper-tts']}: {', '.join(self.models)}"

    def load(self) -> Render:
        """Raises SpeechError without the package, WeightsError without a voice."""
        if importlib.util.find_spec("piper") is None:
            raise SpeechError("Piper is not installed: pip install piper-tts (it is GPL-3.0-or-later)")
        from piper import PiperVoice, SynthesisConfig

        voices = {name: PiperVoice.load(weights.folder()) for name, weights in self.models.items()}

        def render(line: Line, attempt: int) -> Clip:
            manner = self.manners[line.emotion]
            settings = SynthesisConfig(
                length_scale=manner.length,
                volume=manner.volume,
                noise_scale=manner.noise,
                noise_w_scale=manner.noise_width,
            )
            chunks = list(voices[line.voice].synthesize(line.text, settings))
            if not chunks:
                raise RenderingError("no_sound: Piper says nothing for this text")
            samples = np.concatenate([chunk.audio_float_array for chunk in chunks])
            return Clip(samples.astype(np.float32), chunks[0].sample_rate)

        return render
