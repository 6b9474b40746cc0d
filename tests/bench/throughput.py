"""Rows per second of each metric and of the scoring stage, against a plain loop and against the models alone.

    python -m tests.bench.throughput [--rows 30] [--metrics m1,m5] [--repeats 2] [--json result.json] [--ray]

The three contenders take turns, so that whatever else the machine does hits all alike; of the repeats each
one's fastest counts. A metric starts every repeat with an empty memory; loading weights is never part of its
time.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from operators.base import Batch, Op, Spec, apply
from operators.metrics.audio_lexical_density import lemma
from operators.text import is_absent
from pipelines.config import CONF, build, plain
from tests.bench.bare import BARE, Passes
from tests.bench.naive import PLAIN, Score
from tests.bench.rows import GROUP, by_row, in_any_order, in_columns, sample_rows

METRICS = tuple(sorted(BARE))
SLOTS = ("perception", "analysis", "reasoning")
IN_PART = ("m3",)  # its loop reads the whole prompt eleven times a slot: more than ten seconds each on a CPU
OF_AN_LM = (
    "m3",
    "m4",
)  # rows that hardly share a text, a quarter of a second each: a few of them tell as much
AIM_LOOP, AIM_BARE = 5.0, 0.85
HEADINGS = ("", "metric", "loop", "bare", "x loop", "of bare", "best batch", "build s", "differs by")
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
T = TypeVar("T")
Clock = Callable[[], float]


@dataclass
class Timing:
    """Seconds of one metric, one per repeat, `bare` by batch size.

    The loop runs on `loop_rows` rows, of which each counts for the whole row where it was run on a part of it.
    """

    rows: int
    loop_rows: int = 0
    loop_in_part: bool = False
    build: float = 0.0
    metric: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)
    bare: dict[str, list[float]] = field(default_factory=dict)
    largest_difference: float = 0.0  # between a score of the metric and of the loop

    @property
    def best_batch(self) -> str:
        return min(self.bare, key=lambda label: min(self.bare[label]))

    @property
    def seconds_per_row(self) -> tuple[float, float, float]:
        """Of the metric, the loop and the bare model."""
        bare = min(self.bare[self.best_batch])
        return min(self.metric) / self.rows, min(self.loop) / self.loop_rows, bare / self.rows


def offline_scorers(metrics: Sequence[str]) -> dict[str, Spec]:
    """The Specs of `conf/scorers/offline.yaml`."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("aria_eval", overrides=["scorers=offline"])
    scorers = plain(config).scorers
    return {name: build(getattr(scorers, name), f"scorers.{name}") for name in metrics}


class Contest:
    """One metric's three contenders, loaded and warm."""

    def __init__(self, name: str, spec: Spec, batch: Batch, loop_seconds: float, clock: Clock) -> None:
        self.spec, self._batch, self._loop_seconds, self._clock = spec, batch, loop_seconds, clock
        self._loop: Score = PLAIN[name](spec)
        self._bare: Passes = BARE[name](spec, batch)
        self.timing = Timing(len(by_row(batch)), loop_in_part=name in IN_PART)
        rows = [row for (row,) in in_any_order(by_row(batch), 1)]
        self._parts = [one_slot(row) if self.timing.loop_in_part else (row, 1) for row in rows]
        self._looped: list[float] = []
        self._warm_up()

    def _warm_up(self) -> None:
        apply(self.spec, self.spec.build(), {name: column[:GROUP] for name, column in self._batch.items()})
        if not self.timing.loop_in_part:
            self._loop(min(by_row(self._batch), key=lambda row: len(row["reasoning"]) or 1000))
        for calls in self._bare.values():
            calls[0]()

    def take_turns(self) -> None:
        """One repeat of each contender."""
        op = self._fresh()
        seconds, _ = self._timed(lambda: apply(self.spec, op, self._batch))
        self.timing.metric.append(seconds)
        if sum(self.timing.loop) < self._loop_seconds * 1.5:
            self._run_loop()
        self._run_bare()
        looped = in_columns([row for row, _ in self._parts[: len(self._looped)]])
        scores = apply(self.spec, op, looped)[self.spec.writes[0]]
        self.timing.largest_difference = float(abs(scores - self._looped).max())

    def _run_loop(self) -> None:
        """The loop over rows from all over the batch until its time is over; later repeats take the same rows."""
        least = 1 if self.timing.loop_in_part else GROUP
        spent, total, scores = 0.0, 0.0, []
        for row, share in self._parts[: len(self._looped) or None]:
            if not self._looped and spent >= self._loop_seconds and len(scores) >= least:
                break
            seconds, score = self._timed(lambda row=row: self._loop(row))
            spent, total = spent + seconds, total + seconds * share
            scores.append(score)
        self._looped = scores
        self.timing.loop.append(total)
        self.timing.loop_rows = len(scores)

    def _run_bare(self) -> None:
        """Batch sizes from small to large, until one is clearly slower than the best."""
        best = math.inf
        for label, calls in self._bare.items():
            seconds, _ = self._timed(lambda calls=calls: [call() for call in calls] and None)
            self.timing.bare.setdefault(label, []).append(seconds)
            best = min(best, seconds)
            if seconds > 1.2 * best:
                break

    def _fresh(self) -> Op:
        lemma.cache_clear()  # the one memory that outlives an op
        self.timing.build, op = self._timed(self.spec.build)
        return op

    def _timed(self, work: Callable[[], T]) -> tuple[float, T]:
        started = self._clock()
        result = work()
        return self._clock() - started, result


