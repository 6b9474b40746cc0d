"""What the numbers mean: variance, agreement, correlations, judges, human ratings, ablations, generic words.

python -m pipelines.analyse                         the newest run
python -m pipelines.analyse table=summary.csv       a table of means, as the paper's Table 1
python -m pipelines.analyse published=true          the paper's own tables: which of its figures come out
python -m pipelines.analyse --help                  every field
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig
from rich.console import Console
from rich.text import Text

from operators.aggregate import finish_rows
from operators.analysis import published
from operators.analysis.ablation import Mean, backbone_agreement, read_means
from operators.analysis.cells import Cells, cells_of_rows, cells_of_summary
from operators.analysis.consistency import consistency
from operators.analysis.correlations import metric_correlations
from operators.analysis.estimates import Line, as_table
from operators.analysis.figures import write_figures
from operators.analysis.generic_words import generic_counts, manipulation_test
from operators.analysis.judges import accuracy_as_judge, compared, judge_agreement, read_judges
from operators.analysis.ratings import human_correlation, rater_agreement, read_ratings
from operators.analysis.report import show
from operators.export import write_all
from operators.tables import read_rows
from pipelines.analyse_settings import Analyse, check, run_folders
from pipelines.config import entry, plain
from pipelines.phases import Journal
from pipelines.record import check_out, free_folder, write_record
from pipelines.runs import find_run, read_record, rows_of_runs, say_unreadable


def main(config: DictConfig) -> None:
    """One analysis of `config`."""
    settings: Analyse = plain(config)
    check(settings)
    check_out(settings.out)
    journal = Journal()
    with journal.phase("analyse"):
        cells, rows, source = scores(settings)
        tables = {"estimates": as_table([*estimates(settings, cells, rows)])}
        tables["judge_ranks"] = compared(cells, judged(settings, cells))
        if settings.published:
            tables["published"] = published.compare_with_the_paper()
    folder = Path(settings.out) if settings.out else free_folder("analysis")
    for name, table in tables.items():
        write_all(folder, name, table)
    with journal.phase("figures"):
        figures = write_figures(folder, tables["estimates"])
    write_record(folder, config, {}, journal, {"source": source, "figures": figures})
    show(tables)
    Console(highlight=False).print(
        Text(f"tables (.parquet .csv .md .tex) and {len(figures)} figures in {folder}")
    )


def scores(settings: Analyse) -> tuple[Cells, pa.Table | None, str | list[str]]:
    """Means by model and benchmark, the rows behind them where they are known, and where both come from."""
    if settings.published:
        return published.table_1(), None, "the paper's Table 1"
    if settings.table:
        return cells_of_summary(settings.table, read_rows(settings.table)), None, settings.table
    folders = run_folders(settings)
    rows = finish_rows(rows_of_runs(folders))
    say_unreadable(rows)
    return cells_of_rows(rows), rows, [str(folder) for folder in folders]


def estimates(settings: Analyse, cells: Cells, rows: pa.Table | None) -> Iterator[Line]:
    """Every estimate that the given sources allow, analysis by analysis."""
    draws = (settings.n_resamples, settings.seed)
    yield from consistency(cells, *draws)
    yield from metric_correlations(cells, rows, *draws)
    yield from judge_agreement(cells, judged(settings, cells))
    if rows is not None:
        yield from generic_counts(rows, cells, *draws)
    if settings.ratings:
        ratings = read_ratings(settings.ratings, read_rows(settings.ratings))
        yield from rater_agreement(ratings, *draws)
        yield from human_correlation(rows, ratings, *draws)
    if settings.published and not settings.ablation:
        yield from backbone_agreement(read_means("Tables 8 to 10", published.rows_of("tables_8_to_10")))
    if settings.ablation:
        yield from backbone_agreement(ablation_means(settings.ablation))
    if settings.stress:
        yield from manipulation_test(
            pq.read_table(find_run(settings.stress, "stress.parquet") / "stress.parquet")
        )


def ablation_means(place: str) -> list[Mean]:
    """The means of a table, or of the folder that `pipelines.ablate` left."""
    if not Path(place).is_dir():
        return read_means(place, read_rows(place))
    folder = find_run(place, "means.parquet")
    metric = read_record(folder).get("config", {}).get("metric")
    return read_means(str(folder), read_rows(str(folder / "means.parquet")), metric)


def judged(settings: Analyse, cells: Cells) -> dict:
    """Accuracy, and every judge of the user's table, or of the paper's where that is analysed."""
    found = dict(accuracy_as_judge(cells))
    if settings.judge_scores:
        found |= read_judges(settings.judge_scores, read_rows(settings.judge_scores))
    elif settings.published:
        table = [{k: row[k] for k in ("model", "deepseek", "gemini")} for row in published.rows_of("table_2")]
        found |= read_judges("Table 2", table)
    return found


if __name__ == "__main__":
    entry("analyse", main, lists=("run",))
