"""Emotion models: a tiny real classifier, what absence says, and how labels are named."""

import importlib.util

import numpy as np
import pytest

from operators.audio import Clip
from operators.speech.emotion_models import Emotion2Vec, EmotionClassifier, named
from operators.speech.rendering import SpeechError
from operators.weights import Weights, WeightsError


def test_labels_are_named_and_equal_names_add_up():
    found = named(
        ["生气/angry", "难过/sad", "<unk>", "ang"],
        [0.25, 0.25, 0.25, 0.25],
        {"<unk>": "unknown", "ang": "angry"},
    )
    assert found == {"angry": 0.5, "sad": 0.25, "unknown": 0.25}


@pytest.mark.skipif(importlib.util.find_spec("funasr") is not None, reason="funasr is installed here")
def test_the_absence_of_emotion2vec_is_said_with_the_way_out():
    with pytest.raises(SpeechError, match=r"emotion2vec is absent.*scorer=prosody"):
        Emotion2Vec(Weights("nowhere")).load()


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(WeightsError, match="no such file or folder"):
        EmotionClassifier(Weights(str(tmp_path / "gone"))).load()


@pytest.mark.weights
def test_a_classifier_in_transformers_format_gives_probabilities(tmp_path):
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2ForSequenceClassification

    config = Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, conv_dim=(16, 16),
        conv_kernel=(10, 4), conv_stride=(80, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, classifier_proj_size=8, num_labels=3,
        id2label={0: "ang", 1: "hap", 2: "neu"}, label2id={"ang": 0, "hap": 1, "neu": 2},
    )  # fmt: skip
    Wav2Vec2ForSequenceClassification(config).save_pretrained(tmp_path)
    Wav2Vec2FeatureExtractor(sampling_rate=16_000).save_pretrained(tmp_path)
    model = EmotionClassifier(
        Weights(str(tmp_path)), labels={"ang": "angry", "hap": "happy", "neu": "neutral"}
    ).load()
    noise = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    found, again = model(Clip(noise, 24_000)), model(Clip(noise, 24_000))
    assert set(found) == {"angry", "happy", "neutral"} and found == again
    assert sum(found.values()) == pytest.approx(1, abs=1e-5) and all(
        0 < value < 1 for value in found.values()
    )
