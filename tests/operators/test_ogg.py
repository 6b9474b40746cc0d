"""Ogg page by page: what is missing or damaged in the middle is told, however little, and never scored around."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.audio import decode_bytes
from operators.fetching import AudioError
from operators.ogg import _checksum, check_ogg
from tests.shared_data import shared

NOISE = (0.1 * np.random.default_rng(0).normal(size=32_000)).astype(np.float32)


def encoded(subtype: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, NOISE, 16_000, format="OGG", subtype=subtype)
    return file.getvalue()


FILES = {subtype: encoded(subtype) for subtype in ("VORBIS", "OPUS")}


def page(flags: int, payload: bytes, number: int = 0, stream: int = 1) -> bytes:
    blank = (
        struct.pack("<4sBBqIIIB", b"OggS", 0, flags, 0, stream, number, 0, 1)
        + bytes([len(payload)])
        + payload
    )
    return blank[:22] + _checksum(blank) + blank[26:]


def reason_of(data: bytes) -> str | None:
    try:
        check_ogg(data, "clip.ogg")
    except AudioError as error:
        return error.reason
    return None


def test_the_checksum_is_that_of_a_division_bit_by_bit():
    data, remainder = FILES["OPUS"][: FILES["OPUS"].index(b"OggS", 4)], 0
    for byte in data[:22] + bytes(4) + data[26:]:
        remainder ^= byte << 24
        for _ in range(8):
            remainder = (remainder << 1 ^ (0x04C11DB7 if remainder >> 31 else 0)) & 0xFFFFFFFF
    assert _checksum(data) == struct.pack("<I", remainder) == data[22:26]


@pytest.mark.parametrize("subtype", sorted(FILES))
@given(where=st.floats(0.01, 0.99), kind=st.sampled_from(["cut", "zeros", "bit"]), size=st.integers(1, 1500))
@settings(max_examples=30, deadline=None)
def test_any_damage_in_the_middle_is_told(subtype: str, where: float, kind: str, size: int):
    data = FILES[subtype]
    start = int(where * len(data))
    bad = {
        "cut": data[:start] + data[start + size :],
        "zeros": data[:start] + bytes(len(data[start : start + size])) + data[start + size :],
        "bit": data[:start] + bytes([data[start] ^ 1 << size % 8]) + data[start + 1 :],
    }[kind]
    assert reason_of(data) is None
    # Zeros over zeros are no damage.
    assert bad == data or reason_of(bad) in ("damaged_audio", "truncated_audio", "chained_stream")


def test_a_file_that_lost_a_thousand_bytes_is_refused_though_it_decodes_to_half_its_sound():
    data = FILES["VORBIS"]
    cut = data[: len(data) // 2] + data[len(data) // 2 + 1000 :]
    with soundfile.SoundFile(io.BytesIO(cut)) as file:
        assert len(file.read()) < len(NOISE)
    with pytest.raises(
        AudioError, match=r"^damaged_audio: my\.ogg: the checksum of the Ogg page at byte \d+ is wrong"
    ):
        decode_bytes(cut, "my.ogg")


def test_a_page_that_is_missing_whole_is_told_by_the_numbers_of_the_others():
    pages = [page(2, b"head"), page(0, b"one", 1), page(0, b"two", 2), page(4, b"three", 3)]
    assert reason_of(b"".join(pages)) is None
    assert reason_of(pages[0] + pages[1] + pages[3]) == "damaged_audio"
    assert reason_of(pages[0] + pages[2] + pages[1] + pages[3]) == "damaged_audio"
    assert reason_of(b"".join(pages[:3])) == "truncated_audio"
    assert reason_of(page(2, b"head", 2**32 - 1) + page(4, b"one", 0)) is None  # the number starts over


def test_a_page_marker_inside_sound_is_no_page_and_streams_may_lie_side_by_side():
    inside = b"..OggS\0\2" + bytes(40)
    assert reason_of(page(2, b"head") + page(0, inside, 1) + page(4, inside, 2)) is None
    voice, music = (
        [page(2, b"voice"), page(0, b"v", 1)],
        [page(2, b"music", stream=2), page(4, b"m", 1, stream=2)],
    )
    assert reason_of(voice[0] + music[0] + voice[1] + music[1]) is None
    assert reason_of(page(2, b"head") + page(0, b"OggS\0\4" + bytes(40), 1)) == "truncated_audio"


def test_what_follows_the_last_page_is_no_sound_but_what_stands_between_pages_is_damage():
    head, tail = page(2, b"head"), page(4, b"tail", 1)
    assert reason_of(head + tail + bytes(128)) is None
    assert reason_of(head + bytes(8) + tail) == "damaged_audio"
    assert reason_of(b"RIFF" + head) is None


def test_real_files_pass():
    paths = [*shared("esc10").glob("*.ogg"), *shared("librosa").glob("*.ogg")]
    assert len(paths) > 100
    assert [path.name for path in paths if reason_of(path.read_bytes())] == []
