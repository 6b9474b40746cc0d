"""Toy Specs: real steps of the pipeline, small enough to know their results by heart. No weights."""

import errno
import json
import os
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.schema import METRICS

# Seconds per row, for tests that stop a run half way.
DELAY = float(os.environ.get("TOY_DELAY", "0"))
# A file that gets a line per row and metric computed, for tests that count what is done twice.
LOG = os.environ.get("TOY_LOG")
# A file that says after how many commits of scores a worker's next one goes wrong, and how: "15 full" or "15 kill".
BREAK = os.environ.get("TOY_BREAK")
STRICT = ConfigDict(extra="forbid")


def _writes(metric):
    return (metric, f"{metric}_reason", f"{metric}_details")


def _break_commits():
    """Let this process fail between the data of a part and its commit, as BREAK says while that file is there."""
    replace, commits = os.replace, [0]

    def failing(source, target):
        if "/store/scores/" in str(target) and Path(BREAK).exists():
            after, how = Path(BREAK).read_text().split()
            commits[0] += 1
            if commits[0] > int(after) and how == "kill":
                os._exit(1)
            if commits[0] > int(after):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    if replace.__name__ != "failing":
        os.replace = failing


def _results(metric, values, reasons):
    columns = [np.array(values, dtype=float), np.array(reasons, dtype=object)]
    details = np.array([json.dumps({"toy": True})] * len(values), dtype=object)
    return dict(zip(_writes(metric), (*columns, details), strict=True))


class Words:
    """Words of the reasoning slot / scale; a reasoning of "unscorable" gets a reason, one of "crash" raises."""

    reads: ClassVar[tuple[str, ...]] = ("reasoning",)
    version: ClassVar[int] = 1

    def build(self):
        metric, scale = self.writes[0], self.scale
        if BREAK:
            _break_commits()

        def op(batch):
            texts = batch["reasoning"]
            time.sleep(DELAY * len(texts))
            if LOG:
                with open(LOG, "a") as log:
                    log.write("".join(f"{metric} {text}\n" for text in texts))
            if "crash" in texts:
                raise ValueError("crash")
            bad = [text == "unscorable" for text in texts]
            values = [
                np.nan if b else min(1.0, len(t.split()) / scale) for t, b in zip(texts, bad, strict=True)
            ]
            return _results(metric, values, ["toy_reason" if b else None for b in bad])

        return op


@dataclass(frozen=True, config=STRICT)
class M1(Words):
    """Reads the clips too, so that a clip that cannot be heard blocks it."""

    reads: ClassVar[tuple[str, ...]] = ("reasoning", "audio_uris", "audio_hashes")
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[0])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class M2(Words):
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[1])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class Breakable(M2):
    """Raises on every row as long as the file `broken` is there: the same scorer, whose machine has a fault."""

    broken: str = ""

    def build(self):
        score = super().build()

        def op(batch):
            if Path(self.broken).exists():
                raise RuntimeError("no device")
            return score(batch)

        return op


@dataclass(frozen=True, config=STRICT)
class M3(Words):
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[2])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class M4(Words):
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[3])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class M5(Words):
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[4])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class M6(Words):
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[5])
    scale: float = 100.0


@dataclass(frozen=True, config=STRICT)
class Hearing:
    """Decodes the clips as M1 does: 1.0 where each is still the sound that was probed."""

    reads: ClassVar[tuple[str, ...]] = ("audio_uris", "audio_hashes")
    writes: ClassVar[tuple[str, ...]] = _writes(METRICS[0])
    version: ClassVar[int] = 1

    def build(self):
        from operators.metrics.acoustic_grounding import _find

        def op(batch):
            found = [
                _find(keys[0], list(uris)) for uris, keys in zip(*(batch[n] for n in self.reads), strict=True)
            ]
            errors = [text if isinstance(text, str) else None for text in found]
            return _results(METRICS[0], [np.nan if error else 1.0 for error in errors], errors)

        return op
