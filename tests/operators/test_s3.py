"""A store, audio and manifests on a real S3-compatible server, as it is and when it misbehaves."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import soundfile as sf
from pydantic.dataclasses import dataclass

from operators.audio import AudioError, decode, pcm_hash
from operators.benchmarks.manifest import Manifest
from operators.inspection import findings
from operators.merging import merge
from operators.remote import ADVICE, explain, open_filesystem
from operators.schema import STORED_SCORE
from operators.store import DamagedPart, Store, StoreError
from operators.tables import TableError, read_rows
from tests.s3_server import KEY, SECRET, in_front_of, moto

# A server in a process of its own, and a client that waits between its tries.
pytestmark = pytest.mark.weights

BUCKET = "lab"
SHELF = "scores/m1"


@dataclass(frozen=True)
class Scorer:
    reads: ClassVar[tuple[str, ...]] = ("text",)
    writes: ClassVar[tuple[str, ...]] = ("score",)
    version: ClassVar[int] = 1


def scores(**values):
    rows = {"key": list(values), "value": list(values.values()), "details": ["{}"] * len(values)}
    return pa.table(rows, schema=STORED_SCORE)


def found(store, *keys):
    return {row["key"]: row["value"] for row in store.scores("m1", Scorer()).find(keys).to_pylist()}


@pytest.fixture(scope="module")
def server():
    with moto() as port:
        yield port


@pytest.fixture
def proxy(server, monkeypatch):
    with in_front_of(server, monkeypatch, BUCKET) as one:
        yield one


@pytest.fixture
def root(proxy, request):
    return f"s3://{BUCKET}/{request.node.name.replace('[', '-').strip(']').replace(' ', '_')}"


def puts(proxy, what):
    return [path for method, path in proxy.requests if method == "PUT" and what in path]


def test_what_is_stored_is_found_in_one_put_per_part_and_merges_stay_sound(proxy, root):
    store = Store(root)
    for key, value in (("a", 0.25), ("b", 0.1 + 0.2)):
        store.scores("m1", Scorer()).append(scores(**{key: value}))
    assert len(puts(proxy, "part-")) == 2 and len(puts(proxy, "spec.json")) == 1
    assert found(Store(root), "a", "b", "c") == {"a": 0.25, "b": 0.1 + 0.2}
    (shelf,) = Store(root).shelves()
    assert len(shelf.parts()) == 2 and shelf.spec()["fingerprint"] in shelf.name
    assert merge(shelf).parts_after == 1 and len(shelf.parts()) == 1
    assert found(store, "a", "b") == {"a": 0.25, "b": 0.1 + 0.2}
    assert not [one for one in findings(shelf) if one.grave]


def test_what_another_writer_added_is_seen_at_once(root):
    mine, other = Store(root), Store(root)
    mine.scores("m1", Scorer()).append(scores(a=1.0))
    assert found(mine, "a", "b") == {"a": 1.0}
    other.scores("m1", Scorer()).append(scores(b=2.0))
    assert found(mine, "a", "b") == {"a": 1.0, "b": 2.0}


def test_two_writers_at_once_lose_nothing(root):
    def write(writer):
        for n in range(6):
            Store(root).scores("m1", Scorer()).append(scores(**{f"w{writer}-{n}": float(n), f"same{n}": 7.0}))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    shelf = Store(root).scores("m1", Scorer())
    assert len(shelf.parts()) == 12, "2 writers x 6 blocks, none overwrote another's"
    keys = shelf.read(["value"])["key"].to_pylist()
    assert sorted(keys) == sorted(
        [f"w{w}-{n}" for w in range(2) for n in range(6)] + [f"same{n}" for n in range(6)]
    )


def test_a_damaged_part_is_set_aside_by_name(root):
    store = Store(root)
    store.scores("m1", Scorer()).append(scores(a=1.0))
    store.scores("m1", Scorer()).append(scores(b=2.0))
    shelf = store.scores("m1", Scorer())
    part = shelf.parts()[0]
    store.filesystem.pipe_file(part, store.filesystem.cat_file(part)[:100])
    with pytest.warns(DamagedPart, match=f"set aside as damaged-{part.rsplit('/', 1)[1]}"):
        assert found(store, "a", "b") == {"b": 2.0}
    assert len(shelf.parts()) == 1


@pytest.mark.parametrize(
    "faults",
    [["ServiceUnavailable"] * 3, ["empty 503"] * 3, ["SlowDown"] * 3, ["cut", "cut"], ["InternalError"]],
)
def test_what_can_pass_is_tried_again_and_one_part_appears(proxy, root, faults):
    proxy.fail("PUT", *faults)
    Store(root).scores("m1", Scorer()).append(scores(a=1.0))
    assert proxy.played == faults
    assert len(Store(root).scores("m1", Scorer()).parts()) == 1, "a PUT that is done twice leaves one object"
    assert found(Store(root), "a") == {"a": 1.0}


def test_a_body_that_is_cut_off_is_fetched_again(proxy, root):
    Store(root).scores("m1", Scorer()).append(scores(a=1.0))
    (part,) = Store(root).scores("m1", Scorer()).parts()
    proxy.fail("GET", "cut body", "cut")
    assert len(Store(root).filesystem.cat_file(part)) > 100
    proxy.fail("GET", "cut", "SlowDown")
    assert found(Store(root), "a") == {"a": 1.0}
    assert proxy.played == ["cut body", "cut", "cut", "SlowDown"]


@pytest.mark.parametrize(
    "code", ["RequestTimeTooSkewed", "ExpiredToken", "AccessDenied", "SignatureDoesNotMatch"]
)
def test_what_cannot_pass_is_told_at_once_with_what_to_do(proxy, root, code):
    Store(root).scores("m1", Scorer()).append(scores(a=1.0))
    proxy.fail("PUT", code)
    with pytest.raises(StoreError, match=code) as written:
        Store(root).scores("m1", Scorer()).append(scores(b=1.0))
    proxy.fail("GET", code)
    with pytest.raises(StoreError, match=code) as read:
        found(Store(root), "a")
    assert proxy.played == [code, code], "not tried again"
    for text in (str(written.value), str(read.value)):
        assert root in text and ADVICE[code] in text and SECRET not in text and KEY not in text
    assert "What was stored before is safe" in str(written.value)
    assert found(Store(root), "a", "b") == {"a": 1.0}


def test_tries_end_and_the_store_is_as_it_was(proxy, root, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    fsspec.filesystem("s3").clear_instance_cache()
    store = Store(root)
    store.scores("m1", Scorer()).append(scores(a=1.0))
    proxy.fail("PUT", "ServiceUnavailable", "ServiceUnavailable")
    with pytest.raises(StoreError, match="overloaded or down"):
        store.scores("m1", Scorer()).append(scores(b=2.0))
    assert proxy.played == ["ServiceUnavailable"] * 2, "as often as AWS_MAX_ATTEMPTS says"
    assert found(store, "a", "b") == {"a": 1.0}
    store.scores("m1", Scorer()).append(scores(b=2.0))
    assert found(store, "a", "b") == {"a": 1.0, "b": 2.0}


def test_a_bucket_that_is_not_there_is_no_empty_store(proxy):
    with pytest.raises(StoreError, match="NoSuchBucket: there is no such bucket"):
        list(Store("s3://no-such-bucket/store").shelves())


def test_missing_credentials_are_told(proxy, root, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    fsspec.filesystem("s3").clear_instance_cache()
    with pytest.raises(StoreError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        found(Store(root), "a")


def clip(path, pitch=440.0):
    sf.write(path, 0.3 * np.sin(2 * np.pi * pitch * np.arange(8000) / 16000), 16000)
    return path


def test_a_manifest_and_its_clips_are_read_from_a_bucket(proxy, root, tmp_path):
    files, place = open_filesystem(root)
    local = clip(tmp_path / "a.wav")
    files.pipe_file(f"{place}/clips/a.wav", local.read_bytes())
    line = {
        "id": "q",
        "question": "What?",
        "choices": ["dog", "cat"],
        "answer": "dog",
        "audio": "clips/a.wav",
    }
    files.pipe_file(f"{place}/q.jsonl", json.dumps(line).encode())
    (item,) = Manifest(path=f"{root}/q.jsonl").load().to_pylist()
    assert item["item_error"] is None and item["audio_uris"] == [f"{root}/clips/a.wav"]
    proxy.fail("GET", "cut body", "SlowDown")
    assert pcm_hash(decode(item["audio_uris"][0])) == pcm_hash(decode(str(local)))


def test_a_clip_or_manifest_that_cannot_be_had_says_why(proxy, root):
    with pytest.raises(AudioError, match="missing_file"):
        decode(f"{root}/none.wav")
    with pytest.raises(TableError, match="no such file"):
        read_rows(f"{root}/none.jsonl")
    files, place = open_filesystem(root)
    files.pipe_file(f"{place}/q.jsonl", b"{}")
    proxy.fail("HEAD", "AccessDenied")
    with pytest.raises(TableError, match="cannot be read: 403: check AWS_ACCESS_KEY_ID") as told:
        read_rows(f"{root}/q.jsonl")
    assert SECRET not in str(told.value)


def test_explanations_repeat_no_message():
    assert explain(ValueError(SECRET)) == "ValueError"
    assert explain(OSError(28, "No space left on device")) == "No space left on device"
