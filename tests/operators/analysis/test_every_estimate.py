"""Every number that is an estimate stands beside its n, its interval and how that was made, in every table there is."""

import pyarrow as pa
import pytest

from operators import ablation, aggregate, mode_table, perturbation_effects, schema, stress
from operators.analysis import estimates, judges
from operators.analysis.generic_words import manipulation_test
from operators.audit import balance, listening, validity
from operators.audit import tables as audit
from operators.judges import judge_table
from operators.mugen import tables as mugen
from operators.reporting import overview
from operators.reporting.overview import correlation_lines, variance
from operators.reporting.ranking import SHARES, leaderboards
from tests.report_toys import results

# table -> {estimate: (its low, its high, its n)}; the method stands in a column `method`, or beside the schema.
ESTIMATES = {
    "estimates": (estimates.ESTIMATES, {"estimate": ("low", "high", "n")}),
    "stress": (
        stress.CHANGES,
        {name: (f"{prefix}low", f"{prefix}high", "n")
         for name, prefix in (("before", "before_"), ("after", "after_"), ("difference", ""))},
    ),
    "summary": (
        aggregate.SUMMARY,
        {f"{name}{end}": (f"{name}_low{end}", f"{name}_high{end}", "n_items")
         for name in SHARES for end in ("", "_paper")}
        | {f"{name}_mean": (f"{name}_low", f"{name}_high", f"{name}_n_items") for name in aggregate.MEASURES},
    ),
    "mugen summary": (
        mugen.SUMMARY,
        {"accuracy": ("wilson_low", "wilson_high", "n_valid"), "gain": ("gain_low", "gain_high", "n_paired")},
    ),
    "scaling": (mugen.SCALING, {"accuracy": ("wilson_low", "wilson_high", "n_items")}),
    "curve": (mugen.CURVE, {"accuracy": ("wilson_low", "wilson_high", "n_items")}),
    "positions": (mugen.POSITIONS, {"accuracy": ("wilson_low", "wilson_high", "n_gold")}),
    "agreement": (
        mugen.AGREEMENT,
        {name: (f"{name}_low", f"{name}_high", "n_items") for name in ("agreement", "unanimous")},
    ),
    "audit accuracy": (
        audit.ACCURACY,
        {"accuracy": ("wilson_low", "wilson_high", "n_scored"), "turn_accuracy": ("turn_low", "turn_high", "n_scored"),
         "contrast_accuracy": ("contrast_low", "contrast_high", "n_scored"),
         "said_first": ("said_first_low", "said_first_high", "n_scored"),
         "youden_j": ("youden_low", "youden_high", "n_scored"), "voice_changes": ("voice_low", "voice_high", "n_pairs"),
         "order_consistency": ("order_low", "order_high", "n_both_orders")},
    ),
    "states": (audit.STATES, {"mass": ("wilson_low", "wilson_high", "n_instances")}),
    "rates": (
        audit.RATES,
        {"conditional_potemkin": ("conditional_low", "conditional_high", "n_both_probes"),
         "protocol_gap": ("gap_low", "gap_high", "n_gap_items"), "cue_dependence": ("cue_low", "cue_high", "n_cue_items"),
         "cue_dependence_pairwise": ("cue_pairwise_low", "cue_pairwise_high", "n_cue_pairwise_items")},
    ),
    "listeners": (
        listening.LISTENERS,
        {"accuracy": ("wilson_low", "wilson_high", "n_rated"), "chose_first": ("first_low", "first_high", "n_rated")},
    ),
    "ranks": (judges.RANKS, {}),
    "judges": (judge_table.JUDGED, {"score": ("score_low", "score_high", "n_items")}),
    "backbones": (ablation.AGREEMENT, {"estimate": ("low", "high", "n")}),
    "ablation": (ablation.MEANS, {"mean": ("mean_low", "mean_high", "n_items")}),
    "perturbation": (
        perturbation_effects.EFFECTS,
        {"accuracy": ("accuracy_low", "accuracy_high", "n_items"),
         "no_answer_rate": ("no_answer_low", "no_answer_high", "n_answered"),
         "difference": ("difference_low", "difference_high", "n_items"),
         "change_rate": ("change_low", "change_high", "n_compared")},
    ),
    "modes": (
        mode_table.MODES_TABLE,
        {name: (f"{name}_low", f"{name}_high", "n_items") for name in ("aria", "profile_accuracy")},
    ),
    "profiles": (
        validity.PROFILES,
        {name: (f"{name}_low", f"{name}_high", "n_items_first")
         for name in ("pearson", "spearman", "slope", "largest_difference")},
    ),
    "swaps": (
        validity.SWAPS,
        {f"accuracy_{end}": (f"wilson_low_{end}", f"wilson_high_{end}", f"n_{end}") for end in ("first", "second")}
        | {"difference": ("difference_low", "difference_high", "n_second")},
    ),
    "rankings": (
        validity.RANKINGS, {name: (f"{name}_low", f"{name}_high", "n_judges") for name in ("spearman", "kendall")},
    ),
    "balance": (balance.BALANCE, {"mean_absolute_difference": ("difference_low", "difference_high", "n")}),
}  # fmt: skip
# Numbers that are no estimates: p values and widths of what stands beside them, bounds by arithmetic, values that were
# given, and descriptions of the very rows at hand, which are said of no others.
PLAIN = {
    "estimates": {"p"},
    "stress": {"p"},
    "summary": {f"{name}_sd" for name in aggregate.MEASURES},
    "mugen summary": {"half_width", "gain_p", "generations_per_point", "tokens_per_point"},
    "scaling": {"half_width", "relative_to_two"},
    "curve": {"half_width"},
    "positions": {"n_expected", "chi_square", "p"},
    "agreement": set(),
    "audit accuracy": {"accuracy_least", "accuracy_most", "chance"},
    "states": {"mass_least", "mass_most"},
    # The masses are those of STATES, which has their intervals.
    "rates": {"reliable_mass", "potemkin_mass", "shortcut_mass", "gap_p", "cue_p", "cue_pairwise_p"},
    "listeners": {"plays_mean"},
    "ranks": {"aria", "score", "aria_rank", "judge_rank"},
    # Of summary.parquet, which has their intervals and n beside them; a bound by arithmetic.
    "judges": {"accuracy", "aria", "score_if_failed_0"},
    "backbones": {"p"},
    "ablation": set(),
    "perturbation": set(),
    "modes": set(),
    "profiles": set(),
    "swaps": set(),
    "rankings": {"spearman_p", "kendall_p"},
    # Of the clips at hand, to read the difference by.
    "balance": {"mean", "sd", "largest"},
}


