"""People rate chains of thought: offline pages for groups of raters, and a checked table of what comes back.

python -m pipelines.annotate run=runs/...                     pages and plan.json into annotation/
python -m pipelines.annotate 'run=[runs/a,runs/b]'            chains of several runs in one study
python -m pipelines.annotate 'read=[a.json,b.json,c.json]'    ratings.parquet for pipelines.analyse
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig, ListConfig
from rich.console import Console
from rich.table import Table

from operators.annotation import disagreement, draw, plan, read_exports
from operators.pages.embed import page
from operators.reporting.clips import Clips
from operators.tables import TableError, read_bytes, read_rows
from pipelines.annotate_settings import Annotate
from pipelines.config import ConfigError, entry, plain
from pipelines.record import check_out
from pipelines.runs import find_run, named, read_record, refuse_other_scorers, rows_of_runs, say_unreadable

PLAN = "plan.json"


def main(config: DictConfig) -> None:
    """Write the pages, or read what raters saved."""
    settings: Annotate = plain(config)
    for name in ("per_model", "groups", "raters"):
        if getattr(settings, name) < 1:
            raise ConfigError(f"config key {name}: at least 1, not {getattr(settings, name)}")
    if settings.read is None:
        write_pages(settings)
    else:
        read_ratings(settings)


def write_pages(settings: Annotate) -> None:
    """plan.json and one page per group. A folder that holds a plan is left alone: raters may be at work on it."""
    folder = Path(settings.out)
    if (folder / PLAN).exists():
        raise ConfigError(f"{folder / PLAN} is there already: choose another folder with out=...")
    check_out(settings.out)
    sources = [find_run(name) for name in named(settings.run)]
    if not settings.mixed:
        refuse_other_scorers({str(source): read_record(source) for source in sources}, "mixed")
    rows = rows_of_runs(sources)
    say_unreadable(rows)
    chains = draw(rows, settings.per_model, settings.groups, settings.seed)
    if not chains:
        told = ", ".join(map(str, sources))
        raise TableError(f"{told}: no row has both a response and an ARIA, so there is nothing to rate")
    folder.mkdir(parents=True, exist_ok=True)
    about = plan(chains, settings.raters)
    for group in sorted({chain.group for chain in chains}):
        file = folder / f"rate-group-{group}.html"
        clips = Clips(file, int(settings.embed_mb * 1e6), int(settings.embed_clip_kb * 1e3))
        mine = [chain for chain in chains if chain.group == group]
        taken = rows.take([chain.row for chain in mine]).to_pylist()
        shown = [
            {"code": chain.code, "question": row["question"] or "", "choices": row["choices"] or [],
             "response": row["response"], "clips": clips.of_item(row)}
            for chain, row in zip(mine, taken, strict=True)
        ]  # fmt: skip
        study = {"study": about["study"], "group": group, "chains": shown, "clips": nameless(clips.entries)}
        text = page("annotate", "Rate the reasoning", {"study": study}, clips.blocks, linked_media=True)
        file.write_text(text, encoding="utf-8")
        print(f"{file}: {len(mine)} chains for {settings.raters} raters; {clips.told()}")
    (folder / PLAN).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"keep {folder / PLAN}: it says which model wrote which chain, and reading the ratings needs it")


def nameless(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The clips of a page without their files' names, which often say what is heard; a linked file keeps its address."""
    absent = {"missing": "this page does not hold it, and the file was not there when it was written"}
    return [
        {**entry, "name": f"clip {number}", **(absent if "missing" in entry else {})}
        for number, entry in enumerate(entries, start=1)
    ]


def read_ratings(settings: Annotate) -> None:
    """Check the files that raters saved, write ratings.parquet, show what is missing and where raters differ."""
    given = settings.read
    files = list(given) if isinstance(given, (list, ListConfig)) else [given]
    if not files or not all(isinstance(name, str) for name in files):
        raise ConfigError(f"config key read: a file that a rater saved, or a list of such, not {given!r}")
    folder = Path(settings.out)
    about = _plan(folder / PLAN)
    ratings = read_exports({name: read_rows(name) for name in files}, about)
    keep_earlier(folder / "ratings.parquet", ratings)
    pq.write_table(ratings, folder / "ratings.parquet")
    silent = sorted({chain["group"] for chain in about["chains"]} - set(ratings["group"].to_pylist()))
    if silent:
        print(f"note: no ratings yet of group {', '.join(silent)}")
    show(disagreement(ratings, about["n_raters"]))
    print(f"{folder / 'ratings.parquet'}: python -m pipelines.analyse ratings={folder / 'ratings.parquet'}")


def keep_earlier(path: Path, ratings: pa.Table) -> None:
    """Refuse to replace an earlier table with one that lacks a rater of it, and say where a rater has fewer ratings now."""
    if not path.exists():
        return
    earlier, now = Counter(), Counter()
    for rows, counts in ((read_rows(str(path)), earlier), (ratings.to_pylist(), now)):
        counts.update(row["rater"] for row in rows if row["rating"] is not None)
    lost = sorted(set(earlier) - set(ratings["rater"].to_pylist()))
    if lost:
        held = f"{path} holds {sum(earlier[rater] for rater in lost)} ratings of {', '.join(map(repr, lost))}, whose files were not given"
        raise ConfigError(
            f"{held}: give the files of all raters at once in read=[...], or move that file away"
        )
    for rater in sorted(rater for rater in earlier if now[rater] < earlier[rater]):
        print(
            f"note: {rater!r} has {now[rater]} ratings here, and had {earlier[rater]} in the earlier {path.name}"
        )


def _plan(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(read_bytes(str(path)))
    except ValueError as error:
        raise TableError(f"{path} cannot be read: {error}") from None
    if not isinstance(about, dict) or not {"study", "n_raters", "chains"} <= set(about):
        raise TableError(f"{path} is not a plan that python -m pipelines.annotate wrote")
    return about


def show(groups: list[dict[str, Any]]) -> None:
    """One line per group: raters, ratings, what is missing, how far raters differ."""
    table = Table("Group", "Raters", "Ratings", "Missing", "2 or more apart", "Mean span")
    for row in groups:
        table.add_row(
            row["group"], f"{row['n_raters']} of {row['n_expected']}", str(row["n_ratings"]), str(row["n_missing"]),
            f"{row['n_apart']} of {row['n_compared']} chains", "-" if row["mean_span"] != row["mean_span"] else f"{row['mean_span']:.2f}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    entry("annotate", main, lists=("run",))
