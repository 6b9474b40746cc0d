"""`python -m pipelines.stress` on a finished run: toys on a real Ray, and the offline scorers on a few chains."""

import contextlib
import io
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir

from operators.benchmarks.sample import Sample
from operators.fingerprint import fingerprint
from operators.frames import with_columns
from operators.schema import METRICS
from operators.stress import ALIKE, NAMES, ORIGINAL
from pipelines import stress
from pipelines.config import CONF, ConfigError
from pipelines.stress_settings import Stress, chosen_rows
from tests import toys
from tests.operators.analysis.made import scored_rows
from tests.pipelines.cli import TOY_PATH, composed, evaluated

CAREFUL = [f"model.path={Sample().yardsticks()['careful']}", "model=recorded", "yardsticks=false"]


def stressed(folder, *overrides):
    """The stress test of the run in `folder`, in this process."""
    where = [f"run={folder / 'run'}", f"store.root={folder / 'store'}", f"out={folder / 'stress'}"]
    stress.main(composed(*where, "n_resamples=200", *overrides, pipeline="stress"))
    return pq.read_table(folder / "stress" / "stress.parquet").to_pylist()


@pytest.fixture(scope="module")
def toy_run(tmp_path_factory, ray_session):
    folder = tmp_path_factory.mktemp("toys")
    done = evaluated(folder, TOY_PATH, "scorers=toy", "benchmark.limit=3", *CAREFUL)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def toy_changes(toy_run):
    """Every manipulation of the toy run: the table of changes, and what was printed."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        return stressed(toy_run, TOY_PATH, "scorers=toy"), out.getvalue(), error.getvalue()


@pytest.mark.weights
def test_toys_count_words_of_the_reasoning_and_three_items_do_not_tell_what_pays(toy_run, toy_changes):
    rows, out, error = toy_changes
    changes = {(r["manipulation"], r["outcome"]): r for r in rows}
    assert {name for name, _ in changes} == set(NAMES)
    rows = pq.read_table(toy_run / "stress" / "stress_rows.parquet").to_pylist()
    words = {name: np.mean([len(r["reasoning"].split()) for r in rows if r["manipulation"] == name]) for name in
             (ORIGINAL, "every_choice", "repeated_word", "all_music", "silence")}  # fmt: skip
    for name in ("every_choice", "repeated_word", "all_music", "silence"):
        for outcome in (*METRICS, "aria"):
            expected = (words[name] - words[ORIGINAL]) / 100
            assert changes[name, outcome]["difference"] == pytest.approx(expected), (name, outcome)
    findings = (toy_run / "stress" / "stress_findings.md").read_text()
    for name, sign in ((r"every\_choice", r"\+"), (r"filler", "-")):
        assert re.search(
            rf"- {re.escape(name)}: ARIA changes by {sign}\d.*, too few items to tell", findings
        ), name
    assert "PAYS" not in findings and changes["every_choice", "aria"]["low"] > 0
    assert findings.endswith("- Only 3 items: the intervals are rough.\n")
    few = "few items (3): the interval is rough"
    assert {change["note"] for change in changes.values()} == {few, f"{few}; {ALIKE}"}
    assert all((change["low"] is None) == (ALIKE in change["note"]) for change in changes.values())
    assert "Only 3 items" in out and "scored by another" not in error
    assert "pipelines.report" not in out, "what it leaves is no run"
    assert (
        '"repeated_word: careful","answer","no_choice_named",3,'
        in (toy_run / "stress" / "failures.csv").read_text()
    )
    record = json.loads((toy_run / "stress" / "run.json").read_text())
    assert record["run"] == str(toy_run / "run") and record["manipulations"] == list(NAMES)


@pytest.mark.weights
def test_a_second_test_finds_all_scores_in_the_store(toy_run, toy_changes, capsys):
    again = stressed(toy_run, TOY_PATH, "scorers=toy", "manipulations=[filler,silence]")
    assert "computed 0 responses and scores" in capsys.readouterr().out
    assert again == [row for row in toy_changes[0] if row["manipulation"] in ("filler", "silence")]


@pytest.mark.weights
def test_the_models_of_several_runs_stand_in_one_table(toy_run):
    rows = pq.read_table(toy_run / "run" / "results.parquet")
    (toy_run / "other").mkdir()
    names = pa.array(["another"] * len(rows))
    pq.write_table(with_columns(rows, {"model": names}), toy_run / "other" / "results.parquet")
    both = f"run=[{toy_run / 'run'},{toy_run / 'other'}]"
    changes = stressed(toy_run, both, TOY_PATH, "scorers=toy", "manipulations=[filler]", "limit=2")
    aria = {row["model"]: (row["difference"], row["n"]) for row in changes if row["outcome"] == "aria"}
    assert aria["all"] == (pytest.approx(aria["another"][0]), 4) and aria["another"] == aria["careful"]
    record = json.loads((toy_run / "stress" / "run.json").read_text())
    assert record["run"] == [str(toy_run / "run"), str(toy_run / "other")]


def test_the_first_items_are_counted_by_benchmark_and_id():
    rows = scored_rows([("A", benchmark, item, 0.5) for benchmark in "xy" for item in ("1", "2")])
    kept = chosen_rows(Stress(limit=3), rows)
    assert list(zip(*(kept[name].to_pylist() for name in ("benchmark", "item_id")), strict=True)) == [
        ("x", "1"), ("x", "2"), ("y", "1"),
    ]  # fmt: skip


def test_other_scorers_than_those_of_the_run_are_told(tmp_path):
    run = {"fingerprints": {"m1": fingerprint(toys.M1()), "m5": fingerprint(toys.M5())}}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    same = {"m1": toys.M1(), "m2": toys.M2(), "m5": toys.M5()}
    assert stress.other_scorers(tmp_path, same) == []
    (told,) = stress.other_scorers(tmp_path, {**same, "m5": toys.M5(scale=50)})
    assert "was scored by another m5," in told


def test_a_mistake_is_named_before_anything_starts(tmp_path):
    def fails(*overrides):
        with (
            initialize_config_dir(str(CONF), version_base="1.3"),
            pytest.raises((ConfigError, ValueError)) as caught,
        ):
            stress.main(compose("stress", overrides=list(overrides)))
        return str(caught.value)

    assert "unknown config key 'manipulations.fillers', did you mean 'filler'?" in fails(
        "manipulations=[fillers]"
    )
    assert "there is no such folder" in fails(f"run={tmp_path / 'none'}")
    assert "holds no results.parquet" in fails(f"run={tmp_path}")


@pytest.mark.weights
def test_a_model_that_the_run_lacks_is_named_and_a_dry_run_plans(toy_run, capsys):
    asked = [f"run={toy_run / 'run'}", "dry_run=true"]
    stress.main(composed(*asked, pipeline="stress"))
    plan = capsys.readouterr().out
    # 3 items, as they are and 13 times rewritten
    assert plan.count(" 42 rows") == 7 and "nothing was started" in plan
    with pytest.raises(
        ConfigError, match=r"^config key models: the run has no model 'nobody'; it has careful$"
    ):
        stress.main(composed(*asked, "models=[nobody]", pipeline="stress"))


@pytest.mark.weights
def test_real_scorers_notice_music_everywhere_and_silence_but_not_repetition(toy_run, capsys):
    """The first two chains of the toys' run, which the real scorers score as they were, too."""
    store = f"store.root={toy_run / 'real'}"
    asked = ("manipulations=[all_music,repeated_word,silence]", "limit=2", store)
    changes = {(r["manipulation"], r["outcome"]): r for r in stressed(toy_run, *asked)}
    assert "was scored by another m1, m2, m3, m4, m5, m6," in capsys.readouterr().err
    assert all(row["n_lost"] == 0 for row in changes.values())
    assert changes["all_music", METRICS[0]]["difference"] < -0.3
    assert changes["silence", METRICS[0]]["difference"] < -0.3
    for metric in METRICS[1:]:
        assert changes["silence", metric]["difference"] == 0, "only M1 hears"
    # The finding itself, whatever the size: saying one word over and over looks coherent and entailed.
    assert changes["repeated_word", METRICS[1]]["difference"] > 0.1
    assert changes["repeated_word", METRICS[4]]["difference"] > 0.1
