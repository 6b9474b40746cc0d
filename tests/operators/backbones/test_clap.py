"""CLAP through a tiny local checkpoint: windows, text, and nothing left to chance."""

from pathlib import Path

import numpy as np
import pytest

from operators.audio import Clip, resample
from operators.backbones.clap import Clap, LoadedClap, whole_clip_embedding
from operators.fingerprint import fingerprint
from operators.weights import Weights, WeightsError
from tests.operators.backbones.tiny_clap import save_tiny_clap

RATE = 48_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_clap(tmp_path_factory.mktemp("clap"))


@pytest.fixture(scope="module")
def clap(folder: Path) -> LoadedClap:
    return Clap(Weights(str(folder)), device="cpu").load()


def noise(seconds: float, seed: int = 0, rate: int = RATE) -> Clip:
    samples = 0.1 * np.random.default_rng(seed).normal(size=round(seconds * rate))
    return Clip(samples.astype(np.float32), rate)


def test_windows_count_by_their_length() -> None:
    found = whole_clip_embedding(np.eye(2), np.array([3, 1]))
    # (3 (1, 0) + 1 (0, 1)) / 4 = (3/4, 1/4), of length sqrt(10)/4: (3, 1) / sqrt(10).
    assert found == pytest.approx([3 / 10**0.5, 1 / 10**0.5])


@pytest.mark.weights
def test_a_long_clip_is_the_mean_of_its_windows(clap: LoadedClap) -> None:
    long = noise(12)
    head, rest = Clip(long.samples[: 10 * RATE], RATE), Clip(long.samples[10 * RATE :], RATE)
    h, r = clap.encode_clips([head, rest])
    mean = (10 * h + 2 * r) / 12
    assert clap.encode_clips([long])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


@pytest.mark.weights
def test_no_sound_is_cropped_at_random(clap: LoadedClap) -> None:
    clips = [noise(0.03), noise(10), noise(10.001)]
    np.random.seed(1)  # noqa: NPY002 - the feature extractor's own random state
    first = clap.encode_clips(clips)
    np.random.seed(2)  # noqa: NPY002
    np.testing.assert_array_equal(first, clap.encode_clips(clips))
    assert np.linalg.norm(first, axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.weights
def test_a_fusion_checkpoint_is_deterministic_too(tmp_path: Path) -> None:
    fused = Clap(Weights(str(save_tiny_clap(tmp_path, fusion=True))), device="cpu").load()
    clips = [noise(2, 1), noise(11, 2)]
    whole = fused.encode_clips(clips)
    for seed in range(2):
        np.random.seed(seed)  # noqa: NPY002
        np.testing.assert_allclose(fused.encode_clips(clips[::-1])[::-1], whole, atol=1e-5)


@pytest.mark.weights
def test_clips_do_not_depend_on_their_batch(folder: Path, clap: LoadedClap) -> None:
    clips = [noise(seconds, seed) for seed, seconds in enumerate([0.5, 13, 4])]
    alone = np.stack([clap.encode_clips([clip])[0] for clip in clips])
    narrow = Clap(Weights(str(folder)), device="cpu", windows_per_batch=2).load()
    np.testing.assert_allclose(clap.encode_clips(clips), alone, atol=1e-5)
    np.testing.assert_allclose(narrow.encode_clips(clips[::-1])[::-1], alone, atol=1e-5)


@pytest.mark.weights
def test_any_sampling_rate_is_heard_at_48_khz(clap: LoadedClap) -> None:
    low = noise(2, rate=16_000)
    same, other = clap.encode_clips([resample(low, RATE), low])
    np.testing.assert_allclose(same, other, atol=1e-6)


def test_entities_do_not_depend_on_their_batch(folder: Path, clap: LoadedClap) -> None:
    texts = ["rain", "a dog barks " * 10, "music", "\ud800 lone surrogate", "\U0001f415", "\u96e8"]
    alone = np.stack([clap.encode_entities([text])[0][0] for text in texts])
    narrow = Clap(Weights(str(folder)), device="cpu", tokens_per_batch=20).load()
    np.testing.assert_allclose(clap.encode_entities(texts)[0], alone, atol=1e-5)
    np.testing.assert_allclose(narrow.encode_entities(texts)[0], alone, atol=1e-5)


def test_texts_are_cut_at_77_tokens_and_say_so(clap: LoadedClap) -> None:
    # A repeated byte gives one token each at most: 75 of them and the two special tokens make 77.
    fits, long = "\u00e9" * 30, "the rain and the thunder and the dog " * 40
    codes, truncated = clap.encode_entities([fits, long, long + "more"])
    assert truncated.tolist() == [False, True, True]
    np.testing.assert_allclose(codes[1], codes[2], atol=1e-6)


def test_the_template_frames_the_entity(folder: Path, clap: LoadedClap) -> None:
    framed = Clap(Weights(str(folder)), template="the sound of {}", device="cpu")
    expected = clap.encode_entities(["the sound of {rain}"])[0]
    np.testing.assert_allclose(framed.load().encode_entities(["{rain}"])[0], expected, atol=1e-6)
    assert fingerprint(framed) != fingerprint(Clap(Weights(str(folder))))
    with pytest.raises(ValueError, match="template must hold"):
        Clap(Weights(str(folder)), template="no place").load()


def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such file or folder"):
        Clap(Weights(str(tmp_path / "none"))).load()
