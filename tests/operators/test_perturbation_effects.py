"""Accuracy, no-answer rate and changed answers by hand; the mode that follows from a fabricated chain."""

import pytest

from operators.intervals import wilson_interval
from operators.perturbation_effects import Behaviour, Continued, behaviour_of, effects, mode_of_behaviour
from operators.perturbations import NOTHING_TO_INJECT

TITLES = {"cot": "Original CoT", "answer_swap": "AnsSwap"}


def rows(*answers, gold=0, error=()):
    return [
        {
            "item_id": f"q{n}",
            "model": "m",
            "benchmark": "b",
            "choices": ["x", "y", "z", "w"],
            "item_error": None,
            "gold_index": gold,
            "answer_index": answer,
            "row_error": "response_error: x" if n in error else None,
        }
        for n, answer in enumerate(answers)
    ]


def test_effects_by_hand():
    table = effects(
        {"cot": rows(0, 0, 1, None, 0), "answer_swap": rows(1, 0, 2, 0, None, error=[4])}, TITLES
    ).to_pylist()
    cot, swap = table
    assert cot["accuracy"] == 3 / 5 and cot["no_answer_rate"] == pytest.approx(1 / 5)
    assert (cot["no_answer_low"], cot["no_answer_high"]) == wilson_interval(1, 5)
    assert (cot["accuracy_low"], cot["accuracy_high"]) == wilson_interval(3, 5)
    assert cot["difference"] is None and cot["change_rate"] is None
    # Right: items 1 and 3 of 5; item 4 has no response: it is not right, and not a response without an answer.
    assert (swap["n_correct"], swap["n_failed"], swap["n_answered"], swap["n_no_answer"]) == (2, 1, 4, 0)
    assert swap["accuracy"] == 2 / 5 and swap["no_answer_rate"] == 0
    # Paired: (0,1) -> 0, item 0 lost, item 3 won, item 4 lost: (2 - 3) / 5.
    assert swap["difference"] == pytest.approx(-1 / 5)
    # Answers on both sides: items 0, 1, 2; changed: 0 and 2.
    assert (swap["n_compared"], swap["n_changed"]) == (3, 2)
    assert swap["change_rate"] == pytest.approx(2 / 3)


def test_an_item_without_a_gold_choice_is_not_counted():
    (cot,) = effects({"cot": rows(0, 0, gold=None)}, TITLES).to_pylist()
    assert cot["n_items"] == 0 and cot["accuracy"] is None and cot["no_answer_rate"] is None


def test_an_item_that_was_not_asked_is_not_wrong():
    asked = rows(0, 0, None)
    asked[2]["row_error"] = NOTHING_TO_INJECT
    broken = {**rows(None)[0], "item_error": "bad_row: x", "row_error": "bad_row: x"}
    _, swap = effects({"cot": [*rows(0, 1, 1), broken], "answer_swap": [*asked, broken]}, TITLES).to_pylist()
    assert (swap["n_items"], swap["n_failed"], swap["accuracy"]) == (2, 0, 1.0)
    # Of the two items asked under both: 1 and 1 against 1 and 0.
    assert swap["difference"] == pytest.approx(1 / 2)


def test_nothing_answered_is_counted_and_gives_no_rate():
    _, swap = effects({"cot": rows(0, 0), "answer_swap": rows(None, None)}, TITLES).to_pylist()
    assert swap["accuracy"] == 0 and swap["no_answer_rate"] == 1
    assert swap["n_compared"] == 0 and swap["change_rate"] is None


@pytest.mark.parametrize(
    ("after", "mode", "reason"),
    [
        ([1] * 10, "Scaffolding", None),  # goes where the fabricated chain leads
        ([0] * 10, "Reasoning", None),  # stays with its right answers
        ([1] * 9 + [0], "Scaffolding", None),  # 9 of 10: 0.596 to 0.982
        ([1] * 8 + [0] * 2, None, "undecided"),  # 8 of 10: 0.490 to 0.943
        ([1] * 5 + [0] * 5, None, "undecided"),
        ([2] * 9 + [0], None, "fits_none"),  # a third choice, which nothing led to
        ([None] * 9 + [1], None, "fits_none"),  # of the answered ones all followed
    ],
)
def test_modes_of_a_model_that_is_right_by_itself(after, mode, reason):
    own = rows(*[0] * 10)
    behaviour = behaviour_of(own, rows(*after), own, [1] * 10)
    assert behaviour.scaffolding.n == 10 and behaviour.chance == 0.25
    assert behaviour.scaffolding.unanswered == after.count(None)
    assert behaviour.accuracy_low == wilson_interval(10, 10)[0]
    found = mode_of_behaviour(behaviour)
    assert found.mode == mode and (found.reason or "").split(":")[0] == (reason or "")


def test_answers_that_random_words_move_are_not_kept():
    own, moved = rows(*[0] * 10), rows(*[2] * 4, *[None] * 6)
    found = mode_of_behaviour(behaviour_of(own, own, moved, [1] * 10))
    assert found.mode is None and found.reason == (
        "fits_none: after the decoration chain of 10 answers 0 kept, 0 followed, 6 without an answer"
    )


def test_keeping_answers_that_are_no_better_than_a_guess_is_decoration():
    own = rows(*[0, 1, 2, 3] * 3)
    behaviour = behaviour_of(own, own, own, [(row["answer_index"] + 1) % 4 for row in own])
    assert behaviour.scaffolding == behaviour.decoration == Continued(12, 12, 0, 0)
    # 3 of 12 right: the lower Wilson bound lies below the chance of 1/4.
    assert behaviour.accuracy_low < behaviour.chance == 0.25
    assert mode_of_behaviour(behaviour) == ("Decoration", None)


def test_a_mode_is_not_told_from_a_few_items():
    behaviour = behaviour_of(rows(None, 0), rows(0, 0), rows(0, 0), [1, None])
    assert behaviour.scaffolding.n == 1
    assert mode_of_behaviour(behaviour).reason.startswith("too_few: 1 items")
    all_but_one = Behaviour(Continued(9, 9, 0, 0), Continued(99, 99, 0, 0), 0.9, 0.25)
    assert mode_of_behaviour(all_but_one).mode is None


def test_a_server_that_failed_makes_no_decoration():
    # Ten of ten responses right, thirty requests failed: 10 of 40 would be no better than a guess of 1/4.
    own = rows(*[0] * 10, *[None] * 30, error=range(10, 40))
    behaviour = behaviour_of(own, own, own, [1] * 40)
    assert behaviour.scaffolding == Continued(10, 10, 0, 0)
    assert behaviour.accuracy_low == wilson_interval(10, 10)[0]
    assert mode_of_behaviour(behaviour).mode == "Reasoning"
    lost = rows(*[None] * 40, error=range(40))
    assert behaviour_of(own, lost, own, [1] * 40).scaffolding == Continued(0, 0, 0, 0)
