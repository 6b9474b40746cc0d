"""SHA-256 of large files, remembered between processes: a checkpoint of 15 GB is read once, and not by every plan.

As in git's index a digest stands for a file as long as what the file system says of it is the same: size, inode, and the times
of its last change of content (mtime) and of anything (ctime, which no program can set back). A file changed within the last
minute is not remembered: two changes may share one tick of its clock, and a server's clock differs from ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

SMALL = 16 * 2**20  # smaller files are read faster than remembered
LARGE = 2**30
SETTLED_NS = 60 * 10**9
# Of this process, small and young files too: a run asks for the same digests many times.
_known: dict[tuple[str, int, int, int, int], str] = {}


def file_digest(file: Path, cache: Path) -> str:
    """SHA-256 of a file's content, from the folder `cache` where it is remembered there, else by reading the file.

    A cache that cannot be read, written or understood costs time and nothing else.
    """
    state = _state(file)
    key = (str(file.resolve()), *state.values())
    if key not in _known:
        _known[key] = _found(file, state, cache)
    return _known[key]


def _found(file: Path, state: dict[str, int], cache: Path) -> str:
    if state["size"] < SMALL:
        return _read(file)
    place = cache / "digests" / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:32]}.json"
    if known := _remembered(place, state):
        return known
    if state["size"] >= LARGE:
        print(f"note: reading {file} ({state['size'] / 1e9:.1f} GB) once, to know it again", file=sys.stderr)
    began, digest = time.time_ns(), _read(file)
    latest = max(state["mtime_ns"], state["ctime_ns"])
    if _state(file) == state and latest < began - SETTLED_NS:
        _remember(place, {**state, "sha256": digest})
    return digest


def _state(file: Path) -> dict[str, int]:
    found = file.stat()
    return {
        "size": found.st_size,
        "inode": found.st_ino,
        "mtime_ns": found.st_mtime_ns,
        "ctime_ns": found.st_ctime_ns,
    }


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remembered(place: Path, state: dict[str, int]) -> str | None:
    try:
        entry = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    digest = entry.pop("sha256", None) if isinstance(entry, dict) else None
    return digest if isinstance(digest, str) and len(digest) == 64 and entry == state else None


def _remember(place: Path, entry: dict[str, int | str]) -> None:
    """Under a name of its own first: of two processes one entry stays, and it is whole."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, suffix=".tmp", delete=False) as file:
            json.dump(entry, file)
        os.replace(file.name, place)
    except OSError:
        return
