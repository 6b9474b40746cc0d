"""What a store holds, and whether it is sound. Nothing here changes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from operators import parts
from operators.asked import digests
from operators.fingerprint import digest
from operators.key_index import KeyIndex
from operators.nights import finished, load, stream
from operators.schema import ASKED
from operators.shelf import DAMAGED, Shelf
from operators.store import Store, StoreError


@dataclass(frozen=True)
class Contents:
    """One shelf: what stored it (class of the Spec), how much there is, and since when."""

    name: str
    spec: str
    rows: int
    n_parts: int
    n_bytes: int
    newest: str
    n_damaged: int


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be. `grave`: data is lost or wrong; otherwise it only takes room."""

    place: str
    grave: bool
    text: str


def contents(shelf: Shelf) -> Contents:
    """Counted from the footers of the parts; no row is read."""
    files = shelf.files()
    mine = [entry for entry in files if parts.is_part(_name(entry))]
    counts = [_rows(shelf, entry["name"]) for entry in mine]
    set_aside = sum(_name(entry).startswith(DAMAGED) for entry in files)
    stamps = sorted(parts.stamp_of(_name(entry)) for entry in mine)
    return Contents(
        shelf.name,
        class_of(shelf.spec()),
        sum(count or 0 for count in counts),
        len(mine),
        sum(entry["size"] for entry in mine),
        stamps[-1] if stamps else "",
        set_aside + counts.count(None),
    )


def class_of(description: dict | None) -> str:
    """The class of the Spec that a spec.json describes; a file of recorded responses is only its digest."""
    spec = (description or {}).get("spec")
    if isinstance(spec, dict):
        return str(spec.get("class", ""))
    return "Recorded" if isinstance(spec, str) else ""


def names(shelf: Shelf) -> list[str]:
    """Under which names the model of an `asked` shelf went, and of which benchmarks: "careful: sample"."""
    found: set[str] = set()

    def gather() -> None:
        for rows in shelf.stream(["model", "benchmark"]):
            pairs = pc.binary_join_element_wise(rows["model"], rows["benchmark"], ": ")
            found.update(pair for pair in pc.unique(pairs).to_pylist() if pair)

    shelf.undisturbed(gather)
    return sorted(found)


def findings(shelf: Shelf) -> Iterator[Finding]:
    """Everything wrong with one shelf: its description, every part by hash and schema, keys stored more than once."""
    yield from _description(shelf)
    tables: list[pa.Table] = []
    for entry in shelf.files():
        name = _name(entry)
        if name.startswith(DAMAGED):
            yield Finding(f"{shelf.name}/{name}", True, "damaged, set aside; its rows are computed again")
        elif parts.is_part(name):
            yield from _part(shelf, entry["name"], tables)
        elif name.startswith("."):
            yield Finding(f"{shelf.name}/{name}", False, "left by a write that did not finish; gc removes it")
    if tables:
        yield from _repeats(shelf, pa.concat_tables(tables))


def night_findings(store: Store) -> Iterator[Finding]:
    """Everything wrong with the nights of `pipelines.rescore`: rows that cannot be read, nights that did not finish."""
    for series in store.folders("nightly"):
        done = finished(store, series)
        for name in store.folders(f"nightly/{series}"):
            place = f"nightly/{series}/{name}"
            if name not in done:
                yield Finding(place, False, "a night that did not finish, or is not finished yet")
                continue
            try:
                load(store, series, name)
                for _ in stream(store, series, name):
                    pass
            except StoreError as error:
                yield Finding(place, True, str(error))


def _description(shelf: Shelf) -> Iterator[Finding]:
    found, fingerprint = shelf.spec(), shelf.name.rsplit("/", 1)[-1]
    if found is None:
        if shelf.parts():  # else a write ended before it began, and nothing is lost
            told = "spec.json is missing or unreadable: nobody can say what made these rows"
            yield Finding(shelf.name, True, told)
    elif found.get("fingerprint") != fingerprint or digest(found.get("spec"), 16) != fingerprint:
        yield Finding(shelf.name, True, "spec.json does not describe this folder: its fingerprint is another")


def _part(shelf: Shelf, path: str, tables: list[pa.Table]) -> Iterator[Finding]:
    place = f"{shelf.name}/{path.rsplit('/', 1)[-1]}"
    try:
        data = shelf.store.read(place)
        table = parts.read(parts.opened(data, path.rsplit("/", 1)[-1]), shelf.schema)
    except FileNotFoundError:
        return  # merged away meanwhile
    except parts.Damaged as error:
        yield Finding(place, True, f"damaged: {error}")
        return
    except parts.OtherSchema as error:
        yield Finding(place, True, f"another schema: {error}")
        return
    for name in sorted(parts.REQUIRED & set(shelf.schema.names)):
        if count := table[name].null_count:
            yield Finding(place, True, f"{count} rows without {name}")
    if "value" in shelf.schema.names and (count := pc.sum(pc.invert(pc.is_finite(table["value"]))).as_py()):
        yield Finding(place, True, f"{count} values are not finite")
    if shelf.schema is ASKED and (
        count := sum(map(str.__ne__, digests(table), table["content"].to_pylist()))
    ):
        yield Finding(place, True, f"{count} rows do not match their own digest")
    tables.append(pa.table({"key": table["key"], "said": _said(table)}))


def _said(table: pa.Table) -> np.ndarray:
    """[N] a number per row for what it says, equal for equal values or texts: all texts of a shelf are more than memory
    holds."""
    name = next((one for one in ("value", "response") if one in table.column_names), "key")
    return np.array([hash(cell) for cell in table[name].to_pylist()], dtype=np.int64)


def _repeats(shelf: Shelf, rows: pa.Table) -> Iterator[Finding]:
    index = KeyIndex(rows["key"])
    repeats = rows.num_rows - len(index)
    if not repeats:
        return
    kinds = Counter(np.unique(np.stack([index.rows, rows["said"].to_numpy()]), axis=1)[0].tolist())
    differ = sum(count > 1 for count in kinds.values())
    more = f", {differ} keys with different content: the oldest counts everywhere" if differ else ""
    yield Finding(shelf.name, False, f"{repeats} rows repeat a key{more}; compact leaves the repeats out")


def _rows(shelf: Shelf, path: str) -> int | None:
    """Rows of a part by its footer; None where that cannot be read."""
    try:
        with shelf.store.reaching(shelf.name), shelf.store.filesystem.open(path, "rb") as file:
            return pq.ParquetFile(file).metadata.num_rows
    except FileNotFoundError:
        return 0
    except (pa.ArrowException, OSError, EOFError):
        return None


def _name(entry: dict) -> str:
    return entry["name"].rsplit("/", 1)[-1]
