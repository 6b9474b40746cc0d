"""Replies of judges as they come, and what may be read from them."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from operators.verdicts import prediction, read_label, read_matching, read_trajectory

R = ("R1", "R2")


@pytest.mark.parametrize(
    "reply",
    [
        '{"reasoning": "calm", "pred": "R2"}',
        '```json\n{"reasoning": "calm", "pred": "R2"}\n```',
        '```\n{"pred": "R2"}\n```\nI hope this helps!',
        'Sure, here it is: {"reasoning": "a {strange} one", "pred": " r2. "} Done.',
        '{"reasoning": "two\nlines", "pred": "R2"}',
        '{"Reasoning": "x", "Pred": "R2"}',
        '{"pred": "R2", "pred": "R2"}',
        'I weigh {a, b} first. {"reasoning": "x", "pred": "R2"} Yes, {b}.',
        '{"pred": "R2"}\n{"pred": "R2"}',
        '\ufeff {"pred": "R2", "confidence": 0.5, "more": {"pred": "R1"}}',
    ],
)
def test_a_verdict_is_read_through_what_models_put_around_it(reply):
    assert read_label(reply, R) == ("R2", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (None, "no_response"),
        (" \n", "empty_response"),
        ("I prefer R1.", "no_json"),
        ('{"reasoning": "the user sounds angry, so R1 is', "truncated_json: the object is not closed"),
        ('{"reasoning": "braces {in} it", "pred": "R1', "truncated_json"),
        ('{"pred": {"CA": "R1", "CB": "R2"}', "truncated_json"),
        ("{'pred': 'R1'}", "malformed_json"),
        ('{"pred": R1}', "malformed_json"),
        ('{"prediction": "R1"}', "no_pred"),
        ('{"pred": "R3"}', "not_a_label: 'R3' is none of R1, R2"),
        ('{"pred": "both"}', "not_a_label"),
        ('{"pred": "R1 or R2"}', "not_a_label"),
        ('{"pred": "R1/R2"}', "not_a_label"),
        ('{"pred": ""}', "not_a_label"),
        ('{"pred": null}', "not_a_label"),
        ('{"pred": 1}', "not_a_label"),
        ('{"pred": ["R1"]}', "not_a_label"),
        ('{"pred": "not R1"}', "not_a_label"),
        ('{"pred": "R1", "pred": "R2"}', "several_verdicts"),
        ('{"pred": "R1"} on second thought {"pred": "R2"}', "several_verdicts"),
        ("{" * 3000, "truncated_json"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "malformed_json"),
        ("} {", "truncated_json"),
    ],
)
def test_anything_else_is_null_with_its_reason(reply, reason):
    value, why = read_label(reply, R)
    assert value is None and why.startswith(reason)


@pytest.mark.parametrize(
    "said", ["E2", "hesitant", "hesistant", "Hesitant", "E2 (hesistant)", "e2: hesitant"]
)
def test_an_emotion_may_be_called_by_its_name_in_either_spelling(said):
    for name in ("hesitant", "hesistant"):
        assert read_label(json.dumps({"pred": said}), ("E1", "E2"), ("angry", name)).value == "E2"


@pytest.mark.parametrize("said", ["sad", "E2 (angry)", "E1 hesitant", "E3 (hesitant)", "angry or hesitant"])
def test_a_label_that_contradicts_its_name_is_none(said):
    assert read_label(json.dumps({"pred": said}), ("E1", "E2"), ("angry", "hesitant")).value is None


def test_a_matching_gives_each_context_a_reply_of_its_own():
    good = {"CA": "R2", "CB": "R1"}
    for pred in (good, {"cb": "r1", " ca ": "R2"}, json.dumps(good)):
        assert read_matching(json.dumps({"pred": pred}), ("CA", "CB"), R).value == good
    for pred in ({"CA": "R1", "CB": "R1"}, {"CA": "R1"}, {"CA": "R1", "CC": "R2"}, "R1", {}, {"CA": "R3", "CB": "R1"},
                 {"CA": "R1", "CB": "R2", "CC": "R1"}):  # fmt: skip
        value, why = read_matching(json.dumps({"pred": pred}), ("CA", "CB"), R)
        assert value is None and why.startswith("not_a_matching")


def test_a_trajectory_needs_every_turn_of_the_user():
    def read(pred):
        return read_trajectory(json.dumps({"pred": pred}), (1, 3, 5), ("E1", "E2"), ("happy", "angry"))

    assert read({"C1": "E1", "C3": "E2", "C5": "E2"}).value == ["E1", "E2", "E2"]
    assert read({"C[1]": "e1", "3": "E2", "turn 5": "E2"}).value == ["E1", "E2", "E2"]
    assert read({"C1": "happy", "C3": "angry", "C5": "E2 (angry)"}).value == ["E1", "E2", "E2"]
    assert read({"C1": "E1", "C2": "E9", "C3": "E1", "C5": "E2"}).value == ["E1", "E1", "E2"]
    for pred in ({"C1": "E1", "C3": "E2"}, {"C1": "E1", "C3": "E3", "C5": "E1"}, ["E1", "E2", "E2"], "E1",
                 {"C1": "E1", "1": "E2", "C3": "E1", "C5": "E1"}):  # fmt: skip
        value, why = read(pred)
        assert value is None and why.startswith("not_a_trajectory")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
@example('{"pred": "R1"')
@example("{}")
def test_no_text_raises_and_null_always_has_a_reason(reply):
    value, why = read_label(reply, R)
    assert (value is None) == (why is not None) and value in (None, *R)
    assert prediction(reply).reason is None or isinstance(prediction(reply).reason, str)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='abc {}[]"\\\n,:R12', max_size=60), st.sampled_from(R))
def test_whatever_the_reasoning_says_the_verdict_is_the_pred(reasoning, label):
    assert read_label(json.dumps({"reasoning": reasoning, "pred": label}), R) == (label, None)
