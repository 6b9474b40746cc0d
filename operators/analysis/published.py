"""The figures of ARIA-Rubrics, section 4, computed again from the paper's own tables: which come out, and which do not.

`operators.analysis.published_tables` has the tables and the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from operators.analysis.ablation import Mean, read_means
from operators.analysis.cells import Cells
from operators.analysis.correlations import spearman_only
from operators.analysis.published_tables import PUBLISHED, Line, line, rows_of, table_1
from operators.schema import METRICS
from operators.statistics import eta_squared, icc_2_1, kendalls_w, pearson_matrix

N_CELLS = 18  # models x benchmarks
CLOSED = ("GPT-4o-audio", "Gemini 2.5 Flash")
_M1_TO_M6 = range(6)


def compare_with_the_paper() -> pa.Table:
    """PUBLISHED: every figure of the text that its tables allow to compute."""
    cells = table_1()
    lines = [
        *_means(cells),
        *_other_tables(cells),
        *_consistency(cells),
        *_correlations(cells),
        *_ranks(cells),
        *_human(),
        *_backbones(),
    ]
    return pa.Table.from_pylist(lines, schema=PUBLISHED)


def _means(cells: Cells) -> Iterator[Line]:
    off = np.abs(np.mean([cells.means[m] for m in METRICS], axis=0) - cells.means["aria"])
    right = int((off <= 0.51e-4).sum())
    yield line("Table 1", "ARIA is the mean of M1 to M6", "18 of 18", f"{right} of 18", "to the last printed digit", right == N_CELLS)  # fmt: skip


def _highest(cells: Cells) -> Iterator[Line]:
    """Section 4: closed-source models "achieve the highest ARIA scores on both benchmarks", and which open one is best."""
    aria = cells.means["aria"]
    orders = {}
    for at, (dataset, published) in enumerate(zip(cells.datasets, ("0.5796", "0.5801"), strict=True)):
        orders[dataset] = [cells.models[place] for place in np.argsort(-aria[:, at])]
        why = f"that of {orders[dataset][0]} in Table 1; GPT-4o-audio has {aria[cells.models.index(CLOSED[0]), at]:.4f}"
        yield line("Section 4", f"highest ARIA on {dataset}", published, float(aria[:, at].max()), why)
    first = sum(set(order[:2]) == set(CLOSED) for order in orders.values())
    told = "; ".join(f"{dataset}: {', '.join(order[:3])}" for dataset, order in orders.items())
    yield line("Section 4", "benchmarks whose two highest ARIA are closed-source", "2 of 2", f"{first} of 2", told, first == 2)  # fmt: skip
    is_open = [place for place, model in enumerate(cells.models) if model not in CLOSED]
    best = [cells.models[max(is_open, key=lambda p: values[p])] for values in (aria.mean(axis=1), *aria.T)]
    told = f"by the mean of both benchmarks; on MMAR {best[1]}, on MMAU-mini {best[2]}"
    yield line("Section 4", "open-source model with the best ARIA overall", "Qwen2.5-Omni", best[0], told, best[0] == "Qwen2.5-Omni")  # fmt: skip


def _deviations() -> Iterator[Line]:
    """Section 4: closed-source models "show lower variance across M2, M3, and M6".

    *Our reading*: both have a standard deviation below that of every open-source model.
    """
    rows = rows_of("table_1")
    for metric in ("m2", "m3", "m6"):
        below, told = 0, []
        for benchmark in ("MMAR", "MMAU-mini"):
            sds = {row["model"]: float(row[f"{metric}_sd"]) for row in rows if row["benchmark"] == benchmark}
            closed = max(sds[model] for model in CLOSED)
            least = min((model for model in sds if model not in CLOSED), key=sds.__getitem__)
            below += closed < sds[least]
            told.append(f"{benchmark}: at most {closed:.4f}, and {least} {sds[least]:.4f}")
        yield line("Section 4", f"{metric.upper()}: closed-source models vary less than all others", "2 of 2", f"{below} of 2", "; ".join(told), below == 2)  # fmt: skip


def _other_tables(cells: Cells) -> Iterator[Line]:
    """What Tables 6, 12 and 13 print of Table 1 a second time."""
    yield from _highest(cells)
    yield from _deviations()
    place = {(row["model"], row["benchmark"]): row for row in rows_of("table_1")}
    again = rows_of("table_6")
    same = sum(f"{float(place[r['model'], r['benchmark']]['accuracy']):.3f}" == f"{float(r['cot_accuracy']) / 100:.3f}" for r in again)  # fmt: skip
    yield line("Table 6", "accuracies with CoT as in Table 1", "18 of 18", f"{same} of 18", "percent with one digit", same == N_CELLS)  # fmt: skip
    words = rows_of("table_12")
    same = sum(place[row["model"], "MMAR"]["m1"] == row["m1"] for row in words)
    rho = spearman_only(*(np.array([float(row[name]) for row in words]) for name in ("generic_tokens", "m1")))
    told = f"on MMAR; Spearman's rho of generic tokens and M1 is {rho:.3f} over the nine models"
    yield line("Table 12", "M1 as in Table 1", "9 of 9", f"{same} of 9", told, same == len(words))
    (original,) = (row["m1"] for row in rows_of("table_13") if row["mode"] == "original")
    m1 = float(place[CLOSED[0], "MMAR"]["m1"])
    yield line(
        "Table 13", "M1 of GPT-4o-audio's own chains on MMAR", original, m1, "as Tables 1 and 12 have it"
    )


def _consistency(cells: Cells) -> Iterator[Line]:
    tables = [cells.means[m] for m in METRICS]
    model, dataset, w, icc = (
        _by_metric(tables, statistic)
        for statistic in (
            lambda t: eta_squared(t).model,
            lambda t: eta_squared(t).dataset,
            lambda t: kendalls_w(t.T),
            icc_2_1,
        )
    )
    yield line(
        "Figure 2", "least share of variance by model", "0.919", min(model.values()),
        f"M2's share is {model['M2']:.3f}, but M1's and M4's are lower: {_listed(model)}",
    )  # fmt: skip
    yield line("Figure 2", "largest share by model", "0.964", max(model.values()), f"M5's; no metric has 0.964: {_listed(model)}")  # fmt: skip
    yield line(
        "Figure 2", "largest share by dataset", "0.017", max(dataset.values()),
        f"M5's share is {dataset['M5']:.3f}, but M4's is larger: {_listed(dataset)}",
    )  # fmt: skip
    yield line("Figure 3", "least Kendall's W", "0.933", min(w.values()), f"M2, M4 and M6 have 0.933, but M1's ranks differ more: {_listed(w)}")  # fmt: skip
    lifted = tables[0].copy()
    lifted[cells.models.index("Qwen2.5-Omni"), cells.datasets.index("MMAU-mini")] = 1.0
    told = (
        f"no metric reaches it: {_listed(w)}. M1 would have {kendalls_w(lifted.T):.3f} if Qwen2.5-Omni, first on MMAR, "
        "were first on MMAU-mini too, where 0.1929 is printed"
    )
    yield line("Figure 3", "largest Kendall's W", "0.992", max(w.values()), told)
    yield line(
        "Figure 3",
        "ICC(2,1)",
        "in the figure alone",
        _listed(icc),
        "the text prints no value to compare with",
    )


def _by_metric(tables: list[np.ndarray], statistic: Callable[[np.ndarray], float]) -> dict[str, float]:
    return {f"M{number}": statistic(table) for number, table in enumerate(tables, start=1)}


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())


def _correlations(cells: Cells) -> Iterator[Line]:
    every = np.stack([cells.means[m] for m in METRICS], axis=-1)
    by_model, over_cells = pearson_matrix(every.mean(axis=1)), pearson_matrix(every.reshape(-1, 6))
    printed = {(3, 4): "0.951", (1, 2): "0.916", (5, 1): "-0.578", (5, 2): "-0.633"}
    for (a, b), published in printed.items():
        why = f"over the models' means of both benchmarks; over all 18 cells {over_cells[a, b]:.3f}"
        if (a, b) == (5, 2):
            why += "; -0.6323 from means of four digits"
        if (a, b) == (3, 4):
            apart = [pearson_matrix(every[:, place])[a, b] for place in (0, 1)]
            why += f"; MMAR alone {apart[0]:.3f}, MMAU-mini alone {apart[1]:.3f}"
        yield line("Figure 4", f"r of M{a + 1} and M{b + 1}", published, float(by_model[a, b]), why)
    rest = [(a, b) for a in _M1_TO_M6 for b in range(a) if (a, b) not in printed and (b, a) not in printed]
    inside = [pair for pair in rest if 0.45 <= by_model[pair] < 0.75]
    told = ", ".join(f"M{b + 1}-M{a + 1} {by_model[a, b]:.2f}" for a, b in rest)
    yield line("Section 4", "other pairs correlate by about 0.5 to 0.7", f"{len(rest)} of {len(rest)}", f"{len(inside)} of {len(rest)}", told, len(inside) == len(rest))  # fmt: skip


def _ranks(cells: Cells) -> Iterator[Line]:
    aria = cells.means["aria"]
    by_place = {"MMAR": aria[:, 0], "MMAU-mini": aria[:, 1], "both": aria.mean(axis=1)}
    orders = {name: [cells.models[at] for at in np.argsort(-values)] for name, values in by_place.items()}
    table_2 = [row["model"] for row in sorted(rows_of("table_2"), key=lambda row: int(row["aria_rank"]))]
    table_4 = ["GPT-4o-audio", "Gemini 2.5 Flash", "Qwen2.5-Omni", "Gemma-3n-E2B", "Phi-4", "Audio-Reasoner",
               "AudSemThinker", "R1-AQA", "Qwen2-Audio"]  # fmt: skip
    for where, printed in (("Table 2", table_2), ("Table 4", table_4)):
        same = {
            name: sum(a == b for a, b in zip(order, printed, strict=True)) for name, order in orders.items()
        }
        most = max(same.values())
        why = "models at the printed rank, by ARIA of Table 1 on " + ", ".join(
            f"{k}: {v}" for k, v in same.items()
        )
        yield line(where, "ranks by ARIA", "9 of 9", f"{most} of 9", why, most == 9)
    accuracy = {row["model"]: float(row["accuracy"]) for row in rows_of("table_2")}
    mmar = dict(zip(cells.models, cells.means["accuracy"][:, 0], strict=True))
    off = [f"{m} {accuracy[m]:.3f} against {mmar[m]:.3f}" for m in mmar if abs(accuracy[m] - mmar[m]) > 5e-4]
    yield line("Table 2", "accuracy is that of MMAR in Table 1", "9 of 9", f"{9 - len(off)} of 9", f"differs: {', '.join(off)}", not off)  # fmt: skip


def _human() -> Iterator[Line]:
    from scipy.stats import t

    for row in rows_of("table_5"):
        rho, n = float(row["rho"]), N_CELLS
        p = float(2 * t.sf(abs(rho) * math.sqrt((n - 2) / (1 - rho**2)), n - 2))
        why = f"Student's t of rho with n = {n} (9 models on 2 benchmarks)"
        if abs(p - float(row["p"])) > 0.0015:
            why += ": no such p belongs to this rho at that n"
        yield line("Table 5", f"p of {row['measure']} (rho {row['rho']})", row["p"], p, why)


def _defaults(means: list[Mean]) -> Line:
    """Tables 8 to 10 give the default backbones' means a second time."""
    cells, metrics = table_1(), {name[:2]: name for name in METRICS}
    first = {one.metric: one.backbone for one in reversed(means)}
    mine = [one for one in means if one.backbone == first[one.metric]]
    off = []
    for one in mine:
        at = cells.models.index(one.model), cells.datasets.index(one.benchmark)
        value = float(cells.means[metrics[one.metric]][at])
        if value != one.mean:
            off.append(
                f"{one.metric.upper()} of {one.model} on {one.benchmark} {one.mean:.4f} against {value:.4f}"
            )
    told, n = f"differs from Table 1: {'; '.join(off)}", len(mine)
    where, figure = "Tables 8 to 10", "default backbones as in Table 1"
    return line(where, figure, f"{n} of {n}", f"{n - len(off)} of {n}", told, not off)


def _backbones() -> Iterator[Line]:
    means = read_means("ARIA-Rubrics, Tables 8 to 10", rows_of("tables_8_to_10"))
    yield _defaults(means)
    for metric, table in (("m3", "Table 8"), ("m4", "Table 9"), ("m5", "Table 10")):
        mine = [one for one in means if one.metric == metric]
        first, *others = dict.fromkeys(one.backbone for one in mine)
        scores = {(one.backbone, one.benchmark, one.model): one.mean for one in mine}
        models = list(dict.fromkeys(one.model for one in mine))
        rhos = {
            f"{other} on {benchmark}": spearman_only(
                *(np.array([scores[name, benchmark, model] for model in models]) for name in (first, other))
            )
            for other in others
            for benchmark in ("MMAR", "MMAU-mini")
        }
        same = sum(rho > 1 - 1e-9 for rho in rhos.values())
        told = "Spearman's rho with the default: " + ", ".join(
            f"{name} {rho:.3f}" for name, rho in rhos.items()
        )
        yield line(
            table, f"{metric.upper()}: the ranking is preserved", "4 of 4", f"{same} of 4", told, same == 4
        )
