"""Small real sound files, with what identifies them."""

import numpy as np
import soundfile

from operators.audio import decode, pcm_hash


def tone(folder, name, seconds, rate=16_000, pitch=440.0):
    """A WAV file of so many seconds; returns (path, hash)."""
    path = folder / f"{name}.wav"
    moments = np.arange(int(seconds * rate)) / rate
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * pitch * moments), rate, subtype="PCM_16")
    return str(path), pcm_hash(decode(str(path)))


def batch(rows):
    """A batch of rows given as (question, choices, [(uri, hash), ...], trial)."""
    columns = {
        name: np.empty(len(rows), dtype=object)
        for name in ("question", "choices", "audio_uris", "audio_hashes", "trial")
    }
    for place, (question, choices, clips, trial) in enumerate(rows):
        columns["question"][place], columns["choices"][place], columns["trial"][place] = (
            question,
            choices,
            trial,
        )
        columns["audio_uris"][place] = [uri for uri, _ in clips]
        columns["audio_hashes"][place] = [name for _, name in clips]
    return columns
