from collections import Counter
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from operators.aggregate import finish_rows
from operators.analysis.ratings import read_ratings
from operators.annotation import RATINGS, disagreement, draw, plan, read_exports, study_id
from operators.schema import METRICS, result_schema
from operators.tables import Row, TableError
from tests.report_toys import results, row


def rows_of(n_items=20, models=("a", "b"), benchmarks=("x", "y")):
    rows = [
        row(f"i{n}", model, n, "t", benchmark=name, **dict.fromkeys(METRICS, n / n_items))
        for name in benchmarks
        for n in range(n_items)
        for model in models
    ]
    return finish_rows(pa.Table.from_pylist(rows, schema=result_schema()))


def test_every_model_gives_its_share_over_benchmarks_groups_and_the_range_of_aria():
    rows = rows_of()
    chains = draw(rows, per_model=10, n_groups=2, seed=0)
    assert Counter((c.model, c.benchmark) for c in chains) == {(m, b): 5 for m in "ab" for b in "xy"}
    assert Counter((c.model, c.group) for c in chains) == {(m, g): 5 for m in "ab" for g in "12"}
    for model in "ab":
        # 20 chains in the order of ARIA cut into 5 runs of 4, one from each: its number // 4 is 0, 1, 2, 3, 4.
        runs = sorted(int(c.item_id[1:]) // 4 for c in chains if (c.model, c.benchmark) == (model, "x"))
        assert runs == [0, 1, 2, 3, 4]


def test_a_draw_is_reproducible_and_another_seed_is_another_study():
    rows = rows_of()
    assert draw(rows, 4, 3, 7) == draw(rows, 4, 3, 7)
    assert study_id(draw(rows, 4, 3, 7)) != study_id(draw(rows, 4, 3, 8))


def test_what_has_no_response_or_no_aria_is_never_drawn_and_a_small_model_gives_what_it_has():
    chains = draw(results(n_items=5), per_model=50, n_groups=1, seed=0)
    assert Counter(c.model for c in chains) == {"careful": 5, "sloppy": 4}
    assert ("item-4", "sloppy") not in {(c.item_id, c.model) for c in chains}


def test_what_a_small_benchmark_is_short_of_the_others_give():
    """20 chains on x and 2 on y: of 10 wanted, y gives its 2 and x the other 8; where both are short, all 22 are drawn."""
    rows = [row(f"i{n}", "m", n, "t", benchmark=name, **dict.fromkeys(METRICS, n / 20))
            for name, size in (("x", 20), ("y", 2)) for n in range(size)]  # fmt: skip
    rows = finish_rows(pa.Table.from_pylist(rows, schema=result_schema()))
    assert Counter(c.benchmark for c in draw(rows, 10, 1, 0)) == {"x": 8, "y": 2}
    assert Counter(c.benchmark for c in draw(rows, 50, 1, 0)) == {"x": 20, "y": 2}
    assert len(draw(rows, 1, 1, 0)) == 1


def test_codes_are_distinct_and_name_no_model():
    chains = draw(rows_of(), 10, 3, 0)
    assert len({c.code for c in chains}) == len(chains)
    assert all(len(c.code) == 12 for c in chains)


CHAINS = draw(rows_of(n_items=4, benchmarks=("x",)), 2, 1, 0)
PLAN = plan(CHAINS, 3)


def said(rater, ratings, **changed):
    return [
        Row({"study": PLAN["study"], "group": "1", "rater": rater, "chain": chain.code, "rating": rating,
             "annotated_at": "2026-01-31T12:00:00Z"} | changed, place)
        for place, (chain, rating) in enumerate(zip(CHAINS, ratings, strict=True), 1)
    ]  # fmt: skip


def test_ratings_come_back_under_item_and_model_with_missing_ones_as_null():
    table = read_exports(
        {"a.json": said("ann", [1, 2, None, 5]), "b.json": said("bo", [1, 5, 3, None])}, PLAN
    )
    assert table.schema == RATINGS
    assert table.num_rows == 8
    assert table["rating"].null_count == 2
    assert table["rating"].to_pylist()[:4] == [1, 2, None, 5]
    assert [(r["item_id"], r["model"]) for r in table.to_pylist()[:4]] == [
        (c.item_id, c.model) for c in CHAINS
    ]


def test_the_analysis_reads_the_table():
    table = read_exports({"a.json": said("ann", [1, 2, None, 5])}, PLAN)
    found = read_ratings("r.parquet", [Row(r, n, "row") for n, r in enumerate(table.to_pylist(), 1)])
    assert [None if np.isnan(one.rating) else one.rating for one in found] == [1, 2, None, 5]


def test_a_file_that_leaves_chains_out_is_short_of_them_not_wrong():
    table = read_exports({"a.json": said("ann", [1, 2, 3, 4])[:1]}, PLAN)
    assert table["rating"].to_pylist() == [1, None, None, None]


def test_the_same_file_twice_says_it_once():
    file = said("ann", [1, 2, 3, 4])
    assert read_exports({"a.json": file, "copy.json": file}, PLAN).num_rows == 4


def test_of_the_files_that_a_rater_saves_as_he_goes_the_later_word_on_a_chain_stands_in_any_order():
    early, late = "2026-01-31T12:00:00.000Z", "2026-02-01T09:30:00.000Z"
    never = [*said("ann", [None] * 4, annotated_at=None)]  # the first save holds every chain
    first = said("ann", [4, 2, 3, None], annotated_at=early)[:3] + never[3:]
    last = said("ann", [4, 5, None, 1], annotated_at=late)  # the second changed, the third taken back
    again = said(
        "ann", [4, 2, 3, 1], annotated_at="2026-01-31T13:00:00+01:00"
    )  # noon in UTC: the same moment as `early`
    for files in permutations([never, first, last, again]):
        table = read_exports(dict(zip("abcd", files, strict=True)), PLAN)
        assert table["rating"].to_pylist() == [4, 5, None, 1]
        assert set(table["annotated_at"].to_pylist()) == {late}


def test_two_ratings_without_known_times_name_both():
    one, other = (said("ann", [n, 1, 1, 1], annotated_at=at) for n, at in ((2, "31/01/2026"), (5, "")))
    with pytest.raises(
        TableError, match=r"b, line 1: rated_twice: .* differently \(2 at 31/01/2026 and 5 at no time\)"
    ):
        read_exports({"a": one, "b": other}, PLAN)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (said("ann", [1, 2, 3, 9]), "line 4: bad_rating: from 1 to 5, not 9"),
        (said("ann", [1, 2, 3, "good"]), "bad_rating"),
        (said("ann", [1, 2, 3, 2.5]), "bad_rating"),
        (said("ann", [1, 2, 3, True]), "bad_rating"),
        (said("ann", [1, 2, 3, 4], study="other"), "line 1: other_study"),
        (said("ann", [1, 2, 3, 4], chain="nope"), "unknown_chain"),
        (said("ann", [1, 2, 3, 4], group="2"), "bad_group"),
        (said(" ", [1, 2, 3, 4]), "bad_rater"),
        (said("ann", [1, 2, 3, 4]) + said("ann", [1, 2, 3, 5]), "rated_twice"),
        ([Row({"rating": 3}, 1)], "not_an_export"),
    ],
)
def test_what_does_not_belong_is_refused_with_file_and_row(rows, message):
    with pytest.raises(TableError, match=message) as caught:
        read_exports({"mine.json": rows}, PLAN)
    assert "mine.json, line" in str(caught.value)


def test_disagreement_by_hand():
    """Chains rated (1, 1), (2, 5), (-, 3), (5, -): two compared, of which one lies 3 apart, so the mean span is 1.5; 2 of 8 ratings
    are missing."""
    table = read_exports({"a": said("ann", [1, 2, None, 5]), "b": said("bo", [1, 5, 3, None])}, PLAN)
    (group,) = disagreement(table, 3)
    assert group["mean_span"] == 1.5
    assert {name: group[name] for name in ("n_raters", "n_expected", "n_ratings", "n_missing", "n_compared", "n_apart")} == {
        "n_raters": 2, "n_expected": 3, "n_ratings": 6, "n_missing": 2, "n_compared": 2, "n_apart": 1,
    }  # fmt: skip


def test_one_rater_alone_disagrees_with_nobody():
    (group,) = disagreement(read_exports({"a": said("ann", [1, 2, 3, 4])}, PLAN), 3)
    assert group["n_compared"] == 0
    assert np.isnan(group["mean_span"])
