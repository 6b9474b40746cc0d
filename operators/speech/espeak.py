"""Prosody presets of eSpeak NG: rate, pitch, range, volume, a pause and a rising end. They are not emotions.

A preset moves the same acoustic primitives that the audio scorer looks at (counterfactual audits, Table 5), so that an
audit can be built and run without a network. Whether a listener hears anger in `angry` is not claimed. eSpeak NG is
GPL-3.0-or-later: the optional extra `speech` installs it, and only `operators.speech.espeak_process` loads it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.fingerprint import execution_field
from operators.speech.rendering import Line, Render, RenderingError, SpeechError
from operators.versions import installed

_PROCESS = Path(__file__).with_name("espeak_process.py")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Prosody:
    """Parameters of eSpeak NG.

    rate: words per minute. pitch, range: 0 to 99, 50 is the voice's own. volume: 0 to 200, 100 is the voice's own.
    pause: s of silence in the middle of the words. rising: spoken as a question, whatever the text ends with.
    """

    rate: float = Field(165.0, ge=80, le=450)
    pitch: float = Field(50.0, ge=0, le=99)
    range: float = Field(50.0, ge=0, le=99)
    volume: float = Field(100.0, ge=0, le=200)
    pause: float = Field(0.0, ge=0, le=5)
    rising: bool = False


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class EspeakPresets:
    """Attempt 0 is the preset itself; later ones vary its rate, pitch and range by up to `variation`, by `seed`."""

    voices: tuple[str, ...]
    presets: dict[str, Prosody]
    variation: float = Field(0.15, ge=0, lt=1)
    seed: int = 0
    timeout_seconds: float = execution_field(60.0, gt=0)

    @property
    def emotions(self) -> frozenset[str]:
        """The presets' names."""
        return frozenset(self.presets)

    @property
    def generator(self) -> str:
        """What the items say."""
        version = installed(("espeakng-loader",)).get("espeakng-loader", "not installed")
        return f"eSpeak NG prosody presets (espeakng-loader {version})"

    def load(self) -> Render:
        """Raises SpeechError where the package or a voice is missing."""
        if importlib.util.find_spec("espeakng_loader") is None:
            raise SpeechError(
                "eSpeak NG is not installed: pip install 'audio-reasoning-eval[speech]' (it is GPL-3.0-or-later)"
            )
        for voice in self.voices:
            try:
                self._render(Line("yes", next(iter(self.presets)), voice), 0)
            except RenderingError as error:
                raise SpeechError(f"voices: {voice}: {error}") from None
        return self._render

    def _render(self, line: Line, attempt: int) -> Clip:
        manner = self._varied(line, attempt)
        parameters = {name: round(getattr(manner, name)) for name in ("rate", "pitch", "range", "volume")}
        request = {"voice": line.voice, "text": ssml(line.text, manner), "ssml": True, **parameters}
        command = [sys.executable, "-P", str(_PROCESS)]
        try:
            done = subprocess.run(  # noqa: S603 (our own module, the text goes to its standard input)
                command, input=json.dumps(request).encode(), capture_output=True, timeout=self.timeout_seconds
            )
        except subprocess.TimeoutExpired:
            raise RenderingError(f"rendering_timeout: no sound after {self.timeout_seconds:g} s") from None
        report = done.stderr.decode(errors="replace").strip()
        if done.returncode:
            detail = report.splitlines()[-1] if report else f"it ended with status {done.returncode}"
            raise RenderingError(f"renderer_failed: {detail}")
        samples = np.frombuffer(done.stdout, dtype="<i2").astype(np.float32) / np.float32(32768)
        if not samples.any():
            raise RenderingError("no_sound: eSpeak NG says nothing for this text")
        return Clip(samples, int(report.split()[0]))

    def _varied(self, line: Line, attempt: int) -> Prosody:
        preset = self.presets.get(line.emotion)
        if preset is None:
            raise SpeechError(
                f"no prosody preset {line.emotion!r}; there are {', '.join(sorted(self.presets))}"
            )
        if attempt == 0:
            return preset
        rng = Random(f"{self.seed}|{line}|{attempt}")
        factors = [1 + self.variation * rng.uniform(-1, 1) for _ in range(3)]
        rate, pitch, spread = (
            value * factor
            for value, factor in zip((preset.rate, preset.pitch, preset.range), factors, strict=True)
        )
        return Prosody(
            rate=min(max(rate, 80.0), 450.0),
            pitch=min(pitch, 99.0),
            range=min(spread, 99.0),
            volume=preset.volume,
            pause=preset.pause,
            rising=preset.rising,
        )


def ssml(text: str, manner: Prosody) -> str:
    """`text` as SSML: a break in the middle where there is a pause, a question mark where the end rises."""
    words = text.split()
    if manner.rising and words:
        words[-1] = words[-1].rstrip(".!?;:,") + "?"
    middle = len(words) // 2
    said = escape(" ".join(words[:middle])), escape(" ".join(words[middle:]))
    pause = f' <break time="{round(1000 * manner.pause)}ms"/> ' if manner.pause and middle else " "
    return f"<speak>{pause.join(said)}</speak>"
