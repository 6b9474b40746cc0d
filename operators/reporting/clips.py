"""The clips of a report: inside the page while they fit, else as files beside it, else named as missing.

A report is passed on, so it must not carry off what is not a clip: only a file that the run decoded as audio, and
that begins like a format browsers play, is put into the page.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from operators.locators import is_uri, shown

_FORMATS = ((b"RIFF", "audio/wav"), (b"fLaC", "audio/flac"), (b"OggS", "audio/ogg"), (b"ID3", "audio/mpeg"))


class Clips:
    """Collects clips by locator: `entries` for the page's list, `blocks` ({data block id: data URI}) for those inside it.

    `page` is the file that will be written, to which links are relative. `total` and `each` are bytes.
    """

    def __init__(self, page: Path, total: int, each: int) -> None:
        self.entries: list[dict[str, Any]] = []
        self.blocks: dict[str, str] = {}
        self._page, self._left, self._each = page, total, each
        self._known: dict[tuple[str, bool], int] = {}

    def of_item(self, item: Mapping[str, Any]) -> list[int]:
        """Places in `entries` of the clips of a result row, which names them and says whether they were decoded."""
        uris = item["audio_uris"] or []
        hashes = item["audio_hashes"] or []
        seconds = item["audio_seconds"] or []
        heard = [place < len(hashes) and hashes[place] is not None for place in range(len(uris))]
        return [
            self._place(uri, heard[place], seconds[place] if place < len(seconds) else None)
            for place, uri in enumerate(uris)
        ]

    def told(self) -> str:
        """One sentence on where the clips are."""
        linked, missing = (sum(key in entry for entry in self.entries) for key in ("href", "missing"))
        return f"{len(self.blocks)} clips in the page, {linked} linked as files, {missing} missing"

    def _place(self, uri: str, heard: bool, seconds: float | None) -> int:
        if (uri, heard) not in self._known:
            self._known[uri, heard] = len(self.entries)
            self.entries.append({"name": _name(uri), "seconds": seconds, **self._source(uri, heard)})
        return self._known[uri, heard]

    def _source(self, uri: str, heard: bool) -> dict[str, str]:
        if is_uri(uri):
            return {"missing": f"not copied into the page: it lies at {shown(uri)}"}
        path = Path(uri)
        if not os.path.isfile(path):
            return {"missing": f"there is no file {uri} on the machine that wrote this page"}
        if not heard:
            return {"missing": "the run did not decode this file as audio"}
        size = path.stat().st_size
        with path.open("rb") as file:
            kind = media_type(file.read(12))
        if kind and size <= self._each and size <= self._left:
            self._left -= size
            key = f"clip-{len(self.blocks)}"
            self.blocks[key] = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
            return {"block": key}
        return {"href": _relative(path, self._page.parent)}


def media_type(head: bytes) -> str | None:
    """The type of a clip that begins with `head`, 12 bytes of it; None for what browsers do not play."""
    if head[:1] == b"\xff" and head[1:2] and head[1] & 0xE0 == 0xE0:
        return "audio/mpeg"
    if head[4:8] == b"ftyp":
        return "audio/mp4"
    return next((kind for start, kind in _FORMATS if head.startswith(start)), None)


def _relative(path: Path, folder: Path) -> str:
    """A link from `folder`: relative, so that page and clips can move together. "./" keeps "a:b.wav" from being a scheme."""
    link = os.path.relpath(path.resolve(), folder.resolve())
    return "./" + quote(Path(link).as_posix(), errors="surrogatepass")


def _name(uri: str) -> str:
    return shown(uri).rstrip("/").rpartition("/")[2]
