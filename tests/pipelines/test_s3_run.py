"""Whole runs with everything in a bucket: questions, clips, responses and store; the same table as from local files."""

import pytest

from operators.remote import open_filesystem
from pipelines.aria_eval import evaluate
from pipelines.config import Cluster
from pipelines.execution import session
from tests.pipelines.cli import TOY_PATH, composed, evaluated
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines
from tests.s3_server import KEY, in_front_of, moto

# A whole run on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

BUCKET = "lab"
ROOT = f"s3://{BUCKET}/here"


@pytest.fixture
def proxy(monkeypatch):
    with moto() as port, in_front_of(port, monkeypatch, BUCKET) as one:
        yield one


def files(folder):
    for clip in range(3):
        tone(folder / f"{clip}.wav", pitch=300 + clip)
    write_lines(folder / "q.jsonl", [question(n, f"{n % 3}.wav") for n in range(24)])
    write_lines(folder / "r.jsonl", [said(n, "word " * n + f"number{n}") for n in range(24)])


def run(out, where):
    path = [f"benchmark.path={where}/q.jsonl", f"model.path={where}/r.jsonl"]
    store = [f"store.root={ROOT}/store", f"out={out}"]
    evaluate(
        composed(TOY_PATH, "scorers=toy", "benchmark=manifest", "model=recorded", *path, *store), "model", "t"
    )


def test_everything_in_a_bucket_behind_a_bad_line(proxy, tmp_path, capfd):
    files(tmp_path)
    bucket, place = open_filesystem(ROOT)
    bucket.put(str(tmp_path) + "/", f"{place}/", recursive=True)
    with session(Cluster(num_cpus=2)):
        local = evaluated(tmp_path, TOY_PATH, "scorers=toy", *recorded(tmp_path))
        assert local.returncode == 0, local.stderr
        proxy.fail("GET", "SlowDown", "cut")
        proxy.fail("PUT", "ServiceUnavailable", "cut")
        run(tmp_path / "first" / "run", ROOT)
        assert proxy.played == ["SlowDown", "cut", "ServiceUnavailable", "cut"]
        run(tmp_path / "second" / "run", ROOT)
    told = capfd.readouterr()
    for name, stored in (("first", 0), ("second", 24)):
        got = results(tmp_path / name)
        assert got.drop_columns("audio_uris").equals(results(tmp_path).drop_columns("audio_uris"))
        assert got["audio_uris"][0].as_py() == [f"{ROOT}/0.wav"]
        assert record(tmp_path / name)["stages"]["m1"]["from_store"] == stored
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    written += list(bucket.cat(bucket.find(f"{place}/store")).values())
    assert len(written) > 20
    for secret in (KEY, proxy.url):
        assert secret not in told.out + told.err
        assert not any(secret.encode() in data for data in written)
