"""How sure are the likeness of two runs' state profiles and its slope (section 5.3, Figure 6)? Items drawn anew.

The profiles of two runs are samples of items: each run's items are drawn with replacement, with all instances about them,
and for all its judges at once, since these heard the same items. Noise takes a correlation down, and a resample's noise
takes it down once more: so its interval, and that of the slope, is moved by twice that bias, as `estimates.moved_interval`
says. Ranks are upset by noise that leaves r nearly alone: Spearman's interval holds that of its resamples both moved and not,
and what `rank_intervals` finds possible. The largest of eight differences is never 0 by chance; its interval is as wide as the
largest of the eight strays in 95% of resamples, to either side, which can only be too wide (the largest of |d| strays no
farther than the d's do).

In 60 simulated pairs of runs with 20 or 60 items of two instances each, alike or not (r = 0.9), the intervals of Pearson's r
held the truth in 93 to 100%, those of the slope in 82 to 92%; Spearman's, in 200 pairs, in 94 to 100% where profiles are equal
or nearly so, and in 84 to 96% of unlike ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from operators.analysis.estimates import LEVEL, few, moved_interval
from operators.analysis.rank_intervals import rank_correlations, rank_interval
from operators.audit_states import STATE_NAMES

METHOD = (
    "percentile bootstrap, items of either run drawn with all their instances, moved by twice its bias; of Spearman's rho also "
    "as it is, and its upper end also by inverting a test; of the largest difference: 95% of the largest strayings"
)
BOUNDS = {
    "pearson": (-1.0, 1.0), "spearman": (-1.0, 1.0), "slope": (-math.inf, math.inf), "largest_difference": (0.0, 1.0),
}  # fmt: skip
Drawn = dict[str, np.ndarray]  # {judge: masses of the eight states [1 + n_resamples, 8], first as they are}


def redrawn(
    instances: Iterable[Mapping[str, Any]], n_resamples: int, seed: int
) -> dict[str, tuple[Drawn, int]]:
    """{cue: (the masses of every judge, as they are and over resamples of items; number of items)} of one run's INSTANCE rows.

    Controls and instances that lack an outcome stay out, as they do of the profiles. A resample in which a judge has no
    instance has no masses there: NaN.
    """
    places = {state: place for place, state in enumerate(STATE_NAMES)}
    found: dict[str, dict[tuple[str, str], dict[str, np.ndarray]]] = {}
    for row in instances:
        outcomes = [row[name] for name in "poj"]
        if row["control"] == "none" and None not in outcomes:
            item = found.setdefault(row["cue"], {}).setdefault((row["benchmark"], row["item_id"]), {})
            counts = item.setdefault(row["model"], np.zeros(len(STATE_NAMES)))
            counts[places["".join(str(int(outcome)) for outcome in outcomes)]] += 1
    return {
        cue: (_drawn(list(items.values()), n_resamples, seed), len(items)) for cue, items in found.items()
    }


def _drawn(items: Sequence[Mapping[str, np.ndarray]], n_resamples: int, seed: int) -> Drawn:
    n = len(items)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    weights = np.concatenate([np.ones((1, n)), weights])
    nothing, drawn = np.zeros(len(STATE_NAMES)), {}
    for model in dict.fromkeys(model for item in items for model in item):
        counts = weights @ np.stack([item.get(model, nothing) for item in items])
        with np.errstate(invalid="ignore"):
            drawn[model] = counts / counts.sum(axis=1, keepdims=True)
    return drawn


def intervals(
    values: Mapping[str, float | None], first: np.ndarray, second: np.ndarray, n_items: Sequence[int]
) -> dict[str, Any]:
    """`<name>_low`, `<name>_high` of every comparison in `values`, and why there are none; first, second: masses [1 + n_resamples,
    states] as `redrawn` gives them."""
    ends: dict[str, Any] = {f"{name}_{end}": None for name in BOUNDS for end in ("low", "high")}
    if min(n_items) < 2:
        return ends | {
            "interval_reason": f"too_few: {min(n_items)} item in a run, and an interval draws from two"
        }
    if not np.ptp(first, axis=0).any() and not np.ptp(second, axis=0).any():
        return ends | {
            "interval_reason": "no_spread: all items of a run are alike, so that drawing them anew changes nothing"
        }
    for name, drawn in _correlations(first[1:], second[1:]).items():
        if values[name] is not None:
            low, high = moved_interval(drawn, values[name], BOUNDS[name])
            if name == "spearman":
                low, high = _of_ranks(low, high, np.stack([first, second], axis=-1))
            ends |= {f"{name}_low": _number(low), f"{name}_high": _number(high)}
    low, high = _around_the_largest(values["largest_difference"], (first - second)[1:])
    ends |= {"largest_difference_low": _number(low), "largest_difference_high": _number(high)}
    lost = [name for name in BOUNDS if ends[f"{name}_low"] is None]
    told = f"undefined: in resamples {', '.join(lost)} did not exist, or never changed" if lost else None
    return ends | {"interval_reason": told}


def _of_ranks(low: float, high: float, both: np.ndarray) -> tuple[float, float]:
    """The moved interval of Spearman's rho, so wide that it holds the unmoved one and what noise lets be possible; both: masses
    [1 + n_resamples, states, runs]. NaN where either is."""
    others = rank_interval(rank_correlations, both[0], both[1:])
    return float(np.minimum(low, others[0])), float(np.maximum(high, others[1]))


def _around_the_largest(largest: float, apart: np.ndarray) -> tuple[float, float]:
    """The interval of the largest of differences that were `apart` [n_resamples, states] in resamples; NaN where a tenth
    of these or more are unknown."""
    known = apart[np.isfinite(apart).all(axis=1)]
    if len(known) < 0.9 * len(apart):
        return math.nan, math.nan
    half = float(np.quantile(np.abs(known - known.mean(axis=0)).max(axis=1), LEVEL))
    return max(0.0, largest - half), min(1.0, largest + half)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _correlations(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Correlations and slope row by row [n_resamples]; NaN where a side is constant or unknown."""
    return {
        "pearson": _pearson(first, second)[0],
        "spearman": rank_correlations(np.stack([first, second], axis=-1)),
        "slope": _pearson(first, second)[1],
    }


