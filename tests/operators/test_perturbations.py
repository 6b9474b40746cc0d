"""Rewritten questions and injected chains: what is drawn, from what, and that nothing else moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.cot import parse_slots
from operators.perturbations import (
    CONDITIONS,
    INJECTED,
    decoration_chain,
    other_perceptions,
    random_hint,
    rewritten,
    scaffolding_chain,
    wrong_choices,
)
from operators.prompts import Prompt

ITEMS = [
    {
        "item_id": f"q{n}",
        "question": f"What is {{{{choices}}}} {n}?",
        "choices": ["owl", "robot", "parrot"],
        "gold_index": 2,
    }
    for n in range(8)
]
SAID = [{"perception": f"Entities: sound {n}", "answer_index": n % 3} for n in range(8)]


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_every_condition_has_its_prompt_and_a_question_for_every_item(condition):
    prompt = CONDITIONS[condition].prompt
    assert prompt is None if condition in INJECTED else Prompt(prompt).fields == {"question", "choices"}
    asked = rewritten(condition, ITEMS, SAID, seed=0)
    for item, question in zip(ITEMS, asked, strict=True):
        # What stands in a question is never taken for a field of a prompt.
        assert question.count(item["question"]) == 1
        assert condition in INJECTED or question.startswith(item["question"])
    assert asked == rewritten(condition, ITEMS, SAID, seed=0)


@pytest.mark.parametrize("condition", INJECTED)
def test_an_injected_chain_stands_last_after_question_and_choices(condition):
    (asked,) = rewritten(condition, ITEMS[:1], SAID[:1], seed=0)  # gold is the parrot, the model said the owl
    chain = scaffolding_chain("robot") if condition == "scaffolding" else decoration_chain("q0", 0)
    place = asked.index(f"Question: {ITEMS[0]['question']}\n")
    assert asked[place:].split("\n", 1)[1] == (
        f"Choices:\n(A) owl\n(B) robot\n(C) parrot\n\nReasoning so far:\n{chain}"
    )


def test_an_item_is_drawn_for_alone():
    for condition in ("random_hint", "decoration", "scaffolding"):
        whole = rewritten(condition, ITEMS, SAID, seed=3)
        assert rewritten(condition, ITEMS[4:5], SAID[4:5], seed=3) == whole[4:5]


def test_conditions_without_a_rewrite_ask_the_question_itself():
    for condition in ("cot", "free", "no_structure", "answer_swap", "irrelevant"):
        assert rewritten(condition, ITEMS, SAID, 0) == [item["question"] for item in ITEMS]


def test_a_wrong_perception_is_another_items():
    given_ = other_perceptions([row["perception"] for row in SAID], ITEMS, seed=1)
    assert all(text != row["perception"] for text, row in zip(given_, SAID, strict=True))
    assert set(given_) <= {row["perception"] for row in SAID}
    assert len(set(given_)) > 2
    assert other_perceptions(["same", "same"], ITEMS[:2], 0) == [None, None]
    assert other_perceptions(["", "heard"], ITEMS[:2], 0) == ["heard", None]
    assert rewritten("wrong_perception", ITEMS[:1], SAID[:1], 0) == [None]


def test_a_perception_that_was_missing_changes_what_few_others_are_given():
    many = [{**ITEMS[0], "item_id": f"q{n}"} for n in range(200)]
    whole = [f"sound {n}" for n in range(200)]
    before = other_perceptions([*whole[:70], None, *whole[71:]], many, seed=0)
    after = other_perceptions(whole, many, seed=0)
    changed = [n for n in range(200) if before[n] != after[n]]
    assert len(changed) < 10 and all(after[n] == "sound 70" for n in changed)
    assert len(set(after)) > 80  # of 200 draws from 200, 126 differ where each is as likely


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_a_row_without_a_response_and_a_broken_item_spoil_no_other(condition):
    broken = {"item_id": "broken", "question": None, "choices": None, "gold_index": None}
    silent = {"perception": None, "answer_index": None}
    items, said = [*ITEMS, broken], [silent, *SAID[1:], silent]
    asked = rewritten(condition, items, said, seed=0)
    assert asked[-1] is None
    assert all(item["question"] in question for item, question in zip(ITEMS, asked, strict=False))


def test_hints_fall_on_every_choice_about_equally():
    many = [{**ITEMS[0], "item_id": str(n)} for n in range(3000)]
    hints = [random_hint(item, 0) for item in many]
    # 3000 draws of 3: 1000 each, standard deviation sqrt(3000 * 1/3 * 2/3) = 25.8; four of them are 103.
    assert all(abs(hints.count(choice) - 1000) < 103 for choice in ITEMS[0]["choices"])


@settings(max_examples=50)
@given(st.integers(2, 6), st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5)), st.integers(0, 99))
def test_a_scaffolding_chain_never_leads_to_the_gold_choice_or_where_the_model_was(n, gold, own, seed):
    gold, own = gold % n, None if own is None else own % n
    item = {"item_id": "x", "choices": list("abcdef"[:n]), "gold_index": gold}
    (index,) = wrong_choices([item], [{"answer_index": own}], seed)
    assert (index is None) == (len({gold, own} - {None}) == n)
    assert index is None or index not in (gold, own)


def test_an_item_without_a_gold_choice_gets_no_scaffolding():
    item = {**ITEMS[0], "gold_index": None}
    assert wrong_choices([item], [{"answer_index": 0}], 0) == [None]


def test_the_chains_are_what_they_are_called():
    slots = parse_slots(scaffolding_chain("owl"))
    assert slots.entities == ("owl",) or list(slots.entities) == ["owl"]
    assert slots.analysis and slots.reasoning and not slots.answer
    words = decoration_chain("q", 0).split()
    assert len(words) == 40 and len(set(words)) > 20
    assert not any(
        vars(parse_slots(" ".join(words)))[slot] for slot in ("perception", "analysis", "reasoning", "answer")
    )
    assert decoration_chain("q", 1).split() != words
