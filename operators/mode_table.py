"""A model's reasoning mode, assigned twice: from its ARIA profile (section 3.4) and from its behaviour (section 4, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.modes import Profile, modes_of_profiles
from operators.perturbation_effects import Behaviour, mode_of_behaviour

_MEANS = ("m2_inter_step_coherence", "m4_step_causality", "m5_reasoning_progress")
MODES_TABLE = pa.schema(
    [
        ("model", pa.string()),
        ("mode_from_profile", pa.string()),
        ("aria", pa.float64()),
        ("profile_accuracy", pa.float64()),
        ("mode_from_behaviour", pa.string()),
        ("n_compared", pa.int64()),
        ("n_followed", pa.int64()),
        ("n_kept", pa.int64()),
        ("agree", pa.bool_()),
    ]
)


def modes_side_by_side(behaviours: Mapping[str, Behaviour], summaries: Sequence[pa.Table]) -> pa.Table:
    """One row per model of either source (MODES_TABLE), best ARIA first; `agree` is null unless both gave a mode.

    summaries: of `aggregate.summarise`; a model's means over several benchmarks are averaged, each benchmark alike. A model
    without all of accuracy, ARIA, M2, M4 and M5 has no profile.
    """
    profiles = _profiles(summaries)
    from_profile = dict(zip(profiles, modes_of_profiles(list(profiles.values())), strict=True))
    rows = []
    for model in sorted({*profiles, *behaviours}, key=lambda name: (-_aria(profiles.get(name)), name)):
        profile, behaviour = profiles.get(model), behaviours.get(model)
        modes = from_profile.get(model), None if behaviour is None else mode_of_behaviour(behaviour)
        row: dict[str, Any] = {"model": model, "mode_from_profile": modes[0], "mode_from_behaviour": modes[1]}
        if profile:
            row |= {"aria": profile.aria, "profile_accuracy": profile.accuracy}
        if behaviour:
            row |= {"n_compared": behaviour.n, "n_followed": behaviour.followed, "n_kept": behaviour.kept}
        rows.append(row | {"agree": None if None in modes else modes[0] == modes[1]})
    return pa.Table.from_pylist(rows, schema=MODES_TABLE)


def _aria(profile: Profile | None) -> float:
    return profile.aria if profile else -1.0


def _profiles(summaries: Sequence[pa.Table]) -> dict[str, Profile]:
    found: dict[str, list[list[float | None]]] = {}
    for summary in summaries:
        for row in summary.to_pylist():
            if row["group_kind"] == "overall":
                means = [row["accuracy"], *(row[f"{name}_mean"] for name in ("aria", *_MEANS))]
                found.setdefault(row["model"], []).append(means)
    return {
        model: Profile(*(sum(column) / len(column) for column in zip(*rows, strict=True)))
        for model, rows in found.items()
        if None not in [value for row in rows for value in row]
    }
