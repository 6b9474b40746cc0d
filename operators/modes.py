"""The three reasoning modes of ARIA-Rubrics: Reasoning, Scaffolding, Decoration.

Section 3.4 reads them off a model's profile: high accuracy with high ARIA is Reasoning, high accuracy with low ARIA is
Decoration, and Scaffolding shows in low M2, M4 and M5, which look at what the steps say, whatever the structure (M3).

*Our reading*: the paper gives no number for "high". Scores of different backbones lie on different scales, so a value
is high where it lies above the median of the models that are compared with the same scorers on the same items, else low. A
model of low accuracy whose M2, M4 and M5 are not low fits none of the three sentences: it has no mode, and is not
pressed into one. Fewer than three models are no field to compare in.

Fed the paper's own Table 1 (MMAR, or the means of both benchmarks), this gives what Table 4 says for six of its nine models:
GPT-4o-audio, Gemini 2.5 Flash, Qwen2.5-Omni, Audio-Reasoner, Phi-4 and AudSemThinker. The others cannot agree with the words of
section 3.4: Qwen2-Audio and R1-AQA are Decoration in Table 4 and lowest or nearly so in accuracy, where Decoration is high
accuracy (here: Scaffolding); Gemma-3n-E2B is Scaffolding there and third of nine in M2, M4 and M5 together, where Scaffolding
is low (here: none). Table 4's modes come from the chains of section 4 (`perturbation_effects.mode_of_behaviour`), which is why
both stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median
from typing import Literal, NamedTuple

Mode = Literal["Reasoning", "Scaffolding", "Decoration"]
MODES: tuple[Mode, ...] = ("Reasoning", "Scaffolding", "Decoration")
LEAST_MODELS = 3


class Profile(NamedTuple):
    """A model's means in [0, 1]."""

    accuracy: float
    aria: float
    m2: float
    m4: float
    m5: float

    @property
    def meaning(self) -> float:
        """The mean of M2, M4 and M5, by which Scaffolding is told."""
        return (self.m2 + self.m4 + self.m5) / 3


def mode_of_profile(profile: Profile, accuracy: float, aria: float, meaning: float) -> Mode | None:
    """The mode of one model (section 3.4), or None where no sentence of the paper fits.

    `accuracy`, `aria`, `meaning`: above what each counts as high.
    """
    if profile.accuracy > accuracy:
        return "Reasoning" if profile.aria > aria else "Decoration"
    return "Scaffolding" if profile.meaning <= meaning else None


def modes_of_profiles(profiles: Sequence[Profile]) -> list[Mode | None]:
    """The mode of each model beside the others, "high" being above the median; None for all of fewer than three, and for a
    model of which a value is no number, which is none of the others' either."""
    known = [one for one in profiles if all(map(isfinite, one))]
    if len(known) < LEAST_MODELS:
        return [None] * len(profiles)
    limits = [median(getattr(one, name) for one in known) for name in ("accuracy", "aria", "meaning")]
    return [mode_of_profile(one, *limits) if one in known else None for one in profiles]
