"""All tasks together: their items, the lines of items.jsonl, and the record of how they came about."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operators.construction.balance import gold_positions
from operators.construction.clips import Clip
from operators.construction.draws import AnyTask, draw_items, generator
from operators.construction.measurements import SCALES
from operators.construction.proof import check
from operators.construction.tasks import Draw, TaskError
from operators.construction.writing import AudioMode, row

PACKAGES = ("librosa", "pyloudnorm", "numpy", "soundfile", "soxr")


@dataclass(frozen=True)
class Plan:
    """How much is built of what, and from which seed."""

    seed: int
    n_candidates: int
    items_per_task: int
    gold_uses: int
    audio: AudioMode


def draw_all(
    plan: Plan, tasks: Mapping[str, AnyTask], clips: Sequence[Clip]
) -> tuple[dict[str, list[Draw]], dict[str, str]]:
    """The items of every task, and of those with fewer than were asked for, why. Raises TaskError."""
    draws, short = {}, {}
    count, n = plan.items_per_task, plan.n_candidates
    for name, task in tasks.items():
        draws[name] = []
        if reason := lacking(task, clips):
            short[name] = reason
            continue
        rng = generator(plan.seed, "draw", name)
        try:
            draws[name] = draw_items(task, clips, count, n, plan.gold_uses, rng)
        except TaskError as error:
            raise TaskError(f"{name}.{error}") from error
        if not draws[name]:
            short[name] = task.shortage(clips, n)
        elif len(draws[name]) < count:
            short[name] = no_more(plan, len(draws[name]), len(task.starts(clips, n)))
    return draws, short


def no_more(plan: Plan, built: int, n_starts: int) -> str:
    """Why a task has only `built` items: the right options that there are (`n_starts`), or the clips beside them."""
    asked, uses = plan.items_per_task, plan.gold_uses
    needed = -(-asked // uses)
    text = f"no_more_items: the clips give {built} of {asked} different ones"
    if n_starts < needed:
        return f"{text}; they need at least {needed} clips that can be right (gold_uses={uses}), there are {n_starts}"
    return f"{text}; {n_starts} clips can be right, but there are too few distractors for further sets of {plan.n_candidates}"


def lacking(task: AnyTask, clips: Sequence[Clip]) -> str | None:
    """Says which label no clip has, or which of its values; None where nothing is lacking."""
    if not clips:
        return "no_clips: no clip can be used"
    for label in task.needs_labels:
        if not any(clip.values(label) for clip in clips):
            return f"no_label: no clip has the label {label!r}"
    for label, values in task.where.items():
        if not any(clip.values(label) & set(values) for clip in clips):
            return f"no_value: no clip has {label}={' or '.join(values)}"
    if not task.in_scope(clips):
        return f"no_clips: no clip has all of {', '.join(task.needs_labels)}, as the task wants them"
    return None


def arrange(
    plan: Plan,
    tasks: Mapping[str, AnyTask],
    draws: Mapping[str, Sequence[Draw]],
    where: Callable[[Clip], str],
) -> list[dict[str, Any]]:
    """The lines of items.jsonl, each proved by its own evidence (else ProofError)."""
    rows: list[dict[str, Any]] = []
    for name, made in draws.items():
        rng = generator(plan.seed, "order", name)
        so_far = Counter(line["answer_index"] for line in rows)
        positions = gold_positions(len(made), plan.n_candidates, so_far, rng)
        for number, (draw, position) in enumerate(zip(made, positions, strict=True), 1):
            rows.append(row(name, number, draw, tasks[name], position, where, rng))
            check(rows[-1])
    return rows


def clips_used(draws: Mapping[str, Iterable[Draw]]) -> list[Clip]:
    """Every clip that is in some item, once."""
    used = {}
    for draw in (draw for made in draws.values() for draw in made):
        for clip in (*draw.candidates, *([draw.reference] if draw.reference else [])):
            used[clip.hash] = clip
    return list(used.values())


def describe(
    plan: Plan, tasks: Mapping[str, AnyTask], short: Mapping[str, str], built: Mapping[str, int]
) -> dict[str, Any]:
    """The plan, and per task what it is, how many items it has and why not more."""
    return {
        **dataclasses.asdict(plan),
        "margins": margins(task for name, task in tasks.items() if built.get(name)),
        "tasks": {
            name: {
                **dataclasses.asdict(task),
                "ranking": task.ranking,
                "built": built.get(name, 0),
                "short": short.get(name),
            }
            for name, task in tasks.items()
        },
    }


def margins(tasks: Iterable[AnyTask]) -> dict[str, dict[str, float]]:
    """{property: {"ratio" or "gap": the smallest margin in force}} of the tasks that measure."""
    found: dict[str, dict[str, float]] = {}
    for task in tasks:
        if task.needs_property:
            kind, smaller = SCALES[task.property].kind, found.get(task.property, {})
            found[task.property] = {kind: min(task.clear, smaller.get(kind, task.clear))}
    return found


def not_measurable(clips: Iterable[Clip]) -> dict[str, dict[str, int]]:
    """{property: {reason: number of clips}} of the values that could not be told for sure."""
    counts: dict[str, Counter[str]] = {}
    for clip in clips:
        for name, reason in clip.unmeasured.items():
            counts.setdefault(name, Counter())[reason.partition(":")[0]] += 1
    return {name: dict(sorted(reasons.items())) for name, reasons in sorted(counts.items())}
