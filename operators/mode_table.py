"""A model's reasoning mode, assigned twice: from its ARIA profile (section 3.4) and from its behaviour (section 4, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pyarrow as pa

from operators.intervals import interval_of_mean
from operators.modes import Profile, modes_of_profiles
from operators.perturbation_effects import Behaviour, mode_of_behaviour

_MEANS = ("m2_inter_step_coherence", "m4_step_causality", "m5_reasoning_progress")
NEEDED = frozenset(
    {
        "model",
        "benchmark",
        "group_kind",
        "n_items",
        "accuracy",
        "aria_mean",
        *(f"{name}_mean" for name in _MEANS),
    }
)
MODES_TABLE = pa.schema(
    [
        ("model", pa.string()),
        ("mode_from_profile", pa.string()),
        *((f"aria{end}", pa.float64()) for end in ("", "_low", "_high")),
        *((f"profile_accuracy{end}", pa.float64()) for end in ("", "_low", "_high")),
        *((name, pa.int64()) for name in ("n_benchmarks", "n_items")),
        ("mode_from_behaviour", pa.string()),
        ("mode_from_behaviour_reason", pa.string()),
        # After the scaffolding chain, then after the decoration chain.
        *((name, pa.int64()) for name in ("n_compared", "n_followed", "n_kept", "n_unanswered")),
        *((f"n_decoration_{name}", pa.int64()) for name in ("compared", "kept", "unanswered")),
        ("agree", pa.bool_()),
    ]
)


def modes_side_by_side(behaviours: Mapping[str, Behaviour], summaries: Sequence[pa.Table]) -> pa.Table:
    """One row per model of either source (MODES_TABLE), best ARIA first; `agree` is null unless both gave a mode.

    summaries: of `aggregate.summarise`, with NEEDED columns at least, and not `unlike`; a model's means over several benchmarks
    are averaged, each benchmark alike, and so are the intervals of accuracy and ARIA there (`intervals.interval_of_mean`; null
    where a summary has none). A model without all of accuracy, ARIA, M2, M4 and M5 has no profile.
    """
    measured = _measured(summaries)
    profiles = _profiles(measured)
    from_profile = dict(zip(profiles, modes_of_profiles(list(profiles.values())), strict=True))
    rows = []
    for model in sorted({*profiles, *behaviours}, key=lambda name: (-_aria(profiles.get(name)), name)):
        profile, behaviour = profiles.get(model), behaviours.get(model)
        modes = from_profile.get(model), None
        row: dict[str, Any] = {"model": model, "mode_from_profile": modes[0]}
        if profile:
            row |= {"aria": profile.aria, "profile_accuracy": profile.accuracy} | _intervals(measured[model])
        if behaviour:
            row |= _of_behaviour(behaviour)
            modes = modes[0], row["mode_from_behaviour"]
        rows.append(row | {"agree": None if None in modes else modes[0] == modes[1]})
    return pa.Table.from_pylist(rows, schema=MODES_TABLE)


def unlike(summaries: Sequence[pa.Table]) -> str | None:
    """Why profiles of these summaries cannot be compared: "high" means above the median of models on the same benchmarks, each
    counted once. None: they can."""
    measured = _measured(summaries)
    places = {model: sorted(row["benchmark"] for row in measured[model]) for model in _profiles(measured)}
    for model, names in places.items():
        if twice := [name for name in {*names} if names.count(name) > 1]:
            return f"{model} is measured twice on {min(twice)}"
    (first, known), *others = [*places.items()] or [("", [])]
    for model, names in others:
        if names != known:
            return f"{first} is measured on {', '.join(known)} and {model} on {', '.join(names)}"
    return None


def _of_behaviour(behaviour: Behaviour) -> dict[str, Any]:
    mode, reason = mode_of_behaviour(behaviour)
    given, words = behaviour.scaffolding, behaviour.decoration
    return {
        "mode_from_behaviour": mode,
        "mode_from_behaviour_reason": reason,
        **{f"n_{name}": getattr(given, name) for name in ("followed", "kept", "unanswered")},
        **{f"n_decoration_{name}": getattr(words, name) for name in ("kept", "unanswered")},
        "n_compared": given.n,
        "n_decoration_compared": words.n,
    }


def _aria(profile: Profile | None) -> float:
    return profile.aria if profile else -1.0


def _measured(summaries: Sequence[pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """The overall rows of every model, one per benchmark."""
    found: dict[str, list[dict[str, Any]]] = {}
    for summary in summaries:
        for row in summary.to_pylist():
            if row["group_kind"] == "overall":
                found.setdefault(row["model"], []).append(row)
    return found


def _profiles(measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Profile]:
    names = ("accuracy", "aria_mean", *(f"{name}_mean" for name in _MEANS))
    values = {model: [[row[name] for name in names] for row in rows] for model, rows in measured.items()}
    return {
        model: Profile(*(sum(column) / len(column) for column in zip(*rows, strict=True)))
        for model, rows in values.items()
        if all(value is not None and isfinite(value) for row in rows for value in row)
    }


def _intervals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"n_benchmarks": len(rows), "n_items": sum(row["n_items"] for row in rows)}
    for name, value, stem in (("aria", "aria_mean", "aria"), ("profile_accuracy", "accuracy", "accuracy")):
        parts = [tuple(row.get(key) for key in (value, f"{stem}_low", f"{stem}_high")) for row in rows]
        if None not in [end for part in parts for end in part]:
            found[f"{name}_low"], found[f"{name}_high"] = interval_of_mean(parts)
    return found
