"""YAMNet: its front end by hand, its model on sounds that everybody knows."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from operators.audio import Clip, decode
from operators.backbones.yamnet import (
    SMALLEST_PROBABILITY,
    Yamnet,
    YamnetModel,
    _constant,
    log_mel_patches,
    logit,
    mel_weights,
)
from operators.weights import Weights, WeightsError
from tests.shared_data import shared


@pytest.fixture(scope="module")
def model() -> YamnetModel:
    return Yamnet().load()


def sine(hertz: float, seconds: float = 2.0, rate: int = 16_000) -> Clip:
    return Clip(
        (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32), rate
    )


def test_logit_is_finite_everywhere() -> None:
    # log(0.75 / 0.25) = log 3 = 1.0986; the ends are log(1e-6 / (1 - 1e-6)) = -13.8155 and its negative.
    end = np.log(SMALLEST_PROBABILITY / (1 - SMALLEST_PROBABILITY))
    assert logit(np.array([0.0, 0.5, 0.75, 1.0])) == pytest.approx([end, 0.0, np.log(3), -end])


def test_a_tone_is_loudest_in_its_own_mel_band() -> None:
    mel = mel_weights()
    assert mel.shape == (257, 64)
    assert (mel >= 0).all()
    assert (mel[0] == 0).all()
    for hertz in (500.0, 1000.0, 4000.0):
        patch = log_mel_patches(sine(hertz).samples, mel)[0]
        loudest = int(patch.mean(axis=0).argmax())
        bin_of_tone = round(hertz / 16_000 * 512)
        assert loudest == int(mel[bin_of_tone].argmax())


def test_patches_are_a_second_long_and_half_a_second_apart() -> None:
    mel = mel_weights()
    # One patch needs 400 + 95 * 160 = 15,600 samples; the next begins 48 * 160 = 7,680 samples later.
    for count, patches in [(1, 1), (15_600, 1), (15_600 + 7_679, 1), (15_600 + 7_680, 2), (160_000, 19)]:
        assert log_mel_patches(np.zeros(count, np.float32), mel).shape == (patches, 96, 64)
    assert log_mel_patches(np.zeros(400, np.float32), mel) == pytest.approx(np.log(1e-3))


def test_long_sound_is_cut_into_blocks_without_a_seam() -> None:
    mel = mel_weights()
    samples = np.random.default_rng(0).normal(size=60 * 16_000).astype(np.float32)
    whole = log_mel_patches(samples, mel)
    start = 85 * 7_680  # the patch at frame 4,080 spans the end of the 16th block, at frame 4,096
    alone = log_mel_patches(samples[start : start + 15_600], mel)[0]
    np.testing.assert_allclose(whole[85], alone, atol=1e-4)


def test_constants_come_from_the_graph() -> None:
    graph = b"..B\x05scaleJ\x04" + np.float32(0.25).tobytes() + b"B\x04zeroJ\x01\x90.."
    assert _constant(graph, "scale", "<f4") == 0.25
    assert _constant(graph, "zero", "u1") == 144
    with pytest.raises(WeightsError, match="holds no scalar 'other'"):
        _constant(graph, "other", "u1")


@pytest.mark.weights
def test_it_hears_what_everybody_hears(model: YamnetModel) -> None:
    assert len(model.class_names) == 521
    folder = shared("librosa")
    heard = {path.name: dict(model.tags(decode(str(path)), 5)) for path in folder.glob("*.ogg")}
    assert "Speech" in heard["198-209-0000.ogg"]
    assert "Music" in heard["hungarian_dance_orchestra.ogg"]
    assert "Trumpet" in heard["sorohanro_-_solo-trumpet-06.ogg"]
    assert "Bird" in heard["456440__inspectorj__bird-whistling-robin-single-13.ogg"]


@pytest.mark.weights
def test_tags_are_sorted_and_match_the_logits(model: YamnetModel) -> None:
    clip = sine(440)
    tags = model.tags(clip, 600)
    assert len(tags) == 521
    probabilities = [probability for _, probability in tags]
    assert probabilities == sorted(probabilities, reverse=True)
    index = model.class_names.index(tags[0][0])
    assert model.logits([clip])[0, index] == pytest.approx(logit(np.float32(tags[0][1])), abs=1e-4)


@pytest.mark.weights
def test_clips_do_not_depend_on_their_batch(model: YamnetModel) -> None:
    clips = [sine(hertz, seconds) for hertz, seconds in [(200, 0.03), (440, 3), (3000, 61), (880, 1)]]
    together = model.logits(clips)
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[::-1], np.stack([model.logits([clip])[0] for clip in clips[::-1]]))
    assert np.isfinite(together).all()
    assert model.logits([]).shape == (0, 521)
    assert model.tags(Clip(np.zeros(400, np.float32), 16_000), 1)[0][0] == "Silence"


@pytest.mark.weights
def test_the_zip_is_unpacked_once_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: YamnetModel
) -> None:
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))
    fresh = Yamnet().load()
    (unpacked,) = (tmp_path / "cache").iterdir()
    stamp = (unpacked / "model.onnx").stat().st_mtime_ns
    again = Yamnet(weights=Weights(str(unpacked))).load()
    assert Yamnet().load().class_names == fresh.class_names
    assert (unpacked / "model.onnx").stat().st_mtime_ns == stamp
    for other in (fresh, again):
        np.testing.assert_array_equal(other.logits([sine(500)]), model.logits([sine(500)]))


def test_another_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("../readme.txt", "no model")
    (tmp_path / "map.csv").write_text("index,mid,display_name\n0,/m/0,Speech\n")
    config = Yamnet(Weights(str(tmp_path / "other.zip")), Weights(str(tmp_path / "map.csv")))
    with pytest.raises(WeightsError, match=r"holds 0 \.onnx files"):
        config.load()
    assert not (tmp_path / "readme.txt").exists()
