"""Sound sources for the `sample` clips: synthesis in numpy, speech by eSpeak NG, instruments by FluidSynth.

Needed only to render the clips anew, never at run time (`render_sample.py` names the packages). Every source
returns mono float64 samples at RATE; random ones take a seed, so a rendering can be repeated.
"""

from __future__ import annotations

import io
import subprocess

import numpy as np
import soundfile
from scipy.signal import butter, lfilter, sosfilt

RATE = 22050
SOUNDFONT = "/usr/share/sounds/sf2/FluidR3_GM.sf2"
DRUMS = -1  # stands for the drum kit where a General MIDI program number is asked for

Note = tuple[float, int, float]  # start in seconds, MIDI key, length in seconds


def seconds(duration: float) -> np.ndarray:
    """The time of each sample of a clip of `duration` seconds."""
    return np.arange(round(duration * RATE)) / RATE


def silence(duration: float) -> np.ndarray:
    return np.zeros(round(duration * RATE))


def level(sound: np.ndarray, peak: float = 0.7) -> np.ndarray:
    """The sound scaled to a peak."""
    return sound * (peak / max(float(np.abs(sound).max()), 1e-9))


def mix(*parts: tuple[float, np.ndarray]) -> np.ndarray:
    """Sounds laid over each other, each at its own start in seconds."""
    total = np.zeros(max(round(start * RATE) + len(sound) for start, sound in parts))
    for start, sound in parts:
        first = round(start * RATE)
        total[first : first + len(sound)] += sound
    return total


def in_turn(pause: float, *sounds: np.ndarray) -> np.ndarray:
    """Sounds one after the other."""
    starts = np.cumsum([0.0, *(len(sound) / RATE + pause for sound in sounds)])
    return mix(*zip(starts, sounds, strict=False))


def band(sound: np.ndarray, low: float, high: float) -> np.ndarray:
    return sosfilt(butter(2, [low, high], "bandpass", fs=RATE, output="sos"), sound)


def fade(sound: np.ndarray, *points: tuple[float, float]) -> np.ndarray:
    """The sound under a loudness curve through (time in seconds, gain) points."""
    times, gains = zip(*points, strict=True)
    return sound * np.interp(seconds(len(sound) / RATE), times, gains)


