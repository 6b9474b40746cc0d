"""What remembering clips gives: APSC trials of the same clips, with the memories of a worker and without them.

    python -m tests.bench.generation [--items 4] [--trials 10] [--seconds 10] [--repeats 3] [--json result.json]

A tiny Qwen2-Audio with random weights through `transformers`, six clips of 44.1 kHz stereo per question, the trials of a
question one after the other, as the pipeline puts them. `decoded` remembers sounds as the processor takes them
(`operators.lalms.hearing`), `encoded` also their spectrograms and what the encoder makes of them (`operators.lalms.encoding`),
as every run does. The ways take turns in one process, `CPU s` are the fewest processor seconds of `--repeats` (other work on
the machine does not count), and answers that differ fail the run. `spared` are processor milliseconds per row: what a
larger model, slower by itself, is spared too; of its encoder it is spared more.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soundfile

from operators.audio import decode, pcm_hash
from operators.base import Batch
from operators.batching import Units
from operators.lalms.asking import answer_rows
from operators.lalms.hearing import KEPT_CLIPS, Hearing
from operators.lalms.transformers_chat import Talker, TransformersChat
from operators.mugen.options import labels
from operators.permutation import fan_out
from operators.weights import Weights
from tests.operators.lalms.clips import batch
from tests.tiny_lalms import BUILDERS

CLIPS, RATE, TOGETHER = 6, 44_100, 8  # TOGETHER: rows of a batch, as cluster.generate.batch_size has them


@dataclass
class Way:
    """One way of running the same rows: how many sounds and encoded clips are kept, how many clips were decoded and encoded,
    processor seconds, what was answered."""

    name: str
    sounds: int
    clips: int
    rows: int = 0
    decoded: int = 0
    encoded: int = 0
    seconds: float = float("inf")
    responses: tuple[str | None, ...] = ()


def clip(folder: Path, number: int, seconds: float) -> tuple[str, str]:
    """A FLAC file of noise and its hash."""
    noise = np.random.default_rng(number).normal(0, 0.1, (int(seconds * RATE), 2))
    path = folder / f"{number}.flac"
    soundfile.write(path, noise, RATE, subtype="PCM_16")
    return str(path), pcm_hash(decode(str(path)))


def trials(folder: Path, items: int, n_trials: int, seconds: float) -> Iterator[Batch]:
    """The rows of APSC: each item once per trial, its candidates in another order each time."""
    rows = []
    for item in range(items):
        clips = [clip(folder, item * CLIPS + place, seconds) for place in range(CLIPS)]
        for row in fan_out({"item_id": str(item), "audio_uris": [uri for uri, _ in clips]}, n_trials, seed=0):
            heard = [clips[place] for place in row["audio_order"]]
            rows.append((f"Which one? {item}", labels(CLIPS), heard, row["trial"]))
    for start in range(0, len(rows), TOGETHER):
        yield batch(rows[start : start + TOGETHER])


def run(spec: TransformersChat, batches: list[Batch], way: Way) -> None:
    """All batches once, beginning with empty memories, as a worker does."""
    units = Units()
    with units.at_hand():
        talker = Talker(spec, *spec.load(), way.clips)
        hearing = Hearing(spec.limits, talker.sampling_rate, way.sounds)
    started = time.process_time()
    done = [answer_rows(spec, hearing, talker.say, rows)["response"] for rows in batches]
    way.seconds = min(way.seconds, time.process_time() - started)
    way.responses = tuple(np.concatenate(done))
    way.rows, counts = len(way.responses), units.report()
    way.decoded = counts["decoded"]
    way.encoded = counts.get("clips", sum(len(row) for rows in batches for row in rows["audio_uris"]))


def measure(items: int, n_trials: int, seconds: float, repeats: int) -> list[Way]:
    """Without and with the memories, by turns. SystemExit where the answers are not the same."""
    ways = [Way("none", 0, 0), Way("decoded", KEPT_CLIPS, 0), Way("encoded", KEPT_CLIPS, KEPT_CLIPS)]
    with tempfile.TemporaryDirectory() as place:
        folder = BUILDERS["qwen2_audio"](Path(place) / "model")
        spec = TransformersChat(weights=Weights(str(folder)), dtype="float32", prompt=None, max_new_tokens=8)
        batches = list(trials(Path(place), items, n_trials, seconds))
        for _ in range(repeats):
            for way in ways:
                run(spec, batches, way)
    if len({way.responses for way in ways}) > 1:
        sys.exit("the answers with and without the memories differ")
    return ways


def main(arguments: list[str] | None = None) -> None:
    """Print one line per way; `x` is the speed compared with no memory."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("items", 4), ("trials", 10), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    ways = measure(given.items, given.trials, given.seconds, given.repeats)
    plain = ways[0]
    print("memory   rows  decoded  encoded    CPU s  rows/s     x  spared")
    for way in ways:
        spared = 1e3 * (plain.seconds - way.seconds) / way.rows
        print(
            f"{way.name:<7}  {way.rows:>4}  {way.decoded:>7}  {way.encoded:>7}  {way.seconds:>7.2f}  "
            f"{way.rows / way.seconds:>6.2f}  {plain.seconds / way.seconds:>4.2f}  {spared:>6.1f}"
        )
    if given.json:
        given.json.write_text(json.dumps([asdict(way) for way in ways], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
