"""LLM judges in a run: every response rated once by each judge, from the store where it was rated before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from operators.asked import PLACE
from operators.base import Stage
from operators.failures import FAILURES, reasons_of
from operators.judges.chain_judge import ChainJudge
from operators.judges.judge_table import RATINGS, judged, show, to_markdown
from operators.store import Store
from pipelines.config import Cluster
from pipelines.execution import resources
from pipelines.lookup import Lookup, find_or_compute
from pipelines.phases import Journal, stop_if_unavailable, tell_left_out

NO_GOLD = "no_gold_answer: the judge is told the right answer, and this item has none"
COLUMNS = {"value": "judge_score", "details": "judge_score_details"}


def judge_stage(name: str, judge: ChainJudge, cluster: Cluster) -> Stage:
    """The judge of this name as a step of a run."""
    return Stage(f"judge_{name}", judge, resources(cluster.judge))


def rate(
    rows: pa.Table, judges: Mapping[str, ChainJudge], store: Store, cluster: Cluster, journal: Journal
) -> pa.Table:
    """The ratings of all `rows` (as `phases.score` takes them) by every judge, in the schema RATINGS.

    Raises ChatUnavailable where a judge turned out to be out of reach; what it rated until then is in the store.
    """
    parts = [RATINGS.empty_table()]
    with journal.phase("judge"):
        for name, judge in judges.items():
            stage = judge_stage(name, judge, cluster)
            shelf = store.scores("chain_judge", judge)
            lookup = Lookup(stage, shelf, rows, blocked(judge, rows), "judge_score_reason", COLUMNS)
            find_or_compute([lookup], rows, stage.name)
            entries, reasons = lookup.results()
            journal.add(stage.name, lookup.tally())
            tell_left_out(stage.name, lookup.tally())
            whose = {column: rows[column] for column in PLACE}
            stop_if_unavailable(reasons.to_pylist())
            told = {"score": entries["value"], "reason": reasons, "details": entries["details"]}
            parts.append(pa.table({**whose, "judge": pa.repeat(name, rows.num_rows), **told}, schema=RATINGS))
    return pa.concat_tables(parts)


def blocked(judge: ChainJudge, rows: pa.Table) -> list[str | None]:
    """Why a row cannot be rated: it has no response, or no right answer to tell a judge whose prompt asks for it."""
    unknown = pc.if_else(pc.is_null(rows["gold_answer"]), NO_GOLD, None)
    needed = "gold_answer" in judge.prompt.fields
    return pc.coalesce(rows["row_error"], unknown).to_pylist() if needed else rows["row_error"].to_pylist()


def judge_failures(rows: pa.Table, ratings: pa.Table) -> pa.Table:
    """How often which judge gave no score and why (failures.FAILURES), of `rows` that it could be asked about."""
    tried = pc.is_null(rows["row_error"])
    parts = [FAILURES.empty_table()]
    for name in pc.unique(ratings["judge"]).to_pylist():
        own = ratings.filter(pc.equal(ratings["judge"], name))
        parts.append(reasons_of(own, f"judge_{name}", own["reason"], tried))
    return pa.concat_tables(parts)


def compare_judges(folder: Path, ratings: pa.Table, summary: pa.Table) -> None:
    """Write and show what the judges say: judge_ratings.parquet, judges.parquet, judges.md in `folder`."""
    table = judged(ratings, summary)
    pq.write_table(ratings, folder / "judge_ratings.parquet", compression="zstd")
    pq.write_table(table, folder / "judges.parquet")
    (folder / "judges.md").write_text(to_markdown(table), encoding="utf-8")
    show(table)
