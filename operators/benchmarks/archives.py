"""Published benchmarks as they are downloaded: a folder, a tar archive, or an address in an object store.

A tar is unpacked once into the user's cache folder, under a name made of its address, size and time of change, so that an
exchanged archive is never taken for its predecessor; nothing in it may point outside.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from filelock import FileLock

from operators.benchmarks.locations import folder_of
from operators.locators import is_uri, shown
from operators.remote import explain, failures
from operators.tables import TableError, filesystem_of
from operators.weights import cache_folder

ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


def opened(path: str, names: Sequence[str], archives: Sequence[str] = ()) -> tuple[str, str]:
    """(the file of questions, the folder or URI with their audio, `start_of_clips` says where in it) of the benchmark at `path`.

    path: a folder or an address that holds a file called one of `names`, that file itself, or a tar with such a file in it
    or beside it. Where one of the tars `archives` lies beside the questions, not yet unpacked, the audio comes from there.
    Raises TableError naming what was looked for.
    """
    if path.endswith(ENDINGS) and not _is_folder(path):
        inside = unpacked(path)
        return _topmost(Path(inside), names) or _questions(folder_of(path), names), inside
    # A folder may have a dot in its name, as MMAR-v1.0 has.
    named = PurePosixPath(path).suffix and not _is_folder(path)
    questions = path if named else _questions(path, names)
    folder = folder_of(questions)
    packed = next((f"{folder}/{name}" for name in archives if _exists(f"{folder}/{name}")), None)
    if packed is None or (not is_uri(folder) and _lies_unpacked(packed, Path(folder))):
        return questions, folder
    return questions, unpacked(packed)


def start_of_clips(folder: str, questions: str, paths: Sequence[str]) -> str:
    """Where the relative `paths` of clips start, some of which are looked for: the folder of the questions, where that lies
    in `folder`, `folder`, or the topmost folder below it from which one leads to a file; the first of these where none does.

    An archive may have a folder of its own around its clips, and a path may be a bare name. An address in an object store is
    taken as it is.
    """
    if is_uri(folder):
        return folder
    inside = not is_uri(questions) and Path(questions).is_relative_to(folder)
    near = [folder_of(questions), folder] if inside else [folder]
    for path in paths:
        inner = PurePosixPath(path)
        if inner.is_absolute() or ".." in inner.parts or is_uri(path) or not inner.name:
            continue
        if here := next((start for start in near if _is_clip(Path(start, inner))), None):
            return here
        name = glob.escape(inner.name)
        try:
            places = sorted({*Path(folder).rglob(name), *Path(folder).rglob(f"{name}.wav")}, key=_depth)
        except OSError:  # a name that no disk takes
            continue
        fit = (place for place in places if place.parts[-len(inner.parts) : -1] == inner.parts[:-1])
        if (found := next(fit, None)) and found.is_file():
            return str(found.parents[len(inner.parts) - 1])
    return near[0]


def _is_clip(path: Path) -> bool:
    return os.path.isfile(path) or os.path.isfile(f"{path}.wav")  # False, too, for a name that no disk takes


def _topmost(folder: Path, names: Sequence[str]) -> str | None:
    """The file below `folder` called one of `names` that lies highest; hidden ones, as a Mac leaves them, are none."""
    found = [path for name in names for path in folder.rglob(name)]
    shown_ones = [
        path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return str(min(shown_ones, key=_depth)) if shown_ones else None


def _depth(path: Path) -> tuple[int, str]:
    return len(path.parts), str(path)


def unpacked(archive: str) -> str:
    """The folder with the content of the tar at `archive`. Raises TableError where that is no whole, or no safe, tar."""
    home = cache_folder() / "unpacked" / hashlib.sha256(_stamp(archive).encode()).hexdigest()[:24]
    home.parent.mkdir(parents=True, exist_ok=True)
    # Runs that start together unpack once.
    with FileLock(f"{home}.lock"):
        if not home.is_dir():
            _unpack(archive, home)
    return str(home)


def _unpack(archive: str, home: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=home.parent))
    try:
        files, path = filesystem_of(archive)
        with files.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r|*") as tar:
            tar.extractall(draft, filter="data")
        os.replace(draft, home)
    except (tarfile.TarError, EOFError, *failures()) as error:
        why = explain(error) if isinstance(error, failures()) else error
        raise TableError(f"{shown(archive)} cannot be unpacked ({why}); download it again") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _stamp(archive: str) -> str:
    """What tells one state of an archive from another."""
    try:
        files, path = filesystem_of(archive)
        about = files.info(path)
    except FileNotFoundError:
        raise TableError(f"{shown(archive)}: there is no such archive") from None
    except failures() as error:
        raise TableError(f"{shown(archive)} cannot be read: {explain(error)}") from error
    changed = next((about[key] for key in ("ETag", "etag", "mtime", "LastModified") if key in about), "")
    return f"{files.unstrip_protocol(path)} {about['size']} {changed}"


def _questions(folder: str, names: Sequence[str]) -> str:
    found = next(
        (f"{folder.rstrip('/')}/{name}" for name in names if _exists(f"{folder.rstrip('/')}/{name}")), None
    )
    if found is None:
        lacks = "holds no" if _is_folder(folder) else "is no folder with"
        raise TableError(
            f"{shown(folder)} {lacks} {' or '.join(names)}; give the folder or the file with benchmark.path"
        )
    return found


def _exists(path: str) -> bool:
    return _asked(path, "isfile")


def _is_folder(path: str) -> bool:
    return _asked(path, "isdir")


def _asked(path: str, question: str) -> bool:
    files, inner = filesystem_of(path)
    try:
        return getattr(files, question)(inner)
    except failures() as error:
        raise TableError(f"{shown(path)} cannot be read: {explain(error)}") from error
    except ValueError:
        raise TableError(f"{shown(path)} is not an address") from None


def _lies_unpacked(archive: str, folder: Path) -> bool:
    """Whether the first thing in the archive already lies in the folder."""
    try:
        with tarfile.open(archive) as tar:
            first = tar.next()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise TableError(f"{archive} is no whole tar ({error}); download it again") from error
    return first is not None and (folder / first.name).exists()
