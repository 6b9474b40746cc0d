"""The paper's Table 2 from counts, scaling over common items, and what is printed."""

import io

import pyarrow as pa
import pytest

from operators.intervals import wilson_interval, wilson_interval_of_mean
from operators.mugen.presentation import DIMENSIONS
from operators.mugen.report import show, with_interval
from operators.mugen.tables import (
    AGREEMENT,
    CURVE,
    NO_BASELINE,
    POSITIONS,
    SCALING,
    accuracy,
    agreement,
    positions,
    scaling,
    summarise,
)
from operators.mugen.votes import TRIALS, VOTES

# MUGEN Table 2 with the number of items of each column (the paper's 1,750 in all).
ITEMS = dict(zip(DIMENSIONS, (150, 200, 400, 250, 250, 250, 250), strict=True))
TABLE_2 = {
    "DeSTA2.5-Audio": "46.67±7.98 22.00±5.74 21.75±4.04 17.20±4.68 30.40±5.70 18.00±4.76 28.40±5.59 24.91±2.03",
    "Qwen2.5-Omni": "70.00±7.33 12.00±4.50 32.50±4.59 15.20±4.45 10.80±3.85 53.20±6.19 18.00±4.76 28.69±2.12",
    "Audio Flamingo 3": "25.33±6.96 22.50±5.79 15.00±3.50 21.20±5.07 23.20±5.23 1.20±1.35 19.20±4.88 17.43±1.78",
    "Gemini-3-pro (Low)": "89.33±4.94 68.00±6.47 77.00±4.12 48.00±6.19 55.60±6.16 69.60±5.70 69.20±5.72 67.66±2.19",
    # The paper prints ±4.65 for S&P: 1.96 * sqrt(.9067 * .0933 / 150) of the rounded accuracy, not of 136/150.
    "Gemini-3-pro (High)": "90.67±4.66 71.50±6.26 77.50±4.09 53.60±6.18 56.80±6.14 68.40±5.76 72.80±5.52 69.60±2.16",
}


def answers(model, strategy, correct, dimension="Music Analysis", n=None, reference=0):
    return [
        {
            "model": model, "benchmark": "mugen", "strategy": strategy, "item_id": f"{dimension}{i}",
            "category": dimension, "task": "t", "n_candidates": n, "n_reference": reference, "correct": right,
            "choice_index": 0, "tie": False, "n_trials": 1, "n_votes": 1, "n_unparsed": 0, "n_missing": 0,
        }
        for i, right in enumerate(correct)
    ]  # fmt: skip


def table(rows):
    return pa.Table.from_pylist(rows, schema=VOTES)


@pytest.mark.parametrize("model", TABLE_2)
def test_table_2_comes_out_to_two_decimals_from_counts(model):
    *cells, overall = TABLE_2[model].split()
    rows = []
    for (dimension, n), cell in zip(ITEMS.items(), cells, strict=True):
        right = round(float(cell.split("±")[0]) * n / 100)
        rows += answers(model, "direct", [i < right for i in range(n)], dimension)
    found = {row["group"]: row for row in summarise(table(rows)).to_pylist()}
    assert found["all"]["n_valid"] == 1750
    assert [with_interval(found[dimension]) for dimension in ITEMS] == cells
    assert with_interval(found["all"]) == overall
    assert all(row["wilson_low"] < row["accuracy"] < row["wilson_high"] for row in found.values())


def test_the_trials_of_an_item_are_one_cluster_for_intervals():
    """Item a holds the right clip at position 1 in both trials and takes it once; b at position 2 and takes it twice."""
    said = [("a", 0, 0), ("a", 0, 1), ("b", 1, 1), ("b", 1, 1), ("b", 1, None)]
    fixed = {
        "model": "m",
        "benchmark": "b",
        "prompt": "p",
        "permuted": True,
        "voting": True,
        "audio_order": [0, 1],
    }
    rows = [
        fixed
        | {
            "item_id": item,
            "trial": n,
            "gold_position": gold,
            "option_position": chosen,
            "choice_index": chosen,
        }
        for n, (item, gold, chosen) in enumerate(said)
    ]
    trials = pa.Table.from_pylist(rows, schema=TRIALS)
    first, second = positions(trials).to_pylist()
    assert (first["n_gold"], first["accuracy"]) == (2, 0.5)
    assert (first["wilson_low"], first["wilson_high"]) == wilson_interval_of_mean(0.5, 1)
    assert (second["n_gold"], second["accuracy"]) == (2, 1.0)
    assert (second["wilson_low"], second["wilson_high"]) == wilson_interval(1, 1)
    (row,) = agreement(trials).to_pylist()  # the two trials of a differ, those of b do not: a mean of 0 and 1
    for name in ("agreement", "unanimous"):
        assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == (0.5, *wilson_interval(1, 2))


