"""The `usage` of a response: JSON text that says what it took - tokens, seconds of sound, money."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

# What adds up over responses; other entries (flags, words) describe one response alone.
COUNTS = (
    *("prompt_tokens", "completion_tokens", "audio_tokens"),
    *("n_audio", "audio_seconds", "audio_seconds_used", "cost"),
)

LARGEST = 1e15  # no response takes as much of anything; a larger number, infinity or NaN is none


def read(text: str | None) -> dict:
    """The entries of one `usage`; none where there is no text, or it is no JSON object (files of others hold anything)."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number(text: str | None, name: str) -> float | None:
    """One entry as a finite number; None where it is missing or something else."""
    return _number(read(text).get(name))


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < LARGEST else None


def totals(texts: Iterable[str | None]) -> dict[str, float]:
    """The sums of COUNTS over many responses; what no response tells is left out."""
    sums: dict[str, float] = {}
    for text in texts:
        entries = read(text)
        for name in COUNTS:
            if (value := _number(entries.get(name))) is not None:
                sums[name] = sums.get(name, 0) + value
    return sums


def together(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Two totals as one."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def in_words(usage: Mapping[str, float]) -> str:
    """Totals as one line: "1,200 prompt tokens, 300 completion tokens, cost 0.0123"; nothing where nothing is known."""
    told = [
        f"{usage[name]:,.0f} {name.replace('_', ' ')}"
        for name in ("prompt_tokens", "completion_tokens")
        if name in usage
    ]
    return ", ".join([*told, *([f"cost {usage['cost']:.4f}"] if "cost" in usage else [])])
