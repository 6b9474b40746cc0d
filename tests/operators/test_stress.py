"""Rewritten rows of a run and the comparison with what they were."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators.aggregate import MEASURES, finish_rows
from operators.frames import with_columns
from operators.intervals import wilson_interval
from operators.manipulations import MANIPULATIONS
from operators.schema import CLIPS, ITEM
from operators.stress import (
    ALIKE,
    NAMES,
    ORIGINAL,
    compare,
    manipulated,
    partner_rows,
    rises,
    sentences,
    silent_clip,
)
from operators.stress_report import show
from tests.operators.test_aggregate import results

CHAIN = "[PERCEPTION] Entities: dog {n}, rain.\n[ANALYSIS] It barks {n}.\n[REASONING] So it is one.\n[ANSWER] dog {n}"
TEXT = dict(
    perception="Entities: dog {n}, rain.",
    analysis="It barks {n}.",
    reasoning="So it is one.",
    answer="dog {n}",
)


def rows(models=("A", "B"), items=4, **whole):
    made = []
    for model in models:
        for n in range(items):
            slots = {slot: text.format(n=n) for slot, text in TEXT.items()}
            made.append({
                "item_id": f"i{n}", "model": model, "trial": 0, "response": CHAIN.format(n=n), **slots,
                "entities": [f"dog {n}", "rain"], "choices": ["cat", f"dog {n}"], "audio_uris": [f"{n}.wav"],
                "audio_hashes": [f"h{n}"], "audio_seconds": [1.0], **whole,
            })  # fmt: skip
    return results(*made)


@pytest.fixture(scope="module")
def silence():
    return silent_clip()


def test_silence_is_silent_and_ten_seconds(silence):
    assert silence["audio_seconds"].to_pylist() == [[10.0]] and silence["audio_error"].null_count == 1
    assert silence.schema.equals(pa.schema([ITEM.field("audio_uris"), *CLIPS]))


def test_every_row_comes_once_as_it_is_and_once_per_manipulation_in_the_same_order(silence):
    table = rows()
    made = manipulated(table, NAMES, silence)
    assert made.num_rows == 8 * (1 + len(NAMES)) and len(NAMES) == len(MANIPULATIONS) + 2
    original = made.filter(pc.equal(made["manipulation"], ORIGINAL))
    assert original["response"].to_pylist() == table["response"].to_pylist()
    for name in NAMES:
        part = made.filter(pc.equal(made["manipulation"], name))
        for column in ("item_id", "model", "trial", "question", "gold_index", "choices"):
            assert part[column].to_pylist() == table[column].to_pylist(), (name, column)


def test_texts_are_rewritten_and_clips_left_alone_and_the_other_way_round(silence):
    table = rows()
    made = manipulated(table, NAMES, silence)
    for name in NAMES:
        part = made.filter(pc.equal(made["manipulation"], name))
        heard, said = part["audio_hashes"].to_pylist(), part["response"].to_pylist()
        if name in ("silence", "other_clip"):
            assert said == table["response"].to_pylist() and all(part["changed"].to_pylist())
            assert all(a != b for a, b in zip(heard, table["audio_hashes"].to_pylist(), strict=True))
        else:
            assert heard == table["audio_hashes"].to_pylist()
            changed = [a != b for a, b in zip(said, table["response"].to_pylist(), strict=True)]
            assert part["changed"].to_pylist() == changed and any(changed), name


def test_random_choices_depend_on_the_row_and_the_seed_alone(silence):
    names, table = ["half_generic", "steps_shuffled"], rows(items=20)
    made = manipulated(table, names, silence, seed=1)
    backwards = manipulated(table.take(np.arange(table.num_rows)[::-1]), names, silence, seed=1)
    key = ["manipulation", "model", "item_id"]
    assert made.sort_by([(k, "ascending") for k in key])["response"].to_pylist() == (
        backwards.sort_by([(k, "ascending") for k in key])["response"].to_pylist()
    )
    assert made["response"].to_pylist() != manipulated(table, names, silence, seed=2)["response"].to_pylist()


def test_partners_are_of_the_same_model_and_of_another_item_and_clip():
    table = rows(items=5)
    places = table.select(["model", "item_id", "audio_hashes"]).to_pylist()
    for row, partner in enumerate(partner_rows(table, seed=0)):
        assert places[row]["model"] == places[partner]["model"]
        assert places[row]["item_id"] != places[partner]["item_id"]
    assert partner_rows(rows(items=1), 0) == [None, None]
    assert partner_rows(rows(items=2, audio_hashes=["same"]), 0) == [None] * 4, (
        "the same clip is no other clip"
    )


def test_without_a_partner_nothing_is_changed(silence):
    made = manipulated(rows(items=1), ["other_chain", "other_clip"], silence)
    assert not any(made["changed"].to_pylist())


def test_a_row_without_a_response_stays_without_one(silence):
    table = rows(response=None, response_error="no_recorded_response", answer_index=None)
    made = manipulated(table, NAMES, silence)
    assert made["response"].null_count == made.num_rows


def scored(before, after, name="filler"):
    """Finished rows, original and manipulated, from {(model, item): value of every metric}."""
    parts = []
    for label, values in ((ORIGINAL, before), (name, after)):
        made = [
            {"model": m, "item_id": i, "trial": n, **dict.fromkeys(MEASURES[:6], v)}
            for n, ((m, i), v) in enumerate(values.items())
        ]
        table = finish_rows(results(*made))
        marks = {
            "manipulation": pa.array([label] * len(made)),
            "changed": pa.array([label != ORIGINAL] * len(made)),
        }
        for column, values_ in marks.items():
            table = table.append_column(column, values_)
        parts.append(table)
    return pa.concat_tables(parts)


def test_the_change_is_paired_and_items_are_drawn_whole():
    before = {(m, f"i{n}"): 0.2 + n / 100 for m in "AB" for n in range(10)}
    after = {key: value + (0.1 if key[0] == "A" else 0.3) for key, value in before.items()}
    changes = {(r["model"], r["outcome"]): r for r in compare(scored(before, after), 100).to_pylist()}
    overall, one = changes["all", "aria"], changes["A", "aria"]
    assert (overall["n"], overall["n_clusters"], overall["n_changed"], overall["n_lost"]) == (20, 10, 20, 0)
    assert overall["note"] == f"few items (10): the interval is rough; {ALIKE}"
    # Every item changes by (0.1 + 0.3) / 2: drawing items finds no variance, drawing chains would.
    assert (overall["difference"], overall["low"], overall["high"]) == (pytest.approx(0.2), None, None)
    assert (one["n"], one["difference"]) == (10, pytest.approx(0.1))
    assert changes["all", "accuracy"]["difference"] == 0 and not rises(changes["all", "accuracy"])


def test_accuracy_before_and_after_has_a_width_also_where_all_are_wrong_or_right():
    """Two models on each of ten items: 10 items, not 20 answers, in Wilson's interval."""
    before = {(m, f"i{n}"): 0.2 for m in "AB" for n in range(10)}
    table = scored(before, before)
    after = pc.not_equal(table["manipulation"], ORIGINAL)
    table = with_columns(table, {"correct": after})
    row = next(r for r in compare(table, 100).to_pylist() if r["outcome"] == "accuracy")
    assert (row["before"], row["before_low"], row["before_high"]) == (0.0, *wilson_interval(0, 10))
    assert (row["after"], row["after_low"], row["after_high"]) == (1.0, *wilson_interval(10, 10))
    assert "Wilson" in row["method"] and row["n"] == 20
    # 1 - 0 in every item: no resample differs, and a certain +1 would be more than ten items can tell.
    assert (row["difference"], row["low"], row["high"], row["p"]) == (1.0, None, None, None)
    assert "does not vary between items" in row["note"]


