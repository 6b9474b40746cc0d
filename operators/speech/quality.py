"""DNSMOS, a model's guess at how listeners rate the quality of speech (Reddy et al., 2021), through `speechmos`."""

from __future__ import annotations

import importlib.util

import numpy as np

from operators.audio import Clip, resample
from operators.speech.rendering import SpeechError

RATE = 16_000
DNSMOS = {
    "dnsmos_overall": "ovrl_mos",
    "dnsmos_signal": "sig_mos",
    "dnsmos_background": "bak_mos",
    "dnsmos_p808": "p808_mos",
}


def require_dnsmos() -> None:
    """Raise SpeechError where the package is missing."""
    if importlib.util.find_spec("speechmos") is None:
        raise SpeechError("DNSMOS needs the package speechmos: pip install 'audio-reasoning-eval[audit]'")


def dnsmos(sound: Clip) -> dict[str, float]:
    """{name of DNSMOS: mean opinion score, about 1 to 5}. Its ONNX files come with the package; short clips are repeated
    to 9 s, as by its authors. Raises ValueError for a silent clip."""
    from speechmos import dnsmos as model

    samples = np.clip(resample(sound, RATE).samples, -1.0, 1.0)
    if not samples.any():
        raise ValueError("silent: every sample is zero")
    found = model.run(samples, RATE)
    return {name: float(found[key]) for name, key in DNSMOS.items()}
