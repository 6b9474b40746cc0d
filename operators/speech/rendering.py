"""What every rendering back-end takes and gives (counterfactual audits, section 4.2 and appendix B.2.3).

A back-end is a frozen configuration with `voices` (names of its own), `emotions` (what it has a manner for), a
`generator` (what an item's record says rendered it) and `load()`, which returns a function from a Line and the number
of the attempt, from 0, to a Clip. Attempts of one line may differ: the audio scorer picks among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from operators.audio import Clip


class SpeechError(RuntimeError):
    """The back-end cannot be used at all: a package, a key, a voice or a server is missing. Says what to do."""


class RenderingError(ValueError):
    """One attempt gave no usable sound; the text is "reason: detail"."""


@dataclass(frozen=True)
class Line:
    """What is said, in which manner (`emotion`) and by which voice."""

    text: str
    emotion: str
    voice: str


Render = Callable[[Line, int], Clip]
