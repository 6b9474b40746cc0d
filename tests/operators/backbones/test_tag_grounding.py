"""Grounding by tags: the formula by hand, what people write, and a prior of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest

from operators.audio import Clip, decode
from operators.backbones.tag_grounding import (
    LoadedTagGrounding,
    TagGrounding,
    class_texts,
    class_weights,
    median_logits,
    tag_similarity,
)
from operators.fingerprint import fingerprint
from operators.weights import Weights
from tests.shared_data import shared


def test_class_weights_are_a_softmax() -> None:
    # (0.50 - 0.45) / 0.05 = 1: e / (e + 1) and 1 / (e + 1).
    e = np.e
    assert class_weights(np.array([[0.50, 0.45]]), 0.05)[0] == pytest.approx([e / (e + 1), 1 / (e + 1)])
    wide = class_weights(np.random.default_rng(0).uniform(-1, 1, (50, 521)), 0.001)
    assert np.isfinite(wide).all()
    assert wide.sum(axis=1) == pytest.approx(1)


def test_similarity_by_hand() -> None:
    logits, prior = np.array([[2.0, -1.0], [0.0, 0.0]]), np.array([0.0, -1.0])
    weights = np.array([[1.0, 0.0], [0.5, 0.5]])
    # Clip 1: 0.5 * 2 - 1 = 0 and 0.5 * (0.5 * 2 + 0.5 * 0) - 1 = -0.5; clip 2: -1 and 0.5 * 0.5 - 1 = -0.75.
    expected = 1 / (1 + np.exp(-np.array([[0.0, -0.5], [-1.0, -0.75]])))
    assert tag_similarity(logits, prior, weights) == pytest.approx(expected)
    assert np.isfinite(tag_similarity(1e6 * logits, prior, weights)).all()


def test_a_class_is_known_by_its_parts_and_other_names() -> None:
    assert class_texts("Child speech, kid speaking") == [
        "child speech, kid speaking",
        "child speech",
        "kid speaking",
    ]
    assert class_texts("Whimper (dog)") == ["whimper dog"]
    assert class_texts("Speech", ["voice", "speech"]) == ["speech", "voice"]


def test_constants_and_prior_are_identity(tmp_path: Path) -> None:
    own = tmp_path / "prior.json"
    own.write_text(json.dumps({"provenance": "none", "medians": [0.0] * 521}))
    configs = [
        TagGrounding(),
        TagGrounding(temperature=0.1),
        TagGrounding(slope=1.0),
        TagGrounding(offset=0.0),
        TagGrounding(prior=Weights(str(own))),
        TagGrounding(other_names=Weights(str(own))),
    ]
    with pytest.MonkeyPatch.context() as patch:
        # Identity of the packages is their name and version: nothing is read.
        patch.setattr(Weights, "folder", lambda self: pytest.fail("a fingerprint must not open weights"))
        assert len({fingerprint(config) for config in configs}) == len(configs)
    with pytest.raises(ValueError, match="temperature"):
        TagGrounding(temperature=0)


@pytest.fixture(scope="module")
def grounding() -> LoadedTagGrounding:
    return TagGrounding().load()


def heard(grounding: LoadedTagGrounding, clips: np.ndarray, texts: list[str]) -> dict[str, float]:
    codes, _ = grounding.encode_entities(texts)
    return dict(zip(texts, grounding.similarity(clips, codes).mean(axis=0).tolist(), strict=True))


@pytest.mark.weights
def test_wording_of_an_entity_matters_little(grounding: LoadedTagGrounding) -> None:
    dogs = sorted(shared("esc10").glob("*-A.ogg"))
    labels = dict(
        line.split(",")[:2] for line in (shared("esc10") / "labels.csv").read_text().splitlines()[1:]
    )
    clips = grounding.encode_clips(
        [decode(str(path)) for path in dogs if labels[path.name] == "dog bark"][:10]
    )
    true = ["dog bark", "Dog bark", "a dog barking", "barking dog", "dogs barking", "dogs", "bark"]
    found = heard(grounding, clips, true)
    assert min(found.values()) > 0.9, found
    long = "the sound of a dog barking several times in a quiet suburban garden, followed by silence"
    wrong = ["guitar", "church bell", "a man speaking", "orchestra", "asdkjh qwe zzx", "\u96e8\u306e\u97f3"]
    found = heard(grounding, clips, [long, *wrong])
    assert found[long] > max(found[text] for text in wrong), found


@pytest.mark.weights
def test_voices_are_heard_under_the_names_people_use(grounding: LoadedTagGrounding) -> None:
    speech = [decode(str(path)) for path in sorted(shared("crema_d").glob("*.wav"))[:8]]
    rain = [decode(str(path)) for path in sorted(shared("esc10").glob("*.ogg"))[::25]]
    names = [
        "speech",
        "female voice",
        "male speaker",
        "a man speaking angrily",
        "human voice",
        "a person talking",
    ]
    spoken = heard(grounding, grounding.encode_clips(speech), names)
    elsewhere = heard(grounding, grounding.encode_clips(rain), names)
    assert min(spoken.values()) > 0.75, spoken
    assert max(elsewhere.values()) < 0.6, elsewhere


@pytest.mark.weights
def test_text_is_never_too_strange(grounding: LoadedTagGrounding) -> None:
    strange = ["x" * 20_000, "\ud800", "\U0001f415", "\u0643\u0644\u0628", "\x00\x07", "the rain " * 400]
    codes, truncated = grounding.encode_entities(strange)
    assert np.isfinite(codes).all()
    assert codes.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert truncated.tolist()[-1] is True


@pytest.mark.weights
def test_a_prior_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    clips = [Clip((level * rng.normal(size=32_000)).astype(np.float32), 16_000) for level in (0.01, 0.1, 0.5)]
    medians = median_logits(clips)
    assert medians.shape == (521,)
    own = tmp_path / "prior.json"
    own.write_text(json.dumps({"provenance": "three noises", "medians": medians.tolist()}))
    loaded = TagGrounding(prior=Weights(str(own))).load()
    # Logits equal to the prior are no evidence: sigmoid(-1) = 0.269 whatever the entity.
    weights, _ = loaded.encode_entities(["white noise", "dog bark"])
    scores = loaded.similarity(medians[None], weights)
    assert scores[0] == pytest.approx(1 / (1 + np.e), abs=1e-6)
    own.write_text(json.dumps({"medians": [0.0] * 520}))
    with pytest.raises(ValueError, match="must hold 521 finite medians"):
        TagGrounding(prior=Weights(str(own))).load()
    with pytest.raises(ValueError, match="at least one clip"):
        median_logits([])


@pytest.mark.weights
def test_other_names_are_of_classes_that_there_are(tmp_path: Path) -> None:
    own = tmp_path / "names.json"
    own.write_text(json.dumps({"names": {"Speech": ["voice"], "Ghost": ["spectre"]}}))
    with pytest.raises(ValueError, match="the tagger lacks: Ghost"):
        TagGrounding(other_names=Weights(str(own))).load()
