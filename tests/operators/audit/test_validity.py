"""Comparisons of runs by hand: profiles of states, generator swaps, rankings, balance of replies."""

import pytest
from scipy import stats

from operators.audit.balance import RATINGS, balance, clip_values, read_ratings, text_values
from operators.audit.tables import states as states_table
from operators.audit.validity import ALL, correlations, profiles, rankings, swaps
from operators.audit_states import STATE_NAMES
from operators.intervals import wilson_interval


def states(model, counts, n_excluded=0, cue="none", control="none", benchmark="b"):
    """Rows of a `states` table; counts: of "000" ... "111"."""
    total = sum(counts)
    about = {"model": model, "benchmark": benchmark, "cue": cue, "control": control}
    return [
        about | {"state": state, "n_in_state": n, "n_instances": total, "n_excluded": n_excluded}
        for state, n in zip(STATE_NAMES, counts, strict=True)
    ]


ONE = [1, 0, 2, 1, 0, 1, 3, 2]
TWO = [2, 0, 4, 2, 0, 2, 6, 4]


def test_equal_proportions_correlate_perfectly_with_slope_one_whatever_the_number_of_items():
    (row,) = profiles(states("m", ONE), states("m", TWO, n_excluded=3))
    assert row["pearson"] == pytest.approx(1) and row["spearman"] == pytest.approx(1)
    assert row["slope"] == pytest.approx(1) and row["largest_difference"] == 0
    assert (row["n_first"], row["n_second"], row["n_excluded_second"]) == (10, 20, 3)


def test_instances_that_lack_an_outcome_count_as_the_table_of_states_counts_them():
    """Two of four complete instances are in "111", two in "110"; a fifth has no O. So the masses are 1/2 and 1/2."""
    about = {"model": "m", "benchmark": "b", "kind": "k", "control": "none", "cue": "none"}
    outcomes = [(True, True, True)] * 2 + [(True, True, False)] * 2 + [(True, None, True)]
    made = states_table(
        [
            about | {"item_id": str(n), "branch": 0} | dict(zip("poj", each, strict=True))
            for n, each in enumerate(outcomes)
        ]
    )
    (row,) = profiles(made, states("m", [0, 0, 0, 0, 0, 0, 2, 2]))
    assert (row["n_first"], row["n_excluded_first"], row["n_second"]) == (4, 1, 4)
    assert row["largest_difference"] == 0 and row["slope"] == pytest.approx(1)


def test_two_runs_of_one_judge_on_one_benchmark_add_up():
    (row,) = profiles([*states("m", ONE, n_excluded=1), *states("m", ONE, n_excluded=2)], states("m", ONE))
    assert (row["n_first"], row["n_excluded_first"]) == (20, 3)
    assert row["largest_difference"] == 0 and row["slope"] == pytest.approx(1)


def test_other_proportions_by_scipy_and_the_state_that_moved_most():
    moved = [1, 0, 2, 1, 0, 2, 1, 3]
    (row,) = profiles(states("m", ONE), states("m", moved))
    a, b = ([count / 10 for count in counts] for counts in (ONE, moved))
    assert row["pearson"] == pytest.approx(stats.pearsonr(a, b)[0])
    assert row["spearman"] == pytest.approx(stats.spearmanr(a, b)[0])
    assert row["largest_difference"] == pytest.approx(0.2) and row["state_of_largest"] == "110"


def test_judges_are_paired_by_name_and_pooled_and_controls_stay_out():
    first = [*states("a", ONE), *states("b", TWO), *states("a", ONE, control="random"), *states("only", ONE)]
    second = [*states("a", ONE), *states("b", [2, 2, 2, 2, 2, 2, 4, 4])]
    rows = profiles(first, second)
    assert [row["model"] for row in rows] == ["a", "b", ALL]
    assert rows[2]["n_first"] == 30 and rows[2]["n_second"] == 30
    pooled = (
        [c / 10 for c in ONE] + [c / 20 for c in TWO],
        [c / 10 for c in ONE] + [c / 20 for c in [2, 2, 2, 2, 2, 2, 4, 4]],
    )
    assert rows[2]["pearson"] == pytest.approx(stats.pearsonr(*pooled)[0])


