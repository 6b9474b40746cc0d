"""The datasheet of a built benchmark, in Markdown, from its record (build.json) and its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from operators.construction.balance import position_table
from operators.construction.clips import Clip, LeftOut
from operators.construction.measurements import SCALES

NAMES_SHOWN = 10


def statistics(rows: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> dict[str, float]:
    """The rows of MUGEN's Table 1. `seconds`: {path of a clip as items name it: duration}.

    audio_clips counts every place in an item (5 candidates and perhaps a reference), as the paper's 9,250 do;
    distinct_clips counts a clip once. Deviations are of the sample (n - 1); 0 for a single value.
    """
    used = [path for row in rows for path in (*row["candidates"], *row["reference"])]
    durations = [seconds[path] for path in used]
    words = [len(row["question"].split()) for row in rows]
    return {
        "items": len(rows),
        "audio_clips": len(used),
        "distinct_clips": len(set(used)),
        "seconds_mean": fmean(durations),
        "seconds_sd": stdev(durations) if len(durations) > 1 else 0.0,
        "instruction_words_mean": fmean(words),
        "instruction_words_sd": stdev(words) if len(words) > 1 else 0.0,
    }


def corpus_table(
    clips: Iterable[Clip], left: Iterable[LeftOut], used: Iterable[Clip], labels_sha256: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Per corpus: usable and used clips, those left out, licences and sources of those used."""
    clips, left, used = list(clips), list(left), list(used)
    table = {}
    for name, digest in labels_sha256.items():
        mine = [clip for clip in used if clip.corpus == name]
        table[name] = {
            "usable": sum(clip.corpus == name for clip in clips),
            "left_out": sum(clip.corpus == name for clip in left),
            "used": len(mine),
            "licences": dict(Counter(clip.licence for clip in mine)),
            "sources": dict(Counter(clip.source for clip in mine)),
            "labels_sha256": digest,
        }
    return table


def datasheet(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole sheet."""
    return (
        "\n\n".join(
            [
                "# Datasheet",
                "An audio-as-option benchmark: every question has one clip that satisfies a constraint among "
                f"{record['n_candidates']} candidates. Built by `python -m pipelines.build_mugen`, after the recipe of "
                "MUGEN, Section 2. `build.json` holds the same facts for programs.",
                "## Content\n\n" + _content(record["statistics"]),
                "## Items by dimension and task\n\n" + _tasks(record),
                "## Where the right option stands\n\n" + _positions(rows, record["n_candidates"]),
                "## Corpora and licences\n\n" + _corpora(record["corpora"]),
                "## What makes the right option right\n\n" + _thresholds(record),
                "## Left out\n\n" + _left_out(record),
                "## How to read it\n\n" + _limits(record),
            ]
        )
        + "\n"
    )


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; what corpora say is kept from breaking it."""
    cells = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in cells)


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _content(stats: Mapping[str, float]) -> str:
    return markdown_table(
        ["statistic", "value"],
        [
            ("items", stats["items"]),
            ("audio clips, counted in every item", stats["audio_clips"]),
            ("distinct clips", stats["distinct_clips"]),
            ("audio duration (s)", f"{stats['seconds_mean']:.2f} ± {stats['seconds_sd']:.2f}"),
            (
                "instruction length (words)",
                f"{stats['instruction_words_mean']:.2f} ± {stats['instruction_words_sd']:.2f}",
            ),
        ],
    )


def _tasks(record: Mapping[str, Any]) -> str:
    built = {name: task for name, task in record["tasks"].items() if task["built"]}
    by_dimension = Counter()
    for task in built.values():
        by_dimension[task["dimension"]] += task["built"]
    lines = [
        (task["dimension"], name, task["built"], "yes" if task["ranking"] else "", task["question"])
        for name, task in sorted(built.items(), key=lambda pair: (pair[1]["dimension"], pair[0]))
    ]
    return "\n\n".join(
        [
            markdown_table(["dimension", "items"], sorted(by_dimension.items())),
            markdown_table(["dimension", "task", "items", "ranking", "question"], lines),
        ]
    )


