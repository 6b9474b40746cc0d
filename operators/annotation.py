"""People rate chains of thought: which chains, who rates which, and what comes back (ARIA-Rubrics, section 4, "Human
evaluation").

The paper draws 10 chains per model, over the range of reasoning quality and over the benchmarks, and gives every chain
to the three raters of one group. *Our reading* of "stratified": the chains of a model on a benchmark, in the order of
their ARIA, are cut into as many runs as are to be drawn, and one chain is drawn from each. Raters see neither model,
nor scores, nor the right answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from operators.analysis.ratings import Rating, reliability
from operators.columns import RowError, is_null, number_of, text_of
from operators.tables import Row, TableError

SCALE = (1, 2, 3, 4, 5)
RATINGS = pa.schema(
    [(name, pa.string()) for name in ("item_id", "model", "benchmark")]
    + [("trial", pa.int64())]
    + [(name, pa.string()) for name in ("rater", "group")]
    + [("rating", pa.int64()), ("annotated_at", pa.string())]
)
Word = tuple[int | None, str | None]  # a rating, null where it was taken back, and its annotated_at
_FIELDS = ("study", "group", "rater", "chain", "rating", "annotated_at")


class Chain(NamedTuple):
    """A drawn row of a run: its place in the table, what it is, the code under which raters meet it, their group."""

    row: int
    item_id: str
    model: str
    benchmark: str
    trial: int
    code: str
    group: str


def draw(rows: pa.Table, per_model: int, n_groups: int, seed: int) -> list[Chain]:
    """`per_model` chains of every model (fewer where it has fewer), shared out over `n_groups` groups of raters.

    Only rows with a response and an ARIA can be drawn, and one trial of an item. The benchmarks of a model share its
    chains as evenly as goes: what one is short of the others give. Every group meets every model as often as goes.
    """
    rng = np.random.default_rng(seed)
    strata = _strata(rows)
    chosen: dict[str, list[int]] = {}
    for model in sorted({model for model, _ in strata}):
        mine = [strata[key] for key in sorted(strata) if key[0] == model]
        for quota, ordered in zip(_quotas(per_model, [len(one) for one in mine]), mine, strict=True):
            runs = [run for run in np.array_split(ordered, quota) if len(run)] if quota else []
            chosen.setdefault(model, []).extend(int(rng.choice(run)) for run in runs)
    dealt = [row for model in chosen for row in rng.permutation(chosen[model]).tolist()]
    groups = {row: str(place % n_groups + 1) for place, row in enumerate(dealt)}
    # What raters meet must not tell models apart: neither the order nor the code.
    return [_chain(rows, row, groups[row], seed) for row in rng.permutation(dealt).tolist()]


def _strata(rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    """Rows that can be drawn by (model, benchmark), the lowest ARIA first."""
    wanted = rows.select(["model", "benchmark", "item_id", "response", "aria"]).to_pylist()
    found: dict[tuple[str, str], dict[str, int]] = {}
    for place, row in enumerate(wanted):
        if row["response"] and row["aria"] is not None:
            found.setdefault((row["model"], row["benchmark"]), {}).setdefault(row["item_id"], place)
    return {
        key: sorted(items.values(), key=lambda place: wanted[place]["aria"]) for key, items in found.items()
    }


def _quotas(total: int, sizes: Sequence[int]) -> list[int]:
    """`total` over strata of `sizes` as evenly as goes, none above its size; the first ones get what is over."""
    quotas, left = [0] * len(sizes), total
    for done, place in enumerate(sorted(range(len(sizes)), key=lambda at: (sizes[at], -at))):
        quotas[place] = min(sizes[place], left // (len(sizes) - done))
        left -= quotas[place]
    return quotas


def _chain(rows: pa.Table, row: int, group: str, seed: int) -> Chain:
    names = [rows[name][row].as_py() for name in ("item_id", "model", "benchmark")]
    code = hashlib.sha256(json.dumps([seed, *names, row]).encode()).hexdigest()[:12]
    return Chain(row, *names, rows["trial"][row].as_py() or 0, code, group)


def study_id(chains: Sequence[Chain]) -> str:
    """A short name of this very draw, which every rating carries."""
    return hashlib.sha256(json.dumps([chain[1:] for chain in chains]).encode()).hexdigest()[:12]


def plan(chains: Sequence[Chain], n_raters: int) -> dict[str, Any]:
    """What the reader of the ratings needs, and raters must not see."""
    told = ("code", "group", "item_id", "model", "benchmark", "trial")
    kept = [{name: getattr(chain, name) for name in told} for chain in chains]
    return {"study": study_id(chains), "n_raters": n_raters, "chains": kept}


def read_exports(files: Mapping[str, Sequence[Row]], plan: Mapping[str, Any]) -> pa.Table:
    """The rows of exported files as RATINGS: one per rater and chain of the rater's group, rating null where missing.

    A rater may save often and send all files in any order: of two ratings of one chain the later
    `annotated_at` stands (one taken back later is missing), and a chain not met yet when a file was saved says nothing.
    Raises TableError naming file and row for another study, an unknown chain, a rating off the scale, a chain of
    another group, or two different ratings of one chain by one rater of which neither is known to be the later.
    """
    chains = {chain["code"]: chain for chain in plan["chains"]}
    said: dict[tuple[str, str], Word] = {}
    groups: dict[str, str] = {}
    for file, rows in files.items():
        for row in rows:
            try:
                rater, chain, group, *word = _rated(row, plan["study"], chains)
                if groups.setdefault(rater, group) != group:
                    raise RowError(f"bad_group: rater {rater!r} rates for groups {groups[rater]} and {group}")
                if any(part is not None for part in word):
                    known = said.get((rater, chain), tuple(word))
                    said[rater, chain] = _later(known, tuple(word), f"rater {rater!r} rates chain {chain}")
            except RowError as error:
                raise TableError(f"{file}, {row.place}: {error}") from None
    lines = []
    for rater, group in groups.items():
        for code, chain in chains.items():
            if chain["group"] == group:
                rating, when = said.get((rater, code), (None, None))
                what = {name: chain.get(name) for name in ("item_id", "model", "benchmark", "trial")}
                lines.append(what | {"rater": rater, "group": group, "rating": rating, "annotated_at": when})
    return pa.Table.from_pylist(lines, schema=RATINGS)


def _later(known: Word, other: Word, who: str) -> Word:
    """Of two words on one chain the later one. Raises RowError where they differ and neither is known to be the later."""
    times = _moment(known[1]), _moment(other[1])
    if known[0] != other[0] and (None in times or times[0] == times[1]):
        told = " and ".join(f"{rating} at {when or 'no time'}" for rating, when in (known, other))
        raise RowError(f"rated_twice: {who} twice, differently ({told}); remove the one that does not count")
    return other if times[1] and (times[0] is None or times[1] > times[0]) else known


def _moment(when: str | None) -> datetime | None:
    """The time that the rating page wrote, UTC unless it says otherwise; None for none."""
    try:
        moment = datetime.fromisoformat(when or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _rated(row: Row, study: str, chains: Mapping[str, Any]) -> tuple[str, str, str, int | None, str | None]:
    missing = [name for name in _FIELDS if name not in row]
    if missing:
        raise RowError(f"not_an_export: no {missing[0]!r}; give the files that the rating page saves")
    if row["study"] != study:
        raise RowError(
            f"other_study: these ratings are of study {text_of(row['study'], 'study')!r}, the plan is {study!r}"
        )
    code, group = text_of(row["chain"], "chain"), text_of(row["group"], "group")
    if code not in chains:
        raise RowError(f"unknown_chain: the plan has no chain {code!r}")
    if chains[code]["group"] != group:
        raise RowError(f"bad_group: chain {code} belongs to group {chains[code]['group']}, not {group}")
    rater = text_of(row["rater"], "rater").strip()
    if not rater:
        raise RowError("bad_rater: empty")
    rating = None if is_null(row["rating"]) else number_of(row["rating"], "rating")
    if rating is not None and rating not in SCALE:
        raise RowError(f"bad_rating: from 1 to 5, not {rating}")
    return rater, code, group, rating, text_of(row["annotated_at"], "annotated_at") or None


def disagreement(ratings: pa.Table, n_raters: int) -> list[dict[str, Any]]:
    """Per group: raters (and how many are expected), ratings, missing ones; of the chains with two or more ratings how many
    have some 2 or more apart, and the mean span from the lowest to the highest (NaN for no such chain).

    Krippendorff's alpha, with intervals, is what `pipelines.analyse` makes of the same table.
    """
    rows = ratings.to_pylist()
    found = []
    for group in sorted({row["group"] for row in rows}):
        mine = [row for row in rows if row["group"] == group]
        known = [
            Rating(row["item_id"], row["model"], row["rater"], group,
                   float("nan") if row["rating"] is None else row["rating"], row["benchmark"] or "", row["trial"])
            for row in mine
        ]  # fmt: skip
        matrix, _ = reliability(known)
        compared = matrix[:, np.isfinite(matrix).sum(axis=0) > 1]
        spread = np.nanmax(compared, axis=0) - np.nanmin(compared, axis=0) if compared.size else np.array([])
        found.append({
            "group": group, "n_raters": len(matrix), "n_expected": n_raters, "n_ratings": int(np.isfinite(matrix).sum()),
            "n_missing": int(np.isnan(matrix).sum()), "n_compared": int(spread.size),
            "n_apart": int((spread >= 2).sum()), "mean_span": float(spread.mean()) if spread.size else float("nan"),
        })  # fmt: skip
    return found
