"""Measured values outlive a build: a file per clip and property, so that another build measures what is new only.

The key covers the sound, the property, the estimators' settings, their code and their packages, and the transcript
where the property needs one: whatever changes a value changes the key. Deleting the folder costs time and nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from operators.construction import measurements
from operators.construction.measurements import NEEDED_PACKAGES, Measurements, measure
from operators.versions import installed


class Kept(NamedTuple):
    """Measurements of one build: `settings` of the estimators, and the `folder` where values are kept."""

    settings: Measurements
    folder: Path

    def measure(
        self, uri: str, hash_: str, names: Iterable[str], transcript: str
    ) -> tuple[dict[str, float], dict[str, str]]:
        """As operators.construction.measurements.measure, decoding only where a value is missing. Raises AudioError."""
        files = {name: self.folder / f"{self._key(hash_, name, transcript)}.json" for name in names}
        found = {name: _read(file) for name, file in files.items()}
        missing = [name for name, entry in found.items() if entry is None]
        values = {name: entry["value"] for name, entry in found.items() if entry and "value" in entry}
        reasons = {name: entry["reason"] for name, entry in found.items() if entry and "reason" in entry}
        if missing:
            fresh, why = measure(uri, hash_, missing, transcript, self.settings)
            for name in missing:
                _write(files[name], {"value": fresh[name]} if name in fresh else {"reason": why[name]})
            values, reasons = values | fresh, reasons | why
        return values, reasons

    def _key(self, hash_: str, name: str, transcript: str) -> str:
        words = transcript if name == "speech_rate" else ""
        about = [hash_, name, words, dataclasses.asdict(self.settings), _code()]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


@cache
def _code() -> list:
    text = Path(measurements.__file__).read_bytes()
    return [hashlib.sha256(text).hexdigest(), installed((*NEEDED_PACKAGES, "numpy", "soxr"))]


def _read(file: Path) -> dict | None:
    """What is kept; None where there is nothing, or a file that was cut off."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write(file: Path, entry: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(entry), encoding="utf-8")
    unfinished.replace(file)
