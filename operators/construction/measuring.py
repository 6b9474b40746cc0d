"""Measures what tasks need of which clips, in this process or in several."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from operators.audio import AudioError
from operators.construction.clips import Clip, LeftOut, left_out
from operators.construction.draws import AnyTask
from operators.construction.kept_measurements import Kept

Found = tuple[dict[str, float], dict[str, str]]


def needed(clips: Iterable[Clip], tasks: Iterable[AnyTask]) -> dict[str, set[str]]:
    """{hash of a clip: the properties that some task needs of it}."""
    clips = list(clips)
    wanted: dict[str, set[str]] = {}
    for task in tasks:
        if task.needs_property:
            for clip in task.in_scope(clips):
                wanted.setdefault(clip.hash, set()).add(task.needs_property)
    return wanted


def measured(
    clips: Sequence[Clip],
    wanted: Mapping[str, set[str]],
    kept: Kept,
    workers: int,
    progress: Callable[[Iterable, int], Iterable],
) -> tuple[list[Clip], list[LeftOut]]:
    """`clips` with the `wanted` properties; those that could no longer be read are left out.

    `progress(iterable, total)` is wrapped around the results, as tqdm is.
    """
    jobs = [(clip, sorted(wanted[clip.hash])) for clip in clips if clip.hash in wanted]
    run = partial(_one, kept=kept)
    found: dict[str, Found | str] = {}
    for (clip, _), result in zip(jobs, progress(_results(run, jobs, workers), len(jobs)), strict=True):
        found[clip.hash] = result
    done, failed = [], []
    for clip in clips:
        result = found.get(clip.hash, ({}, {}))
        if isinstance(result, str):
            failed.append(left_out(clip, result))
        else:
            done.append(dataclasses.replace(clip, measured=result[0], unmeasured=result[1]))
    return done, failed


def _results(run: Callable, jobs: Sequence[tuple[Clip, list[str]]], workers: int) -> Iterator[Found | str]:
    if workers == 1 or len(jobs) < 2:
        yield from map(run, jobs)
        return
    # Spawned, not forked: the caller may hold threads and locks of libraries that do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context) as pool:
        yield from pool.map(run, jobs, chunksize=8)


def _one(job: tuple[Clip, list[str]], kept: Kept) -> Found | str:
    """What was measured of one clip, or why it cannot be used."""
    clip, names = job
    transcript = " ".join(sorted(clip.values("transcript")))
    try:
        return kept.measure(clip.uri, clip.hash, names, transcript)
    except AudioError as error:
        return str(error)
