"""All that the upper part of an ARIA report shows: leaderboards, charts, variance, failures, cost, provenance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import MEASURES, summarise
from operators.analysis.cells import Cells, cells_of_rows, values_of
from operators.analysis.correlations import over_chains
from operators.analysis.estimates import share_interval
from operators.failures import failure_reasons
from operators.reporting import charts
from operators.reporting.drawing import draw
from operators.reporting.items import LABELS
from operators.reporting.ranking import categories, item_means, leaderboards
from operators.statistics import eta_squared, pearson_matrix
from operators.usage import COUNTS, totals

N_RESAMPLES = 500  # of the shares of variance and of the correlations, which are many

# A table [models, others], the same drawn anew, and how many items they rest on.
Drawn = tuple[np.ndarray, Iterable[np.ndarray], int]


def overview(rows: pa.Table, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """`rows`: finished result rows. `records`: run.json by the name of the run's folder."""
    summary = summarise(rows)
    boards = leaderboards(summary)
    for board in boards:
        board["charts"] = _charts(board, rows)
    return {
        "labels": LABELS,
        "boards": boards,
        "categories": categories(summary),
        "variance": variance(rows),
        "failures": failure_reasons(rows).to_pylist(),
        "usage": usage(rows),
        "runs": [{"name": name, **provenance(record)} for name, record in records.items()],
    }


def _charts(board: Mapping[str, Any], rows: pa.Table) -> dict[str, Any]:
    """The drawings of one benchmark; what has too few numbers to be drawn is left out."""
    models = [entry["model"] for entry in board["models"]]
    means = item_means(rows, ("model", "benchmark"))
    scores = {model: means[model, board["benchmark"]] for model in models}
    found = {"profiles": draw(charts.profiles(board)), "distributions": []}
    if any(entry["cells"]["aria"]["value"] is not None for entry in board["models"]):
        found["scatter"] = draw(charts.aria_against_accuracy(board))
    for name in MEASURES:
        values = {model: scores[model][name] for model in models}
        if any(values.values()):
            found["distributions"].append({"title": LABELS[name], "tree": draw(charts.distribution(values))})
    complete = _complete(rows, board["benchmark"])
    if len(complete) > 2:
        names = [charts.SHORT[name] for name in MEASURES]
        found["correlations"] = draw(charts.correlations(names, pearson_matrix(complete)))
        found["n_correlated"] = len(complete)
        found["correlation_lines"] = correlation_lines(rows, board["benchmark"])
    return found


def _complete(rows: pa.Table, benchmark: str) -> np.ndarray:
    """[rows, 7] the six metrics and ARIA of every row of the benchmark that has them all."""
    values = [rows[name].to_numpy(zero_copy_only=False) for name in MEASURES]
    mine = np.array([name == benchmark for name in rows["benchmark"].to_pylist()], dtype=bool)
    table = np.stack([np.asarray(column, dtype=float) for column in values], axis=1)[mine]
    return table[np.isfinite(table).all(axis=1)]


def variance(rows: pa.Table) -> list[dict[str, Any]]:
    """Two-way decompositions (eta squared) of every measure: by model and item within each benchmark, and by model and
    benchmark where two or more benchmarks share two or more models.

    Only models x items (or benchmarks) without a gap enter; `n_models`, `n_others` say how many.
    """
    found = []
    benchmarks = list(dict.fromkeys(rows["benchmark"].to_pylist()))
    for benchmark in benchmarks:
        mine = [row for row in _cells(rows) if row["benchmark"] == benchmark]
        found.append(
            _decomposed(f"{benchmark}: model and item", "item", lambda m, mine=mine: _by_item(mine, m))
        )
    if len(benchmarks) > 1:
        cells = cells_of_rows(rows)
        title = "all benchmarks: model and benchmark"
        found.append(_decomposed(title, "benchmark", lambda m: _by_benchmark(cells, m)))
    return [entry for entry in found if entry["rows"]]


