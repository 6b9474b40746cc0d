"""What changed between two nights and why: hand-made nights, one change at a time."""

import json

import numpy as np
import pyarrow as pa
import pytest

from operators import drift_report
from operators.drift import differences, drift, other_scorers, unrecorded_scorers
from operators.intervals import t_interval
from operators.nights import NIGHT_ROW, Night, finished, last, load, new_name, stream
from operators.schema import METRICS
from operators.store import Store, StoreError

M2, M3 = METRICS[1], METRICS[2]
RECORD = {
    "fingerprints": {**{f"m{n}": f"f{n}" for n in range(1, 7)}, "extract": "x"},
    "specs": {f"m{n}": {"class": "Toy", "version": 1, "dtype": "float32"} for n in range(1, 7)},
    "models": {"a": {"fingerprint": "A", "spec": {"class": "Lalm", "prompt": {"text": "Think."}}}},
}


def row(item, model="a", value=0.5, correct=True, **other):
    scores = {metric: value for metric in METRICS} | {"aria": value}
    place = {"model": model, "benchmark": "b", "item_id": f"q{item}", "trial": 0}
    return (
        dict.fromkeys(NIGHT_ROW.names) | scores | place | {"correct": correct, "content": f"c{item}"} | other
    )


def night(rows, name="one", **record):
    return Night(name, pa.Table.from_pylist(rows, schema=NIGHT_ROW), {**RECORD, **record})


def spread(**other):
    """Ten items around 0.5: mean 0.5, and a standard deviation that is not 0."""
    return [row(n, value=0.41 + 0.02 * n, **other) for n in range(10)]


def scorer_changed(**dtype):
    return {
        "fingerprints": RECORD["fingerprints"] | {"m2": "other"},
        "specs": RECORD["specs"] | {"m2": {"class": "Toy", "version": 1, "dtype": "bfloat16"}},
    }


def changes(before, after):
    return {change.measure: change for change in drift(before, after).changes}


def kinds(change):
    return [cause.kind for cause in change.causes]


def test_an_item_changed_only_where_both_nights_say_so():
    before, after = spread(content=None), spread(content=None)
    after[0] = after[0] | {M3: 0.9}
    (cause,) = changes(night(before), night(after, "two"))[M3].causes
    assert cause.kind == "unexplained" and "nothing recorded says why" in cause.text
    after[0] = after[0] | {"content": "corrected"}  # the older night did not keep it
    assert kinds(changes(night(before), night(after, "two"))[M3]) == ["unexplained"]


def test_the_same_night_twice_is_no_drift():
    found = drift(night(spread()), night(spread(), "two"))
    assert found.changes == () and found.n_compared == 8
    assert drift_report.alarms(found) == []
    assert drift_report.headline(found) == "Nothing changed since one: all 8 means are the same."


def test_what_other_batches_leave_of_a_score_is_no_change():
    """2.5e-9 is what single precision leaves in other batches; a thousandth is a change that nothing explains."""
    before, noise, moved = (
        night([row(f"q{n}", value=0.5 + step * n) for n in range(10)])
        for step in (0.01, 0.01 + 2.5e-9, 0.011)
    )
    assert not changes(before, noise) and changes(before, moved)
    # Beside a row that is new to both, noise in the mean of one item, which has no interval, is no alarm either.
    one, other = (night([row("q0", value=value), row("q1", value=None)]) for value in (0.5, 0.5 + 2.5e-9))
    gained = night([row("q0", value=0.5 + 2.5e-9), row("q1", value=0.5)])
    assert not any(
        change.beyond for change in (*changes(one, other).values(), *changes(one, gained).values())
    )


def test_another_scorer_is_named_with_what_differs_and_only_its_metric_and_aria_blame_it():
    rows = [{**one, M2: one[M2] + 0.2, "aria": one["aria"] + 0.2 / 6} for one in spread()]
    found = changes(night(spread()), night(rows, "two", **scorer_changed()))
    assert set(found) == {M2, "aria"}
    change = found[M2]
    assert change.change == pytest.approx(0.2) and change.rescored == pytest.approx(0.2)
    # sd of 0.41, 0.43 .. 0.59 is 0.0605530; half width 2.262157 * 0.0605530 / sqrt(10) = 0.0433171.
    assert (change.low, change.high) == (pytest.approx(0.5 - 0.0433171), pytest.approx(0.5 + 0.0433171))
    assert change.beyond and change.n_differ == 10
    assert [tuple(cause) for cause in change.causes] == [
        ("new_scorer", "another scorer of M2 (dtype: float32 to bfloat16)")
    ]
    assert not found["aria"].beyond, "0.033 is inside 0.043"


