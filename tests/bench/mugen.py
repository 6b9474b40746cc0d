"""What votes cost: 1,750 questions (MUGEN's number) with 1, 10 and 40 trials each, from file to tables.

    python -m tests.bench.mugen [--items 1750] [--trials 1,10,40] [--generated] [--json result.json]

Trials are recorded ones, or with `--generated` those of a model that costs nothing, through Ray, each of the same chain of
120 words (`--words`). Each run is a process of its own, as a user starts it: processor seconds and peak memory are the operating
system's, of that process (Ray's and its workers' are not among them). `x first` compares with the first number of trials; a
run that does not count every trial fails.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq
import soundfile

from operators.mugen.presentation import orders
from tests.bench.watched import watched
from tests.pipelines.cli import TOY_PATH

OPTIONS = 5


@dataclass(frozen=True)
class Row:
    trials: int
    rows: int
    cpu_seconds: float
    peak_gb: float


def questions(folder: Path, n_items: int) -> Path:
    """`n_items` questions over five clips, the right one somewhere else each time."""
    clips = [f"{k}.wav" for k in range(OPTIONS)]
    for k, clip in enumerate(clips):
        soundfile.write(folder / clip, [0.1 * (k + 1)] * 1600, 16_000)
    fixed = {"dimension": "Temporal Awareness", "task": "loudest"}
    rows = [
        fixed
        | {
            "id": f"q{i}",
            "question": f"Select the loudest audio ({i}).",
            "candidates": clips,
            "answer_index": i % OPTIONS,
            "ranking": False,
        }
        for i in range(n_items)
    ]
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answers(folder: Path, n_items: int, n_trials: int) -> Path:
    """A chain of about 120 words per trial, right in two of three."""
    draw, path = random.Random(n_trials), folder / f"trials{n_trials}.jsonl"
    clips = [str(k) for k in range(OPTIONS)]
    with path.open("w") as file:
        for i in range(n_items):
            item = {"item_id": f"q{i}", "n_reference": 0, "gold_index": i % OPTIONS, "audio_uris": clips}
            for trial, order in enumerate(orders(item, n_trials, 0, True, None)):
                place = order.index(i % OPTIONS) if draw.random() < 2 / 3 else draw.randrange(OPTIONS)
                said = "What I hear now seems louder than what came before, so I keep it in mind. " * 8
                row = {"id": f"q{i}", "trial": trial, "audio_order": order, "permuted": True}
                file.write(json.dumps(row | {"response": f"{said}\n\nAudio {place + 1}"}) + "\n")
    return path


def measure(folder: Path, n_items: int, n_trials: int, words: int | None) -> Row:
    """One run of the command, `words`: of trials that are generated. SystemExit where it fails or loses a trial."""
    where, out = questions(folder, n_items), folder / f"run{n_trials}"
    if words is None:
        model = ["model=recorded", f"model.path={answers(folder, n_items, n_trials)}"]
    else:
        model = [TOY_PATH, "model=loudest", f"model.words={words}", "cluster.generate.batch_size=256"]
    command = [
        *(sys.executable, "-m", "pipelines.mugen_eval", "strategy=apsc", f"n_trials={n_trials}", *model),
        *("benchmark=mugen", f"benchmark.path={where}"),
        *(f"store.root={folder / f'store{n_trials}'}", f"out={out}"),
    ]
    used = watched(command)
    if used.status:
        sys.exit(f"the run with {n_trials} trials failed with status {used.status}")
    trials = pq.read_table(out / "trials.parquet", columns=["choice_index"])["choice_index"]
    if trials.null_count or len(trials) != n_items * n_trials:
        sys.exit(f"{len(trials)} trials with {trials.null_count} unread of {n_items * n_trials}")
    return Row(n_trials, len(trials), used.cpu_seconds, used.peak_mb / 2**10)


def show(rows: list[Row]) -> None:
    """A line per number of trials."""
    print(f"{'trials':>7} {'rows':>7} {'CPU s':>7} {'GB':>6} {'x first: CPU':>13} {'memory':>7}")
    first = rows[0]
    for row in rows:
        ratios = f"{row.cpu_seconds / first.cpu_seconds:13.2f} {row.peak_gb / first.peak_gb:7.2f}"
        print(f"{row.trials:7} {row.rows:7} {row.cpu_seconds:7.1f} {row.peak_gb:6.2f} {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1750)
    parser.add_argument("--trials", default="1,10,40")
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--words", type=int, default=120)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    words = asked.words if asked.generated else None
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), asked.items, int(n), words) for n in asked.trials.split(",")]
    show(rows)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