def test_a_lost_score_leaves_the_pair_out_and_is_counted():
    before = {("A", f"i{n}"): 0.5 for n in range(4)}
    after = {**{key: 0.4 for key in before}, ("A", "i0"): None}
    row = next(r for r in compare(scored(before, after), 100).to_pylist() if r["outcome"] == "aria")
    assert (row["n"], row["n_lost"], row["difference"], row["before"]) == (3, 1, pytest.approx(-0.1), 0.5)


def test_sentences_say_what_pays():
    before = {(m, f"i{n}"): 0.5 for m in "AB" for n in range(10)}
    up = {"i0": 0.2, "i1": 0.0}  # beside the others' 0.1: all ten rise by 0.1 in the mean
    higher = {key: 0.5 + up.get(key[1], 0.1) for key in before}
    pays = compare(scored(before, higher), 100)
    assert next(sentences(pays)).startswith("filler PAYS: ARIA +0.100 [+0.0")
    assert "over 20 chains of 10 items; it raises M1 +0.100" in next(sentences(pays))
    not_all = compare(
        scored(before, {key: value if key[0] == "A" else 0.1 for key, value in higher.items()}), 100
    )
    told = next(sentences(not_all))
    assert "filler does not pay: it raises no metric, and ARIA changes by -0.150" in told
    assert told.endswith("It pays for A (+0.100).")
    lost = compare(scored(before, dict.fromkeys(before)), 100)
    assert next(sentences(lost)) == "filler: no chain has an ARIA score both before and after."


