"""Rendering every utterance of a script: attempts, acceptance, and the best of what was accepted.

Counterfactual audits, appendix B.2.3: attempts are made until three are accepted or ten were made; the accepted one
with the highest fitness is kept; an utterance without any accepted attempt is discarded, and its item with it. *Our
reading*: an utterance that several turns share (same words, emotion and voice) is rendered once, so that the branches
of a positional item differ in nothing but the turns whose emotion differs; the neutral rendering that primitives are
compared with is the voice's first neutral attempt at the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from operators.audio import Clip, resample
from operators.benchmarks.emotions import USER
from operators.construction.audits.scripts import Said, Script
from operators.speech.acceptance import Judge, Judgment
from operators.speech.acoustics import Primitives
from operators.speech.rendering import Line, Render, RenderingError

NEUTRAL = "neutral"


@dataclass(frozen=True)
class Take:
    """What became of one line: the kept sound and its judgment, or None, and why each failed attempt failed."""

    line: Line
    sound: Clip | None
    judgment: Judgment | None
    attempts: int
    accepted: int
    failures: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why there is no sound: the commonest failure of the attempts, "reason: detail"."""
        commonest = max(self.failures, key=self.failures.count, default="no attempt")
        what = f"{self.line.emotion} {self.line.text!r} ({self.line.voice})"
        return f"rendering_rejected: {what}: none of {self.attempts} attempts was accepted; {commonest}"


@dataclass
class Studio:
    """Renders lines, each once. attempts, enough: at most so many tries, and so many accepted ones end it."""

    render: Render
    judge: Judge
    attempts: int = 10
    enough: int = 3
    sample_rate: int | None = None
    takes: dict[Line, Take] = field(default_factory=dict)
    neutrals: dict[tuple[str, str], Primitives] = field(default_factory=dict)

    def take(self, line: Line) -> Take:
        """The take of `line`; from memory where it was asked before."""
        if line not in self.takes:
            self.takes[line] = self._record(line)
        return self.takes[line]

    def _record(self, line: Line) -> Take:
        best: tuple[Judgment, Clip] | None = None
        accepted, tried, failures = 0, 0, []
        while tried < self.attempts and accepted < self.enough:
            tried += 1
            try:
                sound = self._sound(line, tried - 1)
                judgment = self.judge(sound, line.text, line.emotion, self._neutral(line))
            except RenderingError as error:
                failures.append(str(error))
                continue
            if not judgment.accepted:
                failures += judgment.failed
                continue
            accepted += 1
            if best is None or judgment.fitness > best[0].fitness:
                best = judgment, sound
        judgment, sound = best or (None, None)
        return Take(line, sound, judgment, tried, accepted, tuple(failures))

    def _sound(self, line: Line, attempt: int) -> Clip:
        sound = self.render(line, attempt)
        return resample(sound, self.sample_rate) if self.sample_rate else sound

    def _neutral(self, line: Line) -> Primitives:
        key = line.text, line.voice
        if key not in self.neutrals:
            sound = self._sound(Line(line.text, NEUTRAL, line.voice), 0)
            self.neutrals[key] = self.judge.primitives(sound, line.text)
        return self.neutrals[key]


def cast(script: Script, voices: Sequence[str], seed: int) -> tuple[str, str]:
    """The voices of user and assistant: two different ones where there are two, drawn for each item."""
    user, assistant = Random(f"{seed}|{script.id}|voices").sample(
        [*voices, *voices[:1]][: max(2, len(voices))], 2
    )
    return user, assistant


def line_of(said: Said, voices: tuple[str, str]) -> Line:
    """`said` by the voice of its speaker; `voices` are (user, assistant)."""
    return Line(said.text, said.emotion, voices[0 if said.speaker == USER else 1])