def test_gains_are_paired_over_items():
    base, better = [True, False, False, False] * 25, [True, True, False, False] * 25
    summary = summarise(table(answers("m", "direct", base) + answers("m", "sc", better)), n_resamples=2000)
    gain = next(
        row for row in summary.to_pylist() if row["strategy"] == "sc" and row["group_kind"] == "overall"
    )
    assert gain["gain"] == pytest.approx(0.25) and gain["n_paired"] == 100
    # 25 of 100 differences are 1, the rest 0: standard error sqrt(.25 * .75 / 100) = 0.0433, 95% about 0.165 to 0.335.
    assert gain["gain_low"] == pytest.approx(0.165, abs=0.015) and gain["gain_high"] == pytest.approx(
        0.335, abs=0.015
    )
    assert gain["gain_p"] < 0.01
    direct = next(row for row in summary.to_pylist() if row["strategy"] == "direct")
    assert direct["gain"] is None


def test_scaling_compares_the_items_that_take_part_in_every_number():
    # n = 2: items 0..3, n = 5: items 0..2 only. Over the common three: 3/3 and 1/3, a third of Acc(2).
    rows = answers("m", "direct", [True, True, True, False], n=2) + answers(
        "m", "direct", [True, False, False], n=5
    )
    found = {(row["reference"], row["n_candidates"]): row for row in scaling(table(rows)).to_pylist()}
    assert set(found) == {("all", 2), ("all", 5), ("without", 2), ("without", 5)}, "nothing has a reference"
    assert found["all", 2]["n_items"] == found["all", 5]["n_items"] == 3
    assert found["all", 2]["relative_to_two"] == 1.0
    assert found["all", 5]["relative_to_two"] == pytest.approx(1 / 3)


def test_scaling_apart_by_reference_and_without_a_denominator():
    rows = answers("m", "sc", [False], "TA", n=2, reference=1) + answers(
        "m", "sc", [True], "TA", n=3, reference=1
    )
    found = {(row["reference"], row["n_candidates"]): row for row in scaling(table(rows)).to_pylist()}
    assert ("without", 2) not in found
    assert found["with", 3]["accuracy"] == 1.0 and found["with", 3]["relative_to_two"] is None
    assert scaling(table(answers("m", "sc", [True]))).num_rows == 0, "no study, no table"


def test_no_items_have_no_accuracy():
    assert set(accuracy(0, 0).values()) == {None}


def test_a_gain_that_every_item_shares_has_no_interval_and_is_printed_without_one():
    rows = answers("m", "direct", [False] * 3) + answers("m", "apsc_cot", [True] * 3)
    summary, out = summarise(table(rows), 200), io.StringIO()
    gain = next(row for row in summary.to_pylist() if row["strategy"] == "apsc_cot")
    assert [gain[name] for name in ("gain", "gain_low", "gain_high", "gain_p")] == [1.0, None, None, None]
    assert gain["gain_reason"] == "no_spread: all 3 pairs are alike"
    alone = summarise(table(answers("m", "sc", [False] * 3)), 200).to_pylist()
    assert {row["gain_reason"] for row in alone if row["group_kind"] != "task"} == {NO_BASELINE}
    for row in [*summary.to_pylist(), *alone]:
        assert (row["gain_low"] is None) == (row["gain_reason"] is not None)
    show(summary, *(s.empty_table() for s in (SCALING, CURVE, POSITIONS, AGREEMENT)), file=out)
    assert "+100.00" in out.getvalue() and "+100.00 [" not in out.getvalue()


def test_what_is_printed_holds_the_numbers_and_no_markup():
    rows = answers("[red]m", "direct", [True, False, False]) + answers(
        "[red]m", "apsc_cot", [True, True, False]
    )
    out = io.StringIO()
    show(
        summarise(table(rows), 200),
        *(s.empty_table() for s in (SCALING, CURVE, POSITIONS, AGREEMENT)),
        file=out,
    )
    text = out.getvalue()
    for words in ("[red]m", "33.33±53.34", "66.67", "APSC+CoT", "+33.33", "MA"):
        assert words in text
    assert "gain in points [95%], p, further generations per item and point\n" in text, "titles do not wrap"
