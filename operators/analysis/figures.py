"""The figures of an analysis, each as PNG and SVG: colours that the colour-blind tell apart, legible in grey.

Names come from users and models: no text is read as mathematics or markup. Nothing here keeps state between figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from operators.analysis.estimates import Line
from operators.printing import printable
from operators.schema import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours; hatches tell bars apart in print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#BBBBBB"
NAMES = {**{metric: metric[:2].upper() for metric in METRICS}, "aria": "ARIA", "accuracy": "Accuracy"}


def write_figures(folder: Path, estimates: pa.Table) -> list[str]:
    """Draw every figure that the lines of ESTIMATES allow, as <name>.png and <name>.svg; the names drawn."""
    lines = estimates.to_pylist()
    drawn = []
    for name, (wanted, draw) in FIGURES.items():
        mine = [line for line in lines if wanted(line) and line["estimate"] is not None]
        if mine:
            save(folder, name, lambda axes, mine=mine, draw=draw: draw(axes, mine))
            drawn.append(name)
    return drawn


def save(
    folder: Path, name: str, draw: Callable[[Axes], None], size: tuple[float, float] = (7.0, 4.2)
) -> None:
    """One figure drawn by `draw` on a pair of axes, as <name>.png (200 dpi) and <name>.svg with its text as text."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        figure.savefig(folder / f"{name}.png", dpi=200)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def label(text: str | None) -> str:
    """A name as it stands in a figure: printable, on one line, not too long."""
    return printable(NAMES.get(text or "", text), limit=40)


def _variance(axes: Axes, lines: Sequence[Line]) -> None:
    """Figure 2: stacked shares of variance by model, by dataset, and of neither."""
    measures = list(dict.fromkeys(line["measure"] for line in lines))
    bottom = np.zeros(len(measures))
    for part, colour, hatch in (("model", BLUE, ""), ("dataset", ORANGE, "//"), ("residual", GREY, "..")):
        found = {line["measure"]: line["estimate"] for line in lines if line["statistic"].endswith(part)}
        heights = np.array([found.get(measure, 0.0) for measure in measures])
        axes.bar(
            range(len(measures)),
            heights,
            bottom=bottom,
            color=colour,
            hatch=hatch,
            label=part,
            edgecolor="white",
        )
        bottom += heights
    axes.set(ylabel="share of variance", ylim=(0, 1), xticks=range(len(measures)))
    axes.set_xticklabels([label(measure) for measure in measures])
    axes.figure.legend(loc="outside upper center", ncols=3, frameon=False)


def _agreement(axes: Axes, lines: Sequence[Line]) -> None:
    """Figure 3: ICC(2,1) and Kendall's W by measure, with intervals."""
    measures = list(dict.fromkeys(line["measure"] for line in lines))
    for shift, (statistic, told, colour, hatch) in enumerate(
        (("icc_2_1", "ICC(2,1)", BLUE, ""), ("kendalls_w", "Kendall's W", ORANGE, "//"))
    ):
        mine = [line for line in lines if line["statistic"] == statistic]
        places = [measures.index(line["measure"]) + 0.4 * shift - 0.2 for line in mine]
        axes.bar(
            places,
            [line["estimate"] for line in mine],
            0.38,
            color=colour,
            hatch=hatch,
            label=told,
            edgecolor="white",
        )
        _whiskers(axes, places, mine, vertical=True)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(ylabel="coefficient", xticks=range(len(measures)))
    axes.set_xticklabels([label(measure) for measure in measures])
    axes.figure.legend(loc="outside upper center", ncols=3, frameon=False)


def _heat_map(axes: Axes, lines: Sequence[Line]) -> None:
    """Figure 4: Pearson's r between metrics, over the models' means."""
    size = len(METRICS)
    table = np.eye(size)
    table[~np.eye(size, dtype=bool)] = np.nan
    for line in lines:
        a, b = METRICS.index(line["measure"]), METRICS.index(line["versus"])
        table[a, b] = table[b, a] = line["estimate"]
    image = axes.imshow(table, cmap="PuOr", vmin=-1, vmax=1)
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                color="white" if abs(value) > 0.7 else "black",
            )
    axes.set(xticks=range(size), yticks=range(size))
    axes.set_xticklabels([label(metric) for metric in METRICS])
    axes.set_yticklabels([label(metric) for metric in METRICS])
    axes.figure.colorbar(image, ax=axes, label=f"Pearson's r over {lines[0]['n']} {lines[0]['unit']}")


def _dots(axes: Axes, lines: Sequence[Line]) -> None:
    """One dot and interval per line, first line on top."""
    places = list(range(len(lines)))[::-1]
    axes.scatter([line["estimate"] for line in lines], places, color=BLUE, zorder=3)
    _whiskers(axes, places, lines, vertical=False)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places)
    axes.set_yticklabels([_told(line) for line in lines])
    axes.set(
        xlabel=f"{lines[0]['statistic'].replace('_', ' ')} (95% interval)", ylim=(-0.7, len(lines) - 0.3)
    )
    axes.figure.set_figheight(max(2.5, 1.0 + 0.28 * len(lines)))


def _told(line: Line) -> str:
    where = (line["note"] or "").partition(";")[0] if line["analysis"] in ("ablation", "judges") else ""
    parts = [label(line["measure"])]
    parts += [label(line["versus"])] if line["versus"] and line["analysis"] != "human" else []
    return ", ".join([*parts, *([label(where)] if where else []), f"n={line['n']}"])


def _whiskers(axes: Axes, places: Sequence[float], lines: Sequence[Line], vertical: bool) -> None:
    for place, line in zip(places, lines, strict=True):
        if line["low"] is not None and line["high"] is not None:
            ends, at = [line["low"], line["high"]], [place, place]
            axes.plot(*((at, ends) if vertical else (ends, at)), color="black", linewidth=1)


def _is(analysis: str, *statistics: str, unit: str | None = None) -> Callable[[Line], bool]:
    return lambda line: (
        line["analysis"] == analysis and line["statistic"] in statistics and unit in (None, line["unit"])
    )


_ETA = tuple(f"eta_squared_{part}" for part in ("model", "dataset", "residual"))
FIGURES: dict[str, tuple[Callable[[Line], bool], Callable[[Axes, Sequence[Line]], None]]] = {
    "variance": (_is("consistency", *_ETA), _variance),
    "agreement": (_is("consistency", "icc_2_1", "kendalls_w"), _agreement),
    "metric_correlations": (_is("metrics", "pearson_r", unit="models"), _heat_map),
    "metric_correlations_of_chains": (_is("metrics", "pearson_r", unit="chains"), _heat_map),
    "human_correlations": (_is("human", "spearman_rho", unit="chains"), _dots),
    "judges": (_is("judges", "spearman_rho"), _dots),
    "ablation": (_is("ablation", "spearman_rho"), _dots),
    "m1_manipulation": (_is("table_13", "change_of_m1"), _dots),
}
