"""What responses took, added up; usage written by others may hold anything."""

import json

import pytest

from operators.usage import in_words, number, read, together, totals


def test_totals_by_hand():
    texts = [
        json.dumps({"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.25, "audio_truncated": True}),
        json.dumps({"prompt_tokens": 20, "audio_seconds_used": 1.5, "n_audio": 6}),
        None,
        "not json",
        "[1]",
        "[" * 100_000,
    ]
    assert totals(texts) == {
        "prompt_tokens": 120,
        "completion_tokens": 10,
        "cost": 0.25,
        "audio_seconds_used": 1.5,
        "n_audio": 6,
    }
    assert together({"cost": 1.0}, {"cost": 0.5, "prompt_tokens": 2}) == {"cost": 1.5, "prompt_tokens": 2}
    assert in_words(totals(texts)) == "120 prompt tokens, 10 completion tokens, cost 0.2500"
    assert in_words({}) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": 2}', 2.0),
        ('{"x": "2"}', None),
        ('{"x": true}', None),
        (None, None),
        ('{"x": NaN}', None),
        ('{"x": -Infinity}', None),
        (f'{{"x": 1{"0" * 400}}}', None),
    ],
)
def test_one_number(text, value):
    assert number(text, "x") == value


def test_what_is_no_number_is_left_out_of_a_sum():
    texts = ['{"cost": NaN, "prompt_tokens": true}', '{"cost": 0.5, "prompt_tokens": 3}']
    assert totals(texts) == {"cost": 0.5, "prompt_tokens": 3}


def test_a_list_is_no_usage():
    assert read("[1, 2]") == {}
