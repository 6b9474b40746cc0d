"""Nights on a real Ray with toy scorers: what is scored anew, what is only found, and what the drift report says."""

import contextlib
import io
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir

from operators.schema import METRICS, STORED_RESPONSE
from operators.store import Store
from operators.tables import TableError
from pipelines import compare
from pipelines.config import CONF, ConfigError
from pipelines.rescore import rescore
from tests.pipelines.cli import TOY_PATH, evaluated
from tests.pipelines.test_aria_eval import question, recorded, said, tone, write_lines

# Whole runs on Ray: more time than the fast part has.
pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]


def night(folder, out, *overrides):
    """One night over the store in `folder`: its exit status and what it printed."""
    where = [TOY_PATH, "scorers=toy", f"store.root={folder / 'store'}", f"out={folder / out}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("rescore", overrides=[*where, *overrides])
    told = io.StringIO()
    with (
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(told),
        pytest.raises(SystemExit) as ended,
    ):
        rescore(config, "toy")
    return ended.value.code, told.getvalue()


def rows(folder, out):
    whole = folder / out / "results.parquet"
    table = pq.read_table(whole if whole.exists() else folder / out / "rows.parquet")
    return {(row["model"], row["item_id"]): row for row in table.to_pylist()}


def computed(folder, out):
    stages = json.loads((folder / out / "run.json").read_text())["stages"]
    return {name: tally["computed"] for name, tally in stages.items() if name.startswith("m")}


def report(folder, out):
    return json.loads((folder / out / "drift.json").read_text())


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """What a run over four questions leaves; tests work on copies."""
    folder = tmp_path_factory.mktemp("four")
    asked(folder)
    return folder


@pytest.fixture
def folder(four, tmp_path):
    return shutil.copytree(four, tmp_path / "copy")


def asked(folder, n=4, **other):
    """Questions 0..n-1 about a clip each, and the responses of `good` and `poor`, evaluated once."""
    for number in range(n):
        if not (folder / f"{number}.wav").exists():
            tone(folder / f"{number}.wav", pitch=300 + 100 * number)
    write_lines(folder / "q.jsonl", [question(k, f"{k}.wav", **other) for k in range(n)])
    good = [said(k, f"{'word ' * (k + 3)}good", model="good") for k in range(n)]
    poor = [said(k, f"{'word ' * k}poor", "cat", model="poor") for k in range(n)]
    write_lines(folder / "r.jsonl", good + poor)
    done = evaluated(folder, TOY_PATH, "scorers=toy", *recorded(folder))
    assert done.returncode == 0, done.stderr


def test_a_night_finds_everything_without_the_benchmark_and_gives_the_same_numbers(folder):
    before = pq.read_table(folder / "run" / "results.parquet").to_pylist()
    (folder / "q.jsonl").unlink()
    (folder / "r.jsonl").unlink()
    status, told = night(folder, "one", "results=true")
    assert status == 0 and "first night of its series" in told
    assert set(computed(folder, "one").values()) == {0}, "nothing is computed twice"
    after = rows(folder, "one")
    assert len(after) == len(before) == 8
    for row in before:
        assert after[row["model"], row["item_id"]] == row
    status, told = night(folder, "two", "rows_at_once=3", "results=true")
    assert status == 0 and "Nothing changed since" in told, "in goes of any size"
    assert rows(folder, "two") == after
    assert report(folder, "two")["alert"] is False


def test_a_changed_scorer_is_computed_reported_and_refused_in_a_plain_comparison(folder, capsys):
    night(folder, "one")
    status, told = night(folder, "two", "+scorers.m2.scale=50")
    assert status == 3 and "another scorer of M2 (scale: 100.0 to 50.0)" in told
    assert computed(folder, "two") == {"m1": 0, "m2": 8, "m3": 0, "m4": 0, "m5": 0, "m6": 0}
    (change,) = [
        c for c in report(folder, "two")["changes"] if (c["model"], c["measure"]) == ("good", METRICS[1])
    ]
    # Words of the reasoning: 4, 5, 6, 7 of 100, then of 50; a standard deviation of 0.0129 in four items.
    assert change["last"] == pytest.approx(0.055) and change["now"] == pytest.approx(0.11)
    assert change["beyond"] and change["rescored"] == pytest.approx(0.055)

    def compared(*more):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            places = [f"last={folder / 'one'}", f"now={folder / 'two'}"]
            compare.main(compose("compare", overrides=[*places, *more]))
        return capsys.readouterr().out

    with pytest.raises(
        ConfigError, match=r"different scorers(.|\n)*M2: [0-9a-f]{16} and [0-9a-f]{16}(.|\n)*force=true"
    ):
        compared()
    assert "**M2: another scorer.**" in compared("force=true")
    first = json.loads((folder / "one" / "run.json").read_text())
    second = json.loads((folder / "two" / "run.json").read_text())
    older = first | {"fingerprints": second["fingerprints"] | {"extract": "0123456789abcdef"}}
    (folder / "one" / "run.json").write_text(json.dumps(older))
    with pytest.raises(
        ConfigError, match=r"different scorers(.|\n)*EXTRACT: 0123456789abcdef and (.|\n)*force"
    ):
        compared()
    for out in ("one", "two"):
        record = json.loads((folder / out / "run.json").read_text())
        del record["fingerprints"]
        (folder / out / "run.json").write_text(json.dumps(record))
    with pytest.raises(
        ConfigError, match=r"do not both say which scorers(.|\n)*M1: not recorded and not rec"
    ):
        compared()
    assert "# Drift: two" in compared("force=true", f"out={folder / 'new' / 'drift'}")
    assert json.loads((folder / "new" / "drift" / "drift.json").read_text())["last"] == "one"
    (folder / "two" / "run.json").write_text(json.dumps(second))
    with pytest.raises(
        ConfigError, match=r"do not both say which scorers(.|\n)*M1: not recorded and [0-9a-f]{16}"
    ):
        compared()
    for record in ([1], None, {"fingerprints": "m1"}):
        (folder / "two" / "run.json").write_text(json.dumps(record))
        with pytest.raises(TableError, match=r"two/run.json is not the record of a run"):
            compared()
    status, told = night(folder, "three")
    assert status == 3 and computed(folder, "three")["m2"] == 0, "the old scores are still there"


def test_new_responses_are_scored_and_named_as_new_rows(tmp_path):
    asked(tmp_path, 3)
    night(tmp_path, "one")
    asked(tmp_path, 4)
    shutil.rmtree(tmp_path / "store" / "scores")
    status, _ = night(tmp_path, "two")
    found = report(tmp_path, "two")
    causes = {cause["kind"] for change in found["changes"] for cause in change["causes"]}
    assert causes >= {"new_rows"} and "unexplained" not in causes and found["n_changed"] > 0
    assert len(rows(tmp_path, "two")) >= 8 and status in (0, 3)


def test_a_clip_that_is_gone_costs_its_m1_with_a_reason_and_nothing_else(tmp_path):
    for number in range(3):
        tone(tmp_path / f"{number}.wav", pitch=300 + 100 * number)
    write_lines(tmp_path / "q.jsonl", [question(k, f"{k}.wav") for k in range(3)])
    write_lines(tmp_path / "r.jsonl", [said(k, f"bark {k}") for k in range(3)])
    real = ["scorers.m1={_target_: tests.toys.Hearing}"]
    assert evaluated(tmp_path, TOY_PATH, "scorers=toy", *recorded(tmp_path)).returncode == 0
    (tmp_path / "1.wav").unlink()
    tone(tmp_path / "2.wav", pitch=999)
    night(tmp_path, "one", *real)
    found = rows(tmp_path, "one")
    values = [found["r", f"q{k}"][METRICS[0]] for k in range(3)]
    assert values == [1.0, None, None]
    reasons = [found["r", f"q{k}"][f"{METRICS[0]}_reason"] for k in (1, 2)]
    assert "missing_file" in reasons[0] and "audio_changed" in reasons[1]
    assert all(found["r", f"q{k}"][METRICS[1]] is not None for k in range(3))
    assert "missing_file" in (tmp_path / "one" / "failures.csv").read_text()


def test_a_corrected_gold_answer_holds_from_the_next_evaluation_on(folder):
    night(folder, "one")
    asked(folder, answer="cat")
    status, _ = night(folder, "two")
    assert [rows(folder, "two")["poor", f"q{k}"]["correct"] for k in range(4)] == [True] * 4
    accuracy = [c for c in report(folder, "two")["changes"] if c["measure"] == "accuracy"]
    assert {cause["kind"] for change in accuracy for cause in change["causes"]} == {"changed_items"}
    assert status == 3 and {change["now"] for change in accuracy} == {0.0, 1.0}


def test_questions_that_a_stopped_run_did_not_come_to_wait_and_are_not_wrong_answers(folder):
    store = Store(str(folder / "store"))
    (shelf,) = store.shelves("responses")
    rows_there = shelf.read()
    shelf.remove(shelf.parts())
    shelf.commit(rows_there.slice(0, 5), "20260101T000000000000")
    _, told = night(folder, "one")
    assert "note: 3 questions wait for a response" in told and len(rows(folder, "one")) == 5


def test_responses_whose_questions_were_not_kept_are_counted_by_name(folder):
    store = Store(str(folder / "store"))
    old = pa.Table.from_pylist([{"key": "k", "item_id": "q", "response": "x"}], schema=STORED_RESPONSE)
    store.shelf("responses/0123456789abcdef").commit(old, "20260101T000000000000")
    _, told = night(folder, "one")
    assert "note: 1 stored responses of 1 models are not scored" in told and len(rows(folder, "one")) == 8


def test_a_night_that_fails_too_often_exits_with_1_and_still_leaves_its_tables(tmp_path):
    write_lines(tmp_path / "q.jsonl", [question(k, "a.wav") for k in range(2)])
    tone(tmp_path / "a.wav")
    write_lines(tmp_path / "r.jsonl", [said(0, "crash"), said(1, "fine words")])
    evaluated(tmp_path, TOY_PATH, "scorers=toy", *recorded(tmp_path), "max_failure_rate=1")
    status, _ = night(tmp_path, "one", "max_failure_rate=0.1")
    # The other row's score is in the store already.
    assert isinstance(status, str) and "m2 failed on 1 of 1 rows scored tonight" in status
    assert rows(tmp_path, "one")["r", "q0"][f"{METRICS[1]}_reason"] == "ValueError: crash"
    # The next night tries the metric again, fails as before, and that is no news.
    status, _ = night(tmp_path, "two", "max_failure_rate=0.1")
    assert status == 0 and computed(tmp_path, "two")["m2"] == 1, "only the row that lacks it"


def test_a_scorer_that_stays_broken_alarms_every_night_until_it_works_or_is_acknowledged(folder):
    broken = folder / "broken"
    broken.touch()
    toy = ["scorers.m2._target_=tests.toys.Breakable", f"+scorers.m2.broken={broken}"]
    status, _ = night(folder, "one", *toy)
    assert "m2 failed on 8 of 8 rows scored tonight" in status
    first = json.loads((folder / "one" / "run.json").read_text())
    assert first["out"] == {"m2": None}
    assert report(folder, "one")["alert"] and "m2 failed on 8 of 8" in report(folder, "one")["alarms"][0]
    assert "## Failed tonight" in (folder / "one" / "drift.md").read_text()
    for out in ("two", "three"):
        status, told = night(folder, out, *toy)
        (outage,) = report(folder, out)["outages"]
        assert outage["metric"] == "m2" and outage["n_rows"] == 8 and outage["reasons"] == {"RuntimeError": 8}
        assert report(folder, out)["alert"] and "M2 has scored nothing since night" in status
        assert f"since night {outage['since']}" in report(folder, out)["alarms"][0]
        assert "M2 has scored nothing" in (folder / out / "drift.md").read_text() and "! M2 has" in told
    assert outage["since"] == report(folder, "two")["last"], "it began in the first night"
    status, _ = night(folder, "known", *toy, "acknowledged=[m2]")
    found = report(folder, "known")
    assert status == 0 and found["outages"][0]["acknowledged"] and not found["alert"]
    assert "## Acknowledged" in (folder / "known" / "drift.md").read_text()
    broken.unlink()
    assert night(folder, "works", *toy)[0] == 0 and report(folder, "works")["outages"] == []


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("acknowledged=[m7]", "acknowledged: 'm7' is no metric; there are m1, m2"),
        ("series=../outside", "series: a plain name without /"),
        ("series=team/mine", "series: a plain name without /"),
        ("series=.hidden", "series: a plain name"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_read(tmp_path, override, said):
    with pytest.raises(ConfigError, match=said):
        night(tmp_path, "typo", override)