@pytest.mark.parametrize("table", ESTIMATES)
def test_a_number_is_an_estimate_with_its_interval_and_n_or_is_named_as_plain(table):
    columns, found = ESTIMATES[table]
    beside = {name for whole in found.values() for name in whole}
    assert beside <= set(columns.names), beside - set(columns.names)
    numbers = {field.name for field in columns if pa.types.is_floating(field.type)}
    assert numbers == set(found) | (beside & numbers) | PLAIN[table]
    if "low" in columns.names:
        assert "method" in columns.names


def test_the_page_shows_every_mean_share_correlation_and_variance_with_interval_and_n(monkeypatch):
    monkeypatch.setattr(overview, "N_RESAMPLES", 40)
    rows = results()
    (board,) = leaderboards(aggregate.summarise(rows))
    cells = [cell for entry in board["models"] for cell in entry["cells"].values()]
    assert len(cells) == 2 * (len(aggregate.MEASURES) + len(SHARES))
    assert all(cell["n"] > 0 and cell["low"] <= cell["value"] <= cell["high"] for cell in cells)
    (block,) = variance(rows)
    shares = [(one["parts"][p], one["intervals"][p]) for one in block["rows"] for p in one["parts"]]
    assert len(shares) == 3 * len(block["rows"]) == 3 * 7
    assert all(0 <= low < high <= 1 for _, (low, high) in shares)
    lines = correlation_lines(rows, "toy")
    assert len(lines) == 21  # pairs of seven
    for line in lines:
        assert line["low"] < line["estimate"] < line["high"] and (line["n"], line["n_clusters"]) == (23, 12)
        assert "items drawn" in line["method"] and "few items (12)" in line["note"]


def test_means_of_table_13_have_the_intervals_of_the_stress_test():
    change = dict.fromkeys(stress.CHANGES.names) | {
        "manipulation": "all_music", "outcome": schema.METRICS[0], "model": "all", "n": 4, "n_clusters": 4,
        "before": 0.4, "before_low": 0.3, "before_high": 0.5, "after": 0.1, "after_low": 0.0, "after_high": 0.2,
        "difference": -0.3, "low": -0.4, "high": -0.2, "p": 0.01, "method": "m",
    }  # fmt: skip
    lines = list(manipulation_test(pa.Table.from_pylist([change], schema=stress.CHANGES)))
    assert [(one["estimate"], one["low"], one["high"]) for one in lines] == [
        (0.4, 0.3, 0.5), (0.1, 0.0, 0.2), (-0.3, -0.4, -0.2),
    ]  # fmt: skip


def test_an_estimate_without_an_interval_says_so_and_a_count_needs_none():
    about = {"n": 4, "unit": "models"}
    tau = estimates.estimate("judges", "aria", "kendall_tau_b", 0.3, method="Fieller", **about)
    assert tau["low"] is None and "no interval" in tau["note"] and "few models (4)" in tau["note"]
    counted = estimates.estimate("generic_words", "m1", "words", 30, method=estimates.COUNT, **about)
    assert "no interval" not in counted["note"]
    whole = estimates.estimate(
        "judges", "aria", "rho", 0.3, method="m", interval=(0.1, 0.5), n=40, unit="models"
    )
    assert whole["note"] is None
    one = estimates.estimate(
        "raters",
        "rating",
        "alpha",
        0.8,
        method="m",
        interval=(0.8, 0.8),
        p=0.1,
        n=6,
        n_clusters=1,
        unit="chains",
    )
    assert one["low"] is None and one["p"] is None and "few items (1)" in one["note"]
