"""A toy listener for questions "which clip is the loudest": it really decodes, and its habits are known by heart."""

import json
from typing import ClassVar

import numpy as np
import soundfile
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.batching import Memo
from operators.chat_api import Reply

SAYINGS = (
    "Audio {n}",
    "The answer is {n}.",
    "[ANSWER] clip #{n}",
    "It is not the reference; my choice is option {letter}.",
)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Loudest:
    """Finds the loudest candidate where it stands among the first `reach` positions; elsewhere it names the first.

    `mute`: it never names an option. `words`: so many words before it does. It writes the number of clips it was given, and
    loads each clip once.
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "choices", "audio_uris", "audio_hashes", "trial")
    writes: ClassVar[tuple[str, ...]] = ("response", "finish_reason", "usage", "response_error")
    version: ClassVar[int] = 1

    reach: int = 99
    mute: bool = False
    max_clips: int | None = None
    temperature: float = 1.0
    words: int = 0

    def build(self):
        memo = Memo("clips")

        def loudness(uris):
            return [float(np.abs(soundfile.read(uri)[0]).max()) for uri in uris]

        def answer(uris, choices, trial):
            heard = memo.get(list(uris), loudness)
            best = int(np.argmax(heard[len(uris) - len(choices) :]))
            place = best if best < self.reach else 0
            said = SAYINGS[trial % len(SAYINGS)].format(n=place + 1, letter="ABCDEFGH"[place])
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "clips": len(uris)}
            said = " ".join([*["sounding"] * self.words, said])
            return "I hear several clips." if self.mute else said, "stop", json.dumps(usage), None

        def op(batch):
            rows = [
                answer(u, c, t)
                for u, c, t in zip(batch["audio_uris"], batch["choices"], batch["trial"], strict=True)
            ]
            columns = [np.empty(len(rows), dtype=object) for _ in self.writes]
            for number, row in enumerate(rows):
                for column, cell in zip(columns, row, strict=True):
                    column[number] = cell
            return dict(zip(self.writes, columns, strict=True))

        return op


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Second:
    """A chat that judges every response to have chosen the second option."""

    def connect(self):
        return self

    def ask(self, bodies):
        return [Reply("Decision: 2") for _ in bodies]


def tones(folder, loudness, name):
    """One short clip per loudness; paths relative to `folder`."""
    paths = []
    for number, level in enumerate(loudness):
        wave = level * np.sin(np.arange(1600) * (0.05 + 0.01 * number))
        paths.append(f"{name}-{number}.wav")
        soundfile.write(folder / paths[-1], wave, 16000)
    return paths
