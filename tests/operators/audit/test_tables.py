"""Hand-made judges with known outcomes give exactly the masses, accuracies and gaps that they must."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap
from sklearn.metrics import balanced_accuracy_score

from operators.audit.controls import bluff
from operators.audit.findings import diagnose, findings, leaks
from operators.audit.outcomes import instances, judged
from operators.audit.presentation import PROBES, Design, planned_calls
from operators.audit.tables import ACCURACY, RATES, STATES, tables
from operators.audit_states import STATE_NAMES, agreement_rate, youdens_j
from operators.intervals import wilson_interval, wilson_interval_of_mean
from tests.audit_toys import items_of, judge, positional, reply, single, wrong

N = 40
PLAIN = ("none",)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    pairs = [("angry", "sad"), ("surprised", "sad"), ("surprised", "neutral"), ("angry", "surprised")]
    lines = [single(f"s{n}", pairs[n % 4], f"Sentence number {n}.") for n in range(N)]
    return items_of("single_turn_emotions", lines, tmp_path_factory.mktemp("audit"))


def audit(verdicts, n_resamples=200):
    found = tables(verdicts, instances(verdicts), n_resamples)
    for name, schema in (("accuracy", ACCURACY), ("states", STATES), ("rates", RATES)):
        assert found[name].schema == schema
    return {name: table.to_pylist() for name, table in found.items()}


def planned(items, cues=PLAIN, **settings):
    design = Design(PROBES, cues, seed=3, **settings)
    return [call for item in items for call in planned_calls(item, design)]


def cell(found, probe, split="all", cue="none"):
    (row,) = [r for r in found["accuracy"] if (r["probe"], r["split"], r["cue"]) == (probe, split, cue)]
    return row


def diagnosis(verdicts):
    found = audit(verdicts)
    (told,) = findings(found["accuracy"], found["states"], found["rates"])
    return told


@pytest.mark.parametrize("state", STATE_NAMES)
def test_a_judge_that_is_always_in_one_state_has_all_its_mass_there(items, state):
    p, o, j = (digit == "1" for digit in state)
    outcome = {"perception": p, "oracle": o, "pointwise": j, "pairwise": True, "staging": True}
    found = audit(judge(planned(items), lambda call: outcome[call["probe"]]))
    masses = {row["state"]: row["mass"] for row in found["states"]}
    assert masses == {name: float(name == state) for name in STATE_NAMES}
    (rates,) = found["rates"]
    assert rates["reliable_mass"] == (state == "111") and rates["potemkin_mass"] == (state == "110")
    assert rates["shortcut_mass"] == (state in ("001", "011", "101"))
    both = {"110": 1.0, "111": 0.0}
    assert rates["conditional_potemkin"] == both.get(state)
    assert rates["protocol_gap"] == 1.0 - j
    assert rates["gap_low"] is None and rates["gap_reason"] == f"no_spread: all {N} items are alike"
    assert rates["cue_dependence"] is None and rates["cue_reason"].startswith("baseline")
    # Wilson's interval of 80 of 80, from a second source.
    row = next(row for row in found["states"] if row["state"] == state)
    other = binomtest(2 * N, 2 * N).proportion_ci(method="wilson")
    assert row["wilson_low"] == pytest.approx(other.low) and row["wilson_high"] == pytest.approx(other.high)


def test_mixed_states_by_hand(items):
    """Items 0-9: 111; 10-19: 110; 20-29: 010; 30-39: 001. Two instances each: 20 of 80 = 0.25 per state."""
    tens = ["111", "110", "010", "001"]

    def right(call):
        state = tens[int(call["item_id"][1:]) // 10]
        places = {"perception": 0, "oracle": 1, "pointwise": 2}
        return state[places[call["probe"]]] == "1" if call["probe"] in places else call["probe"] == "pairwise"

    found = audit(judge(planned(items), right))
    masses = {row["state"]: row["mass"] for row in found["states"]}
    assert masses == {name: 0.25 if name in tens else 0.0 for name in STATE_NAMES}
    (rates,) = found["rates"]
    assert (rates["n_both_probes"], rates["conditional_potemkin"]) == (40, 0.5)  # 20 / (20 + 20)
    assert cell(found, "pointwise")["accuracy"] == 0.5  # 40 of 80
    assert rates["protocol_gap"] == 0.5 and rates["n_gap_items"] == N  # 1 - 0.5


def test_intervals_equal_a_reference_librarys(items):
    found = audit(judge(planned(items), lambda call: hash_bit(call, 0.7)), n_resamples=2000)
    for row in found["accuracy"]:
        if row["split"] == "all":
            other = binomtest(row["n_correct"], row["n_scored"]).proportion_ci(method="wilson")
            assert (row["wilson_low"], row["wilson_high"]) == pytest.approx((other.low, other.high))
    for row in found["states"]:
        other = binomtest(row["n_in_state"], row["n_instances"]).proportion_ci(method="wilson")
        assert (row["wilson_low"], row["wilson_high"]) == pytest.approx((other.low, other.high), abs=1e-12)


def test_the_gaps_interval_is_scipys_bootstrap_over_items(items):
    verdicts = judge(planned(items), lambda call: hash_bit(call, 0.9 if call["probe"] == "pairwise" else 0.6))
    (rates,) = audit(verdicts, n_resamples=4000)["rates"]
    by_item = {}
    for row in verdicts:
        if row["probe"] in ("pairwise", "pointwise"):
            by_item.setdefault(row["item_id"], {}).setdefault(row["probe"], []).append(row["correct"])
    gaps = np.array([np.mean(one["pairwise"]) - np.mean(one["pointwise"]) for one in by_item.values()])
    other = bootstrap((gaps,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(0))
    assert rates["protocol_gap"] == pytest.approx(gaps.mean())
    assert (rates["gap_low"], rates["gap_high"]) == pytest.approx(tuple(other.confidence_interval), abs=0.02)


def hash_bit(call, share):
    """Whether a judge that is right in `share` of all calls is right in this one: fixed, and unlike from call to call."""
    import hashlib

    text = f"{call['item_id']} {call['probe']} {call['branch']} {call['cue']}"
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1000 < 1000 * share


def test_cue_dependence_is_the_change_from_no_cue(items):
    wanted = {"none": 0.25, "soft": 0.25, "hard": 0.75}

    def right(call):
        return int(call["item_id"][1:]) / N < wanted[call["cue"]]

    found = audit(judge(planned(items, ("none", "soft", "hard")), right))
    by_cue = {row["cue"]: row for row in found["rates"]}
    assert list(by_cue) == ["none", "soft", "hard"]
    assert by_cue["none"]["cue_dependence"] is None
    assert by_cue["soft"]["cue_dependence"] == 0.0 and by_cue["hard"]["cue_dependence"] == 0.5
    assert by_cue["hard"]["cue_dependence_pairwise"] == 0.5 and by_cue["hard"]["n_cue_items"] == N
    assert by_cue["hard"]["cue_low"] > 0


@pytest.mark.parametrize("habit", ["R1", "words"])
def test_a_judge_that_ignores_audio_gets_half_and_is_named_a_shortcut_user(items, habit):
    """It knows which reply suits an emotion it is told (O = 1), and answers by place, or by a taste in replies."""

    def pred(call):
        if call["probe"] == "oracle":
            return call["gold"]
        if call["probe"] == "perception":
            return "E1"
        if habit == "R1":
            return "R1"
        return "R1" if (int(call["item_id"][1:]) % 3 == 0) != call["swapped"] else "R2"

    verdicts = [
        judged(call, "deaf", [{"response": reply(call, pred(call)), "response_error": None}])
        for call in planned(items)
    ]
    found = audit(verdicts)
    assert (
        cell(found, "pointwise")["accuracy"] == 0.5
    )  # one of the two branches of every item, whatever it says
    assert abs(cell(found, "pairwise")["accuracy"] - 0.5) < 0.2
    assert cell(found, "pointwise")["voice_changes"] == 0.0 and cell(found, "pointwise")["youden_j"] == 0.0
    told = diagnosis(verdicts)
    assert told.diagnosis == "shortcut" and told.headline.startswith("Shortcut user.")
    assert any("changed with the voice in 0.0% of 40 pairs of calls" in line for line in told.details)
    assert any("Position bias: it says R1 in 100.0%" in line for line in told.details) == (habit == "R1")


@pytest.mark.parametrize(
    ("right", "named"),
    [
        ({"perception": 1, "oracle": 1, "pointwise": 1, "pairwise": 1}, "reliable"),
        ({"perception": 1, "oracle": 1, "pointwise": None, "pairwise": None}, "potemkin"),
        ({"perception": 1, "oracle": None, "pointwise": None, "pairwise": None}, "mapping"),
        ({"perception": None, "oracle": 1, "pointwise": None, "pairwise": None}, "shortcut"),
        ({"perception": None, "oracle": 1, "pointwise": 1, "pairwise": 1}, "shortcut"),
        ({"perception": 1, "oracle": 1, "pointwise": None, "pairwise": 1}, "contrast"),
    ],
)
def test_each_profile_has_its_name(items, right, named):
    """None: right in one of the two branches of an item, as without the voice; pairwise in every second item."""

    def outcome(call):
        value = right.get(call["probe"], 1)
        if value is None:
            return call["branch"] == 0 if call["branch"] is not None else int(call["item_id"][1:]) % 2 == 0
        return bool(value)

    assert diagnosis(judge(planned(items), outcome)).diagnosis == named


def test_nothing_readable_is_no_verdict_and_no_number(items):
    verdicts = judge(planned(items), lambda call: None)
    found = audit(verdicts)
    row = cell(found, "pointwise")
    assert (row["accuracy"], row["n_scored"], row["n_unparsed"]) == (None, 0, 2 * N)
    assert (row["accuracy_least"], row["accuracy_most"]) == (0.0, 1.0)
    assert all(r["mass"] is None and (r["mass_least"], r["mass_most"]) == (0.0, 1.0) for r in found["states"])
    (rates,) = found["rates"]
    assert rates["reliable_mass"] is None and rates["protocol_gap"] is None and rates["n_excluded"] == 2 * N
    assert rates["gap_reason"] == "too_few: no item"
    told = diagnosis(verdicts)
    assert told.diagnosis == "unknown"
    assert any("80 unreadable" in line for line in told.details)


def test_a_null_is_left_out_counted_and_bounded(items):
    """8 of 80 pointwise replies are unreadable, the others right: 72 of 72; between 72/80 and 80/80."""
    lost = {f"s{n}" for n in range(4)}

    def right(call):
        return None if call["probe"] == "pointwise" and call["item_id"] in lost else True

    found = audit(judge(planned(items), right))
    row = cell(found, "pointwise")
    assert (row["n_calls"], row["n_scored"], row["n_unparsed"], row["accuracy"]) == (80, 72, 8, 1.0)
    assert (row["accuracy_least"], row["accuracy_most"]) == (0.9, 1.0)
    state = next(r for r in found["states"] if r["state"] == "111")
    assert (state["mass"], state["mass_least"], state["n_excluded"]) == (1.0, 0.9, 8)
    (rates,) = found["rates"]
    assert (rates["protocol_gap"], rates["n_gap_items"]) == (0.0, 36)


def test_position_bias_shows_in_the_split_and_in_the_order_consistency(items):
    calls = planned(items, counterbalance=True)
    verdicts = [
        judged(call, "first", [{"response": bluff("always_first", call, 0), "response_error": None}])
        for call in calls
    ]
    found = audit(verdicts)
    for probe in ("pointwise", "pairwise", "oracle"):
        assert cell(found, probe, "right_first")["accuracy"] == 1.0
        assert cell(found, probe, "right_second")["accuracy"] == 0.0
        row = cell(found, probe)
        assert (row["accuracy"], row["order_consistency"], row["youden_j"]) == (0.5, 0.0, 0.0)
    row = cell(found, "pointwise")
    assert row["n_both_orders"] == 2 * N
    # 80 calls, each in both orders: half are right, and the intervals count 80, not 160.
    assert (row["n_scored"], row["wilson_low"], row["wilson_high"]) == (4 * N, *wilson_interval(N, 2 * N))
    state = next(one for one in found["states"] if one["n_in_state"])
    assert state["wilson_low"] == wilson_interval_of_mean(state["mass"], 2 * N)[0]
    # Four calls on each of 40 items, all R1: of the first 40 / 40 by items, sensitivity 1, specificity 0.
    assert (row["said_first_low"], row["said_first_high"]) == wilson_interval(N, N)
    least, most = wilson_interval(N, N)[0], wilson_interval(0, N)[1]
    assert (row["youden_low"], row["youden_high"]) == pytest.approx((least - 1, most))
    assert (row["order_low"], row["order_high"]) == (0.0, most)
    assert (row["voice_low"], row["voice_high"]) == pytest.approx((0.0, most))
    assert any("keeps to its choice in 0.0% of 80 calls" in line for line in diagnosis(verdicts).details)
    steady = audit(judge(calls, lambda call: call["branch"] == 0))
    assert cell(steady, "pointwise")["order_consistency"] == 1.0


def test_both_orders_of_a_call_are_one_in_intervals_of_turns_and_of_the_conditional_potemkin_rate(items):
    """Right in P and O, wrong in J, asked in both orders: 160 verdicts of each probe about 80 calls."""
    found = audit(judge(planned(items, counterbalance=True), lambda call: call["probe"] != "pointwise"))
    row, (rates,) = cell(found, "perception"), found["rates"]
    assert (row["n_scored"], row["turn_accuracy"], row["contrast_accuracy"]) == (4 * N, 1.0, 1.0)
    assert (rates["n_both_probes"], rates["conditional_potemkin"]) == (4 * N, 1.0)
    low = wilson_interval(2 * N, 2 * N)[0]
    assert (row["turn_low"], row["contrast_low"], rates["conditional_low"]) == (low, low, low)


def test_a_random_judge_is_at_chance_everywhere(items):
    calls = planned(items, ("none", "soft", "hard"))
    verdicts = [
        judged(c, "random", [{"response": bluff("random", c, 5), "response_error": None}]) for c in calls
    ]
    assert {row["reason"] for row in verdicts} == {None}
    share = np.mean([row["correct"] for row in verdicts])
    assert abs(share - 0.5) < 4 * math.sqrt(0.25 / len(verdicts))
    assert verdicts != [judged(c, "random", [{"response": bluff("random", c, 6)}]) for c in calls]


def test_a_trajectory_is_right_as_a_whole_and_turn_by_turn(tmp_path):
    """Three turns, onsets 2 and 3: happy angry angry / happy happy angry. Always E1 E1 E2 in names: right in one branch;
    per turn (3 + 2) / 6; on the one turn that differs 1 of 2."""
    items = items_of("positional_emotion", [positional(f"p{n}") for n in range(6)], tmp_path)
    verdicts = []
    for call in planned(items):
        if call["probe"] == "perception":
            index = {name: f"E{k}" for k, name in enumerate(call["names"], 1)}
            pred = ",".join(index[e] for e in ("happy", "happy", "angry"))
        else:
            pred = call["gold"]
        verdicts.append(judged(call, "m", [{"response": reply(call, pred), "response_error": None}]))
    row = cell(audit(verdicts), "perception")
    assert (row["accuracy"], row["contrast_accuracy"], row["chance"]) == (0.5, 0.5, 0.125)
    assert row["turn_accuracy"] == pytest.approx(5 / 6)
    assert row["voice_changes"] == 0.0
    assert diagnosis(verdicts).diagnosis == "shortcut"  # right about the replies, and it did not hear them


def test_a_leak_is_named_and_a_sound_benchmark_is_not(items):
    def text_only(right):
        return audit(judge(planned(items, control="text_only"), right))["accuracy"]

    assert len(leaks(text_only(lambda call: True))) == 2
    assert leaks(text_only(lambda call: call["branch"] == 0 if call["branch"] is not None else False)) == []


def test_swapped_responses_make_a_good_judge_worse_than_a_guess(items):
    told = diagnosis(judge(planned(items), lambda call: call["probe"] == "perception"))
    assert sum("are the responses of the items on the right branches?" in line for line in told.details) == 4


def test_youdens_j_is_balanced_accuracy_rescaled():
    rng = np.random.default_rng(0)
    gold, said = rng.random(200) < 0.4, rng.random(200) < 0.6
    assert youdens_j(said.tolist(), gold.tolist()) == pytest.approx(
        balanced_accuracy_score(gold, said, adjusted=True)
    )
    assert youdens_j([True, True, True], [True, False, True]) == 0.0
    assert youdens_j([True, False], [True, False]) == 1.0 and youdens_j([False, True], [True, False]) == -1.0
    assert math.isnan(youdens_j([True], [True]))
    with pytest.raises(ValueError, match="1 answers for 2"):
        youdens_j([True], [True, False])


def test_agreement_counts_known_pairs_only():
    assert agreement_rate([(1, 1), (0, 1), (None, 1)]) == (0.5, 2)
    assert math.isnan(agreement_rate([(None, 0)])[0])


def test_attempts_until_one_can_be_read(items):
    (call, *_) = planned(items)
    unread = {"response": "no JSON", "response_error": None}
    good = {"response": reply(call, wrong(call)), "response_error": None, "finish_reason": "stop"}
    row = judged(call, "m", [unread, unread, good])
    assert (row["correct"], row["n_attempts"], row["finish_reason"]) == (False, 3, "stop")
    row = judged(call, "m", [unread] * 5)
    assert row["correct"] is None and row["n_attempts"] == 5 and row["reason"].startswith("no_json")
    row = judged(call, "m", [{"response": None, "response_error": "timeout: 60 s"}])
    assert (row["correct"], row["reason"], row["n_attempts"]) == (None, "timeout: 60 s", 0)


def test_diagnose_needs_a_native_judgment():
    assert diagnose({}, {}) == "unknown"


@pytest.mark.parametrize(
    ("probes", "right"),
    [
        (("pointwise",), PROBES),  # how reliable it is, P and O would tell
        (
            ("pointwise", "perception"),
            ("perception",),
        ),  # whether it fails at mapping or is a Potemkin, O would tell
    ],
)
def test_what_was_not_asked_is_not_diagnosed(items, probes, right):
    calls = [call for call in planned(items) if call["probe"] in probes]
    told = diagnosis(judge(calls, lambda call: call["branch"] == 0 or call["probe"] in right))
    assert (told.diagnosis, told.headline[:14]) == ("unknown", "Cannot be told")
    assert any(line.startswith("One voice, two replies: right in ") for line in told.details)
