"""Generic words counted by hand; Table 13 read from a stress test."""

import pyarrow as pa
import pytest

from operators.analysis.cells import cells_of_rows
from operators.analysis.generic_words import generic_counts, generic_words, manipulation_test
from operators.stress import CHANGES
from tests.operators.analysis.made import scored_rows


def test_whole_words_count_and_tags_do_not():
    assert (
        generic_words("[PERCEPTION] The Audio has speech, music; soundtrack, sounds and a sound's echo.") == 4
    )
    assert generic_words("") == 0


def test_rates_by_model_and_their_ranks_beside_m1():
    said = {"A": "music music", "B": "music", "C": "dog", "D": "music audio song"}
    rows = scored_rows([(m, "x", f"i{n}", 0.1 * k) for k, m in enumerate("ABCD", 1) for n in range(3)])
    texts = pa.array([said[model] for model in rows["model"].to_pylist()])
    rows = rows.set_column(rows.schema.get_field_index("response"), "response", texts)
    lines = list(generic_counts(rows, cells_of_rows(rows), 100, 0))
    counts = {line["versus"]: line["estimate"] for line in lines if line["statistic"] == "words"}
    assert counts == {"A": 6, "B": 3, "C": 0, "D": 9}
    rate = next(line for line in lines if line["versus"] == "D" and line["statistic"] == "words_per_chain")
    assert (rate["estimate"], rate["low"], rate["high"], rate["n_clusters"]) == (3, None, None, 3)
    assert "resamples that do not vary" in rate["note"]
    # M1 ranks 1 2 3 4, word ranks 3 2 1 4: rho = 1 - 6 (4 + 0 + 4 + 0) / 60 = 0.2
    assert [line["estimate"] for line in lines if line["statistic"] == "spearman_rho"] == [pytest.approx(0.2)]


def test_table_13_from_a_stress_test():
    shared = {"model": "all", "p": 0.01, "n": 4, "n_clusters": 4, "n_lost": 0, "n_changed": 4, "method": "m"}
    change = {"before": 0.4, "after": 0.1, "difference": -0.3, "low": -0.4, "high": -0.2}
    rows = [
        {"manipulation": name, "outcome": outcome, **shared, **change}
        for name in ("all_music", "half_generic", "filler") for outcome in ("m1_acoustic_grounding", "aria")
    ]  # fmt: skip
    lines = list(manipulation_test(pa.Table.from_pylist(rows, schema=CHANGES)))
    means = {line["measure"]: line["estimate"] for line in lines if line["statistic"] == "mean_m1"}
    assert means == {"original": 0.4, "all_music": 0.1, "half_generic": 0.1}
    assert [line["low"] for line in lines if line["statistic"] == "change_of_m1"] == [-0.4, -0.4]
    others = [row for row in rows if row["manipulation"] != "all_music"]
    lines = list(manipulation_test(pa.Table.from_pylist(others, schema=CHANGES)))
    assert [line["measure"] for line in lines if line["statistic"] == "mean_m1"] == [
        "original",
        "half_generic",
    ]