def _cells(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.select(["model", "benchmark", "item_id", *MEASURES]).to_pylist()


def _decomposed(title: str, other: str, drawn: Callable[[str], Drawn]) -> dict[str, Any]:
    """Shares of every measure with their intervals, and their chart; `drawn` gives a measure's tables."""
    result: list[dict[str, Any]] = []
    for measure in MEASURES:
        table, redrawn, n_items = drawn(measure)
        if min(table.shape) < 2:
            continue
        parts = eta_squared(table)
        if not math.isnan(parts.model):
            named = {"model": parts.model, other: parts.dataset, "residual": parts.residual}
            shape = {"n_models": table.shape[0], "n_others": table.shape[1], "n_items": n_items}
            bounds = _intervals(redrawn, named)
            result.append({"measure": measure, **shape, "parts": named, "intervals": bounds})
    shares = [
        {"name": charts.SHORT[row["measure"]], "part": part, "share": share}
        for row in result
        for part, share in row["parts"].items()
    ]
    chart = draw(charts.shares(shares, ["model", other, "residual"])) if result else None
    return {"title": title, "other": other, "rows": result, "chart": chart}


def _by_item(cells: Sequence[Mapping[str, Any]], measure: str) -> Drawn:
    """Models x items: the items that are drawn anew are the columns themselves."""
    table = _without_gaps(cells, measure)
    return table, _columns_drawn(table), table.shape[1]


def _by_benchmark(cells: Cells, measure: str) -> Drawn:
    """Models x benchmarks: items are drawn anew within each benchmark, behind its means of item means."""
    kept = np.flatnonzero(np.isfinite(cells.means[measure]).all(axis=0))
    redrawn = cells.redrawn(measure, N_RESAMPLES, 0)
    tables = () if redrawn is None else redrawn[:, :, kept]
    n_items = sum(len(cells.items[measure][place].sums) for place in kept)
    return cells.means[measure][:, kept], tables, n_items


def _columns_drawn(table: np.ndarray) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for _ in range(N_RESAMPLES):
        yield table[:, rng.integers(table.shape[1], size=table.shape[1])]


def _intervals(redrawn: Iterable[np.ndarray], named: Mapping[str, float]) -> dict[str, list[float | None]]:
    """The interval of every share from redrawn tables [models, others]; [None, None] where there is none."""
    shares = np.array(
        [eta_squared(table) if np.isfinite(table).all() else [np.nan] * 3 for table in redrawn]
    ).reshape(-1, 3)
    bounds = {
        name: share_interval(shares[:, part], share) for part, (name, share) in enumerate(named.items())
    }
    return {name: [None if math.isnan(end) else end for end in pair] for name, pair in bounds.items()}


def correlation_lines(rows: pa.Table, benchmark: str) -> list[dict[str, Any]]:
    """Every field of the heat map with its interval: items are drawn, with all complete rows about them."""
    mine = rows.filter(pc.equal(rows["benchmark"], benchmark))
    known = np.all([np.isfinite(values_of(mine, name)) for name in MEASURES], axis=0)
    complete = mine.filter(pa.array(known))
    lines = [over_chains(complete, a, b, N_RESAMPLES, 0) for a, b in combinations(MEASURES, 2)]
    kept = ("estimate", "low", "high", "n", "n_clusters", "method", "note")
    return [
        {
            "pair": f"{charts.SHORT[one['measure']]}, {charts.SHORT[one['versus']]}",
            **{name: one[name] for name in kept},
        }
        for one in lines
    ]


def _without_gaps(cells: Sequence[Mapping[str, Any]], measure: str) -> np.ndarray:
    """[models, items] mean of the measure over an item's trials, of the items that every model has."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in cells:
        if row[measure] is not None:
            values.setdefault((row["model"], row["item_id"]), []).append(row[measure])
    models = sorted({row["model"] for row in cells})
    items = sorted({row["item_id"] for row in cells})
    kept = [item for item in items if all((model, item) in values for model in models)]
    table = [[float(np.mean(values[model, item])) for item in kept] for model in models]
    return np.array(table).reshape(len(models), len(kept))


def usage(rows: pa.Table) -> list[dict[str, Any]]:
    """Tokens, seconds of sound and money that the responses of each model took, as far as they tell; none who tell nothing."""
    texts: dict[str, list[str | None]] = {}
    for model, text in zip(rows["model"].to_pylist(), rows["usage"].to_pylist(), strict=True):
        texts.setdefault(model, []).append(text)
    found = [(model, len(said), totals(said)) for model, said in texts.items()]
    return [
        {"model": model, "n_rows": n, **{name: took.get(name) for name in COUNTS}}
        for model, n, took in found
        if took
    ]


def provenance(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of run.json: config, fingerprints, versions, stages and seconds."""
    wanted = ("config", "fingerprints", "specs", "versions", "stages", "wall_seconds", "recorded")
    return {name: record.get(name) for name in wanted}
