"""Votes: what APSC gains for a model with a known position bias, computed by hand, and what an oracle must not lose."""

import math
import random

import pyarrow as pa
import pytest

from operators.mugen.options import JUDGE_UNPARSED
from operators.mugen.presentation import Strategy, map_back, trial_rows
from operators.mugen.tables import curve, summarise
from operators.mugen.votes import TRIALS, cells, pairwise_agreement, tokens, vote

STRATEGIES = {
    "direct": Strategy("mugen_direct"),
    "sc": Strategy("mugen_direct", vote=True),
    "apsc": Strategy("mugen_direct", permute=True, vote=True),
}


def trials_of(listener, golds, n_trials=10, n=5, seed=0):
    """Trials of a listener (position of the right clip, trial -> chosen position or None) over items with these golds."""
    rows = []
    for number, gold in enumerate(golds):
        item = {"item_id": f"q{number}", "gold_index": gold, "n_reference": 0}
        item |= {"audio_uris": [f"{k}.wav" for k in range(n)], "benchmark": "toy", "category": "TA"}
        for permute in (False, True):
            for row in trial_rows(item, n_trials, seed, permute):
                position = row["audio_order"].index(gold)
                chosen = listener(position, row["trial"])
                choice = map_back(row["audio_order"], chosen)
                about = {"model": "toy", "prompt": "mugen_direct", "permuted": permute, "voting": False}
                rows.append(row | about | {"gold_position": position, "option_position": chosen,
                                           "choice_index": choice, "correct": choice == gold})  # fmt: skip
    kept = [{name: row.get(name) for name in TRIALS.names} for row in rows]
    return pa.Table.from_pylist(kept, schema=TRIALS)


def accuracies(trials):
    votes = vote(trials, [], STRATEGIES, separate_voting=False)
    overall = [row for row in summarise(votes, n_resamples=200).to_pylist() if row["group_kind"] == "overall"]
    return {row["strategy"]: row for row in overall}


def test_a_judge_that_fails_makes_no_answer_wrong():
    # Gold first: "direct" of q0 has its only verdict lost, of q1 it is right; every third verdict is lost for the votes.
    def lost(row):
        return row["trial"] % 3 == 0 and row["item_id"] == "q0"

    rows = trials_of(lambda position, trial: position, [0, 0, 0]).to_pylist()
    cut = [
        row | {"option_position": None, "choice_index": None, "correct": None, "option_reason": JUDGE_UNPARSED}
        if lost(row) else row for row in rows
    ]  # fmt: skip
    votes = vote(pa.Table.from_pylist(cut, schema=TRIALS), [], STRATEGIES, separate_voting=False)
    direct = {row["item_id"]: row for row in votes.to_pylist() if row["strategy"] == "direct"}
    assert direct["q0"]["correct"] is None and direct["q0"]["item_error"] == "judge_unparsed: 1 of 1 verdicts"
    found = {
        row["strategy"]: row for row in summarise(votes, 200).to_pylist() if row["group_kind"] == "overall"
    }
    assert (found["direct"]["n_items"], found["direct"]["n_valid"], found["direct"]["accuracy"]) == (
        3,
        2,
        1.0,
    )
    assert (found["sc"]["n_valid"], found["sc"]["accuracy"], found["sc"]["n_unparsed"]) == (3, 1.0, 4)
    assert (found["sc"]["n_paired"], found["sc"]["gain"]) == (2, 0.0), "pairs need both answers"
    # The curve counts as the votes do: q0's first trial is lost, so 2 items of which 2 are right; its second votes.
    points = [
        row for row in curve(pa.Table.from_pylist(cut, schema=TRIALS)).to_pylist() if not row["permuted"]
    ]
    assert [(row["n_items"], row["n_correct"]) for row in points[:2]] == [(2, 2), (3, 3)]
    assert points[-1]["accuracy"] == found["sc"]["accuracy"]


def test_a_curve_over_lost_verdicts_alone_has_no_accuracy():
    rows = trials_of(lambda position, trial: None, [0]).to_pylist()
    lost = pa.Table.from_pylist([row | {"option_reason": JUDGE_UNPARSED} for row in rows], schema=TRIALS)
    assert {(row["n_items"], row["accuracy"]) for row in curve(lost).to_pylist()} == {(0, None)}
    unread = curve(pa.Table.from_pylist(rows, schema=TRIALS)).to_pylist()
    assert {(row["n_items"], row["accuracy"]) for row in unread} == {(1, 0.0)}, "the model's fault counts"


def biased(reach):
    """Hears the right clip in the first `reach` positions only; otherwise says the first."""
    return lambda position, trial: position if position < reach else 0