def _positions(rows: Sequence[Mapping[str, Any]], n_candidates: int) -> str:
    table = position_table(rows, n_candidates)
    total = [sum(column) for column in zip(*table.values(), strict=True)]
    header = ["task", *(f"{i + 1}" for i in range(n_candidates))]
    return markdown_table(
        header, [*((name, *counts) for name, counts in sorted(table.items())), ("all", *total)]
    )


def _corpora(corpora: Mapping[str, Any]) -> str:
    counts = [
        (name, corpus["usable"], corpus["used"], corpus["left_out"], corpus["labels_sha256"][:16])
        for name, corpus in corpora.items()
    ]
    licences = [
        (name, licence, number)
        for name, corpus in corpora.items()
        for licence, number in corpus["licences"].items()
    ]
    sources = [
        (name, source, number)
        for name, corpus in corpora.items()
        for source, number in list(corpus["sources"].items())[:NAMES_SHOWN]
    ]
    return "\n\n".join(
        [
            markdown_table(["corpus", "usable clips", "used", "left out", "labels (SHA-256)"], counts),
            markdown_table(["corpus", "licence", "clips used"], licences),
            markdown_table(["corpus", "source", "clips used"], sources),
            f"At most {NAMES_SHOWN} sources per corpus are shown; every item has the licence and the source of "
            "each of its clips.",
        ]
    )


def _thresholds(record: Mapping[str, Any]) -> str:
    lines = [
        (name, SCALES[name].unit, "times" if kind == "ratio" else "more", f"{margin:g}")
        for name, rule in record["margins"].items()
        for kind, margin in rule.items()
    ]
    settings = ", ".join(f"{name} {value}" for name, value in record["measurements"].items())
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return "\n\n".join(
        [
            "Tasks about labels: the right option has the value that is asked for (or that the reference has), and "
            "every distractor has another value of a label that is asked for; a clip without the label takes no "
            "part. Tasks about measured properties: the right option differs from every other one by at least",
            markdown_table(["property", "unit", "by", "margin"], lines)
            if lines
            else "(no measured task was built)",
            f"Estimators' settings: {settings}. Seed {record['seed']}. Versions: {versions}.",
        ]
    )


def _left_out(record: Mapping[str, Any]) -> str:
    clips, parts = record["left_out"], []
    reasons = Counter(clip["reason"].partition(":")[0] for clip in clips)
    if clips:
        lines = []
        for reason, number in reasons.most_common():
            names = [f"{c['corpus']} {c['name']}" for c in clips if c["reason"].partition(":")[0] == reason]
            rest = f" and {number - NAMES_SHOWN} more" if number > NAMES_SHOWN else ""
            lines.append((reason, number, ", ".join(names[:NAMES_SHOWN]) + rest))
        parts.append(
            "Clips (all are named in `build.json`):\n\n" + markdown_table(["reason", "clips", "which"], lines)
        )
    else:
        parts.append("No clip was left out.")
    if unmeasured := record["not_measurable"]:
        lines = [(name, reason, number) for name, why in unmeasured.items() for reason, number in why.items()]
        table = markdown_table(["property", "reason", "clips"], lines)
        parts.append(f"Clips whose property could not be told for sure, left out of its tasks:\n\n{table}")
    short = [(name, task["built"], task["short"]) for name, task in record["tasks"].items() if task["short"]]
    if short:
        wanted = record["items_per_task"]
        parts.append(
            f"Tasks with fewer than {wanted} items:\n\n" + markdown_table(["task", "items", "why"], short)
        )
    return "\n\n".join(parts)


def _limits(record: Mapping[str, Any]) -> str:
    copied = (
        "copied byte for byte under names that say nothing" if record["audio"] == "copy" else "not copied"
    )
    return (
        f"The clips are {copied}. Labels are the corpora's, taken as they are: whoever publishes results should "
        "listen to a sample first, as the authors of the paper did with their synthesised clips. Measured values "
        "are estimates; the margins are there so that an estimate's error does not turn an answer around. An item "
        "never mixes corpora and never holds one sound twice (compared by its decoded samples; the same recording "
        "in another lossy coding is not recognised). Redistribution is bound by the licences above."
    )
