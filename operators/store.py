"""Nothing computed twice, nothing lost: content-addressed responses and scores in Parquet parts.

    <root>/responses/<model fingerprint>/part-*.parquet
    <root>/scores/<metric>/<scorer fingerprint>/part-*.parquet      with spec.json beside them

A part appears whole or not at all (temporary name, then rename; on an object store one PUT). Only successes are stored,
so whatever failed is tried again by the next run. The root is a local folder or any fsspec URI such as s3://.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from operators.base import Spec
from operators.fingerprint import canonical, fingerprint
from operators.locators import shown
from operators.schema import STORED_RESPONSE, STORED_SCORE


class DamagedPart(UserWarning):
    """A Parquet part that cannot be read; its rows are computed again."""


class StoreError(ValueError):
    """A store root that cannot be used; the message says what to set or install."""


class Store:
    """All responses and scores under one root. Raises StoreError for a root that names no usable filesystem."""

    def __init__(self, root: str) -> None:
        if not root:
            raise StoreError("store.root is empty: name a folder or a URI such as s3://bucket/prefix")
        self.root = root.rstrip("/") or "/"
        try:
            self.filesystem, path = fsspec.core.url_to_fs(self.root)
        except (ImportError, ValueError) as error:
            raise StoreError(f"store.root {shown(root)!r} cannot be opened: {error}") from error
        self._path = path.rstrip("/")

    def responses(self, model: Spec) -> Shelf:
        """Where the responses of `model` lie."""
        return Shelf(self, f"responses/{fingerprint(model)}", STORED_RESPONSE, model)

    def scores(self, metric: str, scorer: Spec) -> Shelf:
        """Where the scores of `metric` by `scorer` lie."""
        return Shelf(self, f"scores/{metric}/{fingerprint(scorer)}", STORED_SCORE, scorer)

    def place(self, name: str) -> str:
        return f"{self._path}/{name}"


class Shelf:
    """The parts of one fingerprint. A reader sees every key once, whatever crashed while it was written."""

    def __init__(self, store: Store, name: str, schema: pa.Schema, spec: Spec) -> None:
        self._store, self.name, self.schema, self._spec = store, name, schema, spec
        self._folder = store.place(name)

    def parts(self) -> list[str]:
        """Paths of the committed parts, oldest first."""
        filesystem = self._store.filesystem
        if not filesystem.exists(self._folder):
            return []
        filesystem.invalidate_cache(self._folder)
        names = filesystem.ls(self._folder, detail=False)
        return sorted(n for n in names if n.rsplit("/", 1)[-1].startswith("part-") and n.endswith(".parquet"))

    def find(self, keys: Sequence[str]) -> pa.Table:
        """The stored rows among `keys`, one per key (the oldest wins), in no particular order."""
        wanted, found = set(keys), []
        for part in self.parts() if wanted else []:
            table = self._read(part)
            rows = [
                i
                for i, key in enumerate(table["key"].to_pylist())
                if key in wanted and not wanted.discard(key)
            ]
            if rows:
                found.append(table.take(rows))
        return pa.concat_tables(found) if found else self.schema.empty_table()

    def append(self, table: pa.Table) -> None:
        """Commit `table` as one part. Rows with a null in a required column are a fault of the caller."""
        required = table.column("value" if "value" in self.schema.names else "response")
        if table.num_rows == 0:
            return
        if required.null_count:
            raise ValueError(f"{self.name}: failures are not stored, but {required.null_count} rows are null")
        self._describe()
        stream = io.BytesIO()
        whole = table.select(self.schema.names).cast(self.schema)
        pq.write_table(whole, stream, compression="zstd", write_page_checksum=True)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        self._commit(f"{self._folder}/part-{stamp}-{uuid.uuid4().hex[:8]}.parquet", stream.getvalue())

    def _read(self, part: str) -> pa.Table:
        data = self._store.filesystem.cat_file(part)
        try:
            table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
            return table.select(self.schema.names).cast(self.schema)
        except (pa.ArrowException, OSError, KeyError, EOFError) as error:
            warnings.warn(f"ignored damaged part {part}: {error}", DamagedPart, stacklevel=3)
            return self.schema.empty_table()

    def _describe(self) -> None:
        place = f"{self._folder}/spec.json"
        if not self._store.filesystem.exists(place):
            text = json.dumps(
                {"fingerprint": fingerprint(self._spec), "spec": canonical(self._spec)}, indent=1
            )
            self._commit(place, text.encode())

    def _commit(self, place: str, data: bytes) -> None:
        filesystem = self._store.filesystem
        if not isinstance(filesystem, LocalFileSystem):
            filesystem.pipe_file(place, data)
            return
        folder, name = place.rsplit("/", 1)
        os.makedirs(folder, exist_ok=True)
        # A name that `parts` does not list, unique to this writer: a crash here leaves a file that nobody reads.
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}"
        with open(temporary, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, place)
