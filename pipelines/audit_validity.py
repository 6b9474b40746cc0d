"""Validity checks of an audit (section 5.3): real against synthetic speech, generator swap, balance of the replies.

python -m pipelines.audit_validity check=real_vs_synthetic first=[RUN,...] second=[RUN,...]
python -m pipelines.audit_validity check=generator_swap first=[RUN,...] second=[RUN,...]
python -m pipelines.audit_validity check=response_balance benchmark=single_turn_emotions
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from operators.audit.balance import BALANCE, balance, clip_values, text_values
from operators.audit.profile_intervals import with_intervals
from operators.audit.validity import ALL, PROFILES, RANKINGS, SWAPS, profiles, rankings, swaps
from operators.chat_api import ChatUnavailable
from operators.export import write_all
from operators.printing import printable
from operators.speech.quality import DNSMOS, dnsmos, require_dnsmos
from operators.speech.rendering import SpeechError
from operators.tables import TableError
from pipelines.audit_validity_settings import AuditValidity
from pipelines.config import ConfigError, build, entry, plain
from pipelines.record import check_out, free_folder
from pipelines.runs import find_run

Tables = dict[str, pa.Table]


def main(config: DictConfig) -> None:
    settings: AuditValidity = plain(config)
    if settings.n_resamples < 100:
        raise ConfigError(f"config key n_resamples: at least 100, not {settings.n_resamples}")
    checks: dict[str, Callable[[AuditValidity], Tables]] = {
        "real_vs_synthetic": real_vs_synthetic,
        "generator_swap": generator_swap,
        "response_balance": response_balance,
    }
    if settings.check not in checks:
        raise ConfigError(f"config key check: one of {', '.join(checks)}, not {settings.check!r}")
    check_out(settings.out)
    try:
        found = checks[settings.check](settings)
    except (SpeechError, ChatUnavailable) as error:
        raise ConfigError(str(error)) from error
    folder = Path(settings.out) if settings.out else free_folder("audit-validity")
    for name, table in found.items():
        show(name, table)
        write_all(folder, name, table)
    print(f"tables are in {folder}")


def real_vs_synthetic(settings: AuditValidity) -> Tables:
    """How alike the state proportions of the same judges are in the two groups of runs."""
    rows = profiles(*(read(runs, "states") for runs in both(settings)))
    if not rows:
        raise ConfigError(
            "no judge is in both groups of runs: they are paired by the judge's name and the cue"
        )
    instances = [read(runs, "instances") for runs in both(settings)]
    whole = with_intervals(rows, instances, ALL, settings.n_resamples, settings.seed)
    return {"profiles": pa.Table.from_pylist(whole, schema=PROFILES)}


def generator_swap(settings: AuditValidity) -> Tables:
    """The accuracies of the same judges in the two groups of runs, and the rankings that follow."""
    rows = swaps(*(read(runs, "accuracy") for runs in both(settings)))
    if not rows:
        raise ConfigError(
            "no judge is in both groups of runs: they are paired by the judge's name, probe and cue"
        )
    return {
        "swaps": pa.Table.from_pylist(rows, schema=SWAPS),
        "rankings": pa.Table.from_pylist(rankings(rows), schema=RANKINGS),
    }


def both(settings: AuditValidity) -> tuple[list[str], list[str]]:
    """The two groups of run folders. Raises ConfigError where one is empty."""
    for key in ("first", "second"):
        if not getattr(settings, key):
            raise ConfigError(
                f"config key {key}: name the folders of finished runs of judge_audit, {key}=[runs/...]"
            )
    return settings.first, settings.second


def read(runs: Sequence[str], name: str) -> list[dict[str, Any]]:
    """The rows of table `name` of all `runs`. Raises TableError for a folder that is no audit run."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        path = find_run(run, f"{name}.parquet") / f"{name}.parquet"
        try:
            rows += pq.read_table(path).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"{path} cannot be read: {error}") from None
    return rows


def response_balance(settings: AuditValidity) -> Tables:
    """|R0 - R1| of the replies of a benchmark."""
    require_dnsmos()
    items = build(settings.benchmark, "benchmark").load().to_pylist()
    usable = [item for item in items if not item["item_error"]]
    for item in items:
        if item["item_error"]:
            print(f"left out: {item['item_id']}: {item['item_error']}", file=sys.stderr)
    replies = [reply for item in usable for reply in item["responses"]]
    values = [
        text_values(reply["text"]) | clip_values(reply["audio_uri"], dnsmos, DNSMOS)
        for reply in tqdm(replies, desc="replies", unit="clip")
    ]
    if settings.rater:
        rated = build(settings.rater, "rater").rate([reply["text"] for reply in replies])
        values = [measured | ratings for measured, ratings in zip(values, rated, strict=True)]
    triples = [(item["item_id"], *values[2 * place : 2 * place + 2]) for place, item in enumerate(usable)]
    return {"balance": pa.Table.from_pylist(balance(triples), schema=BALANCE)}


def show(title: str, table: pa.Table) -> None:
    """Print a table with numbers to three digits."""
    shown = Table(*table.column_names, title=title)
    for row in table.to_pylist():
        shown.add_row(*(_cell(value) for value in row.values()))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 200)
    console.print(shown)


def _cell(value: Any) -> Text:
    if isinstance(value, float):
        return Text(f"{value:.3f}")
    return Text("-" if value is None else printable(str(value)))


if __name__ == "__main__":
    entry("audit_validity", main)
