"""Every manipulation does to a chain what its name says, and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.benchmarks.sample import Sample, read_records
from operators.cot import Slots, parse_slots
from operators.manipulations import (
    COMMON_SOUNDS,
    MANIPULATIONS,
    Case,
    all_music,
    all_speech,
    answer_first,
    entity_stuffing,
    every_choice,
    filler,
    half_generic,
    other_chain,
    renamed,
    render,
    repeated_answer,
    repeated_word,
    steps_shuffled,
)

CHAIN = parse_slots(
    "[PERCEPTION] Entities: dog bark, Rain. Description: A dog bark, then rain on a train.\n"
    "[ANALYSIS] The dog is outside.\n[REASONING] It is wet, so it wants in.\n[ANSWER] B. a wet dog."
)
OTHER = parse_slots("[PERCEPTION] Entities: horn. [ANALYSIS] A car. [REASONING] It hoots. [ANSWER] a car")
CASE = Case(CHAIN, CHAIN.answer, ("a dry dog", "a wet dog"), OTHER)
BARE = Case(Slots(), "", (), None)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_all_entities_take_one_name_wherever_the_perception_names_them():
    changed = all_music(CASE, rng())
    assert changed.perception == "Entities: music, music. Description: A music, then music on a train."
    assert changed.entities == ("music",), "a set: the same name twice is one entity"
    assert replace(changed, perception=CHAIN.perception, entities=CHAIN.entities) == CHAIN
    assert all_speech(CASE, rng()).entities == ("speech",)


def test_an_entity_that_the_text_spells_otherwise_is_still_replaced():
    chain = parse_slots("[PERCEPTION] Entities:\n- Dog\n  bark\n- rain (loud)\n[ANSWER] x")
    changed = renamed(chain, ["music"] * len(chain.entities))
    assert changed.entities == ("music",)
    odd = Slots("The entity list is: cat", entities=("cow",))  # entities that the text does not hold
    assert renamed(odd, ["music"]).entities == ("music",)


def test_half_of_the_entities_become_generic():
    names = [f"sound {letter}" for letter in "abcdef"]
    chain = parse_slots(f"[PERCEPTION] Entities: {', '.join(names)}. [ANSWER] x")
    for seed in range(20):
        kept = set(half_generic(Case(chain, "x"), rng(seed)).entities) - {"music", "speech"}
        assert len(kept) == 3 and kept < set(names)


def test_half_of_one_entity_is_a_coin():
    chain = parse_slots("[PERCEPTION] Entities: dog. [ANSWER] x")
    hit = [half_generic(Case(chain, "x"), rng(seed)).entities != ("dog",) for seed in range(400)]
    # 400 fair coins: 200 -+ 4 standard deviations of 10
    assert 160 <= sum(hit) <= 240


def test_a_stuffed_list_keeps_its_own_entities_first_and_each_once():
    changed = entity_stuffing(CASE, rng())
    assert changed.entities[:2] == ("dog bark", "rain")
    assert set(changed.entities) == {"dog bark", *COMMON_SOUNDS} and len(changed.entities) == 1 + len(
        COMMON_SOUNDS
    )
    assert "then rain on a train" in changed.perception


def test_repetition_fills_every_slot():
    word = repeated_word(CASE, rng())
    assert word.entities == ("music",) and {*word.analysis.split()} == {*word.reasoning.split()} == {"music"}
    said = repeated_answer(CASE, rng())
    assert said.analysis == said.reasoning == "B. a wet dog." and said.answer == "B. a wet dog."
    assert said.perception.count("a wet dog") == 2


def test_the_answer_comes_first_and_the_rest_stays():
    changed = answer_first(CASE, rng())
    assert changed.perception == f"The answer is B. a wet dog. {CHAIN.perception}"
    assert changed.entities == CHAIN.entities
    assert (changed.analysis, changed.reasoning, changed.answer) == (
        CHAIN.analysis,
        CHAIN.reasoning,
        CHAIN.answer,
    )


def test_every_step_names_every_choice_and_the_answer_does_not():
    changed = every_choice(CASE, rng())
    for step in ("perception", "analysis", "reasoning"):
        assert getattr(changed, step) == getattr(CHAIN, step) + (
            "\nThe options that come into question here are a dry dog, a wet dog."
        )
    assert changed.answer == CHAIN.answer and changed.entities == CHAIN.entities


def test_filler_keeps_entities_and_answer_alone():
    changed = filler(CASE, rng())
    assert (changed.entities, changed.answer) == (CHAIN.entities, CHAIN.answer)
    assert not {"dog", "wet"} & set(f"{changed.analysis} {changed.reasoning}".lower().split())


def test_shuffling_moves_every_step_and_loses_none():
    texts = [CHAIN.perception, CHAIN.analysis, CHAIN.reasoning]
    orders = set()
    for seed in range(20):
        changed = steps_shuffled(CASE, rng(seed))
        found = [changed.perception, changed.analysis, changed.reasoning]
        assert sorted(found) == sorted(texts) and all(
            new != old for new, old in zip(found, texts, strict=True)
        )
        orders.add(tuple(found))
    assert len(orders) == 2, "both cyclic orders come up"


def test_another_chain_ends_in_the_own_answer():
    changed = other_chain(CASE, rng())
    assert changed == replace(OTHER, answer=CHAIN.answer)


@pytest.mark.parametrize("rewrite", MANIPULATIONS, ids=lambda rewrite: rewrite.__name__)
def test_an_answer_without_a_slot_is_not_lost(rewrite):
    prose = Case(Slots(), "cat", ("dog", "cat"), OTHER)
    changed = rewrite(prose, rng())
    assert changed == Slots() or changed.answer in ("cat", "music")


@pytest.mark.parametrize("rewrite", (all_music, all_speech, half_generic, answer_first, every_choice, steps_shuffled,
                                     repeated_answer, other_chain), ids=lambda rewrite: rewrite.__name__)  # fmt: skip
def test_nothing_to_manipulate_stays_as_it_is(rewrite):
    assert rewrite(BARE, rng()) == BARE.slots


@pytest.mark.parametrize("rewrite", MANIPULATIONS, ids=lambda rewrite: rewrite.__name__)
def test_what_is_written_is_what_is_read_on_all_shipped_chains(rewrite):
    choices = {record["id"]: tuple(record["choices"]) for record in read_records()}
    for path in Sample().yardsticks().values():
        said = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        chains = [parse_slots(row["response"]) for row in said]
        for row, slots, other in zip(said, chains, chains[1:] + chains[:1], strict=True):
            changed = rewrite(Case(slots, slots.answer, choices[row["id"]], other), rng())
            assert parse_slots(render(changed)) == changed


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=60), min_size=4, max_size=4), st.integers(0, 9)
)
def test_no_text_breaks_a_manipulation_and_the_same_seed_gives_the_same_chain(texts, seed):
    slots = parse_slots(render(Slots(*texts)))
    case = Case(slots, slots.answer, tuple(texts), slots)
    before = replace(case)
    for rewrite in MANIPULATIONS:
        assert rewrite(case, rng(seed)) == rewrite(case, rng(seed))
    assert case == before