def one_slot(row: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The row with one of its slots alone, the one of middle length, and how many slots it had."""
    present = sorted((name for name in SLOTS if not is_absent(row[name])), key=lambda name: len(row[name]))
    kept = present[len(present) // 2] if present else None
    return {**row, **{name: "" for name in SLOTS if name != kept}}, max(1, len(present))


def measure(
    scorers: dict[str, Spec],
    batch: Batch,
    repeats: int,
    loop_seconds: float,
    clock: Clock = time.perf_counter,
    lm_rows: int | None = None,
) -> dict[str, Timing]:
    """Let the contenders of each metric take turns, `repeats` times over; M3 and M4 on the first `lm_rows` rows."""
    few = {name: column[:lm_rows] for name, column in batch.items()}
    contests = {
        name: Contest(name, spec, few if name in OF_AN_LM else batch, loop_seconds, clock)
        for name, spec in scorers.items()
    }
    for _ in range(repeats):
        for contest in contests.values():
            contest.take_turns()
    return {name: contest.timing for name, contest in contests.items()}


def summary(timings: dict[str, Timing]) -> dict[str, dict[str, float]]:
    """Rows per second and ratios of each metric, and of all of them one after the other (`stage`).

    The stage also comes without those metrics of whose loop only a part was run.
    """
    per_row = {name: timing.seconds_per_row for name, timing in timings.items()}
    whole = [per_row[name] for name, timing in timings.items() if not timing.loop_in_part]
    per_row["stage"] = tuple(sum(parts) for parts in zip(*per_row.values(), strict=True))
    if 0 < len(whole) < len(timings):
        left_out = ", ".join(name for name, timing in timings.items() if timing.loop_in_part)
        per_row[f"stage without {left_out}"] = tuple(sum(parts) for parts in zip(*whole, strict=True))
    names = ("metric", "loop", "bare")
    return {
        name: {
            **{f"{who}_rows_per_second": 1 / value for who, value in zip(names, seconds, strict=True)},
            "times_loop": seconds[1] / seconds[0],
            "of_bare": seconds[2] / seconds[0],
        }
        for name, seconds in per_row.items()
    }


def table(timings: dict[str, Timing]) -> Table:
    """The ratios, green where they reach the aim."""
    caption = f"aims: {AIM_LOOP:g} times the loop, {AIM_BARE:g} of bare"
    if any(timing.loop_in_part for timing in timings.values()):
        caption += (
            "\n* the loop was timed on one slot of few rows; that time the row's slots counts as the row"
        )
    shown = Table(title="Rows per second", caption=caption)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading in ("", "best batch") else "right")
    for name, result in summary(timings).items():
        timing = timings.get(name)
        rates = [f"{result[f'{who}_rows_per_second']:.1f}" for who in ("metric", "loop", "bare")]
        ratios = [_coloured(result["times_loop"], AIM_LOOP), _coloured(result["of_bare"], AIM_BARE)]
        rest = []
        if timing:
            rest = [timing.best_batch, f"{timing.build:.1f}", f"{timing.largest_difference:.0e}"]
        rates[1] += "*" if timing and timing.loop_in_part else ""
        shown.add_row(name, *rates, *ratios, *rest, end_section=name == list(timings)[-1])
    return shown


def _coloured(ratio: float, aim: float) -> str:
    return f"[{'green' if ratio >= aim else 'red'}]{ratio:.2f}[/]"


def on_ray(scorers: dict[str, Spec], batch: Batch) -> dict[str, float]:
    """The same rows through the pipeline's own execution: wall seconds, and seconds inside the metrics."""
    import pyarrow as pa

    from operators.base import Stage
    from pipelines.config import Cluster
    from pipelines.execution import resources, run, session

    cluster = Cluster()
    stages = [Stage(name, spec, resources(getattr(cluster, name))) for name, spec in scorers.items()]
    rows = pa.table({name: pa.array(column.tolist()) for name, column in batch.items()})
    started = time.perf_counter()
    with session(cluster):
        ready = time.perf_counter()
        blocks = list(run(stages, rows, "bench"))
        finished = time.perf_counter()
    inside = sum(sum(block[f"{name}.seconds"].to_pylist()) for block in blocks for name in scorers)
    return {
        "blocks": len(blocks),
        "start_seconds": ready - started,
        "run_seconds": finished - ready,
        "metric_seconds": inside,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tests.bench.throughput", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="how many rows to score (default: all of the sample's 93)")
    parser.add_argument("--lm-rows", type=int, default=12, help="how many of them by m3 and m4 (default 12)")
    parser.add_argument(
        "--loop-seconds", type=float, default=3, help="about how long one plain loop may take (default 3)"
    )
    parser.add_argument("--metrics", default=",".join(METRICS), help="which, by comma (default: all)")
    parser.add_argument("--repeats", type=int, default=2, help="the fastest counts (default 2)")
    parser.add_argument("--threads", type=int, default=2, help="torch threads of all contenders (default 2)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: ratios on a busy machine")
    parser.add_argument("--ray", action="store_true", help="also time the same rows on Ray")
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args(arguments)
    names = options.metrics.split(",")
    if unknown := sorted(set(names) - set(METRICS)):
        parser.error(f"no such metric: {', '.join(unknown)}; there are {', '.join(METRICS)}")
    import torch

    torch.set_num_threads(options.threads)
    scorers, batch = offline_scorers(names), sample_rows(options.rows)
    clock = CLOCKS[options.clock]
    timings = measure(scorers, batch, options.repeats, options.loop_seconds, clock, options.lm_rows)
    results = {
        "summary": summary(timings),
        "timings": {name: asdict(found) for name, found in timings.items()},
    }
    Console(width=110).print(table(timings))
    if options.ray:
        results["ray"] = on_ray(scorers, batch)
        print("on Ray:", ", ".join(f"{name} {value:.1f}" for name, value in results["ray"].items()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
