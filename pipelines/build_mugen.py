"""Build an audio-as-option benchmark from labelled corpora, by the recipe of MUGEN, Section 2.

python -m pipelines.build_mugen                     from the clips that ship with the project
python -m pipelines.build_mugen --help              how to name corpora of your own
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from operators.audio import MAX_SECONDS, AudioError
from operators.construction import writing
from operators.construction.assembly import (
    PACKAGES,
    Plan,
    arrange,
    clips_used,
    describe,
    draw_all,
    not_measurable,
)
from operators.construction.clips import Clip, LeftOut, identify, without_duplicates
from operators.construction.corpora import Corpus
from operators.construction.datasheet import corpus_table, datasheet, statistics
from operators.construction.kept_measurements import Kept
from operators.construction.measuring import measured, needed
from operators.construction.tasks import TaskError
from operators.decoder import DecoderProcess
from operators.versions import installed
from operators.weights import cache_folder
from pipelines.build_mugen_settings import BuildMugen, read_settings, require_packages
from pipelines.config import ConfigError, build, entry, plain


def main(config: DictConfig) -> None:
    settings: BuildMugen = plain(config)
    output = Path(settings.output)
    corpora, tasks = read_settings(settings, output)
    measurements = build(settings.measurements, "measurements")
    require_packages(tasks)
    clips, left = usable_clips(corpora)
    if not clips:
        raise ConfigError(f"no clip can be used{why_nothing(left)}")
    kept = Kept(measurements, cache_folder() / "measurements")
    wanted = needed(clips, tasks.values())
    clips, changed = measured(clips, wanted, kept, settings.workers, partial(bar, "measuring"))
    left += changed
    plan = Plan(
        settings.seed, settings.n_candidates, settings.items_per_task, settings.gold_uses, settings.audio
    )
    try:
        draws, short = draw_all(plan, tasks, clips)
    except TaskError as error:
        raise ConfigError(f"tasks.{error}") from error
    if not any(draws.values()):
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in short.items())
        raise ConfigError(f"no item could be built{why_nothing(left)}\n{reasons}")

    where = writing.locator(output, settings.audio)
    rows, used = arrange(plan, tasks, draws, where), clips_used(draws)
    digests = {corpus.name: corpus.fingerprint() for corpus in corpora}
    record = {
        **describe(plan, tasks, short, Counter(row["task"] for row in rows)),
        "measurements": dataclasses.asdict(measurements),
        "versions": installed(PACKAGES),
        "statistics": statistics(rows, {where(clip): clip.seconds for clip in used}),
        "corpora": corpus_table(clips, left, used, digests),
        "left_out": [dataclasses.asdict(clip) for clip in left],
        "not_measurable": not_measurable(clips),
    }
    copies = used if settings.audio == "copy" else ()
    try:
        writing.write(output, rows, record, datasheet(record, rows), copies)
    except AudioError as error:
        raise ConfigError(f"a clip could not be copied: {error}") from error
    show(record, output)


def usable_clips(corpora: Iterable[Corpus]) -> tuple[list[Clip], list[LeftOut]]:
    """The corpora's clips that decode, one per sound, and what was left out."""
    listed, left = [], []
    for corpus in corpora:
        clips, broken = corpus.read()
        listed, left = listed + clips, left + broken
    decoder = DecoderProcess(MAX_SECONDS, 120.0)
    try:
        clips, undecodable = identify(bar("decoding", listed, len(listed)), decoder.probe)
    finally:
        decoder.close()
    clips, duplicates = without_duplicates(clips)
    return clips, left + undecodable + duplicates


def bar(title: str, iterable: Iterable, total: int) -> Iterable:
    """`iterable` with a progress bar on standard error."""
    return tqdm(iterable, desc=title, total=total, unit="clip", disable=total == 0)


def why_nothing(left: Sequence[LeftOut]) -> str:
    """The first clips that were left out, where there are any: often the whole explanation."""
    if not left:
        return ""
    first = "; ".join(f"{clip.name} ({clip.place}): {clip.reason}" for clip in left[:3])
    return f"; left out: {len(left)}, such as {first}"


def show(record: Mapping[str, Any], output: Path) -> None:
    """What was built and what was not: items per task on standard output, the reasons on standard error."""
    tasks = sorted(record["tasks"].items(), key=lambda pair: (pair[1]["dimension"], pair[0]))
    table = Table("dimension", "task", "items")
    for name, task in tasks:
        if task["built"]:
            table.add_row(task["dimension"], name, str(task["built"]))
    Console().print(table)
    for name, task in tasks:
        if task["short"]:
            print(f"{name}: {task['built']} items, {task['short']}", file=sys.stderr)
    for clip in record["left_out"]:
        where = f"{clip['corpus']} {clip['name']} ({clip['place']})"
        print(f"left out: {where}: {clip['reason']}", file=sys.stderr)
    stats = record["statistics"]
    print(
        f"{stats['items']} items from {stats['distinct_clips']} clips, {len(record['left_out'])} left out; "
        f"items, datasheet and record are in {output}"
    )
    if record["audio"] == "reference":
        print("the clips lie outside that folder: evaluate with benchmark.allow_outside=true")


if __name__ == "__main__":
    entry("build_mugen", main)