def noise(duration: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(round(duration * RATE))


def say(text: str, voice: str, rate: int = 150, pitch: int = 50) -> np.ndarray:
    """Speech by eSpeak NG; `rate` in words per minute, `pitch` 0 to 99."""
    command = ["espeak-ng", "-v", voice, "-s", str(rate), "-p", str(pitch), "--stdout", text]
    spoken = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - only texts written here
    sound, rate_out = soundfile.read(io.BytesIO(spoken.stdout))
    if rate_out != RATE:
        raise ValueError(f"espeak-ng gave {rate_out} Hz for voice {voice!r}, expected {RATE}")
    return level(sound)


def play(program: int, notes: list[Note], duration: float, velocity: int = 100) -> np.ndarray:
    """Notes on one General MIDI instrument (or on DRUMS), from the Fluid soundfont."""
    import fluidsynth

    synth = fluidsynth.Synth(samplerate=float(RATE), gain=0.5)
    font = synth.sfload(SOUNDFONT)
    channel, bank, preset = (9, 128, 0) if program == DRUMS else (0, 0, program)
    synth.program_select(channel, font, bank, preset)
    # At one moment, note-offs go first: a repeated note must not be cut by the end of the one before.
    events = sorted(
        [(start + length, 0, key) for start, key, length in notes]
        + [(start, 1, key) for start, key, _ in notes]
    )
    pieces, now = [], 0
    for time, on, key in [*events, (duration, 0, 0)]:
        until = min(round(time * RATE), round(duration * RATE))
        if until > now:
            pieces.append(synth.get_samples(until - now).reshape(-1, 2).mean(axis=1))
            now = until
        if on:
            synth.noteon(channel, key, velocity)
        elif key:
            synth.noteoff(channel, key)
    synth.delete()
    return level(np.concatenate(pieces))


def row(keys: list[int], step: float, start: float = 0.0, legato: float = 0.95) -> list[Note]:
    """Notes one after the other, `step` seconds each."""
    return [(start + i * step, key, step * legato) for i, key in enumerate(keys)]


def tune(keys: list[int], beats: list[float], beat: float) -> list[Note]:
    """A melody: MIDI keys, how many beats each is held, and the seconds of a beat."""
    starts = np.cumsum([0.0, *beats[:-1]]) * beat
    return [(start, key, 0.95 * held * beat) for start, key, held in zip(starts, keys, beats, strict=True)]


def chord(keys: list[int], start: float, length: float) -> list[Note]:
    return [(start, key, length) for key in keys]


def tone(
    frequency: float | np.ndarray, duration: float, harmonics: int = 1, slope: float = 1.0
) -> np.ndarray:
    """A steady or gliding tone; harmonic h has the strength h ** -slope."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(frequency, seconds(duration).shape)) / RATE
    sound = sum(np.sin(h * phase) / h**slope for h in range(1, harmonics + 1))
    return fade(np.asarray(sound), (0, 0), (0.005, 1), (duration - 0.005, 1), (duration, 0))


def struck(partials: list[tuple[float, float, float]], duration: float) -> np.ndarray:
    """Something hit: (frequency, strength, decay time in seconds) for each partial."""
    t = seconds(duration)
    return sum(a * np.exp(-t / decay) * np.sin(2 * np.pi * f * t) for f, a, decay in partials) + 0 * t


def bell(frequency: float, duration: float) -> np.ndarray:
    """A church bell: the partials of struck bronze and the clang of the clapper."""
    ratios = [
        (1, 1, 2.0),
        (2, 0.8, 1.5),
        (2.4, 0.8, 1.2),
        (3, 0.9, 1.0),
        (4, 0.9, 0.8),
        (5.33, 0.6, 0.4),
        (6.7, 0.5, 0.2),
    ]
    clang = band(noise(0.02, 1) * np.exp(-seconds(0.02) / 0.004), 500, 6000)
    return level(mix((0, struck([(frequency * r, a, d) for r, a, d in ratios], duration)), (0, 0.3 * clang)))


def drops(duration: float, per_second: int, seed: int) -> np.ndarray:
    """Short crackles at random moments, each of its own strength."""
    random = np.random.default_rng(seed)
    count = round(per_second * duration)
    hits = np.zeros(round(duration * RATE))
    hits[random.integers(0, len(hits), count)] = random.exponential(1.0, count)
    return lfilter([1], [1, -0.6], hits)


def rain(duration: float, seed: int) -> np.ndarray:
    """Single near drops over a faint hiss of many far ones."""
    far = level(band(noise(duration, seed + 1), 500, 6000), 0.05)
    return level(far + level(band(drops(duration, 30, seed), 500, 6000), 0.6))


def firework(seed: int) -> np.ndarray:
    """A shell bursts and its stars crackle."""
    boom = level(band(noise(1.2, seed), 30, 300) * np.exp(-seconds(1.2) / 0.25))
    crackle = level(band(drops(1.0, 300, seed), 800, 9000) * np.exp(-seconds(1.0) / 0.5))
    return mix((0, boom), (0.25, 0.5 * crackle))


def helicopter(duration: float, seed: int) -> np.ndarray:
    """Rotor blades that slap the air eleven times a second."""
    slap = np.exp(-6 * ((seconds(duration) * 11) % 1))
    blades = level(band(noise(duration, seed), 80, 1500) * slap)
    body = level(band(noise(duration, seed + 1), 60, 250) * (0.4 + slap), 0.5)
    return level(blades + body + 0.05 * level(band(noise(duration, seed + 2), 300, 5000)))


def thunder(duration: float, seed: int) -> np.ndarray:
    """A crack that rolls out into a low rumble."""
    t, knots = seconds(duration), np.arange(0, duration + 0.15, 0.15)
    roll = np.interp(t, knots, np.random.default_rng(seed).uniform(0.3, 1.0, len(knots)))
    rumble = level(band(noise(duration, seed), 25, 220)) * roll * np.exp(-2.5 * t / duration)
    crack = 0.6 * level(band(noise(duration, seed + 1), 150, 2500)) * np.exp(-t / 0.25)
    return level(fade(rumble + crack, (0, 0), (0.05, 1), (duration - 0.3, 0.6), (duration, 0)))


def siren(duration: float, period: float, shift: np.ndarray | float = 1.0) -> np.ndarray:
    """A wailing siren between 600 and 1300 Hz; `shift` multiplies its frequency (for a passing vehicle)."""
    sweep = 950 - 350 * np.cos(2 * np.pi * seconds(duration) / period)
    return level(tone(sweep * shift, duration, harmonics=6, slope=1.3))


def heartbeat(times: list[float]) -> np.ndarray:
    """Lub and dub at each time."""
    lub, dub = (struck([(f, 1, 0.045), (2 * f, 0.4, 0.03)], 0.25) for f in (48, 62))
    return level(mix(*((t, lub) for t in times), *((t + 0.26, 0.7 * dub) for t in times)))


def cricket(duration: float, seed: int) -> np.ndarray:
    """Trains of chirps at 4.3 kHz, two a second, in a quiet night."""
    t = seconds(duration)
    chirps = ((t * 2) % 1 < 0.3) * np.sin(np.pi * ((t * 24) % 1)) ** 2
    return level(np.sin(2 * np.pi * 4300 * t) * chirps) + 0.02 * level(band(noise(duration, seed), 300, 6000))


KEYPAD = {
    digit: (low, high)
    for low, digits in ((697, "123"), (770, "456"), (852, "789"))
    for digit, high in zip(digits, (1209, 1336, 1477), strict=True)
} | {"0": (941, 1336)}


def dial(number: str, step: float = 0.22) -> np.ndarray:
    """A telephone number typed on a keypad."""
    press = [sum(tone(f, 0.14) for f in KEYPAD[digit]) for digit in number]
    return level(mix(*((i * step, sound) for i, sound in enumerate(press))))


def pulses(sound: np.ndarray, times: list[float]) -> np.ndarray:
    """The same sound at each of the times."""
    return mix(*((t, sound) for t in times))
