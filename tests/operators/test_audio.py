"""Decoding: what each kind of good and bad file comes to, and that a bad one harms nothing but itself."""

import io
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.audio import (
    AudioError,
    Clip,
    ProbeAudio,
    decode,
    decode_bytes,
    pcm_hash,
    probe_rows,
    resample,
    windows,
)
from operators.base import apply
from operators.batching import Memo
from operators.decoder import DecoderProcess
from operators.fetching import _read_at_most
from operators.fingerprint import fingerprint
from tests.shared_data import shared

RATE = 16_000


def tone(seconds: float = 1.0, rate: int = RATE, hertz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def encoded(samples: np.ndarray, rate: int = RATE, form: str = "WAV", subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def wav_header(channels: int, rate: int, data_size: int, data: bytes) -> bytes:
    width = 2 * channels
    fmt = struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * width & 0xFFFFFFFF, width, 16)
    riff = struct.pack("<I", 36 + data_size & 0xFFFFFFFF)
    return b"RIFF" + riff + b"WAVEfmt " + fmt + b"data" + struct.pack("<I", data_size) + data


def column(cells: list) -> np.ndarray:
    filled = np.empty(len(cells), dtype=object)
    filled[:] = cells
    return filled


SECOND = np.zeros(RATE, "<i2").tobytes()
WITH_NAN = np.r_[tone(), np.float32(np.nan)]
WITH_INF = np.r_[tone(), np.float32(np.inf)]

MALFORMED = {
    "empty.wav": (b"", "empty_file"),
    "empty.mp3": (b"", "empty_file"),
    "text.wav": (b"this is not sound\n" * 50, "not_audio"),
    "text.mp3": (b"this is not sound\n" * 50, "not_audio"),
    "unknown.xyz": (bytes(range(256)) * 20, "not_audio"),
    "raw.raw": (SECOND, "not_audio"),
    "four_bytes.wav": (b"RIFF", "not_audio"),
    "no_data_chunk.wav": (wav_header(1, RATE, 0, b"")[:36], "not_audio"),
    "no_channels.wav": (wav_header(0, RATE, len(SECOND), SECOND), "not_audio"),
    "no_rate.wav": (wav_header(1, 0, len(SECOND), SECOND), "not_audio"),
    "slow_rate.wav": (wav_header(1, 10, len(SECOND), SECOND), "unsupported_rate"),
    "ten_hours.wav": (wav_header(1, RATE, 10 * 3600 * RATE * 2, SECOND), "truncated_audio"),
    "no_samples.wav": (encoded(np.zeros(0, np.float32)), "no_samples"),
    "one_sample.wav": (encoded(tone()[:1]), "too_short"),
    "368_samples.wav": (encoded(tone()[:368]), "too_short"),
    "nan.wav": (encoded(WITH_NAN, subtype="FLOAT"), "non_finite_samples"),
    "inf.wav": (encoded(WITH_INF, subtype="FLOAT"), "non_finite_samples"),
}


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_malformed_files_have_a_named_reason_and_name_the_file(name: str, tmp_path: Path) -> None:
    data, reason = MALFORMED[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(AudioError) as caught:
        decode(str(path))
    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"{reason}: ")
    assert name in str(caught.value)


@pytest.mark.parametrize("part", [0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(
    ("form", "subtype"),
    [
        ("WAV", "PCM_16"),
        ("WAV", "FLOAT"),
        ("FLAC", "PCM_16"),
        ("OGG", "VORBIS"),
        ("OGG", "OPUS"),
        ("AIFF", "PCM_16"),
        ("W64", "PCM_16"),
        ("RF64", "PCM_16"),
        ("AU", "PCM_16"),
        ("MP3", "MPEG_LAYER_III"),
    ],
)
def test_a_file_that_ends_before_its_header_says_is_refused(form: str, subtype: str, part: float) -> None:
    noise = (0.1 * np.random.default_rng(0).normal(size=6 * RATE)).astype(np.float32)
    data = encoded(noise, form=form, subtype=subtype)
    assert decode_bytes(data, "whole").seconds == pytest.approx(6, abs=0.1)
    if form == "MP3" and part > 0.99:
        return  # less than a frame is missing, which an MP3 header does not count
    with pytest.raises(AudioError, match=r"^truncated_audio: cut "):
        decode_bytes(data[: int(part * len(data))], "cut")


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_streams_one_after_the_other_are_refused_not_halved(subtype: str) -> None:
    one = encoded(tone(1.0), form="OGG", subtype=subtype)
    assert decode_bytes(one, "one").seconds == pytest.approx(1.0, abs=0.01)
    # libsndfile decodes the first second of this 2 s file and reports no error.
    for chained in (one + one, one + one[: len(one) // 2]):
        with pytest.raises(AudioError, match=r"^chained_stream: two\.ogg holds several Ogg streams"):
            decode_bytes(chained, "two.ogg")


def test_a_damaged_middle_is_not_passed_over() -> None:
    data = bytearray(encoded(tone(3), form="FLAC"))
    data[len(data) // 2 : len(data) // 2 + 300] = b"\xaa" * 300
    with pytest.raises(AudioError, match=r"truncated_audio: .* cannot be decoded beyond frame"):
        decode_bytes(bytes(data), "damaged.flac")


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_streamed_header_promises_nothing(size: int) -> None:
    clip = decode_bytes(wav_header(1, RATE, size, SECOND), "streamed.wav")
    assert clip.seconds == 1.0


def test_too_long_is_refused_from_the_header_alone() -> None:
    data = bytearray(encoded(tone(2), form="FLAC"))
    data[8 + 14 : 8 + 18] = struct.pack(">I", 36_000 * RATE)  # STREAMINFO: ten hours
    with pytest.raises(AudioError, match=r"audio_too_long: long.flac lasts 36000 s"):
        decode_bytes(bytes(data), "long.flac")
    with pytest.raises(AudioError, match=r"audio_too_long: .* lasts 2 s, more than the 1 s"):
        decode_bytes(encoded(tone(2)), "x.wav", max_seconds=1)


def test_a_header_without_length_is_refused() -> None:
    data = bytearray(encoded(tone(2), form="FLAC"))
    data[8 + 13] &= 0xF0
    data[8 + 14 : 8 + 18] = bytes(4)  # STREAMINFO: total samples unknown
    with pytest.raises(AudioError, match=r"unknown_length: the header of piped.flac"):
        decode_bytes(bytes(data), "piped.flac")


def test_a_thousand_channels_are_mixed_down() -> None:
    data = np.full((RATE, 1000), 0.25, np.float32)
    clip = decode_bytes(encoded(data), "wide.wav")
    assert clip.samples.shape == (RATE,)
    assert clip.samples == pytest.approx(0.25)


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    for uri, reason in [
        (str(tmp_path / "nothing.wav"), "missing_file"),
        ("", "missing_file"),
        (str(tmp_path), "is_a_directory"),
        (str(tmp_path / "pipe.wav"), "not_a_file"),
        ("/dev/zero", "not_a_file"),
        ("x\0y.wav", "unreadable"),
        ("\ud800.wav", "unreadable"),
        ("~nobody/x.wav", "missing_file"),
        ("x" * 5000, "unreadable"),
        ("nosuchprotocol://a/b.wav", "unreadable"),
        (f"file://{tmp_path}/nothing.wav", "missing_file"),
        (f"file://{tmp_path}", "is_a_directory"),
    ]:
        with pytest.raises(AudioError) as caught:
            decode(uri)
        assert caught.value.reason == reason, uri
        assert str(caught.value).encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_forbidden_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.wav"
    path.write_bytes(encoded(tone()))
    path.chmod(stat.S_IWUSR)
    with pytest.raises(AudioError, match=r"permission: .*secret.wav"):
        decode(str(path))


def test_uris_are_read_through_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    data = encoded(tone())
    (tmp_path / "a b.wav").write_bytes(data)
    with fsspec.open("memory://clips/tone.wav", "wb") as file:
        file.write(data)
    hashes = {pcm_hash(decode(uri)) for uri in (f"file://{tmp_path}/a b.wav", "memory://clips/tone.wav")}
    assert hashes == {pcm_hash(decode(str(tmp_path / "a b.wav")))}


@pytest.mark.parametrize("told", [True, False])
def test_the_size_limit_holds_also_where_no_size_is_told(monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    data = encoded(tone())
    memory.pipe_file("/clips/one.wav", data)
    if not told:
        monkeypatch.setattr(type(memory), "size", lambda self, path: None)
    monkeypatch.setattr("operators.fetching._CHUNK_BYTES", 1000)
    monkeypatch.setattr("operators.fetching.MAX_BYTES", len(data))
    assert decode("memory://clips/one.wav").seconds == 1.0
    monkeypatch.setattr("operators.fetching.MAX_BYTES", len(data) - 1)
    with pytest.raises(AudioError, match=r"^file_too_large: memory://clips/one\.wav has "):
        decode("memory://clips/one.wav")


def test_reading_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return bytes(size)

    monkeypatch.setattr("operators.fetching._CHUNK_BYTES", 1000)
    monkeypatch.setattr("operators.fetching.MAX_BYTES", 5000)
    endless = Endless()
    with pytest.raises(AudioError, match=r"^file_too_large: x\.wav has more than 5000 bytes"):
        _read_at_most(endless, "x.wav")
    assert endless.given == 6000


def test_both_channels_of_a_file_become_one() -> None:
    left, right = tone(0.5, 48_000), tone(0.5, 48_000, 880.0)
    expected = (left + right) / 2
    pair = np.stack([left, right])
    for form in ("WAV", "FLAC"):
        clip = decode_bytes(encoded(pair.T, 48_000, form, "PCM_24"), "stereo")
        assert clip.seconds == 0.5
        assert clip.samples == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000])
def test_resampling_keeps_duration_and_pitch(rate: int) -> None:
    clip = resample(Clip(tone(2, rate, 500.0), rate), RATE)
    assert clip.sample_rate == RATE
    assert len(clip.samples) == 2 * RATE
    # 500 Hz in 2 s: bin 1000 of the spectrum of all samples.
    assert int(np.argmax(np.abs(np.fft.rfft(clip.samples)))) == 1000
    assert clip.samples.dtype == np.float32
    assert resample(clip, RATE) is clip


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 1000), st.integers(1, 40), st.sampled_from([0.5, 1.0, 10.0]))
def test_windows_cover_everything_once(count: int, rate: int, seconds: float) -> None:
    samples = np.arange(count, dtype=np.float32)
    cut = windows(samples, rate, seconds)
    np.testing.assert_array_equal(np.concatenate(cut), samples)
    size = max(1, round(seconds * rate))
    assert {len(piece) for piece in cut[:-1]} <= {size}
    assert 1 <= len(cut[-1]) <= size


def test_the_hash_is_that_of_the_sound() -> None:
    pcm = (tone() * 32767).astype(np.int16)
    same = [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("AIFF", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT")]
    samples = pcm.astype(np.float32) / 32768
    hashes = {pcm_hash(decode_bytes(encoded(samples, form=f, subtype=s), f)) for f, s in same}
    assert hashes == {pcm_hash(Clip(samples, RATE))}
    louder = pcm.copy()
    louder[100] += 1
    others = [
        Clip(samples, 2 * RATE),
        Clip(louder.astype(np.float32) / 32768, RATE),
        Clip(samples[:-1], RATE),
    ]
    assert len(hashes | {pcm_hash(other) for other in others}) == 4
    zero = np.zeros(800, np.float32)
    assert pcm_hash(Clip(zero, RATE)) == pcm_hash(Clip(-zero, RATE))


def test_probing_a_batch_marks_bad_clips_and_only_them(tmp_path: Path) -> None:
    good = tmp_path / "good.flac"
    good.write_bytes(encoded(tone(60, 44_100), 44_100, "FLAC"))
    short = tmp_path / "short.wav"
    short.write_bytes(encoded(tone(0.5)))
    bad = {name: tmp_path / name for name in MALFORMED}
    for name, path in bad.items():
        path.write_bytes(MALFORMED[name][0])
    lists = [
        [str(good)],
        [],
        *([str(path)] for path in bad.values()),
        [str(good), str(bad["nan.wav"]), str(short)],
    ]
    spec = ProbeAudio()
    found = apply(spec, spec.build(), {"audio_uris": column(lists)})
    whole = pcm_hash(decode(str(good)))
    assert found["audio_hashes"][0] == [whole]
    assert found["audio_seconds"][0] == [60.0]
    assert found["audio_error"][0] is None
    assert found["audio_error"][1] == "no_audio: the row names no clip"
    for row, name in enumerate(bad, start=2):
        assert found["audio_error"][row].startswith(MALFORMED[name][1] + ": ")
        assert str(bad[name]) in found["audio_error"][row]
        assert found["audio_hashes"][row] == [None]
    assert found["audio_hashes"][-1] == [whole, None, pcm_hash(decode(str(short)))]
    assert found["audio_seconds"][-1] == [60.0, None, 0.5]
    assert found["audio_error"][-1].startswith("non_finite_samples: ")


def test_probing_does_not_depend_on_batches_and_decodes_each_clip_once(tmp_path: Path) -> None:
    paths = []
    for index in range(5):
        paths.append(str(tmp_path / f"{index}.wav"))
        Path(paths[-1]).write_bytes(encoded(tone(0.1 * (index + 1))))
    rows = [[paths[i % 5], paths[(i + 1) % 5]] for i in range(10)]
    spec, asked = ProbeAudio(), []
    whole = apply(spec, spec.build(), {"audio_uris": column(rows)})
    op, decoder, memo = spec.build(), DecoderProcess(1800, 60), Memo()
    single = [apply(spec, op, {"audio_uris": column([row])}) for row in reversed(rows)][::-1]
    for name in spec.writes:
        assert whole[name].tolist() == [one[name][0] for one in single]
    for _ in range(2):
        probe_rows(column(rows), memo, lambda uri: asked.append(uri) or decoder.probe(uri))
    assert asked == paths
    decoder.close()


TOY_DECODER = """
import os, signal, sys, time
from operators import decoder
answer = decoder._answer
def toy(request, *rest):
    if request["uri"].endswith("/crash.wav"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if request["uri"].endswith("/hang.wav"):
        time.sleep(600)
    return answer(request, *rest)
decoder._answer = toy
decoder.serve(float(sys.argv[1]), float(sys.argv[2]))
"""


def test_a_decoder_that_crashes_or_hangs_costs_its_clip_only(tmp_path: Path) -> None:
    rows = []
    for name in ("a", "crash", "b", "hang", "c"):
        (tmp_path / f"{name}.wav").write_bytes(encoded(tone()))
        rows.append([str(tmp_path / f"{name}.wav")])
    decoder = DecoderProcess(1800, 1.5, command=[sys.executable, "-c", TOY_DECODER])
    found = probe_rows(column(rows), Memo(), decoder.probe)
    good = pcm_hash(decode(rows[0][0]))
    assert [hashes[0] for hashes in found["audio_hashes"]] == [good, None, good, None, good]
    assert found["audio_error"][1].startswith(f"decoder_crashed: decoding {rows[1][0]} ended the decoder")
    assert found["audio_error"][3] == f"decoder_timeout: {rows[3][0]} was not decoded within 1.5 s"
    decoder.close()
    assert decoder.pid is None


def test_a_decoder_killed_between_two_clips_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encoded(tone()))
    decoder = DecoderProcess(1800, 60)
    first = decoder.probe(str(tmp_path / "a.wav"))
    pid = decoder.pid
    os.kill(pid, signal.SIGKILL)
    assert decoder.probe(str(tmp_path / "a.wav")) == first
    assert first.error is None
    assert decoder.pid != pid
    decoder.close()


def test_remote_bytes_reach_the_decoder() -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://clips/remote.wav", "wb") as file:
        file.write(encoded(tone(2)))
    decoder = DecoderProcess(1800, 60)
    probe = decoder.probe("memory://clips/remote.wav")
    assert (probe.hash, probe.seconds) == (pcm_hash(decode("memory://clips/remote.wav")), 2.0)
    assert decoder.probe("memory://clips/none.wav").error.startswith("missing_file: memory://clips/none.wav")
    decoder.close()


PARENT = """
import os, sys
from operators.decoder import DecoderProcess
decoder = DecoderProcess(1800, 60)
assert decoder.probe(sys.argv[1]).error is None
print(decoder.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads process states from /proc")
def test_a_killed_parent_leaves_no_decoder_behind(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encoded(tone()))
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path / "a.wav")], capture_output=True, text=True, check=False
    )
    child = Path("/proc") / parent.stdout.strip() / "stat"

    def gone() -> bool:
        try:
            return child.read_text().rpartition(")")[2].split()[0] == "Z"  # ended, not yet collected by init
        except (FileNotFoundError, ProcessLookupError):
            return True

    for _ in range(200):
        if gone():
            break
        time.sleep(0.05)
    assert gone(), parent.stderr


def test_limits_are_identity_and_deadlines_are_not() -> None:
    assert fingerprint(ProbeAudio()) == fingerprint(ProbeAudio(deadline_seconds=5))
    assert fingerprint(ProbeAudio()) != fingerprint(ProbeAudio(max_seconds=5))


def test_importing_needs_no_audio_library() -> None:
    code = "import operators.audio, sys; print({'soundfile', 'fsspec', 'torch', 'ray'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_real_clips_all_decode() -> None:
    paths = sorted(shared("esc10").glob("*.ogg"))[::20] + sorted(shared("librosa").glob("*.ogg"))
    clips = [decode(str(path)) for path in paths]
    assert min(clip.seconds for clip in clips) >= 1
    assert all(np.abs(clip.samples).max() > 0 for clip in clips)
