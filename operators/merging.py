"""Many small parts into few, while others read and write.

The merged part is committed before its sources are removed, and it bears the time of the oldest of them, so "the oldest
entry wins" gives the same answer before, during and after. A crash in between leaves rows twice, which every reader and the
next merge see once. Two merges at once write the same bytes under the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators import parts
from operators.shelf import MERGED_BYTES, Shelf, distinct


@dataclass(frozen=True)
class Merged:
    """What a merge did to one shelf. `repeats`: rows left out because an older part holds their key."""

    shelf: str
    parts_before: int
    parts_after: int
    rows: int = 0
    repeats: int = 0


def merge(shelf: Shelf, size: int = MERGED_BYTES) -> Merged:
    """Merge neighbouring parts until one holds `size` bytes; parts of that size are left alone."""
    before = len(shelf.parts())
    rows = repeats = 0
    for group in _groups(shelf, size):
        try:
            loaded = {path: shelf.load(path, data) for path, data in shelf.blobs(group)}
        except FileNotFoundError:
            break  # another merge is at work here; it will finish
        table = pa.concat_tables(loaded.values())
        kept = distinct(table)
        if kept.num_rows:
            merged = shelf.commit(kept, parts.stamp_of(_name(group[0])))
            # A part that gave no rows is damaged, or of another version of this program: it stays.
            sources = [path for path, rows in loaded.items() if rows.num_rows]
            shelf.remove([path for path in sources if _name(path) != _name(merged)])
        rows, repeats = rows + kept.num_rows, repeats + table.num_rows - kept.num_rows
    return Merged(shelf.name, before, len(shelf.parts()), rows, repeats)


def _groups(shelf: Shelf, size: int) -> Iterator[Sequence[str]]:
    """Runs of two or more neighbours by age: merging across a part between them would change who is older."""
    sizes = {entry["name"]: entry["size"] for entry in shelf.files()}
    group: list[str] = []
    for path in shelf.parts():
        if sizes.get(path, 0) >= size or sum(sizes.get(one, 0) for one in group) >= size:
            if len(group) > 1:
                yield group
            group = []
        if sizes.get(path, 0) < size:
            group.append(path)
    if len(group) > 1:
        yield group


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
