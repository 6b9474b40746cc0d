"""Where the right option stands: each position as often as any other, so that no fixed letter wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random


def gold_positions(n_items: int, n_candidates: int, so_far: Counter[int], rng: Random) -> list[int]:
    """A position in 0..n_candidates-1 for each of `n_items`, in random order.

    Each position comes floor(n_items / n_candidates) times; the rest goes to the positions that `so_far`
    (counts over the benchmark's other tasks) has least often, ties at random. So positions differ by at most
    one within a task, and by at most one over all tasks.
    """
    positions = list(range(n_candidates)) * (n_items // n_candidates)
    order = rng.sample(range(n_candidates), n_candidates)
    positions += sorted(order, key=lambda position: so_far[position])[: n_items % n_candidates]
    rng.shuffle(positions)
    return positions


def position_table(rows: Sequence[dict], n_candidates: int) -> dict[str, list[int]]:
    """{task: how often the right option is first, second ...}, of an item file's rows."""
    table: dict[str, list[int]] = {}
    for row in rows:
        table.setdefault(row["task"], [0] * n_candidates)[row["answer_index"]] += 1
    return table
