"""`python -m pipelines.analyse` on made runs, a table of means, and the paper's own tables."""

import csv
import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from PIL import Image

from operators.aggregate import summarise
from operators.schema import METRICS, result_schema
from operators.statistics import eta_squared, kendalls_w
from operators.stress import CHANGES
from operators.tables import TableError
from pipelines import analyse
from pipelines.config import CONF, ConfigError
from tests.operators.analysis.made import scored_rows
from tests.pipelines.cli import ROOT

HOSTILE = "<script>alert(1)</script> $x^2$ & =1+1"


def analysed(folder, *overrides):
    """The lines of estimates.parquet of one analysis in this process."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        analyse.main(compose("analyse", overrides=["n_resamples=100", f"out={folder / 'out'}", *overrides]))
    return pq.read_table(folder / "out" / "estimates.parquet").to_pylist()


def write_run(folder, benchmark, models, seed, fingerprint="f"):
    """A finished run: models of known quality on ten items of a benchmark."""
    rng = np.random.default_rng(seed)
    level = {model: 0.2 + 0.15 * place for place, model in enumerate(models)}
    values = [
        (model, benchmark, f"{benchmark}{n}", {m: float(np.clip(level[model] + rng.normal(0, 0.05), 0, 1)) for m in METRICS})
        for model in models for n in range(10)
    ]  # fmt: skip
    rows = scored_rows(values, trial=0, response="[PERCEPTION] Entities: music.")
    folder.mkdir()
    pq.write_table(rows.select(result_schema().names), folder / "results.parquet")
    (folder / "run.json").write_text(json.dumps({"fingerprints": {"m1": fingerprint}}), encoding="utf-8")
    return rows


@pytest.fixture
def runs(tmp_path):
    tables = [
        write_run(tmp_path / name, name, ("A", HOSTILE, "C", "D"), seed)
        for seed, name in enumerate(("x", "y"))
    ]
    return tmp_path, pa.concat_tables(tables)


@pytest.mark.weights
def test_two_runs_with_judges_ratings_and_a_stress_test(runs, capsys):
    folder, rows = runs
    levels = {"A": 1, HOSTILE: 2, "C": 3, "D": 4}
    with (folder / "judges.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerows([("model", "my judge"), *levels.items()])
    ratings = [
        {"item_id": f"x{n}", "model": model, "rater": rater, "group": "1", "rating": level, "annotated_at": "t"}
        for model, level in levels.items() for n in range(5) for rater in ("a", "b", "c")
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(ratings), folder / "ratings.parquet")
    (folder / "stress").mkdir()
    change = {
        "manipulation": "all_music",
        "model": "all",
        "outcome": METRICS[0],
        "before": 0.4,
        "after": 0.1,
        "difference": -0.3,
    }
    change |= {
        "low": -0.4,
        "high": -0.2,
        "p": 0.01,
        "n": 40,
        "n_clusters": 20,
        "n_lost": 0,
        "n_changed": 40,
        "method": "m",
    }
    pq.write_table(pa.Table.from_pylist([change], schema=CHANGES), folder / "stress" / "stress.parquet")

    lines = analysed(
        folder, f"run=[{folder / 'x'},{folder / 'y'}]", f"judge_scores={folder / 'judges.csv'}",
        f"ratings={folder / 'ratings.parquet'}", f"stress={folder / 'stress'}",
    )  # fmt: skip
    assert {line["analysis"] for line in lines} == {
        "consistency", "metrics", "judges", "generic_words", "raters", "human", "table_13",
    }  # fmt: skip
    means = summarise(rows).to_pylist()
    table = np.array([[next(r["aria_mean"] for r in means if (r["model"], r["benchmark"], r["group_kind"]) == (m, b, "overall"))
                       for b in "xy"] for m in sorted(levels)])  # fmt: skip
    found = {
        line["statistic"]: line
        for line in lines
        if line["analysis"] == "consistency" and line["measure"] == "aria"
    }
    assert found["eta_squared_model"]["estimate"] == pytest.approx(eta_squared(table).model)
    assert found["kendalls_w"]["estimate"] == pytest.approx(kendalls_w(table.T)) == 1
    assert all(line["n"] and line["method"] for line in lines)
    assert next(line for line in lines if line["versus"] == "my judge")["estimate"] == pytest.approx(1)

    text = capsys.readouterr().out
    assert "Metrics beside human ratings" in text and "few models (4)" in text
    for name in ("variance", "human_correlations", "m1_manipulation"):
        assert Image.open(folder / "out" / f"{name}.png").size[0] > 1000
        assert ElementTree.parse(folder / "out" / f"{name}.svg").getroot().tag.endswith("svg")
    for path in (folder / "out").iterdir():
        if path.suffix in (".svg", ".md", ".tex"):
            assert b"<script>" not in path.read_bytes(), path


@pytest.mark.weights
def test_the_papers_tables_and_a_users_table_of_the_same_shape_agree(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours = analysed(tmp_path / "a", "published=true")
    theirs = analysed(tmp_path / "b", f"table={ROOT / 'operators/data/aria_paper/table_1.csv'}")
    values = [{(r["measure"], r["versus"], r["statistic"], r["unit"]): r["estimate"] for r in lines if
               r["analysis"] in ("consistency", "metrics")} for lines in (ours, theirs)]  # fmt: skip
    assert values[0] == values[1] and len(values[0]) > 60
    assert "14 come out, 5 but for the last digit, 19 do not" in capsys.readouterr().out
    assert pq.read_table(tmp_path / "a" / "out" / "published.parquet").num_rows == 39
    assert r"Spearman's rho" in (tmp_path / "a" / "out" / "published.tex").read_text()


def test_the_folder_of_an_ablation_names_its_metric(tmp_path):
    rows = [{"model": m, "benchmark": "x", "backbone": b, "mean": 0.5} for b in ("one", "two") for m in "AB"]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "means.parquet")
    (tmp_path / "run.json").write_text(json.dumps({"config": {"metric": "m3"}}), encoding="utf-8")
    means = analyse.ablation_means(str(tmp_path))
    assert {(one.metric, one.backbone) for one in means} == {("m3", "one"), ("m3", "two")} and len(means) == 4


def asked(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("analyse", overrides=list(overrides))


def test_runs_of_different_scorers_are_not_mixed(tmp_path):
    for name, fingerprint in (("x", "f"), ("y", "g")):
        write_run(tmp_path / name, name, ("A", "B"), 0, fingerprint)
    both = f"run=[{tmp_path / 'x'},{tmp_path / 'y'}]"
    with pytest.raises(ConfigError, match=r"m1: \S+x f, \S+y g(.|\n)*mixed=true"):
        analyse.main(asked(both))


def test_a_row_that_two_runs_share_counts_once_and_two_that_differ_are_refused(tmp_path):
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    rows = write_run(first, "x", ("A", "B"), 0)
    write_run(second, "x", ("A", "B"), 0)
    write_run(other, "x", ("A", "B"), 1)
    assert analyse.rows_of_runs([first, second]).num_rows == rows.num_rows
    with pytest.raises(
        TableError, match=r"first and .*other hold different rows under one name .'A', 'x', 'x0', 0."
    ):
        analyse.rows_of_runs([first, other])


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["table=a.csv", "published=true"], "config keys table and published: give one source"),
        (["table=a.csv", "ratings=b.csv"], "the scores must come from a run"),
        (["n_resamples=3"], "at least 100, not 3"),
        (["run=7"], "the folder of a run, or a list of folders, not 7"),
    ],
)
def test_what_cannot_be_asked_is_named(overrides, message):
    with pytest.raises(ConfigError, match=message):
        analyse.main(asked(*overrides))


@pytest.mark.weights
def test_help_and_errors_as_a_user_sees_them(tmp_path):
    def command(*arguments):
        return subprocess.run([sys.executable, "-m", "pipelines.analyse", *arguments], cwd=ROOT, capture_output=True,
                              text=True, timeout=120)  # fmt: skip

    shown = command("--help")
    assert (
        shown.returncode == 0
        and "python -m pipelines.analyse published=true" in shown.stdout
        and "ratings:" in shown.stdout
    )
    lost = command(f"table={tmp_path / 'none.csv'}")
    assert lost.returncode == 1 and "there is no such file" in lost.stderr and "Traceback" not in lost.stderr