def test_new_rows_move_a_mean_without_a_new_score():
    found = changes(night(spread()), night([*spread(), row(10, value=0.72)], "two"))
    change = found[M2]
    assert change.now == pytest.approx((10 * 0.5 + 0.72) / 11) and not change.beyond
    assert (change.n_last, change.n_now, change.rescored) == (10, 11, 0.0)
    assert kinds(change) == ["new_rows"]
    assert "1 row new" in drift_report.sentence(change)
    gone = changes(night([*spread(), row(10, value=0.72)]), night(spread(), "two"))
    assert kinds(gone[M2]) == ["gone_rows"]


def test_another_prompt_is_told_from_another_model():
    prompt = {"a": {"fingerprint": "B", "spec": {"class": "Lalm", "prompt": {"text": "Think hard."}}}}
    worse = [{**one, "correct": False} for one in spread()]
    change = changes(night(spread()), night(worse, "two", models=prompt))["accuracy"]
    assert change.beyond and tuple(change.causes[0]) == (
        "new_prompt",
        "another prompt (prompt.text: Think. to Think hard.)",
    )
    weights = {"a": {"fingerprint": "B", "spec": {"class": "Other", "prompt": {"text": "Think."}}}}
    change = changes(night(spread()), night(worse, "two", models=weights))["accuracy"]
    assert kinds(change) == ["new_model"]


def test_a_score_that_is_lost_or_changes_for_no_reason_raises_an_alarm():
    rows = spread()
    rows[0] = {**rows[0], METRICS[0]: None, f"{METRICS[0]}_reason": "missing_file: a.wav does not exist"}
    rows[1] = {**rows[1], M3: 0.5}
    found = drift(night(spread()), night(rows, "two"))
    by_measure = {change.measure: change for change in found.changes}
    assert kinds(by_measure[METRICS[0]]) == ["lost_rows"] and by_measure[METRICS[0]].n_lost == 1
    assert kinds(by_measure[M3]) == ["unexplained"]
    told = " ".join(drift_report.alarms(found))
    assert "missing_file" in told and "not deterministic" in told


def test_a_corrected_item_explains_what_it_changes():
    rows = spread()
    rows[0] = {**rows[0], "correct": False, "content": "corrected"}
    change = changes(night(spread()), night(rows, "two"))["accuracy"]
    assert kinds(change) == ["changed_items"] and not change.beyond


def test_a_corrected_item_hides_no_other_row_that_differs_for_no_reason():
    rows = spread()
    rows[0] = {**rows[0], M3: 0.9, "content": "corrected"}
    rows[1], rows[2] = ({**one, M3: 0.5} for one in rows[1:3])
    found = drift(night(spread()), night(rows, "two"))
    (change,) = (one for one in found.changes if one.measure == M3)
    assert kinds(change) == ["changed_items", "unexplained"] and change.n_differ == 3
    assert change.causes[1].text.startswith("2 rows differ and the same scorer gave other values")
    assert any(one.startswith("M3 of a on b") for one in drift_report.alarms(found))


def test_a_mean_that_vanishes_and_a_model_that_is_gone_are_alarms():
    rows = [{**one, M3: None, f"{M3}_reason": "ValueError: crash"} for one in spread()]
    found = drift(night([*spread(), row(0, "b")]), night([*rows, row(0, "c")], "two"))
    told = drift_report.alarms(found)
    assert any("M3 of a on b vanished (it was 0.500)" in one for one in told)
    assert found.new_models == ("c on b",) and any("b on b is no longer" in one for one in told)


def test_one_item_has_no_interval_and_any_change_counts():
    change = changes(night([row(0)]), night([row(0, value=0.51)], "two"))[M2]
    assert change.low is None and change.beyond
    assert "two items at least" in drift_report.sentence(change)


