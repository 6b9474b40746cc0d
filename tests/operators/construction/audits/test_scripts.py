"""Scripts: both branches say the same words; goal-failure injection; every broken row is discarded with its reason."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.benchmarks.emotions import first_difference, human_emotions
from operators.columns import RowError
from operators.construction.audits.scripts import Goal, Said, Script, checked, failable, inject
from operators.construction.audits.sources import cells_of, script_of
from operators.tables import Row

TURNS = [
    ("user", "A hotel near the lake."),
    ("assistant", "The Lakeside has a room."),
    ("user", "And a table at six."),
    ("assistant", "Your table is booked."),
    ("user", "Send me the details."),
    ("assistant", "Done."),
]
GOALS = [
    Goal(1, "a hotel", "I only found the station.", "I am sorry about the lake."),
    Goal(3, "a table", "They are full.", "I am sorry about the table."),
]


def dialogue(turns=TURNS):
    return [{"speaker": speaker, "text": text} for speaker, text in turns]


def as_turns(branch):
    return [{"speaker": said.speaker, "text": said.text, "emotion": said.emotion} for said in branch]


def test_injection_by_hand():
    script = inject("h", TURNS, GOALS, ("neutral", "angry"), "empathetic", "test", 0)
    first, second = script.branches
    assert [said.text for said in first] == [
        "A hotel near the lake.", "I only found the station.", "And a table at six.", "They are full.", "Send me the details.",
    ]  # fmt: skip
    assert human_emotions(as_turns(first)) == ["neutral", "angry", "angry"]
    assert human_emotions(as_turns(second)) == ["neutral", "neutral", "angry"]
    assert [reply.text for reply in script.responses] == [
        "I am sorry about the lake.",
        "I am sorry about the table.",
    ]
    assert {said.emotion for said in first if said.speaker == "assistant"} == {"neutral"}
    assert script.notes == {"failed_goals": ["a hotel", "a table"], "failed_turns": [2, 4]}


def test_a_goal_that_already_fails_keeps_its_words():
    goals = [Goal(1, "a", None, "one"), Goal(3, "b", None, "two")]
    script = inject("h", TURNS, goals, ("neutral", "sad"), "empathetic", "test", 0)
    assert [said.text for said in script.branches[0]] == [text for _, text in TURNS[:5]]


@given(st.integers(2, 5), st.integers(0, 50), st.randoms(use_true_random=False))
def test_the_words_never_differ_and_each_branch_shifts_once_after_its_failure(n_exchanges, seed, rng):
    turns = [("user" if i % 2 == 0 else "assistant", f"words {i}") for i in range(2 * n_exchanges + 1)]
    places = rng.sample(range(1, len(turns), 2), rng.randint(2, n_exchanges))
    goals = [Goal(turn, f"goal {turn}", f"failed {turn}", f"sorry {turn}") for turn in places]
    script = inject("x", turns, goals, None, "empathetic", "test", seed)
    first, second = script.branches
    assert first_difference(as_turns(first), as_turns(second)) is None
    paths = [human_emotions(as_turns(branch)) for branch in script.branches]
    assert paths[0] != paths[1]
    for path, turn in zip(paths, script.notes["failed_turns"], strict=True):
        shifts = [2 * i for i, (a, b) in enumerate(itertools.pairwise(path), 1) if a != b]
        assert shifts == [
            turn
        ]  # the user turn right after the failing one: turn counts from 1, shifts from 0
    assert script == inject("x", turns, goals, None, "empathetic", "test", seed)


def test_goals_that_cannot_be_told_apart_make_no_pair():
    assert failable(TURNS, GOALS) == [(GOALS[0], GOALS[1])]
    assert failable(TURNS[:4], GOALS) == []  # no user turn after the second
    assert (
        failable(TURNS[1:], [Goal(0, "a", None, "x"), Goal(2, "b", None, "y")]) == []
    )  # none before the first
    with pytest.raises(RowError, match="no_contrast"):
        inject("h", TURNS, GOALS[:1], None, "empathetic", "test", 0)
    with pytest.raises(RowError, match="bad_goal: turn 3 is no assistant turn"):
        inject("h", TURNS, [Goal(2, "a", None, "x"), GOALS[1]], None, "empathetic", "test", 0)


def test_branches_whose_words_differ_are_refused_with_the_first_difference():
    said = [
        Said("user", text, emotion) for text, emotion in (("It is late.", "sad"), ("It was late.", "happy"))
    ]
    replies = Said("assistant", "a", "neutral"), Said("assistant", "b", "neutral")
    with pytest.raises(RowError, match="transcripts_differ: turn 1, word 2: 'is' against 'was'"):
        checked(Script("x", "single_turn_emotions", ((said[0],), (said[1],)), replies, "test", {}))


def script(kind, **cells):
    return script_of(kind, cells_of(Row({"id": "x", **cells}, 1)), "a file", 0, "empathetic")


def test_a_sentence_becomes_two_one_turn_branches():
    made = script(
        "single_turn_emotions", sentence=" It is  late. ", emotions=["anger", "sad"], responses=["a", "b"]
    )
    assert made.branches == ((Said("user", "It is late.", "angry"),), (Said("user", "It is late.", "sad"),))
    assert made.responses[1] == Said("assistant", "b", "empathetic") and made.source == "a file"


def test_lists_may_be_json_texts_and_a_source_of_its_own_wins():
    made = script(
        "single_turn_emotions",
        sentence="It is late.",
        emotions='["angry", "sad"]',
        responses='["a", "b"]',
        source="EmoCF",
    )
    assert made.source == "EmoCF" and [said.emotion for said in made.said[:2]] == ["angry", "sad"]


def test_a_conversation_differs_in_the_last_user_turn_alone():
    turns = dialogue()
    turns[0]["emotion"] = "happy"
    made = script("emotional_conversations", turns=turns, emotions=["angry", "sad"], responses=["a", "b"])
    paths = [human_emotions(as_turns(branch)) for branch in made.branches]
    assert paths == [["happy", "neutral", "angry"], ["happy", "neutral", "sad"]]
    assert len(made.branches[0]) == 5


GOOD = {"sentence": "It is late.", "emotions": ["angry", "sad"], "responses": ["a", "b"]}


@pytest.mark.parametrize(
    ("kind", "cells", "reason"),
    [
        (
            "single_turn_emotions",
            {**GOOD, "emotions": ["angry", "anger"]},
            "same_emotion: angry on both sides",
        ),
        ("single_turn_emotions", {**GOOD, "emotions": "angry"}, "bad_emotions"),
        ("single_turn_emotions", {**GOOD, "sentence": " "}, "missing_sentence"),
        ("single_turn_emotions", {**GOOD, "responses": ["a"]}, "bad_responses"),
        ("single_turn_emotions", {**GOOD, "responses": ["a", " a "]}, "same_response"),
        ("single_turn_emotions", {**GOOD, "responses": ["a", ["b"]]}, "bad_response"),
        ("single_turn_emotions", {**GOOD, "responses": None}, r"no_responses: .*\+writer=llm"),
        ("positional_emotion", {"turns": dialogue()}, "no_goals"),
        ("positional_emotion", {"turns": dialogue(), "goals": "none"}, "bad_goals"),
        (
            "positional_emotion",
            {"turns": dialogue(), "goals": [{"turn": "x", "goal": "g", "response": "r"}]},
            "bad_turn of a goal",
        ),
        ("positional_emotion", {"turns": [], "goals": [{"turn": 1}]}, "missing_goal"),
        (
            "emotional_conversations",
            {**GOOD, "turns": [{"speaker": "cat", "text": "x"}]},
            "bad_speaker: turn 1",
        ),
        ("emotional_conversations", {**GOOD, "turns": [{"speaker": "VA", "text": "x"}]}, "no_user_turn"),
    ],
)
def test_what_cannot_be_used_says_why(kind, cells, reason):
    with pytest.raises(RowError, match=f"^{reason}"):
        script(kind, **cells)


def test_rows_without_an_id_or_with_a_problem_say_so():
    with pytest.raises(RowError, match="missing_id"):
        cells_of(Row({"sentence": "x"}, 3))
    with pytest.raises(RowError, match="malformed_json"):
        cells_of(Row({}, 3, problem="malformed_json: cut short"))
