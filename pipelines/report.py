"""One self-contained HTML page about a run: leaderboard, charts, failures, provenance, and every response to read.

python -m pipelines.report                          the newest run under runs/
python -m pipelines.report 'run=[runs/a,runs/b]'    several runs in one page
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from operators.aggregate import finish_rows
from operators.audit import tables as audit
from operators.audit.outcomes import INSTANCE, VERDICT
from operators.frames import finite, readable, told_of_text
from operators.mugen import tables as mugen
from operators.mugen.votes import TRIALS, VOTES
from operators.pages.embed import page
from operators.reporting.clips import Clips
from operators.reporting.items import Responses, blocks, in_order, index, told_of_details
from operators.reporting.overview import overview
from operators.reporting.sections import AUDIT_TABLES, MUGEN_TABLES, audit_sections, mugen_sections
from operators.reporting.trials import audit_browser, mugen_browser
from operators.tables import TableError
from operators.versions import installed
from pipelines.config import ConfigError, entry, plain
from pipelines.report_settings import Report
from pipelines.runs import (
    RESULTS,
    find_run,
    named,
    read_record,
    refuse_other_scorers,
    rows_of_runs,
    unlike_scorers,
    with_missing_columns,
)

# What tells the kinds of run apart: a file that only this kind leaves.
KINDS = {"aria": RESULTS, "mugen": "votes.parquet", "audit": "verdicts.parquet"}
ROWS = {"mugen": ("trials", "votes"), "audit": ("verdicts", "instances")}
SCHEMAS = {
    "trials": TRIALS, "votes": VOTES, "summary": mugen.SUMMARY, "scaling": mugen.SCALING, "curve": mugen.CURVE,
    "positions": mugen.POSITIONS, "agreement": mugen.AGREEMENT, "verdicts": VERDICT, "instances": INSTANCE,
    "accuracy": audit.ACCURACY, "states": audit.STATES, "rates": audit.RATES,
}  # fmt: skip
BROWSERS = {"mugen": mugen_browser, "audit": audit_browser}


class Run(NamedTuple):
    """A run's folder, its kind and its run.json."""

    folder: Path
    kind: str
    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.folder.resolve().name


def main(config: DictConfig) -> None:
    """Read the runs, write the page, say where it is."""
    settings: Report = plain(config)
    runs = find_runs(settings.run)
    out = Path(settings.out) if settings.out else runs[0].folder / "report.html"
    clips = Clips(out, int(settings.embed_mb * 1e6), int(settings.embed_clip_kb * 1e3))
    responses = Responses(int(settings.embed_text_mb * 1e6))
    data, large, asides = contents(runs, clips, responses, settings.force)
    told = [*([clips.told()] if clips.entries else []), *filter(None, [responses.told(), *asides])]
    data["about"] = about(runs, settings.title, told)
    text = page("report", data["about"]["title"], data, {**large, **clips.blocks}, linked_media=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(f"report on {', '.join(run.name for run in runs)}{': ' if told else ''}{'; '.join(told)}")
    print(f"open {out} in a browser ({len(text) / 1e6:.1f} MB)")


def find_runs(given: Any) -> list[Run]:
    """The runs that `run=` names, or the newest of any kind. Raises TableError, ConfigError."""
    if given is None:
        return [_run(_newest())]
    names = named(given)
    if len({Path(name).resolve().name for name in names}) < len(names):
        raise ConfigError(
            "config key run: two folders have one name, by which the page tells runs apart: rename one"
        )
    return [_run(Path(name)) for name in names]


def _newest() -> Path:
    found = [path for file in KINDS.values() for path in Path("runs").glob(f"*/{file}")]
    if not found:
        raise TableError("runs/ holds no finished run: run python -m pipelines.aria_eval, or set run=FOLDER")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _run(folder: Path) -> Run:
    kind = next((kind for kind, file in KINDS.items() if (folder / file).is_file()), "aria")
    return Run(find_run(str(folder), KINDS[kind]), kind, read_record(folder))


def contents(
    runs: Sequence[Run], clips: Clips, responses: Responses, force: bool
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """The page's data blocks, those to compress, and sentences on what could not be read."""
    asides: list[str] = []
    data: dict[str, Any] = {}
    large: dict[str, Any] = {}
    browsers: list[dict[str, str]] = []
    scored = [run for run in runs if run.kind == "aria"]
    if scored:
        if not force:
            refuse_other_scorers({run.name: run.record for run in scored}, "force")
        rows = finish_rows(rows_of_runs([run.folder for run in scored]))
        # Before the rows are put in another order: the last digit of a sum depends on it.
        data["overview"] = overview(rows, {run.name: run.record for run in scored})
        rows = in_order(rows)
        details = blocks(rows)
        asides += [told_of_details(details), told_of_text([rows])]
        large |= {"index": index(rows, clips, [run.record for run in scored]), **responses.fitted(details)}
        browsers.append({"block": "index", "title": "Items and responses"})
    others = [part for run in runs for part in sections(run)]
    if others:
        data["sections"] = others
    for number, run in enumerate(run for run in runs if run.kind in BROWSERS):
        tables = _items_and(run)
        asides.append(told_of_text(tables.values()))
        found, details = BROWSERS[run.kind](tables, clips, f"run-{number}")
        large |= {f"index-{number}": {**found, "run": run.name}, **responses.fitted(details)}
        browsers.append({"block": f"index-{number}", "title": f"Every answer of {run.name}"})
    data["browsers"] = browsers
    return data, large, asides


def _items_and(run: Run) -> dict[str, pa.Table]:
    """The rows of a MUGEN or audit run one by one, and its items; no items where the run kept none."""
    kept = (run.folder / "items.parquet").is_file()
    found = _tables(run.folder, (*ROWS[run.kind], *(["items"] if kept else [])))
    return {
        "items": pa.table({name: pa.array([], pa.string()) for name in ("item_id", "benchmark")}),
        **found,
    }


def sections(run: Run) -> list[dict[str, Any]]:
    """What a MUGEN or audit run adds; nothing for the others."""
    if run.kind == "mugen":
        return mugen_sections(_tables(run.folder, MUGEN_TABLES), run.record, run.name)
    if run.kind == "audit":
        return audit_sections(_tables(run.folder, AUDIT_TABLES), run.record, run.name)
    return []


def _tables(folder: Path, names: Sequence[str]) -> dict[str, pa.Table]:
    try:
        found = {name: pq.ParquetFile(folder / f"{name}.parquet").read() for name in names}
        return {
            name: finite(readable(with_missing_columns(table, SCHEMAS.get(name, pa.schema([])))))
            for name, table in found.items()
        }
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{folder}: a table of the run cannot be read: {error}") from None


def about(runs: Sequence[Run], title: str | None, told: Sequence[str]) -> dict[str, str]:
    """Title, introduction and last line of the page; the introduction says where scorers differ, and `told`."""
    mixed = (
        "The runs were scored by different scorers, or do not say by which: their numbers do not compare. "
        if unlike_scorers([run.record for run in runs if run.kind == "aria"])
        else ""
    )
    version = installed(["audio-reasoning-eval"])["audio-reasoning-eval"]
    return {
        "title": title or f"Audio reasoning: {', '.join(run.name for run in runs)}",
        "told": f"{mixed}{''.join(f'{one}. ' for one in told)}This page works offline and asks the network for nothing.",
        "foot": f"Written {datetime.now():%Y-%m-%d %H:%M} by audio-reasoning-eval {version}.",
    }


if __name__ == "__main__":
    entry("report", main, lists=("run",))
