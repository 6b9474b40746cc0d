"""LLM judges in a run: every response rated once by each judge, from the store where it was rated before."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from operators.base import Stage
from operators.chat_api import UNAVAILABLE
from operators.judges.chain_judge import ChainJudge
from operators.judges.judge_table import RATINGS
from operators.store import Store
from pipelines.config import Cluster
from pipelines.execution import resources
from pipelines.lookup import Lookup, find_or_compute
from pipelines.phases import Journal

COLUMNS = {"value": "judge_score", "details": "judge_score_details"}


def rate(rows: pa.Table, judges: Mapping[str, ChainJudge], store: Store, cluster: Cluster, journal: Journal) -> pa.Table:
    """The ratings of all `rows` (as `phases.score` takes them) by every judge, in the schema RATINGS."""
    parts = [RATINGS.empty_table()]
    with journal.phase("judge"):
        for name, judge in judges.items():
            stage = Stage(f"judge_{name}", judge, resources(cluster.judge))
            shelf = store.scores("chain_judge", judge)
            lookup = Lookup(stage, shelf, rows, rows["row_error"].to_pylist(), "judge_score_reason", COLUMNS)
            find_or_compute([lookup], rows, stage.name)
            entries, reasons = lookup.results()
            journal.add(stage.name, lookup.tally())
            whose = {column: rows[column] for column in ("model", "benchmark", "item_id", "trial")}
            told = {"score": entries["value"], "reason": reasons, "details": entries["details"]}
            parts.append(pa.table({**whose, "judge": pa.repeat(name, rows.num_rows), **told}, schema=RATINGS))
    return pa.concat_tables(parts)


def stop_if_unavailable(ratings: pa.Table) -> None:
    """Exit with status 1 where a judge could not be reached: its ratings are missing, whatever else is there."""
    lost = ratings.filter(pc.starts_with(pc.fill_null(ratings["reason"], ""), UNAVAILABLE))
    if lost.num_rows:
        first = lost.slice(0, 1).to_pylist()[0]
        sys.exit(f"error: the judge {first['judge']} gave out: {first['reason']}; {lost.num_rows} ratings are missing")
