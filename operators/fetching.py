"""The bytes of a clip, from a local path or any URI that fsspec opens, with a named reason where there are none."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

from operators.locators import shown
from operators.remote import ADVICE, code_of, explain, failures, open_filesystem
from operators.text import encodable

MAX_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20


class AudioError(ValueError):
    """A clip that cannot be used. `reason` is one snake_case word; the text is "reason: detail naming the
    file"."""

    def __init__(self, reason: str, detail: str) -> None:
        # File names may hold lone surrogates, which no table takes.
        self.reason, self.detail = reason, encodable(detail)
        super().__init__(f"{reason}: {self.detail}")

    def __reduce__(self) -> tuple[type[AudioError], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


def fetch(uri: str) -> bytes:
    """The bytes at `uri`, at most MAX_BYTES of them. Raises AudioError where there are none to have."""
    name = shown(uri)
    try:
        return _fetch_remote(uri, name) if "://" in uri else _fetch_local(uri)
    except FileNotFoundError as error:
        raise AudioError("missing_file", f"{name} does not exist") from error
    except IsADirectoryError as error:
        raise AudioError("is_a_directory", f"{name} is a folder, not a file") from error
    except PermissionError as error:
        why = f" ({explain(error)})" if code_of(error) else ""
        raise AudioError("permission", f"{name} may not be read by this user{why}") from error
    except AudioError:
        raise
    except (*failures(), ValueError, ImportError) as error:
        # ValueError: an unknown protocol, a NUL in a path. ImportError: the protocol's package is missing.
        why = explain(error) if code_of(error) in ADVICE else type(error).__name__
        raise AudioError("unreadable", f"{name} cannot be read ({why})") from error


def _fetch_local(path: str) -> bytes:
    if not path:
        raise AudioError("missing_file", "the audio path is empty")
    found = Path(path)
    status = found.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise AudioError("not_a_file", f"{path} is a device, pipe or socket")
    _check_size(status.st_size, path)
    return found.read_bytes()


def _fetch_remote(uri: str, name: str) -> bytes:
    files, path = open_filesystem(uri)
    about = files.info(path)  # one question for both: a round trip per clip counts
    if about["type"] == "directory":
        raise IsADirectoryError(name)
    size = about.get("size")
    if size is None:
        # A server need not tell; then nothing but the reading itself keeps the limit.
        with files.open(path, "rb") as file:
            return _read_at_most(file, name)
    _check_size(size, name)
    return files.cat_file(path)


def _read_at_most(file: BinaryIO, name: str) -> bytes:
    data = bytearray()
    while chunk := file.read(_CHUNK_BYTES):
        data += chunk
        if len(data) > MAX_BYTES:
            raise AudioError("file_too_large", f"{name} has more than {MAX_BYTES} bytes")
    return bytes(data)


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise AudioError("file_too_large", f"{name} has {size} bytes, more than {MAX_BYTES}")
