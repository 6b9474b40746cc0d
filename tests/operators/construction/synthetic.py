"""Clips whose pitch, length, loudness, tempo and pauses are known because they are made that way."""

import csv
from pathlib import Path

import numpy as np
import soundfile

from operators.audio import Clip as Sound
from operators.construction.clips import Clip

RATE = 16_000


def voice(pitch: float, seconds: float = 1.0, level: float = 0.3) -> np.ndarray:
    """A steady buzz: eight harmonics of `pitch` Hz, each half as strong as the one before, peak `level`."""
    time = np.arange(round(seconds * RATE)) / RATE
    buzz = sum(0.5**k * np.sin(2 * np.pi * pitch * (k + 1) * time) for k in range(8))
    return (level * buzz / np.abs(buzz).max()).astype(np.float32)


def bursts(gaps: list[float], burst: float = 0.4, pitch: float = 150.0) -> np.ndarray:
    """Stretches of voice with silent gaps of the given seconds between them."""
    pieces = [voice(pitch, burst)]
    for gap in gaps:
        pieces += [np.zeros(round(gap * RATE), np.float32), voice(pitch, burst)]
    return np.concatenate(pieces)


def clicks(bpm: float, seconds: float = 10.0) -> np.ndarray:
    """A click on every beat: 20 ms of decaying 1 kHz."""
    track = np.zeros(round(seconds * RATE), np.float32)
    time = np.arange(round(0.02 * RATE)) / RATE
    click = (0.8 * np.sin(2 * np.pi * 1000 * time) * np.exp(-200 * time)).astype(np.float32)
    for beat in np.arange(0, seconds - 0.1, 60 / bpm):
        start = round(beat * RATE)
        track[start : start + len(click)] += click
    return track


def sound(samples: np.ndarray) -> Sound:
    return Sound(samples, RATE)


def corpus(folder: Path, clips: dict[str, np.ndarray], labels: dict[str, dict[str, str]]) -> Path:
    """WAV files and labels.csv under `folder`; the columns are those of the first row of `labels`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, samples in clips.items():
        soundfile.write(folder / f"{name}.wav", samples, RATE, subtype="PCM_16")
    columns = ["file", *next(iter(labels.values()))]
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([f"{name}.wav", *row.values()] for name, row in labels.items())
    return folder / "labels.csv"


def clip(name: str, corpus_name: str = "c", measured: dict[str, float] | None = None, **labels: str) -> Clip:
    """A Clip without a file; its hash is its name. "a|b" is two values."""
    values = {label: frozenset(value.split("|")) for label, value in labels.items()}
    return Clip(
        corpus_name, f"/{name}.wav", name, "line 1", "CC0-1.0", "toy", values, name, 1.0, measured or {}
    )
