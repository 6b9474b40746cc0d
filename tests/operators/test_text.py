"""Sentences and words as the metrics count them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.text import (
    at_most,
    control_tokens,
    encodable,
    is_absent,
    sentences,
    without_control_tokens,
    words,
)


class Tokenizer:
    """The two places in which tokenizers keep what they added; Gemma's adds runs of white space, too."""

    all_special_tokens = ("<|im_end|>", "<|AUDIO|>")

    def get_added_vocab(self):
        return {"<|AUDIO|>": 1, "<tool_call>": 2, "\n\n": 3, "\u2581\u2581": 4}


def test_control_tokens_become_text_and_white_space_stays():
    tokens = control_tokens(Tokenizer())
    assert tokens == ["<|AUDIO|>", "<|im_end|>", "<tool_call>"]
    assert (
        without_control_tokens("a<|im_end|>\n\n<|AUDIO|>\ud83d", tokens) == "a< |im_end|>\n\n< |AUDIO|>\ufffd"
    )


@pytest.mark.parametrize("text", [None, "", " \n\t", "\x00\x07", "\u200b\u200e", "\ud83d"])
def test_nothing_visible_is_absent(text):
    assert is_absent(text)


@pytest.mark.parametrize("text", ["a", ".", "\U0001f415", "\u0635", " x "])
def test_anything_visible_is_present(text):
    assert not is_absent(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain falls. A dog barks!", ["Rain falls.", "A dog barks!"]),
        ("It lasts approx. two seconds at 4.5 kHz.", ["It lasts approx. two seconds at 4.5 kHz."]),
        ("B. Dog barking", ["B. Dog barking"]),
        ("1. Rain falls.\n2. A dog barks.\n", ["1. Rain falls.", "2. A dog barks."]),
        ("The answer is B.", ["The answer is B."]),
        ('He says "Stop." Then silence.', ['He says "Stop."', "Then silence."]),
        ("(It rains.) Wind blows. B", ["(It rains.)", "Wind blows. B"]),
        ("4/4", ["4/4"]),
        ("A", ["A"]),
        ("", []),
        ("   ", []),
        ("rain falls\r\n\r\nwind blows", ["rain falls", "wind blows"]),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


@pytest.mark.parametrize("unit", [" ", "-\n", "1\n", ". ", '."', "!", "[", "a'", "\n \n", "( "])
def test_text_made_to_be_slow_is_not(unit):
    text = unit * 100_000 + " end"
    assert sentences(text)[-1].endswith("end")
    assert words(text)[-1] == "end"


@given(st.text(max_size=200))
def test_sentences_lose_no_letter(text):
    kept = "".join(sentences(text))
    assert [c for c in kept if c.isalnum()] == [c for c in text if c.isalnum()]


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=3), max_size=40), st.integers(1, 12))
def test_joining_keeps_order_and_limit(pieces, limit):
    joined = at_most(pieces, limit)
    assert len(joined) == min(len(pieces), limit)
    assert " ".join(joined) == " ".join(pieces)


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        at_most(["a", "b"], 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[PERCEPTION] A dog's Bark", ["a", "dog", "bark"]),
        ("It\u2019s a hi-hat, isn't it?", ["it's", "a", "hi", "hat", "isn't", "it"]),
        ("4/4 at 120 bpm", ["at", "bpm"]),
        ("\U0001f415 \u0635\u0648\u062a", ["\u0635\u0648\u062a"]),
        ("[" + "long " * 20 + "]", ["long"] * 20),
        ("[[[[ [a", ["a"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@given(st.text(alphabet=st.characters(), max_size=50))
def test_encodable_text_encodes(text):
    assert len(encodable(text).encode()) >= len(text)


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert encodable("a\ud83db") == "a\ufffdb"
