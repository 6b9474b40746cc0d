"""What a model makes of a clip is made once, and is the same in every prompt and beside every batch-mate."""

import numpy as np
import pytest

from operators.batching import Units
from operators.lalms.asking import answer_rows
from operators.lalms.encoding import ROWS, Spectra
from operators.lalms.hearing import Hearing
from operators.lalms.transformers_chat import Talker, TransformersChat
from operators.weights import Weights
from tests.operators.lalms.clips import batch, tone
from tests.tiny_lalms import BUILDERS

pytestmark = pytest.mark.weights  # or, where no model is loaded, its libraries
LABELS = [f"Audio {n}" for n in range(1, 7)]


class Extractor:
    """A feature extractor that only counts what it is given: a clip's spectrogram is its sum, its length and its mates."""

    sampling_rate = 16_000

    def __init__(self):
        self.given = []

    def __call__(self, clips, **given):
        self.given += [len(clip) for clip in clips]
        import torch

        made = [[float(clip.sum()), len(clip), len(clips)] for clip in clips]
        return {"input_features": torch.tensor(made)}


FIXED = {"padding": "max_length", "return_tensors": "pt"}
SOUNDS = [np.full(n, 1.0, dtype=np.float32) for n in (3, 4, 3)]


def test_spectrograms_are_made_alone_and_once_while_they_are_kept():
    spectra = Spectra(extractor := Extractor(), 2)
    made = spectra(SOUNDS, **FIXED)["input_features"].tolist()
    assert made == [[3, 3, 1], [4, 4, 1], [3, 3, 1]] and extractor.given == [3, 4]
    spectra([np.full(3, 2.0, dtype=np.float32)], **FIXED)  # as long as another, yet another sound
    spectra(SOUNDS[:1], **FIXED)
    assert extractor.given == [3, 4, 3, 3], "the two last ones were kept: of 4 samples, and the other sound"
    assert spectra.sampling_rate == 16_000


@pytest.mark.parametrize("given", [{"padding": True, "return_tensors": "pt"}, {"padding": "max_length"}])
def test_spectrograms_that_depend_on_their_batch_are_made_with_it(given):
    spectra = Spectra(extractor := Extractor(), 2)
    assert spectra(SOUNDS, **given)["input_features"][:, 2].tolist() == [3, 3, 3]
    assert extractor.given == [3, 4, 3]


def test_other_arguments_make_another_spectrogram():
    spectra = Spectra(extractor := Extractor(), 2)
    for rate in (8_000, 16_000, 16_000):
        spectra(SOUNDS[:1], sampling_rate=rate, **FIXED)
    assert extractor.given == [3, 3]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Six clips, one of them as long as an encoder's window: its mask hides nothing."""
    folder = tmp_path_factory.mktemp("clips")
    lengths = (1.0, 1.5, 2.0, 2.5, 3.0, 30.0)
    return [tone(folder, f"c{n}", length, pitch=200 + 100 * n) for n, length in enumerate(lengths)]


@pytest.fixture(scope="module", params=BUILDERS)
def spec(request, tmp_path_factory):
    folder = BUILDERS[request.param](tmp_path_factory.mktemp("tiny") / request.param)
    processor = "Qwen2AudioProcessor" if "omni" in request.param else None
    drawn = {"dtype": "float32", "prompt": None, "temperature": 1.0, "max_new_tokens": 8}  # near ties show
    return TransformersChat(weights=Weights(str(folder)), processor=processor, **drawn)


def trials(clips, several):
    """Four orders of the same clips and a row with one clip, or six rows with one clip each, three of them the same."""
    if not several:
        return [("Which?", ["a", "b"], [clips[place]], trial) for trial, place in enumerate((0, 1, 0, 5, 0))]
    orders = [("Which?", LABELS, clips[turn:] + clips[:turn], turn) for turn in range(4)]
    return [*orders, ("Which?", ["a", "b"], clips[:1], 0)]


def heard(spec, kept, batches):
    """Responses, what was computed, and what the encoder gave per call."""
    units, given = Units(), []
    with units.at_hand():
        hearing, talker = Hearing(spec.limits, 16_000), Talker(spec, *spec.load(), kept)
    for part in talker._model.modules():
        if type(part).__name__ in ROWS:
            part.register_forward_hook(lambda _part, _input, out: given.append(out.last_hidden_state))
    said = [answer_rows(spec, hearing, talker.say, batch(rows)) for rows in batches]
    return np.concatenate([one["response"] for one in said]).tolist(), units.report(), given


def test_what_is_remembered_changes_no_response(spec, clips):
    from torch import cat
    from torch.testing import assert_close

    several = "flamingo" not in spec.weights.source
    rows = trials(clips, several)
    distinct = 6 if several else 3
    plain, spent, features = heard(spec, 0, [rows])
    assert spent == {"decoded": distinct} and any(plain)
    unit = "clips" if several else "windows"
    for batches in ([rows[:2], rows[2:]], [[row] for row in rows]):
        again, spent, same = heard(spec, 32, batches)
        assert again == plain
        assert spent == {"decoded": distinct, "spectra": distinct, unit: distinct}
        # Of [clips, frames, width], or [frames of all clips, width].
        assert_close(cat(same), cat(features))
    again, spent, _ = heard(spec, 1, [[row] for row in rows])
    assert again == plain and distinct < spent[unit], (
        "nothing is lost where less is kept: it is computed again"
    )


def test_features_are_the_same_to_the_last_bit_in_every_batch(spec, clips):
    import torch

    rows = [("Which?", ["a", "b"], [clip], 0) for clip in clips[:3]]
    (together,) = heard(spec, 32, [rows])[2]
    alone = heard(spec, 32, [[row] for row in rows])[2]
    assert torch.equal(together, torch.cat(alone))
