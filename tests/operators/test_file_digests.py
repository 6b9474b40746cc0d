"""Digests that are remembered: never for other content, and never needed."""

import hashlib
import json
import os
import time

import pytest

from operators import file_digests
from operators.file_digests import SETTLED_NS
from operators.weights import Weights

LONG_AGO = time.time_ns() - 10 * SETTLED_NS


@pytest.fixture(autouse=True)
def small_files_count_as_large(monkeypatch):
    monkeypatch.setattr(file_digests, "SMALL", 1000)


def file_digest(file, cache):
    """What a new process would say, which has only the cache."""
    file_digests._known.clear()
    return file_digests.file_digest(file, cache)


@pytest.fixture
def reads(monkeypatch):
    """The files that were read whole; the file system says that all of them changed last long ago, as `after` says."""
    found, real, state = [], file_digests._read, file_digests._state
    monkeypatch.setattr(file_digests, "_read", lambda file: found.append(file.name) or real(file))
    # No program can set ctime back, so that a test has to say what the system would.
    monkeypatch.setattr(file_digests, "_state", lambda file: {**state(file), "ctime_ns": LONG_AGO})
    return found


def large(folder, content=b"weights"):
    path = folder / "model.safetensors"
    path.write_bytes(content.ljust(1000, b"\0"))
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_large_file_is_read_once_and_then_known(tmp_path, reads):
    path, digest = large(tmp_path)
    assert [file_digest(path, tmp_path / "cache") for _ in range(3)] == [digest] * 3
    assert reads == ["model.safetensors"]
    assert file_digest(path, tmp_path / "other") == digest and len(reads) == 2, "another user's cache"


def test_what_changed_in_any_way_the_file_system_tells_is_read_again(tmp_path, reads, monkeypatch):
    path, digest = large(tmp_path)
    cache = tmp_path / "cache"
    file_digest(path, cache)
    with path.open("r+b") as file:
        file.write(b"changed")
    os.utime(path, ns=(LONG_AGO, LONG_AGO + 1))
    changed = hashlib.sha256(path.read_bytes()).hexdigest()
    assert file_digest(path, cache) == changed != digest and len(reads) == 2, "same size, later"
    state = file_digests._state
    # Content, size and mtime put back as they were: ctime says that something happened.
    monkeypatch.setattr(file_digests, "_state", lambda file: {**state(file), "ctime_ns": LONG_AGO + 5})
    assert file_digest(path, cache) == changed and len(reads) == 3
    path.replace(tmp_path / "old")
    new, digest = large(tmp_path, b"another file of that name")
    assert file_digest(new, cache) == digest and len(reads) == 4


def test_a_file_that_changed_just_now_or_while_it_was_read_is_not_remembered(tmp_path, reads, monkeypatch):
    path, digest = large(tmp_path)
    os.utime(path)
    cache = tmp_path / "cache"
    assert [file_digest(path, cache) for _ in range(2)] == [digest] * 2 and len(reads) == 2
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    state, read = file_digests._state, file_digests._read
    seen = iter(range(100))
    monkeypatch.setattr(file_digests, "_state", lambda file: {**state(file), "inode": next(seen)})
    monkeypatch.setattr(file_digests, "_read", read)
    assert file_digest(path, cache) == digest and not list(cache.rglob("*.json"))


def test_without_a_fresh_clock_nothing_is_remembered(tmp_path):
    path, digest = large(tmp_path)
    assert file_digest(path, tmp_path / "cache") == digest
    assert not (tmp_path / "cache").exists(), "its real ctime is now, whatever its mtime says"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"sha256": 5}', json.dumps({"sha256": "0" * 64, "size": 1})]
)
def test_a_cache_that_is_broken_or_not_ours_costs_time_alone(tmp_path, reads, text):
    path, digest = large(tmp_path)
    cache = tmp_path / "cache"
    file_digest(path, cache)
    (entry,) = cache.rglob("*.json")
    entry.write_text(text)
    assert file_digest(path, cache) == digest and len(reads) == 2
    assert file_digest(path, cache) == digest and len(reads) == 2, "and is mended"
    (tmp_path / "file").write_text("no folder")
    assert file_digest(path, tmp_path / "file") == digest


def test_a_process_reads_no_file_twice_however_young(tmp_path, monkeypatch):
    path, digest = large(tmp_path)
    assert file_digest(path, tmp_path / "cache") == digest
    monkeypatch.delattr(file_digests, "_read")
    assert file_digests.file_digest(path, tmp_path / "cache") == digest


def test_small_files_leave_nothing_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    total = hashlib.sha256(f"config.json\0{hashlib.sha256(b'{}').hexdigest()}\0".encode()).hexdigest()
    assert Weights(str(tmp_path / "weights")).identity() == {"sha256": total}
    assert not (tmp_path / "cache").exists()
