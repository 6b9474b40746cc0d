"""Real renderings by eSpeak NG: repeatable, hostile text is only read out, and presets that the scorer tells apart."""

import subprocess
import sys

import numpy as np
import pytest

from operators.audio import pcm_hash
from operators.fingerprint import fingerprint
from operators.speech.acoustics import relative
from operators.speech.espeak import EspeakPresets, Prosody, ssml
from operators.speech.rendering import Line, RenderingError, SpeechError
from pipelines.build_audit_settings import BuildAudit
from pipelines.config import build
from tests.pipelines.cli import composed

needs_espeak = [
    pytest.mark.weights,
    pytest.mark.skipif(
        subprocess.run([sys.executable, "-c", "import espeakng_loader"], capture_output=True).returncode != 0,
        reason="eSpeak NG is the optional extra `speech`",
    ),
]
assert BuildAudit


def presets(**fields):
    return EspeakPresets(**{"voices": ("en-us+f2",), "presets": {"neutral": Prosody()}, **fields})


def test_pause_and_rising_end_are_in_the_markup_and_text_is_escaped():
    assert ssml("one two three", Prosody(pause=0.5)) == '<speak>one <break time="500ms"/> two three</speak>'
    assert ssml("Is it here.", Prosody(rising=True)) == "<speak>Is it here?</speak>"
    assert ssml('<break time="9s"/> & "x"', Prosody()) == (
        '<speak>&lt;break time="9s"/&gt; &amp; "x"</speak>'
    )
    assert ssml("one", Prosody(pause=0.5)) == "<speak> one</speak>"


def test_what_changes_the_sound_is_identity_and_patience_is_not():
    assert fingerprint(presets()) != fingerprint(presets(presets={"neutral": Prosody(rate=166)}))
    assert fingerprint(presets()) == fingerprint(presets(timeout_seconds=1.0))


def test_attempts_vary_within_bounds_and_the_first_is_the_preset():
    config = presets(presets={"sad": Prosody(rate=115, pitch=25, range=15, volume=30, pause=0.1)})
    line = Line("hello", "sad", "en-us+f2")
    assert config._varied(line, 0) == config.presets["sad"]
    varied = [config._varied(line, attempt) for attempt in range(1, 30)]
    assert len({manner.rate for manner in varied}) == 29
    assert all(115 * 0.85 <= manner.rate <= 115 * 1.15 and manner.pause == 0.1 for manner in varied)
    assert config._varied(line, 3) == varied[2]
    with pytest.raises(SpeechError, match="no prosody preset 'joyous'; there are sad"):
        config._varied(Line("hello", "joyous", "en-us+f2"), 0)


class TestRealRenderings:
    pytestmark = needs_espeak

    def test_the_same_line_is_the_same_sound_and_another_attempt_another(self):
        # f2 breathes: its noise follows the clock unless it is seeded
        render = presets().load()
        line = Line("My train leaves in ten minutes.", "neutral", "en-us+f2")
        first, again, other = render(line, 1), render(line, 1), render(line, 2)
        assert pcm_hash(first) == pcm_hash(again) != pcm_hash(other)
        assert 1 < first.seconds < 4 and 0.05 < np.abs(first.samples).max() <= 1

    def test_markup_in_the_text_is_read_out_and_not_obeyed(self):
        render = presets().load()
        said = render(Line('go <break time="20s"/> on & on', "neutral", "en-us+f2"), 0)
        assert said.seconds < 15

    def test_text_without_sound_is_a_reason_and_an_unknown_voice_an_error(self):
        with pytest.raises(RenderingError, match="no_sound"):
            presets().load()(Line(" ", "neutral", "en-us+f2"), 0)
        with pytest.raises(SpeechError, match="no voice 'xx-nobody'"):
            presets(voices=("xx-nobody",)).load()

    def test_the_scorer_tells_the_presets_apart(self):
        config = composed(pipeline="build_audit")
        speech, judge = build(config.speech, "speech"), build(config.scorer, "scorer").load()
        render, text, voice = speech.load(), "My sister comes on Sunday.", "en-us+f2"
        neutral = judge.primitives(render(Line(text, "neutral", voice), 0), text)
        rules = judge.scorer.rules
        accepted = {}
        for spoken in sorted(speech.emotions):
            found = relative(judge.primitives(render(Line(text, spoken, voice), 0), text), neutral)
            held = {rule for rule, needs in rules.items() if all(need.margin(found) >= 0 for need in needs)}
            accepted[spoken] = held
        assert all(name in held for name, held in accepted.items()), accepted
        # Slow manners are also no faster than neutral, which is all that `empathetic` asks for without a model.
        quick = {name: held - {"empathetic"} for name, held in accepted.items()}
        assert quick["frazzled"] == {"frazzled"}
        assert quick["sad"] == {"sad"} and quick["happy"] == {"happy"}
        assert quick["hesitant"] == {"hesitant"} and quick["neutral"] == {"neutral"}
        assert quick["angry"] <= {"angry", "impatient"} and "frazzled" not in quick["impatient"]