def test_trials_of_an_item_are_not_items():
    rows = [row(n, value=v, trial=t) for n in range(2) for t, v in enumerate((0.2, 0.4))]
    more = [{**one, M2: one[M2] + 0.1} for one in rows]
    change = changes(night(rows), night(more, "two"))[M2]
    # Both items have the mean 0.3: what does not vary has no interval, and any change counts.
    assert change.last == pytest.approx(0.3) and change.low is change.high is None and change.beyond


def test_the_report_is_valid_json_and_hostile_names_are_only_text():
    name = "<img src=x>|\n# x"
    before, after = night([row(0, name), row(1, name)]), night([row(0, name, 0.9), row(1, name, 0.8)], "two")
    found = drift(before, after)
    told = json.loads(json.dumps(drift_report.to_json(found, ["m2"]), allow_nan=False))
    assert told["alert"] and told["n_beyond"] == 7 and told["other_scorers"] == ["m2"]
    assert told["changes"][0]["causes"][0]["kind"] == "unexplained"
    text = drift_report.to_markdown(found, ["m2"])
    assert "<img" not in text and "\n# x" not in text
    assert "M2: another scorer" in text and "## To look at" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == 1 + 7 and len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_scorers_are_compared_by_fingerprint():
    assert other_scorers(night([]), night([], "two", **scorer_changed())) == ["m2"]
    assert other_scorers(night([]), Night("x", night([]).rows, {})) == [f"m{n}" for n in range(1, 7)]


def test_values_without_a_recorded_scorer_on_either_side_compare_with_nothing():
    nameless = [Night(name, night(spread()).rows, {}) for name in ("x", "y")]
    assert other_scorers(*nameless) == [] and unrecorded_scorers(*nameless) == [f"m{n}" for n in range(1, 7)]
    half = Night("z", night(spread()).rows, {"fingerprints": {f"m{n}": "f" for n in range(2, 7)}})
    assert unrecorded_scorers(half, half) == ["m1"] and unrecorded_scorers(night(spread()), nameless[0]) == []
    unscored = Night("w", night([row(0, value=None)]).rows, {})
    assert unrecorded_scorers(unscored, nameless[0]) == [], "no values of one: nothing is compared"


def test_differences_name_the_path_and_do_not_quote_long_texts():
    assert list(differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2})) == ["a.b: 1 to 3"]
    assert list(differences({"prompt": {"text": "x" * 99}}, {"prompt": {"text": "y" * 99}})) == [
        "prompt.text changed"
    ]
    assert list(differences({}, {"new": 1})) == ["new: None to 1"]


def test_an_interval_is_that_of_student():
    assert t_interval([0.0, 1.0]) == (
        pytest.approx(0.5 - 12.7062 * 0.5, abs=1e-4),
        pytest.approx(0.5 + 12.7062 * 0.5, abs=1e-4),
    )
    assert np.isnan(t_interval([0.3])).all() and np.isnan(t_interval([0.3], bounds=(0, 1))).all()


def test_the_interval_of_a_mean_of_scores_ends_where_scores_do():
    # 0.9 and 1.0: 0.95 -+ 12.7062 * 0.05 is 0.3147 to 1.5853, and no mean of scores lies above 1.
    assert t_interval([0.9, 1.0], bounds=(0, 1)) == (pytest.approx(0.3147, abs=1e-4), 1)
    assert t_interval([0.0, 0.1], bounds=(0, 1)) == (0, pytest.approx(0.6853, abs=1e-4))
    inside = [0.4, 0.5, 0.6]
    assert t_interval(inside, bounds=(0, 1)) == t_interval(inside)


def test_a_night_that_did_not_finish_is_not_compared_with(tmp_path):
    store = Store(str(tmp_path))
    assert last(store, "offline") is None
    for name in ("2026-01-01", "2026-01-02"):
        place = f"nightly/offline/{name}"
        path = tmp_path / "rows.parquet"
        pa.parquet.write_table(night(spread()).rows, path)
        store.write(f"{place}/rows.parquet", path.read_bytes())
    store.write("nightly/offline/2026-01-01/run.json", json.dumps(RECORD).encode())
    assert finished(store, "offline") == ["2026-01-01"]
    assert last(store, "offline").name == "2026-01-01" and last(store, "paper") is None
    assert sum(map(len, stream(store, "offline", "2026-01-01"))) == 10
    with pytest.raises(StoreError, match="there is 2026-01-01"):
        load(store, "offline", "2026-01-02")
    names = [new_name() for _ in range(3)]
    assert names == sorted(names)
