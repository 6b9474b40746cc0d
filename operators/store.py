"""Nothing computed twice, nothing lost: content-addressed responses and scores in Parquet parts.

    <root>/responses/<model fingerprint>/part-*.parquet             what a model said
    <root>/asked/<model fingerprint>/part-*.parquet                 about which items, as the benchmark held them
    <root>/presented/<model fingerprint>/part-*.parquet             in which trials of which strategies of MUGEN
    <root>/scores/<metric>/<scorer fingerprint>/part-*.parquet      with spec.json beside them
    <root>/nightly/<series>/<time>/                                 summaries of `pipelines.rescore`
    <root>/running/<id>                                             marks of runs that write at this moment

A part appears whole or not at all (temporary name, then rename; on an object store one PUT). Only successes are stored,
so whatever failed is tried again by the next run. The root is a local folder or any fsspec URI such as s3://.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fsspec.implementations.local import LocalFileSystem

from operators.base import Spec
from operators.fingerprint import fingerprint
from operators.locators import has_credentials, shown
from operators.remote import code_of, explain, failures, open_filesystem
from operators.schema import ASKED, PRESENTED, STORED_RESPONSE, STORED_SCORE
from operators.shelf import DamagedPart, Shelf

__all__ = ["RUNNING", "DamagedPart", "Shelf", "Store", "StoreError"]

RUNNING = "running"

# {first folder: how many folders deep its shelves lie, what they hold}
_KINDS = {
    "responses": (1, STORED_RESPONSE),
    "asked": (1, ASKED),
    "presented": (1, PRESENTED),
    "scores": (2, STORED_SCORE),
}


class StoreError(ValueError):
    """A store that cannot be opened, read or written; the message says what to do."""


class Store:
    """All responses and scores under one root. Raises StoreError for a root that names no usable filesystem."""

    def __init__(self, root: str) -> None:
        if not root:
            raise StoreError("store.root is empty: name a folder or a URI such as s3://bucket/prefix")
        if has_credentials(root):
            raise StoreError(
                f"store.root {shown(root)!r} comes with credentials, which would be seen by others: set them in the "
                f"environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
            )
        self.root = root.rstrip("/") or "/"
        try:
            self.filesystem, path = open_filesystem(self.root)
        except (ImportError, ValueError) as error:
            raise StoreError(f"store.root {shown(root)!r} cannot be opened: {error}") from error
        self._path = path.rstrip("/")

    def responses(self, model: Spec) -> Shelf:
        """Where the responses of `model` lie."""
        return Shelf(self, f"responses/{fingerprint(model)}", STORED_RESPONSE, model)

    def asked(self, model: Spec) -> Shelf:
        """Where it is kept what `model` was asked."""
        return Shelf(self, f"asked/{fingerprint(model)}", ASKED, model)

    def presented(self, model: Spec) -> Shelf:
        """Where it is kept in which trials `model` was asked."""
        return Shelf(self, f"presented/{fingerprint(model)}", PRESENTED, model)

    def scores(self, metric: str, scorer: Spec) -> Shelf:
        """Where the scores of `metric` by `scorer` lie."""
        return Shelf(self, f"scores/{metric}/{fingerprint(scorer)}", STORED_SCORE, scorer)

    def shelf(self, name: str) -> Shelf:
        """The shelf at `name`, such as "responses/<fingerprint>", to read from."""
        return Shelf(self, name, _KINDS[name.split("/")[0]][1])

    def shelves(self, *kinds: str) -> Iterator[Shelf]:
        """Every shelf of these kinds (default: responses, asked, presented, scores) that there is, in the order of their names."""
        for kind in kinds or _KINDS:
            folders = [kind]
            for _ in range(_KINDS[kind][0]):
                folders = [f"{one}/{name}" for one in folders for name in self.folders(one)]
            yield from map(self.shelf, sorted(folders))

    def folders(self, name: str) -> list[str]:
        """The names of the folders in folder `name`, sorted."""
        return sorted(
            entry["name"].rstrip("/").rsplit("/", 1)[-1]
            for entry in self.entries(name)
            if entry["type"] == "directory"
        )

    def entries(self, name: str) -> list[dict]:
        """What the folder `name` holds, as fsspec describes it; nothing where it is absent."""
        place = self.place(name)
        # A listing that fsspec remembers would hide what other processes wrote since.
        self.filesystem.invalidate_cache(place)
        try:
            with self.reaching(name):
                return self.filesystem.ls(place, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []

    @contextmanager
    def reaching(self, name: str) -> Iterator[None]:
        """Around whatever reads `name`: raises StoreError with what to do where that fails; a file or folder that is not
        there stays a FileNotFoundError (NotADirectoryError), a bucket that is not there does not."""
        try:
            yield
        except failures() as error:
            absent = isinstance(error, FileNotFoundError | NotADirectoryError)
            if absent and code_of(error) != "NoSuchBucket":
                raise
            raise StoreError(f"the store cannot read {shown(self.root)}/{name}: {explain(error)}") from error

    def place(self, name: str) -> str:
        """The path of `name` in the store's filesystem."""
        return f"{self._path}/{name}"

    def read(self, name: str) -> bytes:
        """The bytes of file `name`. Raises FileNotFoundError."""
        with self.reaching(name):
            return self.filesystem.cat_file(self.place(name))

    def read_json(self, name: str) -> dict | None:
        """What the JSON file `name` holds; None where there is none that can be read."""
        try:
            data = self.read(name)
        except FileNotFoundError:
            return None
        try:
            found = json.loads(data)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def write(self, name: str, data: bytes) -> None:
        """Let file `name` appear with `data`, whole or not at all. Raises StoreError where it cannot be written."""
        place = self.place(name)
        with self._writing(name):
            if isinstance(self.filesystem, LocalFileSystem):
                _write_local(place, lambda stream: stream.write(data))
            else:
                self.filesystem.pipe_file(place, data)

    def write_file(self, name: str, path: Path) -> None:
        """The same with the content of the local file `path`, which may be larger than memory."""
        place = self.place(name)
        with self._writing(name):
            if isinstance(self.filesystem, LocalFileSystem):
                with open(path, "rb") as source:
                    _write_local(place, lambda stream: shutil.copyfileobj(source, stream))
            else:
                self.filesystem.put_file(str(path), place)

    def remove(self, name: str) -> None:
        """Remove file `name`; one that is gone already is no error."""
        try:
            with self.reaching(name):
                self.filesystem.rm_file(self.place(name))
        except FileNotFoundError:
            return

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except failures() as error:
            mend = "make room (or set store.root elsewhere)" if code_of(error) is None else "mend that"
            raise StoreError(
                f"the store cannot write {shown(self.root)}/{name}: {explain(error)}. What was stored before is safe; "
                f"{mend} and run the same command again"
            ) from error


def _write_local(place: str, fill: Callable[[BinaryIO], object]) -> None:
    folder, name = place.rsplit("/", 1)
    os.makedirs(folder, exist_ok=True)
    # A name that no reader lists, unique to this writer: a crash here leaves a file that nobody reads.
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}"
    try:
        with open(temporary, "wb") as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, place)
        _settle(folder)
    except OSError:
        # On a full disk what was written so far must not take the room from the next try.
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def _settle(folder: str) -> None:
    """Let a rename outlive a power cut: what it replaces may be removed next."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
