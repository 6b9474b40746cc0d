"""M1: the formula by hand, every way audio can fail a row, and what it says about real clips."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from operators.audio import Clip, ProbeAudio, decode, pcm_hash
from operators.backbones.clap import Clap
from operators.backbones.tag_grounding import LoadedTagGrounding, TagGrounding, tag_similarity
from operators.base import Batch, Op, apply
from operators.metrics.acoustic_grounding import AcousticGrounding, _Listener, _Row, acoustic_grounding
from operators.weights import Weights
from tests.operators.backbones.tiny_clap import save_tiny_clap
from tests.shared_data import shared

NAME = "m1_acoustic_grounding"


def column(cells: list) -> np.ndarray:
    filled = np.empty(len(cells), dtype=object)
    filled[:] = cells
    return filled


def write_tone(path: Path, hertz: float, seconds: float = 0.5, rate: int = 16_000) -> str:
    samples = 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
    soundfile.write(path, samples, rate)
    return str(path)


def probed(uris: list[list[str]], entities: list[list[str]]) -> Batch:
    spec = ProbeAudio()
    return apply(spec, spec.build(), {"audio_uris": column(uris), "entities": column(entities)})


class TestFormula:
    def test_by_hand(self) -> None:
        # (0.5 + 0.1 + 0.3) / 3 = 0.3
        assert acoustic_grounding([0.5, 0.1, 0.3]) == pytest.approx(0.3)

    def test_a_negative_cosine_counts_as_zero(self) -> None:
        # (0.5 + 0 + 0.25) / 3 = 0.25
        assert acoustic_grounding([0.5, -0.9, 0.25]) == pytest.approx(0.25)

    def test_extremes(self) -> None:
        assert acoustic_grounding([]) == 0.0
        assert acoustic_grounding(np.zeros(0)) == 0.0
        assert acoustic_grounding([1.0] * 7) == 1.0
        assert acoustic_grounding([-1.0]) == 0.0

    @pytest.mark.parametrize("bad", [[np.nan], [0.1, np.inf], [-np.inf], [[0.1], [0.2]]])
    def test_what_is_no_similarity_is_refused(self, bad: list) -> None:
        with pytest.raises(ValueError, match="finite numbers along one axis"):
            acoustic_grounding(bad)

    @pytest.mark.parametrize("bad", [1.5, -1.01])
    def test_what_no_cosine_can_be_is_refused_and_rounding_is_not(self, bad: float) -> None:
        with pytest.raises(ValueError, match=r"lie in \[-1, 1\]"):
            acoustic_grounding([0.2, bad])
        assert acoustic_grounding([1 + 1e-7]) == 1.0

    @given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.randoms())
    def test_range_and_order(self, values: list[float], random) -> None:
        score = acoustic_grounding(values)
        assert 0 <= score <= 1
        shuffled = random.sample(values, len(values))
        assert acoustic_grounding(shuffled) == pytest.approx(score)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
    def test_more_entities_of_average_fit_change_nothing(self, values: list[float]) -> None:
        score = acoustic_grounding(values)
        assert acoustic_grounding([*values, score]) == pytest.approx(score)


class Toy:
    """A loaded backbone that hears pitch: a clip is its zero crossings per second, an entity is a number."""

    def __init__(self) -> None:
        self.clips: list[int] = []
        self.texts: list[str] = []

    def encode_clips(self, clips: list[Clip]) -> np.ndarray:
        self.clips += [len(clip.samples) for clip in clips]
        rates = [np.sum(np.diff(np.signbit(clip.samples))) / clip.seconds for clip in clips]
        return np.array(rates, dtype=np.float64)[:, None]

    def encode_entities(self, entities: list[str]) -> tuple[np.ndarray, np.ndarray]:
        self.texts += entities
        return np.array([[float(text)] for text in entities]), np.array([len(text) > 4 for text in entities])

    def similarity(self, clips: np.ndarray, entities: np.ndarray) -> np.ndarray:
        return 1 - np.abs(clips - 2 * entities.T) / 1000


@pytest.fixture
def tones(tmp_path: Path) -> dict[int, str]:
    return {hertz: write_tone(tmp_path / f"{hertz}.wav", hertz) for hertz in (200, 400, 600)}


def toy_rows(uris: list[list[str]], entities: list[list[str]]) -> list[_Row]:
    batch = probed(uris, entities)
    return [_Row(*cells) for cells in zip(*(batch[name] for name in AcousticGrounding.reads), strict=True)]


def test_each_sound_and_entity_is_encoded_once(tones: dict[int, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.flac"
    copy.write_bytes(b"")
    samples, rate = soundfile.read(tones[200], dtype="int16")
    soundfile.write(copy, samples, rate)
    uris = [[tones[200]], [tones[400]], [str(copy)], [tones[200], tones[400]]]
    rows = toy_rows(uris, [["200", "400"], ["400"], ["200"], ["400", "200"]])
    toy = Toy()
    listener = _Listener(toy)
    first = listener.score(rows)
    second = [listener.score([row])[0] for row in rows]
    assert [row.value for row in first] == [row.value for row in second]
    assert len(toy.clips) == 2
    assert sorted(toy.texts) == ["200", "400"]


def test_little_sound_is_held_at_once(tmp_path: Path) -> None:
    uris = [[write_tone(tmp_path / f"{hertz}.wav", hertz, seconds=1)] for hertz in (200, 300, 400, 500, 600)]
    rows = toy_rows(uris, [["200"]] * 5)
    toy, held = Toy(), []
    heard = toy.encode_clips
    toy.encode_clips = lambda clips: held.append(len(clips)) or heard(clips)
    bounded = _Listener(toy)
    bounded.seconds_per_batch = 1.5
    assert [row.value for row in bounded.score(rows)] == [row.value for row in _Listener(Toy()).score(rows)]
    assert held == [2, 2, 1], "a second clip of 1 s passes the 1.5 s"


def test_several_clips_count_where_the_entity_is_heard_best(tones: dict[int, str]) -> None:
    (row,) = _Listener(Toy()).score(toy_rows([[tones[200], tones[600]]], [["200", "600", "400"]]))
    # 200 and 600 Hz each have a clip of their own; 400 Hz is 400 crossings a second off in both: 1 - 0.4.
    assert row.details["similarities"] == pytest.approx([1, 1, 0.6], abs=0.01)
    assert row.value == pytest.approx((1 + 1 + 0.6) / 3, abs=0.01)


def test_negative_similarities_are_kept_in_the_details(tones: dict[int, str]) -> None:
    (row,) = _Listener(Toy()).score(toy_rows([[tones[200]]], [["200", "00800"]]))
    assert row.value == pytest.approx(0.5, abs=0.01)
    # 400 crossings a second where 1600 are expected: 1 - 1.2.
    assert row.details["similarities"][1] == pytest.approx(-0.2, abs=0.01)
    assert row.details["truncated"] == ["00800"]


def test_a_similarity_that_is_no_number_is_a_reason(tones: dict[int, str]) -> None:
    bad, good = _Listener(Toy()).score(toy_rows([[tones[200]], [tones[200]]], [["nan"], ["200"]]))
    assert bad.reason.startswith("no_similarity: ")
    assert np.isnan(bad.value)
    assert good.reason is None


def test_a_sound_that_changed_or_vanished_costs_its_row_only(tones: dict[int, str]) -> None:
    uris = [[tones[200]], [tones[400]], [tones[600]], [tones[600], tones[200]]]
    rows = toy_rows(uris, [["200"], ["400"], ["600"], ["600"]])
    write_tone(Path(tones[200]), 300)
    Path(tones[400]).unlink()
    listener = _Listener(Toy())
    changed, gone, fine, mixed = listener.score(rows)
    assert changed.reason.startswith(f"audio_changed: {tones[200]}")
    assert gone.reason.startswith(f"missing_file: {tones[400]}")
    assert np.isnan([changed.value, gone.value, mixed.value]).all()
    assert mixed.reason == changed.reason
    assert fine.value == pytest.approx(1, abs=0.01)
    write_tone(Path(tones[200]), 200)
    again = listener.score(rows)
    assert again[0].value == pytest.approx(1, abs=0.01), "a sound that is back is heard again"


def test_a_sound_is_found_at_another_place(tones: dict[int, str], tmp_path: Path) -> None:
    rows = toy_rows([[tones[200]], [write_tone(tmp_path / "same.wav", 200)]], [["200"], ["200"]])
    Path(tones[200]).unlink()
    listener = _Listener(Toy())
    assert listener.score(rows[:1])[0].reason.startswith("missing_file: ")
    assert [row.reason for row in listener.score(rows)] == [None, None]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[AcousticGrounding, Op]:
    # Of the random models this is one with positive cosines, far apart for different sounds.
    folder = save_tiny_clap(tmp_path_factory.mktemp("clap"), seed=10)
    spec = AcousticGrounding(Clap(Weights(str(folder)), device="cpu"))
    return spec, spec.build()


def test_the_spec_on_good_and_bad_rows(tiny: tuple[AcousticGrounding, Op], tmp_path: Path) -> None:
    spec, op = tiny
    mono = write_tone(tmp_path / "mono.wav", 300, 1.0)
    stereo = tmp_path / "stereo.flac"
    soundfile.write(stereo, np.random.default_rng(0).uniform(-0.5, 0.5, (22_050, 2)), 44_100)
    files = {"empty.wav": b"", "text.wav": b"no sound at all " * 9, "cut.flac": b""}
    whole = io.BytesIO()
    soundfile.write(whole, np.random.default_rng(1).uniform(-0.5, 0.5, 80_000), 16_000, format="FLAC")
    files["cut.flac"] = whole.getvalue()[:30_000]
    files["one.wav"] = Path(write_tone(tmp_path / "one.wav", 300, 1 / 16_000)).read_bytes()
    bad = [str(tmp_path / name) for name in files]
    for path, data in zip(bad, files.values(), strict=True):
        Path(path).write_bytes(data)
    bad.append(str(tmp_path / "missing.wav"))
    good = [[mono], [str(stereo)], [mono, str(stereo)]]
    uris = [*good, *([path] for path in bad), [mono, bad[0]], [], [bad[0]], [mono]]
    entities = [["rain", "dog"]] * (len(uris) - 2) + [[], ["", "\t"]]
    batch = probed(uris, entities)
    found = apply(spec, op, batch)
    alone = apply(spec, op, {name: cells[:3] for name, cells in batch.items()})
    assert found[NAME][:3] == pytest.approx(alone[NAME], abs=1e-6)
    assert found[f"{NAME}_reason"][:3].tolist() == [None] * 3
    failed = range(3, len(uris) - 3)
    assert np.isnan(found[NAME][failed]).all()
    for row, path in zip(failed, [*bad, bad[0]], strict=True):
        assert found[f"{NAME}_reason"][row] == f"audio_unavailable: {path}; audio_error says why"
    assert found[f"{NAME}_reason"][len(uris) - 3].startswith("no_audio: ")
    assert found[NAME][-2:].tolist() == [0.0, 0.0], "no entity: 0, whatever the audio"
    assert found[f"{NAME}_reason"][-2:].tolist() == [None, None]
    details = json.loads(found[f"{NAME}_details"][0])
    assert details["entities"] == ["rain", "dog"]
    clipped = [max(0, value) for value in details["similarities"]]
    assert found[NAME][0] == pytest.approx(sum(clipped) / 2)


def test_scores_do_not_depend_on_batches(tiny: tuple[AcousticGrounding, Op], tmp_path: Path) -> None:
    spec, op = tiny
    lengths = [0.1, 1, 3]
    paths = [write_tone(tmp_path / f"{i}.wav", 200 * (i + 1), seconds) for i, seconds in enumerate(lengths)]
    uris = [[paths[i % 3]] for i in range(6)]
    entities = [["rain"], ["a dog barks " * 30, "x"], ["music"], ["rain", "speech"], ["dog"], ["thunder"]]
    batch = probed(uris, entities)
    whole = apply(spec, op, batch)[NAME]
    order = [4, 2, 0, 5, 3, 1]
    fresh = spec.build()
    singles = [
        apply(spec, fresh, {name: cells[[row]] for name, cells in batch.items()})[NAME][0] for row in order
    ]
    assert whole[order] == pytest.approx(singles, abs=1e-4)
    assert len(set(whole.tolist())) == 6
    assert (whole > 0).all()


def test_a_batch_without_rows(tiny: tuple[AcousticGrounding, Op]) -> None:
    spec, op = tiny
    found = apply(spec, op, {name: column([]) for name in spec.reads})
    assert found[NAME].shape == (0,)


# What real clips say, with the weights that ship offline.


@pytest.fixture(scope="module")
def labelled() -> tuple[list[str], list[str]]:
    folder = shared("esc10")
    lines = (folder / "labels.csv").read_text().splitlines()[1:]
    files, labels = zip(*(line.split(",")[:2] for line in lines), strict=True)
    return [str(folder / file) for file in files], list(labels)


@pytest.fixture(scope="module")
def grounding() -> LoadedTagGrounding:
    return TagGrounding().load()


@pytest.fixture(scope="module")
def logits(labelled: tuple[list[str], list[str]], grounding: LoadedTagGrounding) -> np.ndarray:
    return grounding.encode_clips([decode(path) for path in labelled[0]])


def area_under_curve(scores: np.ndarray, is_true: np.ndarray) -> float:
    """The chance that a true pair scores above a false one."""
    true, false = scores[is_true], scores[~is_true]
    return float(mannwhitneyu(true, false).statistic / (true.size * false.size))


def truth(labels: list[str]) -> tuple[list[str], np.ndarray]:
    names = sorted(set(labels))
    return names, np.array([[label == name for name in names] for label in labels])


@pytest.mark.weights
def test_true_labels_stand_out_on_real_clips(
    labelled: tuple[list[str], list[str]], grounding: LoadedTagGrounding, logits: np.ndarray
) -> None:
    names, is_true = truth(labelled[1])
    codes, _ = grounding.encode_entities(names)
    assert area_under_curve(grounding.similarity(logits, codes), is_true) >= 0.95
    for index, name in enumerate(names):
        scores = grounding.similarity(logits, codes)[:, index]
        assert area_under_curve(scores, is_true[:, index]) >= 0.9, name


@pytest.mark.weights
@pytest.mark.parametrize("held_out", [0, 1])
def test_true_labels_stand_out_on_clips_that_the_prior_has_not_seen(
    labelled: tuple[list[str], list[str]], grounding: LoadedTagGrounding, logits: np.ndarray, held_out: int
) -> None:
    names, is_true = truth(labelled[1])
    codes, _ = grounding.encode_entities(names)
    # ESC-10 file names begin with the fold, and no recording is in two folds.
    fold = np.array([Path(path).name[0] in "123" for path in labelled[0]])
    test = fold if held_out else ~fold
    prior = np.median(logits[~test], axis=0)
    assert area_under_curve(tag_similarity(logits[test], prior, codes), is_true[test]) >= 0.95


@pytest.mark.weights
def test_replacing_the_entities_lowers_the_score_as_in_table_13(
    labelled: tuple[list[str], list[str]],
) -> None:
    paths, labels = labelled
    replaced = np.random.default_rng(0).choice(["music", "speech"], size=len(labels)).tolist()
    variants = {
        "original": [[label] for label in labels],
        "half": [[label, other] for label, other in zip(labels, replaced, strict=True)],
        "music": [["music"]] * len(labels),
        "speech": [["speech"]] * len(labels),
    }
    spec = AcousticGrounding(TagGrounding())
    op = spec.build()
    means = {}
    hashes = column([[pcm_hash(decode(path))] for path in paths])
    for name, entities in variants.items():
        batch = {"audio_uris": column([[path] for path in paths]), "audio_hashes": hashes}
        found = apply(spec, op, {**batch, "entities": column(entities)})
        assert set(found[f"{NAME}_reason"]) == {None}
        means[name] = found[NAME].mean()
    assert means["original"] > means["half"] > max(means["music"], means["speech"]), means
    assert means["original"] > 2 * max(means["music"], means["speech"]), means


@pytest.mark.weights
def test_music_and_speech_count_where_they_are(grounding: LoadedTagGrounding) -> None:
    folder = shared("librosa")
    files = ["hungarian_dance_orchestra.ogg", "sorohanro_-_solo-trumpet-06.ogg", "198-209-0000.ogg"]
    files += ["3436-172162-0000.ogg", "5703-47212-0000.ogg"]
    codes, _ = grounding.encode_entities(["music", "speech"])
    scores = grounding.similarity(
        grounding.encode_clips([decode(str(folder / file)) for file in files]), codes
    )
    assert (scores[:2, 0] > scores[:2, 1] + 0.3).all(), scores
    assert (scores[2:, 1] > scores[2:, 0] + 0.3).all(), scores
