"""The extraction stage: columns, blanks, storage safety, and any text at all."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.base import apply
from operators.extraction import Extract, storable
from operators.fingerprint import fingerprint
from operators.schema import CHAIN

CHOICES = ["dog", "cat", "bird", "rain"]


def batch_of(*responses, choices=CHOICES):
    rows = np.empty(len(responses), dtype=object)
    rows[:] = responses
    offered = np.empty(len(responses), dtype=object)
    offered[:] = [list(choices) for _ in responses]
    return {"response": rows, "choices": offered}


def run(*responses, choices=CHOICES):
    return apply(Extract(), Extract().build(), batch_of(*responses, choices=choices))


def test_writes_the_chain_columns_and_fits_the_schema():
    done = run("[PERCEPTION] Entities: dog, cat [ANALYSIS] a [REASONING] r [ANSWER] (B) cat", None)
    assert set(CHAIN.names) < set(done)
    table = pa.table(
        {name: pa.array(done[name], type=CHAIN.field(name).type) for name in CHAIN.names}, schema=CHAIN
    )
    first, second = table.to_pylist()
    assert first["entities"] == ["dog", "cat"] and first["answer_index"] == first["answer_index_paper"] == 1
    assert second["answer_index"] is None and second["perception"] == ""
    assert done["answer_index"].dtype == object and type(done["answer_index"][0]) is int


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (None, "no_response"),
        (float("nan"), "no_response"),
        ("", "empty_response"),
        (" \n", "empty_response"),
        ("\0", "empty_response"),
    ],
)
def test_blank_responses(response, reason):
    done = run("B", response, "C")
    assert done["answer_reason"][1] == done["answer_reason_paper"][1] == reason
    assert [done[name][1] for name in ("perception", "analysis", "reasoning", "answer")] == [""] * 4
    assert done["entities"][1] == [] and done["answer_stage"][1] is None
    assert [done["answer_index"][0], done["answer_index"][2]] == [1, 2]


def test_without_tags_the_answer_may_still_be_found():
    done = run("Therefore, the answer is bird.\n</answer>")
    assert done["answer_index"][0] == 2 and done["answer_index_paper"][0] is None
    assert done["answer_reason_paper"][0] == "no_answer_tag" and done["answer"][0] == ""


def test_no_choices_is_a_reason():
    assert run("dog", choices=[])["answer_reason"][0] == "no_choices"
    assert run("dog", choices=["", " "])["answer_reason"][0] == "no_choices"


def test_slot_texts_can_be_stored():
    done = run("[REASONING] a\ud800b\0c \u202e\x07 [ANSWER] dog")
    assert done["reasoning"][0].startswith("a\ufffdbc")
    assert "\x07" in done["reasoning"][0]
    assert done["answer_index"][0] == 0
    assert storable("\ud83d\ude00") == "\U0001f600"


def test_rows_do_not_depend_on_their_batch():
    texts = ["B", None, "[ANSWER] rain", "x" * 1000, "The answer is dog."]
    together = run(*texts)
    for place, text in enumerate(texts):
        alone = run(text)
        assert all(alone[name][0] == together[name][place] for name in CHAIN.names)


def test_the_batch_is_left_alone_and_the_identity_is_stable():
    batch = batch_of("B")
    Extract().build()(batch)
    assert batch["response"][0] == "B" and set(batch) == {"response", "choices"}
    assert fingerprint(Extract()) == fingerprint(Extract())


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=120), st.lists(st.text(max_size=8), max_size=6))
def test_any_text_and_any_choices_end_in_an_index_or_a_reason(text, choices):
    done = run(text, choices=choices)
    for suffix in ("", "_paper"):
        index, stage, reason = (done[f"answer_{part}{suffix}"][0] for part in ("index", "stage", "reason"))
        assert (index is None) == (stage is None) == (reason is not None)
        assert index is None or 0 <= index < len(choices)
    for name in ("perception", "analysis", "reasoning", "answer"):
        assert "\0" not in done[name][0] and done[name][0].encode().decode() == done[name][0]
