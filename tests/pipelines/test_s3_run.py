"""Whole runs, nights and store commands with everything in a bucket behind a bad line: the same tables as from local files."""

import json

import pyarrow.parquet as pq
import pytest

from operators.inspection import findings
from operators.remote import open_filesystem
from operators.schema import METRICS
from operators.store import Store
from pipelines import store as command
from pipelines.aria_eval import evaluate
from pipelines.rescore import rescore
from tests.pipelines.cli import TOY_PATH, composed, evaluated, own_ray
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines
from tests.s3_server import KEY, in_front_of, moto

# A whole run on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

BUCKET = "lab"
ROOT = f"s3://{BUCKET}/here"


@pytest.fixture(scope="module")
def line():
    """The proxy, and a Ray whose workers know it: they keep the environment that Ray was started in."""
    with (
        pytest.MonkeyPatch.context() as patch,
        moto() as port,
        in_front_of(port, patch, BUCKET) as one,
        own_ray(),
    ):
        yield one


@pytest.fixture
def proxy(line):
    line.faults.clear(), line.played.clear()
    line.break_first(None, fault=None)
    return line


def files(folder):
    for clip in range(3):
        tone(folder / f"{clip}.wav", pitch=300 + clip)
    write_lines(folder / "q.jsonl", [question(n, f"{n % 3}.wav") for n in range(24)])
    write_lines(folder / "r.jsonl", [said(n, "word " * n + f"number{n}") for n in range(24)])


def run(out, where):
    path = [f"benchmark.path={where}/q.jsonl", f"model.path={where}/r.jsonl"]
    store = [f"store.root={where}/store", f"out={out}"]
    evaluate(
        composed(TOY_PATH, "scorers=toy", "benchmark=manifest", "model=recorded", *path, *store), "model", "t"
    )


def test_everything_in_a_bucket_behind_a_bad_line(proxy, tmp_path, capfd):
    files(tmp_path)
    bucket, place = open_filesystem(ROOT)
    bucket.put(str(tmp_path) + "/", f"{place}/", recursive=True)
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


@pytest.fixture(scope="module")
def undisturbed(line, tmp_path_factory):
    """Input files, and the result of a run over a local store."""
    folder = tmp_path_factory.mktemp("undisturbed")
    files(folder)
    run(folder / "run", folder)
    return folder


PART = "/scores/m1_acoustic_grounding/"


@pytest.mark.parametrize(
    "fault", ["ServiceUnavailable", "cut", None], ids=["503 for good", "landed, and no answer", "what passes"]
)
def test_faults_that_meet_a_workers_own_commit(proxy, undisturbed, tmp_path, capsys, fault):
    """Only workers write scores as long as they can. What one cannot write in all its tries is the driver's to write, once."""
    root = f"s3://{BUCKET}/workers/{tmp_path.name}"
    if fault:
        proxy.break_first("PUT", PART, "/part-", fault=fault)
    else:
        proxy.fail("PUT", "SlowDown", "cut", "ServiceUnavailable", "cut", on=PART)
    path = [
        f"benchmark.path={undisturbed}/q.jsonl",
        f"model.path={undisturbed}/r.jsonl",
        "cluster.m1.batch_size=6",
    ]
    where = [f"store.root={root}", f"out={tmp_path / 'run'}"]
    evaluate(
        composed(TOY_PATH, "scorers=toy", "benchmark=manifest", "model=recorded", *path, *where), "model", "t"
    )
    assert (proxy.broken_path is None) == (fault is None) and not proxy.faults
    assert ("results were stored by the driver" in capsys.readouterr().err) == (fault is not None)
    assert results(tmp_path).equals(results(undisturbed))
    here, there = Store(root), Store(f"{undisturbed}/store")
    for one, other in zip(here.shelves("scores"), there.shelves("scores"), strict=True):
        assert list(findings(one)) == [], "sound, and no key twice"
        assert sorted(one.read().to_pylist(), key=str) == sorted(other.read().to_pylist(), key=str)


def night(out, root, *overrides):
    """The exit status of one night over the store at `root`."""
    where = [TOY_PATH, "scorers=toy", f"store.root={root}", f"out={out}"]
    with pytest.raises(SystemExit) as ended:
        rescore(composed(*where, *overrides, pipeline="rescore"), "toy")
    return ended.value.code


def told_by(capsys, root, *words):
    """What `python -m pipelines.store` prints about the store at `root`."""
    capsys.readouterr()
    command.main(
        composed(*command.as_override(["store", *words])[1:], f"store.root={root}", pipeline="store")
    )
    return capsys.readouterr().out


def test_nights_and_store_commands_on_a_bucket_behind_a_bad_line(proxy, tmp_path, capsys):
    root = f"s3://{BUCKET}/there"
    files(tmp_path)
    bucket, place = open_filesystem(root)
    bucket.put(str(tmp_path) + "/", f"{place}/", recursive=True)
    run(tmp_path / "whole" / "run", root)
    whole, root = results(tmp_path / "whole"), f"{root}/store"

    proxy.fail("GET", "SlowDown", "cut", "cut body")
    proxy.fail("PUT", "InternalError", "cut")
    assert night(tmp_path / "one", root) == 0
    assert proxy.played == ["SlowDown", "cut", "cut body", "InternalError", "cut"]
    scores = pq.read_table(tmp_path / "one" / "rows.parquet").select(METRICS)
    assert sorted(scores.to_pylist(), key=str) == sorted(whole.select(METRICS).to_pylist(), key=str)
    # Another scale of M2: 24 rows anew, drift against the night that the bucket keeps, and nothing else computed.
    assert night(tmp_path / "two", root, "+scorers.m2.scale=50") == 3
    stages = json.loads((tmp_path / "two" / "run.json").read_text())["stages"]
    assert {name: stages[name]["computed"] for name in ("m1", "m2", "m6")} == {"m1": 0, "m2": 24, "m6": 0}

    proxy.fail("GET", "ServiceUnavailable", "cut", "cut body", "SlowDown")
    assert "nightly series toy: 2 nights" in told_by(capsys, root, "ls")
    assert "0 wrong" in told_by(capsys, root, "verify")
    proxy.fail("PUT", "SlowDown", "cut")
    proxy.fail("DELETE", "InternalError")
    assert "no other row touched" in told_by(capsys, root, "compact")
    assert "0 wrong" in told_by(capsys, root, "verify")
    # 6 metrics of 24 rows, and 24 more of the other M2
    assert "168 scores" in told_by(capsys, root, "export", f"out={tmp_path / 'scores.csv'}")
    assert "nothing was removed" in told_by(capsys, root, "gc", "keep_nights=1")
    assert "removed 1 files or folders" in told_by(capsys, root, "gc", "keep_nights=1", "delete=true")
    assert "nightly series toy: 1 nights" in told_by(capsys, root, "ls")
    assert night(tmp_path / "three", root, "+scorers.m2.scale=50") == 0, "as the night that was kept"
    assert not proxy.faults, "every fault was met"
