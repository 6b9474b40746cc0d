"""Presentation and map-back: undoing a permutation is the identity, reductions are nested, bad candidates are named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from operators.mugen.presentation import (
    GenerationSet,
    Strategy,
    generation_set,
    instruction,
    kept_candidates,
    map_back,
    same_clip_twice,
    scalable,
    trial_rows,
)
from operators.prompts import Prompt


def item(n=5, gold=2, references=0, name="q1", **other):
    uris = [f"r{i}.wav" for i in range(references)] + [f"c{i}.wav" for i in range(n)]
    hashes = [f"hash of {uri}" for uri in uris]
    parts = {"item_id": name, "gold_index": gold, "audio_uris": uris, "audio_hashes": hashes}
    return {
        **parts,
        "n_reference": references,
        "ranking": False,
        "question": "?",
        "audio_seconds": None,
        **other,
    }


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2), st.integers(0, 99), st.booleans(), st.data())
def test_undoing_a_permutation_is_the_identity(n, references, seed, permute, data):
    kept = data.draw(st.none() | st.integers(2, n))
    asked = item(n, data.draw(st.integers(0, n - 1)), references)
    for row in trial_rows(asked, 10, seed, permute, kept):
        heard = row["audio_uris"][references:]
        assert row["audio_uris"][:references] == asked["audio_uris"][:references], "references come first"
        assert row["audio_hashes"] == [f"hash of {uri}" for uri in row["audio_uris"]]
        assert [f"c{map_back(row['audio_order'], place)}.wav" for place in range(len(heard))] == heard
        assert asked["gold_index"] in row["audio_order"] and len(heard) == len(row["choices"]) == (kept or n)


def test_a_row_can_be_computed_alone_and_carries_no_sound():
    ten, three = trial_rows(item(), 10, 7, True), trial_rows(item(), 3, 7, True)
    assert ten[:3] == three
    assert set(ten[0]) - {"trial", "audio_order", "n_candidates", "choices"} <= set(item()) | {"benchmark"}
    assert len({tuple(row["audio_order"]) for row in ten}) == 10, "distinct while there are orders left"
    assert trial_rows(item(), 10, 8, True) != ten, "another seed, other orders"


def test_self_consistency_keeps_the_original_order():
    assert [row["audio_order"] for row in trial_rows(item(), 3, 0, False)] == [[0, 1, 2, 3, 4]] * 3


@pytest.mark.parametrize("gold", range(5))
def test_reductions_are_nested_and_keep_the_right_option(gold):
    kept = {n: set(kept_candidates("q", gold, 5, n, seed=3)) for n in (2, 3, 4, 5)}
    assert kept[2] < kept[3] < kept[4] < kept[5] == set(range(5))
    assert all(gold in some and len(some) == n for n, some in kept.items())


def test_every_distractor_goes_first_about_equally_often():
    gone = [({0, 1, 2, 3, 4} - set(kept_candidates(f"q{i}", 0, 5, 4, seed=0))).pop() for i in range(2000)]
    # Each of 4 distractors: 500 expected, standard deviation sqrt(2000 * 1/4 * 3/4) = 19.4; 5 of them are 97.
    assert all(abs(gone.count(index) - 500) < 97 for index in (1, 2, 3, 4))


def test_map_back_refuses_what_was_not_presented():
    assert map_back([4, 0, 2], 0) == 4 and map_back([4, 0, 2], 2) == 2 and map_back([4, 0, 2], None) is None
    for order, position in (([4, 0, 2], 3), ([4, 0, 2], -1), ([1, 1, 0], 0)):
        with pytest.raises(ValueError, match=r"position|twice"):
            map_back(order, position)


def test_too_few_candidates_are_an_error():
    for n in (1, 6):
        with pytest.raises(ValueError, match="5 candidates"):
            kept_candidates("q", 0, 5, n, 0)


def test_ranking_tasks_and_short_items_take_no_part_in_scaling():
    assert scalable(item(5), 5) and not scalable(item(4), 5) and not scalable(item(5, ranking=True), 2)
    assert not scalable(item(4, references=1), 5), "a reference is no candidate"


def test_the_same_clip_twice_is_named_with_both_names():
    asked = item()
    assert same_clip_twice(asked) is None
    same_sound = {**asked, "audio_hashes": ["a", "b", "c", "b", "d"]}
    assert (
        same_clip_twice(same_sound)
        == "same_clip_twice: candidates 2 (c1.wav) and 4 (c3.wav) are the same sound"
    )
    same_file = {**asked, "audio_uris": ["a", "b", "a", "c", "d"]}
    assert same_clip_twice(same_file) == "same_clip_twice: candidates 1 (a) and 3 (a) are the same file"
    reference = item(2, 0, 1) | {"audio_hashes": ["a", "a", "b"]}
    assert same_clip_twice(reference) is None, "a reference may be one of the candidates"
    assert same_clip_twice({**asked, "audio_hashes": [None] * 5}) is None


def test_strategies_share_generations():
    direct, sc, apsc = (Strategy("mugen_direct", *f) for f in ((False, False), (False, True), (True, True)))
    assert (
        generation_set(direct, False)
        == generation_set(sc, False)
        == GenerationSet("mugen_direct", False, False)
    )
    assert generation_set(apsc, False) != generation_set(sc, False)
    assert generation_set(direct, True) != generation_set(sc, True), (
        "greedy for one answer, sampled for the votes"
    )


def test_a_prompt_that_does_not_exist_is_refused():
    with pytest.raises(ValidationError, match="no prompt 'nothing'"):
        Strategy("nothing")
    with pytest.raises(ValidationError, match="needs the fields"):
        Strategy("option_judge")


@pytest.mark.parametrize("name", ["mugen_direct", "mugen_cot"])
def test_prompts_announce_the_clips_in_order(name):
    text = instruction(Prompt(name), "Find {the} dog.", 1, 3)
    assert "1 reference clip and 3 candidates" in text and "Find {the} dog." in text
    assert "the reference, Audio 1, Audio 2, Audio 3" in text
    assert "reference" not in instruction(Prompt(name), "Find it.", 0, 3)
    assert "reference 1, reference 2, Audio 1" in instruction(Prompt(name), "Find it.", 2, 3)
