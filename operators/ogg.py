"""Whether an Ogg file (Vorbis, Opus, FLAC) is whole, page by page (RFC 3533).

libsndfile passes over a damaged page without a word, and may stop there as if the sound were over. Each page carries a
checksum and its number in the stream, so that what is missing is known for certain before anything is decoded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from operators.fetching import AudioError

_MARK = b"OggS"
_FIRST_PAGE, _LAST_PAGE = 2, 4
_HEADER = struct.Struct("<4sBBqIIIB")
_CHECKSUM = slice(22, 26)
_REVERSED_BYTES = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Page(NamedTuple):
    """One page: its flags, the stream that it belongs to, its number there, and where the next one starts."""

    flags: int
    stream: int
    number: int
    end: int


def check_ogg(data: bytes, name: str) -> None:
    """Refuse an Ogg file that libsndfile would read in part; `name` is for the error texts. Other formats pass.

    A file holds one stream, or several side by side, and ends with a page marked as the last: libsndfile reads 0 frames
    without that page, and only the first of streams that follow one another. Raises AudioError: truncated_audio,
    damaged_audio, chained_stream.
    """
    if not data.startswith(_MARK):
        return
    last: dict[int, int] = {}
    begun, flags = False, 0
    for flags, stream, number, end in _pages(data, name):
        if flags & _FIRST_PAGE and begun:
            detail = f"{name} holds several Ogg streams one after the other; write them as one, or as files"
            raise AudioError("chained_stream", detail)
        begun = begun or not flags & _FIRST_PAGE
        if stream in last and number != (last[stream] + 1) % 2**32:
            detail = f"{name}: page {number} of its Ogg stream follows page {last[stream]} (at byte {end})"
            raise AudioError("damaged_audio", detail)
        last[stream] = number
    if not flags & _LAST_PAGE:
        raise AudioError("truncated_audio", f"{name} stops before the last page of its Ogg stream")


def _pages(data: bytes, name: str) -> Iterator[Page]:
    """The pages of a file that starts with one, up to its end or to what follows a last page and is no page."""
    start, flags = 0, 0
    while start < len(data):
        if not data.startswith(_MARK, start):
            if flags & _LAST_PAGE and data.find(_MARK, start) < 0:
                return
            raise AudioError("damaged_audio", f"{name}: an Ogg page should start at byte {start}")
        page = _page_at(data, start)
        if page is None:
            raise AudioError("truncated_audio", f"{name} stops within a page of its Ogg stream")
        whole = data[start : page.end]
        if _checksum(whole) != whole[_CHECKSUM]:
            raise AudioError(
                "damaged_audio", f"{name}: the checksum of the Ogg page at byte {start} is wrong"
            )
        yield page
        start, flags = page.end, page.flags


def _page_at(data: bytes, start: int) -> Page | None:
    """The page that starts at `start`; None where the file ends before it does."""
    body = start + _HEADER.size
    if body > len(data):
        return None
    _, _, flags, _, stream, number, _, segments = _HEADER.unpack_from(data, start)
    end = body + segments + sum(data[body : body + segments])
    return Page(flags, stream, number, end) if end <= len(data) else None


def _checksum(page: bytes) -> bytes:
    """A page's CRC-32 as it stands in the page: polynomial 0x04c11db7, from 0, its own four bytes taken as 0.

    zlib has the same polynomial with the bits of bytes and result in the opposite order, and inverts what goes in and out.
    """
    blank = page[: _CHECKSUM.start] + bytes(4) + page[_CHECKSUM.stop :]
    opposite = zlib.crc32(blank.translate(_REVERSED_BYTES), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return opposite.to_bytes(4, "big").translate(_REVERSED_BYTES)