def _pearson(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pearson's r of every row of x and y, and the least-squares slope of y on x."""
    x, y = (one - one.mean(axis=1, keepdims=True) for one in (x, y))
    xx, yy, xy = (x * x).sum(axis=1), (y * y).sum(axis=1), (x * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return xy / np.sqrt(xx * yy), xy / xx


def with_intervals(
    rows: Iterable[Mapping[str, Any]], instances: Sequence[Iterable[Mapping[str, Any]]], pooled: str, n_resamples: int,
    seed: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Rows of `validity.profiles` with the intervals of their values; instances: the INSTANCE rows of the first runs and
    of the second. The row of the model `pooled` is about all judges of its cue that have a profile."""
    rows = list(rows)
    sides = [redrawn(side, n_resamples, seed + place) for place, side in enumerate(instances)]
    found = []
    for row in rows:
        if row["largest_difference"] is None:
            found.append(row | {"interval_reason": row["reason"]})
            continue
        judges = [row["model"]] if row["model"] != pooled else _judges(rows, row["cue"], pooled)
        drawn = [side.get(row["cue"], ({}, 0)) for side in sides]
        n_items = [n for _, n in drawn]
        about = {
            "n_items_first": n_items[0],
            "n_items_second": n_items[1],
            "method": METHOD,
            "note": few(min(n_items)),
        }
        if not all(judge in masses for judge in judges for masses, _ in drawn):
            found.append(row | about | {"interval_reason": "no_instances: the run kept none of this judge"})
            continue
        masses = [np.concatenate([one[judge] for judge in judges], axis=1) for one, _ in drawn]
        found.append(row | about | intervals(row, *masses, n_items))
    return found


def _judges(rows: Iterable[Mapping[str, Any]], cue: str, pooled: str) -> list[str]:
    """The judges of a cue that have a profile, in order."""
    mine = [row for row in rows if row["cue"] == cue and row["model"] != pooled]
    return [row["model"] for row in mine if row["largest_difference"] is not None]