def test_what_does_not_exist_is_null_with_a_reason():
    constant = [1] * 8
    (row,) = profiles(states("m", constant), states("m", ONE))
    assert row["pearson"] is None and row["reason"].startswith("constant: all values of the first")
    (row,) = profiles(states("m", [0] * 8, n_excluded=4), states("m", ONE))
    assert (
        row["reason"].startswith("no_instance") and row["largest_difference"] is None and "pearson" not in row
    )
    assert correlations([1, 2], [1, 2])["reason"].startswith("too_few")


def accuracy(model, right, scored, probe="pointwise", split="all", benchmark="b", twice=0):
    about = {"model": model, "benchmark": benchmark, "cue": "none", "control": "none", "probe": probe}
    return about | {"split": split, "n_correct": right, "n_scored": scored, "n_both_orders": twice}


def test_generator_swap_and_rankings_by_hand():
    first = [
        accuracy("a", 9, 10),
        accuracy("b", 7, 10),
        accuracy("c", 5, 10),
        accuracy("a", 1, 5, split="right_first"),
    ]
    second = [accuracy("a", 8, 10), accuracy("b", 5, 10), accuracy("c", 6, 10)]
    rows = swaps(first, second)
    assert [round(row["difference"], 6) for row in rows] == [-0.1, -0.2, 0.1]
    assert rows[0]["n_first"] == 10 and rows[0]["wilson_low_first"] < 0.9 < rows[0]["wilson_high_first"]
    (ranked,) = rankings(rows)
    # ranks 3 2 1 against 3 1 2: rho = 1 - 6 * (0 + 1 + 1) / (3 * 8) = 0.5; tau = (2 - 1) / 3
    assert ranked["spearman"] == pytest.approx(0.5) and ranked["kendall"] == pytest.approx(1 / 3)
    assert ranked["same_order"] is False and ranked["n_judges"] == 3
    # Of the 3! orders 5 have a rho of 0.5 or more, or of -0.5 or less, three of them on one side: 2 * 3/6.
    assert ranked["spearman_p"] == 1 and ranked["interval_reason"].startswith("too_few: 3 judges")


def test_rankings_have_the_intervals_of_their_correlations():
    right = {"a": (9, 9), "b": (8, 6), "c": (7, 7), "d": (6, 8), "e": (5, 5)}
    sides = ([accuracy(name, pair[side], 10) for name, pair in right.items()] for side in (0, 1))
    (ranked,) = rankings(swaps(*sides))
    # Ranks 5 4 3 2 1 against 5 2 3 4 1: rho = 1 - 6 * (4 + 4) / (5 * 24) = 0.6; tanh(atanh(0.6) -+ 1.96 / sqrt(2)).
    assert ranked["spearman"] == pytest.approx(0.6)
    assert (ranked["spearman_low"], ranked["spearman_high"]) == pytest.approx((-0.6, 0.969), abs=1e-3)
    # Of 10 pairs 3 are turned round: tau = (7 - 3) / 10; tanh(atanh(0.4) -+ 1.96 * sqrt(0.437)).
    assert ranked["kendall"] == pytest.approx(0.4)
    assert (ranked["kendall_low"], ranked["kendall_high"]) == pytest.approx((-0.7024, 0.9378), abs=1e-3)
    assert ranked["interval_reason"] is None and "Fieller" in ranked["method"]
    assert ranked["note"] == "few judges (5): the interval is rough"
    (perfect,) = rankings(swaps(*[[accuracy(name, pair[0], 10) for name, pair in right.items()]] * 2))
    assert perfect["spearman"] == pytest.approx(1) and perfect["kendall"] == pytest.approx(1)
    assert perfect["spearman_low"] is None and perfect["kendall_low"] is None
    assert perfect["interval_reason"].startswith("perfect")


def test_the_interval_of_a_difference_comes_from_those_of_its_sides():
    (row,) = swaps([accuracy("a", 9, 10)], [accuracy("a", 8, 10)])
    # Wilson of 9/10: 0.5958 to 0.9821, of 8/10: 0.4902 to 0.9433; -0.1 -+ sqrt(0.3098^2 + 0.0821^2), sqrt(0.1433^2 + 0.3042^2).
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((-0.4205, 0.2363), abs=2e-4)
    (twice,) = swaps([accuracy("a", 6, 8, twice=4)], [accuracy("a", 8, 10)])
    # Four calls, each in both orders: four and not eight.
    assert (twice["wilson_low_first"], twice["wilson_high_first"]) == pytest.approx(wilson_interval(3, 4))
    (empty,) = swaps([accuracy("a", 0, 0)], [accuracy("a", 8, 10)])
    assert empty["difference"] is None and empty["difference_low"] is None


