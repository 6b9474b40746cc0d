"""How often 95% intervals of statistics of ranks hold the truth, and how wide they are, where the truth is known.

python -m tests.bench.coverage                  what operators.analysis.rank_intervals says of itself, in minutes
python -m tests.bench.coverage --tables 20      roughly
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np

from operators.analysis.estimates import moved_interval, percentile_interval
from operators.analysis.rank_intervals import rank_correlations, rank_interval
from operators.statistics import concordances

NOISE = 0.2  # of an item's score
STATES = 8
Interval = tuple[float, float]


def w(tables: np.ndarray) -> np.ndarray:
    """W of [..., models, benchmarks]."""
    return concordances(np.swapaxes(tables, -1, -2))


def of_models(
    rng: np.random.Generator, n_models: int, n_benchmarks: int, n_items: int, spread: float, agree: float,
    n_resamples: int,
) -> tuple[float, dict[str, Interval]]:  # fmt: skip
    """W of true means, of which benchmarks share `agree` of the variance, and the intervals that its items give."""
    shared, own = rng.normal(size=(n_models, 1)), rng.normal(size=(n_models, n_benchmarks))
    means = spread * (np.sqrt(agree) * shared + np.sqrt(1 - agree) * own)
    values = means[..., None] + rng.normal(0, NOISE, (*means.shape, n_items))
    even = np.full(n_items, 1 / n_items)
    weights = rng.multinomial(n_items, even, (n_resamples, n_benchmarks)) / n_items
    table, redrawn = values.mean(axis=-1), np.einsum("mbi,rbi->rmb", values, weights)
    return float(w(means)), {
        "percentile": percentile_interval(w(redrawn)),
        "ours": rank_interval(w, table, redrawn),
    }


def of_profiles(
    rng: np.random.Generator, n_items: int, evenness: float, likeness: float, n_resamples: int
) -> tuple[float, dict[str, Interval]]:
    """rho of two profiles, of which the second is `likeness` of the first, and the intervals that items of two instances give,
    half of them alike."""
    first, other = rng.dirichlet(np.full(STATES, evenness), 2)
    truth = np.stack([first, likeness * first + (1 - likeness) * other], axis=1)
    drawn = []
    for masses in truth.T:
        states = rng.choice(STATES, (n_items, 2), p=masses)
        states[:, 1] = np.where(rng.random(n_items) < 0.5, states[:, 0], states[:, 1])
        counts = (states[..., None] == np.arange(STATES)).mean(axis=1)
        weights = rng.multinomial(n_items, np.full(n_items, 1 / n_items), n_resamples)
        drawn.append(np.concatenate([np.full((1, n_items), 1 / n_items), weights / n_items]) @ counts)
    both = np.stack(drawn, axis=-1)
    rho = rank_correlations(both)
    moved = moved_interval(rho[1:], float(rho[0]), (-1.0, 1.0))
    ranks = rank_interval(rank_correlations, both[0], both[1:])
    ours = (np.minimum(moved[0], ranks[0]), np.maximum(moved[1], ranks[1]))
    return float(rank_correlations(truth)), {"moved": moved, "ours": ours}


def coverage(
    draw: Callable[[], tuple[float, dict[str, Interval]]], n_tables: int
) -> dict[str, tuple[float, float, int]]:
    """{interval: (share of tables whose interval holds the truth, mean width, tables that have one)}."""
    held: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(n_tables):
        truth, intervals = draw()
        for name, (low, high) in intervals.items():
            if np.isfinite([truth, low, high]).all():
                held.setdefault(name, []).append((low - 1e-9 <= truth <= high + 1e-9, high - low))
    return {name: (*np.mean(found, axis=0).tolist(), len(found)) for name, found in held.items()}


def bench(n_tables: int, n_resamples: int = 300, seed: int = 0) -> None:
    """Print a line per setting."""
    rng = np.random.default_rng(seed)
    settings: list[tuple[str, Callable[[], tuple[float, dict[str, Interval]]]]] = []
    for case in product((4, 9), (2, 3), (31, 200), (0.02, 0.1), (0, 0.5, 0.9, 1)):
        told = "W: {} models, {} benchmarks of {} items, spread {}, agreement {}".format(*case)
        settings.append((told, lambda case=case: of_models(rng, *case, n_resamples)))
    for case in product((10, 20, 60, 200), (0.3, 1), (1, 0.9, 0)):
        told = "rho: {} items, evenness {}, likeness {}".format(*case)
        settings.append((told, lambda case=case: of_profiles(rng, *case, n_resamples)))
    for told, draw in settings:
        said = (f"{name} {share:.2f} (width {width:.2f}, {n} of {n_tables})" for name, (share, width, n) in coverage(draw, n_tables).items())  # fmt: skip
        print(f"{told}: {', '.join(said)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200)
    bench(parser.parse_args().tables)
