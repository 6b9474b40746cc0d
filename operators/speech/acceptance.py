"""The audio scorer: does a rendering show what it should (counterfactual audits, section 4.2, appendix B.2.3, Table 5)?

Per emotion a list of conditions on measures: acoustic primitives relative to a neutral rendering of the same words by
the same voice (`operators.speech.acoustics`), and probabilities of a speech-emotion model, added up where a condition
names several ("angry+disgusted"). All thresholds are configuration.

*Our reading* of the paper's fitness score, which is not public: each condition has a margin, how far the value lies on
the right side of the threshold in units of `SCALES`; the fitness is the least margin. A rendering is accepted when all
conditions hold, that is when its fitness is at least 0, so "accept" and "best" cannot disagree. A measure without a
value fails its condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass as plain_dataclass
from typing import Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.speech.acoustics import MEASURES, Acoustics, Primitives, relative

# What makes margins of different measures comparable: about the smallest difference that a listener notices; a
# probability of 0.1.
SCALES = {"pitch": 1.0, "end_slope": 2.0, "rate": 0.05, "pause": 0.5, "loudness": 1.0}
PROBABILITY_SCALE = 0.1

Probabilities = Callable[[Clip], Mapping[str, float]]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Condition:
    """`measure` is at least or at most some value (in its unit); from_words: only for texts with so many words.

    measure: one of pitch, end_slope, rate, pause, loudness, "|pitch|" and the like for the absolute value, or names
    of emotions of the model, joined by "+".
    """

    measure: str
    at_least: float | None = None
    at_most: float | None = None
    from_words: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _bounded(self) -> Condition:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a condition has at_least or at_most, one of the two")
        return self

    @property
    def is_acoustic(self) -> bool:
        """Whether the measure is an acoustic primitive, not a probability."""
        return self.measure.strip("|") in MEASURES

    def value(self, measures: Mapping[str, float | None]) -> float | None:
        """The measure's value; None where a part of it has none."""
        if self.is_acoustic:
            value = measures.get(self.measure.strip("|"))
            return abs(value) if value is not None and self.measure.startswith("|") else value
        parts = [measures.get(name) for name in self.measure.split("+")]
        return None if None in parts else math.fsum(parts)

    def margin(self, measures: Mapping[str, float | None]) -> float:
        """How far the value lies on the right side, in units of SCALES; -inf without a value."""
        value = self.value(measures)
        if value is None:
            return -math.inf
        scale = SCALES[self.measure.strip("|")] if self.is_acoustic else PROBABILITY_SCALE
        return (value - self.at_least if self.at_most is None else self.at_most - value) / scale

    def __str__(self) -> str:
        return f"{self.measure} {'>=' if self.at_most is None else '<='} {self.bound:g}"

    @property
    def bound(self) -> float:
        """The threshold."""
        return self.at_least if self.at_most is None else self.at_most


@plain_dataclass(frozen=True)
class Judgment:
    """Fitness (accepted where >= 0), the conditions that failed as texts, and all measures."""

    fitness: float
    failed: tuple[str, ...]
    measures: Mapping[str, float | None]

    @property
    def accepted(self) -> bool:
        """Whether every condition held."""
        return not self.failed


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AudioScorer:
    """rules: {emotion: its conditions}. emotion_model: what gives the probabilities (`operators.speech.emotion_models`).

    None: there is none, and rules that need one cannot be used (`unusable`). An emotion without a rule is not judged;
    with an empty list everything is accepted, with fitness 0.
    """

    rules: dict[str, tuple[Condition, ...]]
    acoustics: Acoustics = Acoustics()
    emotion_model: Any = None

    def unusable(self, emotions: set[str]) -> dict[str, str]:
        """{emotion: why it cannot be judged} for those of `emotions` that cannot be."""
        found = {name: "no rule: add one to scorer.rules" for name in emotions - set(self.rules)}
        for name in emotions & set(self.rules):
            needs = [str(condition) for condition in self.rules[name] if not condition.is_acoustic]
            if needs and self.emotion_model is None:
                found[name] = f"{needs[0]} needs a speech-emotion model, and scorer.emotion_model is not set"
        return found

    def load(self) -> Judge:
        """The function that judges, with the emotion model's weights."""
        return Judge(self, self.emotion_model.load() if self.emotion_model is not None else None)


@plain_dataclass(frozen=True)
class Judge:
    """A loaded AudioScorer."""

    scorer: AudioScorer
    probabilities: Probabilities | None

    def primitives(self, sound: Clip, text: str) -> Primitives:
        """The absolute primitives, for `neutral` below."""
        return self.scorer.acoustics.measure(sound, text)

    def __call__(self, sound: Clip, text: str, emotion: str, neutral: Primitives) -> Judgment:
        """Judge `sound`, in which `text` is said and `emotion` is to be shown."""
        found = self.primitives(sound, text)
        measures = relative(found, neutral)
        if self.probabilities is not None:
            measures |= dict(self.probabilities(sound))
        words = len(text.split())
        rule = [condition for condition in self.scorer.rules[emotion] if words >= condition.from_words]
        margins = [condition.margin(measures) for condition in rule]
        failed = tuple(
            _explained(condition, measures, {**neutral.reasons, **found.reasons})
            for condition, margin in zip(rule, margins, strict=True)
            if margin < 0
        )
        return Judgment(min(margins, default=0.0), failed, measures)


def _explained(condition: Condition, measures: Mapping[str, float | None], reasons: Mapping[str, str]) -> str:
    value = condition.value(measures)
    said = reasons.get(condition.measure.strip("|"), "no value") if value is None else f"{value:.3g}"
    return f"{condition} ({said})"