def test_rankings_need_two_judges_that_differ():
    (alone,) = rankings(swaps([accuracy("a", 9, 10)], [accuracy("a", 8, 10)]))
    assert alone["reason"].startswith("too_few")
    ties = [accuracy("a", 5, 10), accuracy("b", 5, 10)]
    (tied,) = rankings(swaps(ties, ties))
    assert tied["same_order"] is True and tied["reason"].startswith("constant")
    (empty,) = swaps([accuracy("a", 0, 0)], [accuracy("a", 5, 10)])
    assert empty["accuracy_first"] is None and empty["difference"] is None


def test_balance_by_hand_with_missing_values():
    values = [
        ("a", {"words": 5.0, "mos": 3.0}, {"words": 7.0, "mos": 3.5}),
        ("b", {"words": 6.0, "mos": "silent"}, {"words": 6.0, "mos": 3.5}),
    ]
    words, mos = balance(values)
    # |5 - 7| = 2 and |6 - 6| = 0: mean 1, sd sqrt(2); mean of all four values 6
    assert (words["n"], words["mean"], words["mean_absolute_difference"]) == (2, 6.0, 1.0)
    # 1 -+ 12.7062 * sqrt(2) / sqrt(2), cut at 0
    assert (words["difference_low"], words["difference_high"]) == (0, pytest.approx(13.7062, abs=1e-4))
    assert mos["difference_low"] is None
    assert (
        words["sd"] == pytest.approx(2**0.5) and words["item_of_largest"] == "a" and words["n_missing"] == 0
    )
    assert (mos["n"], mos["n_missing"], mos["reasons"], mos["sd"]) == (1, 1, "silent: 1", None)
    assert balance([("a", {"mos": "silent"}, {"mos": "silent"})])[0].get("mean") is None


@pytest.mark.parametrize(
    ("text", "politeness"),
    [
        ('```json\n{"politeness": 4, "helpfulness": 3}\n```', 4.0),
        ('Sure. {"politeness": 9}', "no_rating"),
        ('{"politeness": "4"}', "no_rating"),
        ('{"politeness": true}', "no_rating"),
        ('{"politeness": 4', "unreadable_rating"),
        ("four", "unreadable_rating"),
    ],
)
def test_ratings_are_read_or_missing_and_never_guessed(text, politeness):
    found = read_ratings(text)
    assert found["politeness"] == politeness and set(found) == set(RATINGS)


def test_a_clip_that_cannot_be_read_is_missing(tmp_path):
    (tmp_path / "x.wav").write_bytes(b"no sound")
    found = clip_values(str(tmp_path / "x.wav"), lambda sound: {"mos": 1.0}, ["mos"])
    assert found == {"seconds": "not_audio", "mos": "not_audio"}
    assert text_values("one two") == {"words": 2.0, "characters": 7.0}


@pytest.mark.weights
def test_dnsmos_prefers_speech_to_noise_and_refuses_silence():
    import numpy as np

    from operators.audio import Clip, decode
    from operators.benchmarks.emotions import EmotionAudit
    from operators.speech.quality import dnsmos

    pytest.importorskip("speechmos", reason="DNSMOS is the optional extra `audit`")
    spoken = decode(EmotionAudit("single_turn_emotions").load()["audio_uris"][0][0].as_py())
    noisy = Clip(
        (spoken.samples + np.random.default_rng(0).normal(0, 0.1, len(spoken.samples))).astype(np.float32),
        spoken.sample_rate,
    )
    clean, worse = dnsmos(spoken), dnsmos(noisy)
    assert 1 <= worse["dnsmos_overall"] < clean["dnsmos_overall"] <= 5
    assert clean["dnsmos_background"] > worse["dnsmos_background"]
    with pytest.raises(ValueError, match="silent"):
        dnsmos(Clip(np.zeros(16_000, np.float32), 16_000))
