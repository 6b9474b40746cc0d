"""What in a store is of no more use: found first, removed only when asked to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from operators.nights import finished
from operators.shelf import DAMAGED
from operators.store import RUNNING, Store

# A write that has not finished after a day will not.
STALE_SECONDS = 24 * 3600.0
# Runs take days: without its mark a run goes on, but its workers leave the writing to the driver.
STALE_MARK_SECONDS = 30 * STALE_SECONDS


@dataclass(frozen=True)
class Waste:
    """A file or folder that could go: its name in the store, its size and why."""

    name: str
    n_bytes: int
    why: str


def waste(store: Store, keep_nights: int | None, forget: Collection[str]) -> Iterator[Waste]:
    """Rests of writes and nights that did not finish, damaged parts set aside, nights beyond the last `keep_nights` of each
    series, and the shelves of the fingerprints in `forget`. Scores and responses go only where `forget` names them."""
    for shelf in store.shelves():
        if shelf.name.rsplit("/", 1)[-1] in forget:
            yield Waste(shelf.name, _size(store, shelf.name), "named in forget")
            continue
        for entry in shelf.files():
            name = entry["name"].rsplit("/", 1)[-1]
            if name.startswith(DAMAGED):
                yield Waste(f"{shelf.name}/{name}", entry["size"], "damaged, its rows are computed again")
            elif name.startswith(".") and _age(entry) > STALE_SECONDS:
                yield Waste(f"{shelf.name}/{name}", entry["size"], "left by a write that did not finish")
    for entry in store.entries(RUNNING):
        if _age(entry) > STALE_MARK_SECONDS:
            name = f"{RUNNING}/{entry['name'].rsplit('/', 1)[-1]}"
            yield Waste(name, entry["size"], "the mark of a run that was killed")
    for series in store.folders("nightly"):
        names = finished(store, series)
        for name in store.folders(f"nightly/{series}"):
            place, files = f"nightly/{series}/{name}", store.entries(f"nightly/{series}/{name}")
            # Folders in a folder are no night of ours, whatever they are.
            old = all(file["type"] == "file" and _age(file) > STALE_SECONDS for file in files)
            if name not in names and old:
                yield Waste(place, _size(store, place), "a night that did not finish")
            elif keep_nights is not None and name in names[: max(0, len(names) - keep_nights)]:
                yield Waste(place, _size(store, place), f"older than the last {keep_nights} nights")


def remove(store: Store, found: Waste) -> None:
    """Remove one piece of waste; one that is gone already is no error."""
    try:
        with store.reaching(found.name):
            store.filesystem.rm(store.place(found.name), recursive=True)
    except FileNotFoundError:
        return


def _size(store: Store, name: str) -> int:
    return sum(entry["size"] for entry in store.entries(name))


def _age(entry: dict[str, Any]) -> float:
    """Seconds since a file was written; 0 where the filesystem does not tell."""
    times = (entry.get(name) for name in ("mtime", "LastModified", "created"))
    written = next((time for time in times if time is not None), None)
    if isinstance(written, (int, float)):
        written = datetime.fromtimestamp(written, UTC)
    if not isinstance(written, datetime):
        return 0.0
    return (datetime.now(UTC) - (written if written.tzinfo else written.replace(tzinfo=UTC))).total_seconds()
