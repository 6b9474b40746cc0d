"""Renders the clips of the `sample` benchmark: `python -m operators.benchmarks.render_sample [folder]`.

The clips ship with the project, so nobody needs this to run an evaluation. It documents how they were made
and makes them again. It needs, beside the project: Debian `espeak-ng` (1.51), `fluid-soundfont-gm` (3.1) and
`libfluidsynth3` (2.3), and `pip install pyfluidsynth` (1.4). The same versions give the same samples.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import soundfile

from operators.benchmarks.render_sounds import (
    DRUMS,
    RATE,
    Note,
    band,
    bell,
    chord,
    cricket,
    dial,
    fade,
    firework,
    heartbeat,
    helicopter,
    in_turn,
    level,
    mix,
    play,
    pulses,
    rain,
    row,
    say,
    seconds,
    silence,
    siren,
    thunder,
    tone,
    tune,
)

FOLDER = Path(__file__).parents[1] / "data" / "sample" / "audio"

# General MIDI programs, counted from 0, one key of the drum kit, and voices of eSpeak NG.
PIANO, GLOCKENSPIEL, ORGAN, ACCORDION, VIOLIN, TRUMPET = 0, 9, 19, 21, 40, 56
SHORE, TELEPHONE, APPLAUSE = 122, 124, 126
JINGLE_BELL = 83
WOMAN, MAN, BRITON = "en-us+f3", "en-us+m3", "en-gb+f2"

# Melodies in the public domain: MIDI keys and the beats that each is held.
CRADLE_SONG = (
    [64, 64, 67, 64, 64, 67, 64, 67, 72, 71, 69, 69, 67],
    [0.5, 0.5, 1.5, 0.5, 0.5, 1.5, 0.5, 0.5, 1, 1, 1, 0.5, 1],
)
BRIDAL_CHORUS = ([60, 65, 65, 65, 60, 67, 64, 65], [1, 0.75, 0.25, 2, 1, 0.75, 0.25, 2])
JINGLE_BELLS = ([76, 76, 76, 76, 76, 76, 76, 79, 72, 74, 76], [1, 1, 2, 1, 1, 2, 1, 1, 1.5, 0.5, 3])
WALTZ = ([76, 79, 84, 83, 81, 79, 77, 76, 74, 72], [2, 1, 2, 1, 2, 1, 2, 1, 2, 1])


def telephone(rings: int) -> np.ndarray:
    """A telephone bell that rings for a second and pauses for half of one, again and again."""
    return pulses(play(TELEPHONE, [(0, 67, 1.0)], 1.5), [1.5 * ring for ring in range(rings)])


def held(effect: int, duration: float) -> np.ndarray:
    """One long note of a General MIDI sound effect."""
    return play(effect, [(0, 60, duration)], duration)


def sound_clips() -> dict[str, np.ndarray]:
    """Things, places and animals."""
    doppler = np.where(seconds(6) < 3, 1.12, 0.9)
    busy = 0.5 * (tone(480, 0.5) + tone(620, 0.5))
    beats = np.cumsum([0.1, 1.0, 1.0, 0.95, 0.8, 0.65, 0.55, 0.5, 0.48, 0.46])
    return {
        "storm": mix(
            (0, 0.25 * rain(7, 1)), (0.6, 0.3 * band(thunder(2.5, 2), 25, 300)), (3.6, thunder(3.3, 3))
        ),
        "shore": held(SHORE, 6),
        "telephone": mix((0, telephone(4)), (6, silence(1.0))),
        "helicopter": fade(helicopter(7, 1), (0, 0.05), (3.5, 1), (7, 0.05)),
        "siren": fade(siren(6, 1.5, doppler), (0, 0.2), (3, 1), (6, 0.15)),
        "heartbeat": heartbeat(list(beats)),
        "cricket": cricket(5, 3),
        "busy-line": mix((0, dial("5550193")), (2.2, pulses(busy, [0, 1, 2, 3]))),
        "church-bell": pulses(bell(600, 2.5), [0.1, 1.5, 2.9, 4.3]),
        "smoke-alarm": pulses(level(tone(3100, 0.5, 2)), [0.1, 1.1, 2.1, 3.9, 4.9, 5.9]),
    }


def speech_clips() -> dict[str, np.ndarray]:
    """Speakers, alone, in turn, or with something else to hear."""
    greeting = say("You have reached the Miller family. Please leave a message after the tone.", BRITON)
    twice = [say("Please come to the kitchen.", MAN, rate) for rate in (110, 230)]
    return {
        "platform": say(
            "Attention please. "
            "The train to Manchester will leave from platform nine, not from platform four.",
            BRITON,
        ),
        "front-door": in_turn(
            0.4, say("Did you lock the front door?", WOMAN), say("No. I thought you did.", MAN, 145)
        ),
        "tickets": say("One ticket costs eight dollars, and we need three of them.", MAN, 145),
        "tea-and-cake": in_turn(
            0.4,
            say("I will bring the tea.", "en-us+m1", 130, 35),
            say("And I will bring the cake.", "en-us+f4", 140, 65),
        ),
        "umbrella": mix(
            (0, 0.3 * rain(6, 7)), (1.0, say("Take my umbrella, please. I am already wet.", WOMAN))
        ),
        "answering-machine": in_turn(0.2, greeting, level(tone(1000, 0.8), 0.35)),
        "countdown": in_turn(
            0.0,
            say("Five. Four. Three. Two. One.", MAN),
            mix(*((1.2 * k, firework(k + 1)) for k in range(3))),
        ),
        "said-twice": in_turn(0.6, *twice),
        "city-library": in_turn(
            0.1, telephone(2), say("Good morning, city library. How can I help you?", BRITON, 155)
        ),
        "cold-soup": say(
            "I ordered this soup half an hour ago, and it is cold. I want to speak to the manager.", MAN, 155
        ),
    }


def music_clips() -> dict[str, np.ndarray]:
    """Instruments, alone and together."""
    broken_chords = play(PIANO, row([48, 55, 60, 64, 60, 55] * 4, 0.25), 6.5)
    melody = play(VIOLIN, tune([72, 71, 69, 67, 69, 71, 72], [2, 1, 1, 2, 1, 1, 3], 0.5), 6.5)
    fanfare = play(TRUMPET, row([67, 72, 76, 79, 76, 72], 0.5), 3.5)
    onsets = np.cumsum(0.55 * 0.9 ** np.arange(18))
    hurry = [
        (onset, key, 0.3) for onset, key in zip(onsets, [60, 62, 64, 65, 67, 69, 71, 72, 74] * 2, strict=True)
    ]
    upwards = [55, 57, 59, 60, 62, 64, 66, 67, 69, 71]
    cadence = [
        *chord([48, 60, 64, 67], 0, 1.1),
        *chord([53, 60, 65, 69], 1.2, 1.1),
        *chord([43, 62, 65, 71], 2.4, 2),
    ]
    chorus = [
        *tune(*BRIDAL_CHORUS, 0.6),
        *chord([41, 53, 57], 0.6, 2.3),
        *chord([48, 52, 58], 3.0, 0.55),
        *chord([41, 53, 57], 3.6, 1.2),
    ]
    practice = play(PIANO, row([60, 62, 64, 65, 67, 65, 64, 62, 60, 64, 67], 0.25), 3.0)
    encore = play(VIOLIN, row([67, 71, 74, 79, 78, 74, 71, 67], 0.3), 2.9)
    bells = play(DRUMS, [(0.25 * stroke, JINGLE_BELL, 0.2) for stroke in range(22)], 6)
    return {
        "violin-melody": mix((0, 0.55 * broken_chords), (0, melody)),
        "hurry": play(PIANO, hurry, 6),
        "up-and-down": play(VIOLIN, row([*upwards, 72, *reversed(upwards)], 0.28), 6.2),
        "waltz": mix((0, play(ACCORDION, waltz_bass(5), 6.5)), (0, play(ACCORDION, tune(*WALTZ, 0.4), 6.5))),
        "trumpet-enters": mix((0, 0.2 * broken_chords), (3, fanfare)),
        "lullaby": play(GLOCKENSPIEL, tune(*CRADLE_SONG, 0.5), 6.5, velocity=70),
        "open-cadence": play(PIANO, cadence, 4.8),
        "bridal-chorus": play(ORGAN, chorus, 5.8),
        "interrupted": in_turn(0.0, practice, telephone(2)),
        "encore": in_turn(0.0, encore, held(APPLAUSE, 4)),
        "sleigh-bells": mix((0, bells), (0, play(PIANO, tune(*JINGLE_BELLS, 0.36), 6))),
    }


def waltz_bass(bars: int, beat: float = 0.4) -> list[Note]:
    """A bass note on one, chords on two and three."""
    notes: list[Note] = []
    for bar in range(bars):
        start = 3 * beat * bar
        notes.append((start, (48, 43)[bar % 2], 0.9 * beat))
        notes += chord([64, 67], start + beat, 0.5 * beat) + chord([64, 67], start + 2 * beat, 0.5 * beat)
    return notes


def write(path: Path, sound: np.ndarray) -> None:
    """One clip as Ogg Vorbis, in blocks: libsndfile can overflow its stack on a long clip written at once."""
    sound = level(sound, 0.8)
    with soundfile.SoundFile(
        path, "w", RATE, 1, format="OGG", subtype="VORBIS", compression_level=0.6
    ) as file:
        for start in range(0, len(sound), 4096):
            file.write(sound[start : start + 4096])


def main(folder: Path = FOLDER) -> None:
    """Write every clip as `<item id>.ogg`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sound in {**sound_clips(), **speech_clips(), **music_clips()}.items():
        write(folder / f"{name}.ogg", sound)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