def test_a_rise_that_may_be_none_or_rests_on_few_items_does_not_tell_and_a_fall_does_not_pay():
    before = {("A", f"i{n}"): 0.5 for n in range(12)}
    # One of twelve rises by 0.36, the others stay: the mean is 0.03, and a third of the resamples lack that one.
    one = {key: 0.86 if key[1] == "i0" else 0.5 for key in before}
    told = next(sentences(compare(scored(before, one), 200)))
    assert told.startswith(
        "filler: whether it pays cannot be told from 12 chains: ARIA changes by +0.030 [+0.000"
    )
    alike = next(sentences(compare(scored(before, dict.fromkeys(before, 0.6)), 50)))
    assert "cannot be told" in alike and alike.endswith(
        "ARIA changes by +0.100 over 12 chains of 12 items, which is alike in every item."
    )
    none = next(sentences(compare(scored(before, before), 50)))
    assert none.startswith("filler does not pay: it raises no metric, and ARIA changes by +0.000 over")
    nine = {("A", f"i{n}"): 0.5 for n in range(9)}
    few = next(sentences(compare(scored(nine, {k: 0.7 + n / 100 for n, k in enumerate(nine)}), 50)))
    assert few.startswith("filler: ARIA changes by +0.240 [") and few.endswith(
        "too few items to tell whether it pays."
    )


def test_one_item_has_no_interval_and_tells_nothing(capsys):
    changes = compare(scored({("A", "i"): 0.1}, {("A", "i"): 0.9}), 100)
    row = changes.to_pylist()[0]
    assert row["low"] is None and not rises(row)
    assert next(sentences(changes)) == (
        "filler: ARIA changes by +0.800 over 1 chain of 1 item, too few items to tell whether it pays."
    )
    show(changes)
    assert "Only 1 item: there are no intervals." in capsys.readouterr().out


def test_many_models_with_long_names_leave_room_for_the_manipulations(capsys):
    before = {(f"{m} {'x' * 90}", f"i{n}"): 0.5 for m in "ABCDEFGHI" for n in range(2)}
    show(compare(scored(before, {key: 0.6 for key in before}), 100))
    text = capsys.readouterr().out
    assert text.count("ARIA by model") == 3 and text.count("\n filler ") == 4
    assert all(f" {m} xxx" in text for m in "ABCDEFGHI")


def test_the_report_shows_every_manipulation_and_says_that_items_are_few(capsys):
    before = {(m, f"i{n}"): 0.5 for m in ("A", "[b]x") for n in range(6)}
    show(compare(scored(before, {key: 0.6 for key in before}), 100))
    text = capsys.readouterr().out
    assert (
        "filler" in text
        and "+0.100 " in text
        and "Only 6 items" in text
        and "[b]x" in text
        and "too few items" in text
    )


def test_the_report_shows_the_interval_of_every_outcome(capsys):
    """Two of six items fall by 0.4, four rise by 0.1: the mean change is (4 * 0.1 - 2 * 0.4) / 6 = -0.067."""
    before = {("A", f"i{n}"): 0.5 for n in range(6)}
    changes = compare(scored(before, {key: 0.1 if key[1] in ("i0", "i1") else 0.6 for key in before}), 100)
    show(changes)
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if " filler " in line)
    ends = [row for row in changes.to_pylist() if row["outcome"] != "accuracy"]
    for below, end in ((1, "low"), (2, "high")):
        assert [lines[at + below].count(f"{ends[0][end]:+.3f}"), len(ends)] == [7, 7]
    assert lines[at].count("-0.067") == 7 and ends[0]["low"] < -0.067 < ends[0]["high"]
