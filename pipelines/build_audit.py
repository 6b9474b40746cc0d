"""Build a counterfactual audit: scripts from sentences and task dialogues, speech, acceptance, files.

python -m pipelines.build_audit                     from the project's own sentences and dialogues, by eSpeak NG
python -m pipelines.build_audit --help              how to name sources, speech and scorer of your own
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from operators.chat_api import ChatUnavailable
from operators.columns import RowError
from operators.construction import writing
from operators.construction.audits import assembly
from operators.construction.audits.assembly import Built, Discarded
from operators.construction.audits.datasheet import datasheet
from operators.construction.audits.renderings import NEUTRAL, Studio, cast, line_of
from operators.construction.audits.scripts import Script
from operators.construction.audits.sources import Writer, cells_of, needed, script_of
from operators.construction.measurements import missing_packages
from operators.fingerprint import canonical
from operators.speech.rendering import SpeechError
from operators.tables import Row, read_rows
from operators.versions import installed
from operators.weights import Weights
from pipelines.build_audit_settings import KINDS, BuildAudit, check_emotions, chosen_sources, source_name
from pipelines.config import ConfigError, build, entry, plain

ROWS_PER_CALL = 32


def main(config: DictConfig) -> None:
    settings: BuildAudit = plain(config)
    sources = chosen_sources(settings)
    if missing := missing_packages():
        raise ConfigError(
            f"the audio scorer needs {' and '.join(missing)}: pip install 'audio-reasoning-eval[build]'"
        )
    speech, scorer = build(settings.speech, "speech"), build(settings.scorer, "scorer")
    try:
        asks = settings.writer and not settings.dry_run
        writer = build(settings.writer, "writer").load() if asks else None
        scripts, discarded, n_rows = read_scripts(sources, settings, writer)
        emotions = {said.emotion for script in scripts for said in script.said} | {NEUTRAL}
        check_emotions(emotions, speech, scorer)
        if settings.dry_run:
            show_plan(scripts, discarded, speech.voices, settings)
            return
        studio = Studio(
            speech.load(), scorer.load(), settings.attempts, settings.enough, settings.sample_rate
        )
        items, rejected = render_all(scripts, studio, speech.voices, settings.seed)
    except (SpeechError, ChatUnavailable) as error:
        raise ConfigError(str(error)) from error
    discarded += rejected
    if not items:
        raise ConfigError("no item could be built:\n" + told(discarded))
    publish(settings, sources, n_rows, (speech, scorer), studio, items, discarded)


def publish(
    settings: BuildAudit,
    sources: Mapping[str, str],
    n_rows: Mapping[str, int],
    specs: tuple[Any, Any],
    studio: Studio,
    items: Sequence[Built],
    discarded: Sequence[Discarded],
) -> None:
    """Write clips, items, datasheet and record, and show what came of it. specs: speech and scorer."""
    speech, scorer = specs
    clips = {id(take.sound): assembly.flac(take.sound) for item in items for take in item.takes}
    paths = {sound: path for sound, (path, _) in clips.items()}
    rows = {
        kind: [assembly.row(item, paths, speech.generator) for item in items if item.script.kind == kind]
        for kind in sources
    }
    record = {
        **{
            key: getattr(settings, key)
            for key in ("seed", "attempts", "enough", "response_emotion", "sample_rate")
        },
        "generator": speech.generator,
        "voices": list(speech.voices),
        "speech": canonical(speech),
        "scorer": canonical(scorer),
        "versions": installed(assembly.PACKAGES),
        "sources": {
            kind: {
                "source": source_name(path),
                "rows": n_rows[kind],
                "sha256": Weights(path).identity()["sha256"],
            }
            for kind, path in sources.items()
        },
        "kinds": assembly.kind_table(sources, items, discarded),
        "renderings": assembly.rendering_table(studio.takes.values()),
        "discarded": [dataclasses.asdict(row) for row in discarded],
        "clips": assembly.kept_renderings(studio.takes.values(), paths),
    }
    tables = [(f"{kind}.jsonl", writing.jsonl(lines)) for kind, lines in rows.items() if lines]
    output = Path(settings.output)
    files = [*dict(clips.values()).items(), *writing.documents(record, datasheet(record)), *tables]
    writing.publish(output, files, [f"{kind}.jsonl" for kind in KINDS])
    show(record, output)


def read_scripts(
    sources: Mapping[str, str], settings: BuildAudit, writer: Writer | None
) -> tuple[list[Script], list[Discarded], dict[str, int]]:
    """The scripts of all sources, the rows that make none, and how many rows each source has."""
    scripts: list[Script] = []
    discarded, n_rows = [], {}
    for kind, path in sources.items():
        rows = read_rows(path, keep_broken=True)[: settings.limit]
        n_rows[kind] = len(rows)
        seen: dict[str, str] = {}
        for row, cells in zip(rows, completed(kind, rows, writer), strict=True):
            try:
                if isinstance(cells, RowError):
                    raise cells
                script = script_of(kind, cells, source_name(path), settings.seed, settings.response_emotion)
                if script.id in seen:
                    raise RowError(f"duplicate_id: {script.id!r} stands at {seen[script.id]} already")
                seen[script.id] = row.place
                scripts.append(script)
            except RowError as error:
                discarded.append(Discarded(kind, str(row.get("id", "")), row.place, str(error)))
    return scripts, discarded, n_rows


def completed(kind: str, rows: Sequence[Row], writer: Writer | None) -> list[Mapping[str, Any] | RowError]:
    """The cells of every row, with what `writer` adds to those that lack it; or why a row cannot be used."""
    found: list[Mapping[str, Any] | RowError] = []
    for row in rows:
        try:
            found.append(cells_of(row))
        except RowError as error:
            found.append(error)
    lacking = [
        place
        for place, cells in enumerate(found)
        if isinstance(cells, Mapping) and not cells.get(needed(kind))
    ]
    starts = range(0, len(lacking) if writer else 0, ROWS_PER_CALL)
    for start in tqdm(starts, desc=f"writing, {kind}", unit="batch", disable=not starts):
        places = lacking[start : start + ROWS_PER_CALL]
        for place, added in zip(places, writer(kind, [found[place] for place in places]), strict=True):
            found[place] = added if isinstance(added, RowError) else {**found[place], **added}
    return found


def render_all(
    scripts: Sequence[Script], studio: Studio, voices: Sequence[str], seed: int
) -> tuple[list[Built], list[Discarded]]:
    """Every script spoken, or discarded for its first utterance without an accepted rendering."""
    items, discarded = [], []
    for script in tqdm(scripts, desc="rendering", unit="item"):
        try:
            items.append(assembly.rendered(script, studio, voices, seed))
        except RowError as error:
            discarded.append(Discarded(script.kind, script.id, "", str(error)))
    return items, discarded


def show_plan(
    scripts: Sequence[Script], discarded: Sequence[Discarded], voices: Sequence[str], settings: BuildAudit
) -> None:
    """What a build would do: items, different lines to render, rows that a writer would be asked about."""
    lines = {line_of(said, cast(script, voices, settings.seed)) for script in scripts for said in script.said}
    neutral = {(line.text, line.voice) for line in lines}
    lacking = [row for row in discarded if settings.writer and row.reason.startswith("no_")]
    most = settings.attempts * len(lines) + len(neutral)
    print(f"{len(scripts)} items, {len(lines)} lines to render in at most {most} renderings")
    if lacking:
        print(f"{len(lacking)} more rows would be written by the language model first")
    if bad := [row for row in discarded if row not in lacking]:
        print("discarded:\n" + told(bad), file=sys.stderr)


def told(discarded: Iterable[Discarded]) -> str:
    """One line for each discarded row."""
    return "\n".join(f"  {row.kind}, {row.id or row.place}: {row.reason}" for row in discarded)


def show(record: Mapping[str, Any], output: Path) -> None:
    """Items per kind and renderings per emotion on standard output, what was discarded on standard error."""
    kinds = Table("kind", "items", "pointwise instances", "discarded")
    for kind, entry_ in record["kinds"].items():
        kinds.add_row(
            kind, str(entry_["items"]), str(entry_["pointwise_instances"]), str(entry_["discarded"])
        )
    made = Table("emotion", "lines", "kept", "attempts", "accepted")
    for emotion, entry_ in record["renderings"].items():
        made.add_row(emotion, *(str(entry_[key]) for key in ("lines", "kept", "attempts", "accepted")))
    Console().print(kinds, made)
    if record["discarded"]:
        print("discarded:\n" + told(Discarded(**row) for row in record["discarded"]), file=sys.stderr)
    print(f"{len(record['clips'])} clips; items, datasheet and record are in {output}")
    print(f"then: python -m pipelines.judge_audit benchmark=KIND benchmark.path={output}/KIND.jsonl")


if __name__ == "__main__":
    entry("build_audit", main)