def test_a_position_biased_model_gains_from_apsc_what_the_hand_computes():
    # 5 items, gold at every position once. Reach 2. Original order: right where gold is at 0 or 1, 2 of 5 = 40%.
    # APSC, 10 fair orders of 5: gold stands at 0 twice and at 1 twice, 4 votes for it. In the other 6 trials the first
    # clip gets the vote; each distractor is first twice in 10 trials, so none has more than 2. 4 > 2: all right, 100%.
    found = accuracies(trials_of(biased(2), range(5)))
    assert found["direct"]["accuracy"] == found["sc"]["accuracy"] == 0.4
    assert found["apsc"]["accuracy"] == 1.0 and found["apsc"]["gain"] == pytest.approx(0.6)
    assert found["sc"]["gain"] == 0.0
    # 10 generations instead of 1 for 60 points: 9 / 60 per item and point.
    assert found["apsc"]["generations_per_point"] == pytest.approx(9 / 60)
    assert found["sc"]["generations_per_point"] is None, "nothing was gained"


def test_a_model_that_always_names_one_position_stays_at_chance_level_in_the_original_order():
    found = accuracies(trials_of(lambda position, trial: 3, range(5)))
    assert found["direct"]["accuracy"] == found["sc"]["accuracy"] == 0.2
    # Every candidate is fourth twice in ten trials: a tie of five, won by the first that got a vote, and flagged.
    assert found["apsc"]["n_ties"] == 5


def test_an_oracle_loses_nothing():
    found = accuracies(trials_of(lambda position, trial: position, [0, 3, 4, 1]))
    assert [row["accuracy"] for row in found.values()] == [1.0, 1.0, 1.0]


def test_votes_do_not_depend_on_the_order_of_rows():
    draw = random.Random(5)
    trials = trials_of(lambda position, trial: draw.choice([None, 0, 1, position]), [0, 1, 2, 3, 4, 0])
    shuffled = list(range(trials.num_rows))
    draw.shuffle(shuffled)
    order = [("item_id", "ascending"), ("strategy", "ascending")]
    first, second = (vote(t, [], STRATEGIES, False).sort_by(order) for t in (trials, trials.take(shuffled)))
    assert first.equals(second)


def test_all_trials_unreadable_is_null_counted_and_not_right():
    found = accuracies(trials_of(lambda position, trial: None, [0, 1]))
    for row in found.values():
        assert (row["n_correct"], row["n_unanswered"], row["n_failed"], row["n_valid"]) == (0, 2, 0, 2)
    assert found["apsc"]["n_unparsed"] == 20
    votes = vote(trials_of(lambda position, trial: None, [0]), [], STRATEGIES, False).to_pylist()
    assert all(row["choice_index"] is None and row["correct"] is False and not row["tie"] for row in votes)


def test_refused_items_are_rows_that_nobody_judges():
    refused = [{"item_id": "bad", "benchmark": "toy", "category": "MA", "item_error": "gold_out_of_range: 7"}]
    votes = vote(trials_of(biased(9), [0, 1]), refused, STRATEGIES, False)
    rows = [row for row in votes.to_pylist() if row["item_id"] == "bad"]
    assert len(rows) == 3 and all(row["correct"] is None for row in rows)
    overall = [row for row in summarise(votes, 100).to_pylist() if row["group_kind"] == "overall"]
    assert all((row["n_items"], row["n_valid"], row["accuracy"]) == (3, 2, 1.0) for row in overall)


def test_the_curve_ends_where_the_vote_is_and_starts_with_one_trial():
    trials = trials_of(biased(2), range(5))
    rows = [row for row in curve(trials).to_pylist() if row["permuted"]]
    assert [row["n_trials"] for row in rows] == list(range(1, 11))
    assert rows[-1]["accuracy"] == 1.0
    first = next(items for key, items in cells(trials) if key[4])
    assert rows[0]["n_correct"] == sum(ballots[0]["correct"] for ballots in first.values())


def test_cells_stand_by_kind_and_number_of_candidates_whichever_item_has_how_many():
    few, more = (trials_of(biased(2), [0], n_trials=2, n=n).to_pylist() for n in (2, 4))
    rows = [row | {"n_candidates": n} for n, some in ((3, few), (4, more), (2, few)) for row in some]
    found = [(key[4], key[2]) for key, _ in cells(pa.Table.from_pylist(rows, schema=TRIALS))]
    assert found == [(permuted, n) for permuted in (False, True) for n in (2, 3, 4)]


def test_pairwise_agreement_by_hand():
    # 3, 1 of 4 trials: 3 * 2 + 0 = 6 agreeing ordered pairs of 4 * 3 = 12.
    assert pairwise_agreement([1, 1, 1, 0]) == 0.5
    assert pairwise_agreement([2, 2, None]) == 1.0
    assert math.isnan(pairwise_agreement([2, None]))


def test_tokens_are_known_only_where_every_trial_tells():
    rows = [{"usage": '{"prompt_tokens": 5}'}, {"usage": '{"prompt_tokens": 7}'}]
    assert tokens(rows, "prompt_tokens") == 12 and tokens(rows, "completion_tokens") is None
    assert tokens([*rows, {"usage": None}], "prompt_tokens") is None
