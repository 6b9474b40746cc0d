"""From a locator to mono samples: decoding with a named reason for every failure, resampling, windows,
hashes.

Nothing of a clip but its hash and its length travels between stages. Whoever needs samples decodes them
anew and checks the hash, so that a score always belongs to the sound that its key names.

*Our reading* of "the audio": all channels averaged to one; a clip shorter than one 25 ms analysis frame is
no sound that any metric could hear (`too_short`); a file that ends before its header says is refused rather
than scored on what is left of it (`truncated_audio`).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pydantic
from pydantic import ConfigDict

from operators.base import Batch
from operators.batching import Memo
from operators.fetching import AudioError, fetch
from operators.fingerprint import execution_field
from operators.locators import shown
from operators.ogg import check_ogg

FRAME_SECONDS = 0.025
MAX_SECONDS = 1800.0
SAMPLE_RATES = range(1000, 768_001)
# Headers written before their length is known carry a size in this range; they promise nothing.
UNKNOWN_SIZE = 0x7FFFF000
NO_AUDIO = "no_audio: the row names no clip"
_BLOCK_VALUES = 1 << 20
_SHORTFALL = re.compile(
    r"^\s*(?:data|SSND|Data Size|riff|Riff size)\s*:\s*(\d+) \(should be (\d+)\)", re.MULTILINE
)


@dataclass(frozen=True)
class Clip:
    """Mono sound: `samples` float32 [N], nominally in [-1, 1], at `sample_rate` Hz."""

    samples: np.ndarray
    sample_rate: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.sample_rate


def resample(clip: Clip, rate: int) -> Clip:
    """`clip` at `rate` Hz (soxr, high quality); the clip itself where the rate is right already."""
    if clip.sample_rate == rate:
        return clip
    import soxr

    return Clip(soxr.resample(clip.samples, clip.sample_rate, rate).astype(np.float32, copy=False), rate)


def windows(samples: np.ndarray, rate: int, seconds: float = 10.0) -> list[np.ndarray]:
    """Consecutive windows of `seconds`, without overlap, that cover all of `samples` [N]; the last may be
    shorter.

    Whoever averages over windows weights each by its length, so that a short rest does not count as a full
    window.
    """
    size = max(1, round(seconds * rate))
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def pcm_hash(clip: Clip) -> str:
    """SHA-256 of the decoded sound: "<rate> Hz mono float32" and the samples as little-endian float32.

    Integer PCM decodes to exact fractions, so the same 16-bit sound has one hash in WAV, AIFF and FLAC.
    Another rate is another sound. Lossy formats hash what the installed decoder makes of them.
    """
    total = hashlib.sha256(f"{clip.sample_rate} Hz mono float32\n".encode())
    total.update((clip.samples + np.float32(0.0)).astype("<f4").tobytes())  # adding 0 turns -0.0 into 0.0
    return total.hexdigest()


def decode(uri: str, max_seconds: float = MAX_SECONDS) -> Clip:
    """The clip at a local path or an fsspec URI (`s3://`, `file://`, `memory://` ...), mixed down to mono.

    Raises AudioError: missing_file, is_a_directory, permission, not_a_file, unreadable, file_too_large,
    empty_file, not_audio, chained_stream, damaged_audio, unknown_length, unsupported_rate, audio_too_long,
    truncated_audio, no_samples, non_finite_samples, too_short.
    """
    return decode_bytes(fetch(uri), shown(uri), max_seconds)


def sampling_rate(uri: str) -> int | None:
    """The rate in Hz that the header of a clip gives; None where it cannot be read."""
    import soundfile

    try:
        with soundfile.SoundFile(io.BytesIO(fetch(uri))) as file:
            return file.samplerate
    except (AudioError, soundfile.LibsndfileError):
        return None


def decode_bytes(data: bytes, name: str, max_seconds: float = MAX_SECONDS) -> Clip:
    """Decode a whole file held in memory; `name` is for the error texts. Raises AudioError as `decode`
    does."""
    import soundfile

    if not data:
        raise AudioError("empty_file", f"{name} has no bytes")
    check_ogg(data, name)
    try:
        file = soundfile.SoundFile(io.BytesIO(data))
    except soundfile.LibsndfileError as error:
        detail = f"{name} ({len(data)} bytes) is not a sound file that can be decoded: {error.error_string}"
        raise AudioError("not_audio", detail) from error
    with file:
        _check_header(file, name, max_seconds)
        samples = _read_mono(file, name)
        return _checked(Clip(samples, file.samplerate), name)


def _check_header(file, name: str, max_seconds: float) -> None:
    if file.frames == np.iinfo(np.int64).max:
        raise AudioError("unknown_length", f"the header of {name} gives no length: write the file anew")
    if file.samplerate not in SAMPLE_RATES:
        raise AudioError("unsupported_rate", f"{name} claims a sampling rate of {file.samplerate} Hz")
    if file.frames > max_seconds * file.samplerate:
        claimed = f"{file.frames / file.samplerate:.0f} s, more than the {max_seconds:.0f} s of `max_seconds`"
        raise AudioError("audio_too_long", f"{name} lasts {claimed}")
    for promised, found in _SHORTFALL.findall(file.extra_info):
        if int(found) < int(promised) < UNKNOWN_SIZE:
            raise AudioError("truncated_audio", f"{name} promises {promised} bytes of sound, it has {found}")


def _read_mono(file, name: str) -> np.ndarray:
    """All frames of `file`, averaged over channels block by block: a lying header costs no memory."""
    import soundfile

    blocks, done = [np.zeros(0, np.float32)], 0
    while done < file.frames:
        size = min(max(1, _BLOCK_VALUES // file.channels), file.frames - done)
        try:
            block = file.read(size, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            detail = f"{name} cannot be decoded beyond frame {done} of {file.frames}: {error.error_string}"
            raise AudioError("truncated_audio", detail) from error
        if not len(block):
            break
        blocks.append(block.mean(axis=1, dtype=np.float32))
        done += len(block)
    # MP3 headers count frames of 1152 samples, and encoders disagree on the padding at both ends.
    slack = 2 * 1152 if file.format == "MP3" else 0
    if done + slack < file.frames:
        raise AudioError("truncated_audio", f"{name} promises {file.frames} frames and holds {done}")
    return np.concatenate(blocks)


def _checked(clip: Clip, name: str) -> Clip:
    count = len(clip.samples)
    if not count:
        raise AudioError("no_samples", f"{name} is a sound file without samples")
    if not np.isfinite(clip.samples).all():
        raise AudioError("non_finite_samples", f"{name} holds NaN or infinite samples")
    if count < FRAME_SECONDS * clip.sample_rate:
        least = f"one frame of {FRAME_SECONDS * 1e3:g} ms"
        raise AudioError(
            "too_short", f"{name} has {count} samples at {clip.sample_rate} Hz, less than {least}"
        )
    return clip


@dataclass(frozen=True)
class Probe:
    """What decoding found out about one clip: its hash and length, or an error text."""

    hash: str | None
    seconds: float | None
    error: str | None


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ProbeAudio:
    """Decode every clip once, in a process of its own, and write what identifies it.

    `audio_hashes` and `audio_seconds` hold one entry per clip, None where the clip cannot be used;
    `audio_error` is None or the reasons of the clips that failed ("reason: detail naming the file", joined
    by "; "). A row without clips has the error `no_audio`. A decoder that crashes or passes
    `deadline_seconds` costs its clip (`decoder_crashed`, `decoder_timeout`) and nothing else.
    """

    reads: ClassVar[tuple[str, ...]] = ("audio_uris",)
    writes: ClassVar[tuple[str, ...]] = ("audio_hashes", "audio_seconds", "audio_error")
    version: ClassVar[int] = 1

    max_seconds: float = MAX_SECONDS
    deadline_seconds: float = execution_field(120.0, gt=0)

    def build(self) -> Callable[[Batch], Batch]:
        """Start no process yet: the first clip does."""
        from operators.decoder import DecoderProcess

        decoder, memo = DecoderProcess(self.max_seconds, self.deadline_seconds), Memo("clips")
        return lambda batch: probe_rows(batch["audio_uris"], memo, decoder.probe)


def probe_rows(rows: np.ndarray, memo: Memo, probe: Callable[[str], Probe]) -> Batch:
    """The columns that ProbeAudio writes for `rows`, lists of locators; each locator is probed once per `memo`."""
    lists = [[] if uris is None else [str(uri) for uri in uris] for uris in rows]
    flat = [uri for uris in lists for uri in uris]
    found = iter(memo.get(flat, lambda missing: [probe(uri) for uri in missing]))
    columns: Batch = {name: np.empty(len(rows), dtype=object) for name in ProbeAudio.writes}
    for row, uris in enumerate(lists):
        probes = [next(found) for _ in uris]
        columns["audio_hashes"][row] = [p.hash for p in probes]
        columns["audio_seconds"][row] = [p.seconds for p in probes]
        errors = list(dict.fromkeys(p.error for p in probes if p.error))
        columns["audio_error"][row] = "; ".join(errors) or (None if probes else NO_AUDIO)
    return columns
