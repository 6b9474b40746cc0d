"""Items of two audits drawn anew: what the intervals of their state profiles hold, and where there are none."""

import numpy as np
import pytest

from operators.audit.profile_intervals import BOUNDS, redrawn, with_intervals
from operators.audit.tables import states
from operators.audit.validity import ALL, PROFILES, profiles

LIKELY = ["000", "010", "100", "110", "110", "111", "111", "111"]


def instances(codes, model="m", branches=2, start=0):
    """One item per code, of which every branch is in that state; None: an outcome is missing."""
    return [
        {"model": model, "benchmark": "b", "kind": "k", "control": "none", "cue": "none", "order": 0, "item_id": f"i{n}",
         "branch": branch, **dict(zip("poj", [None] * 3 if code is None else [c == "1" for c in code], strict=True))}
        for n, code in enumerate(codes, start) for branch in range(branches)
    ]  # fmt: skip


def compared(first, second, n_resamples=200):
    return with_intervals(profiles(states(first), states(second)), (first, second), ALL, n_resamples, 0)


def test_a_resample_of_two_items_has_both_or_one_of_them_twice():
    drawn, n_items = redrawn(instances(["111", "110", None]), 400, 0)["none"]
    assert n_items == 2
    assert drawn["m"][0, 6:].tolist() == [0.5, 0.5]
    found, counts = np.unique(drawn["m"][1:, 6:], axis=0, return_counts=True)
    assert found.tolist() == [[0, 1], [0.5, 0.5], [1, 0]]
    assert counts / 400 == pytest.approx([0.25, 0.5, 0.25], abs=0.08)


def test_judges_heard_the_same_items_and_are_drawn_together():
    drawn, _ = redrawn([*instances(LIKELY, "a"), *instances(LIKELY, "b")], 50, 0)["none"]
    assert np.array_equal(drawn["a"], drawn["b"])


def test_every_value_has_an_interval_about_it_and_more_items_a_narrower_one():
    moved = ["000", "000", "100", "110", "110", "110", "111", "111"]
    (few,) = compared(instances(LIKELY), instances(moved))
    (many,) = compared(instances(LIKELY * 9), instances(moved * 9))
    assert (few["n_items_first"], few["n_first"], many["n_items_second"]) == (8, 16, 72)
    for name, (least, most) in BOUNDS.items():
        assert few[name] == pytest.approx(many[name])
        assert least <= few[f"{name}_low"] <= few[name] <= few[f"{name}_high"] <= most
    for name in ("slope", "largest_difference"):  # of a correlation, much of a wide interval lies beyond 1
        width = [row[f"{name}_high"] - row[f"{name}_low"] for row in (few, many)]
        assert width[1] < width[0], name
    assert few["interval_reason"] is None and "items of either run drawn" in few["method"]
    assert few["note"] == "few items (8): the interval is rough" and many["note"] is None


def test_equal_profiles_of_few_items_may_have_equal_ranks():
    """Twenty items of each run from one profile, thrice: rho of the true masses is 1, and that of the samples is not."""
    likely = ["000"] * 2 + ["001"] + ["010"] * 3 + ["100"] * 4 + ["101"] * 5 + ["110"] * 6 + ["111"] * 8
    for seed in range(3):
        first, second = np.random.default_rng(seed).choice(likely, (2, 20)).tolist()
        (row,) = compared(instances(first), instances(second))
        assert row["spearman"] < 0.97 and row["spearman_high"] == pytest.approx(1, abs=0.01)
        assert row["spearman_low"] < row["spearman"]


def test_repeated_instances_of_an_item_make_nothing_surer():
    one, four = (compared(*(instances(LIKELY, branches=n) for _ in range(2)))[0] for n in (1, 4))
    assert one["n_first"] == 8 and four["n_first"] == 32
    assert [one[f"{name}_{end}"] for name in BOUNDS for end in ("low", "high")] == pytest.approx(
        [four[f"{name}_{end}"] for name in BOUNDS for end in ("low", "high")]
    )


def test_all_judges_together_have_an_interval_too():
    sides = [[*instances(LIKELY, "a"), *instances(LIKELY[::-1], "b"), *instances([None] * 8, "c")]] * 2
    rows = {row["model"]: row for row in compared(*sides)}
    assert rows[ALL]["pearson_low"] < rows[ALL]["pearson_high"] == 1
    assert rows["c"]["interval_reason"].startswith("no_instance") and rows["c"].get("pearson_low") is None


@pytest.mark.parametrize(
    ("first", "reason"), [(["110"], "too_few: 1 item"), (["111"] * 6, "no_spread"), (LIKELY, None)]
)
def test_where_there_is_no_interval_a_reason_says_why(first, reason):
    (row,) = compared(instances(first), instances(first))
    assert (row["interval_reason"] or "").startswith(reason or "") and (row["pearson_low"] is None) == bool(
        reason
    )
    assert set(row) <= set(PROFILES.names)


def test_a_run_that_kept_no_instances_has_no_interval():
    rows = profiles(states(instances(LIKELY)), states(instances(LIKELY)))
    (row,) = with_intervals(rows, ([], instances(LIKELY)), ALL, 200, 0)
    assert row["interval_reason"].startswith("no_instances") and row["pearson"] == pytest.approx(1)
