"""What a night leaves behind beside its tables: of which models its rows are, and how it differs from the night before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from operators import drift_report
from operators.carrying import response_parts
from operators.drift import Drift
from operators.store import Store


def seen_of(store: Store, named: Mapping[str, Any], voting: Mapping[str, Any]) -> dict[str, Any]:
    """What a night's record says of the models whose rows it has, and of those whose trials vote in it."""
    models = {
        new: describe(store, fingerprint) for fingerprint, names in named.items() for new in names.values()
    }
    voted = [
        {
            "model": one.name,
            "benchmark": label,
            "reader": one.reader,
            **describe(store, fingerprint, "presented"),
        }
        for fingerprint, names in voting.items()
        for (_, label), one in names.items()
    ]
    return {"models": models, "voted": voted}


def describe(store: Store, fingerprint: str, kind: str = "asked") -> dict[str, Any]:
    """What a night's record says of a model."""
    found = store.shelf(f"{kind}/{fingerprint}").spec() or {}
    return {
        "fingerprint": fingerprint,
        "spec": found.get("spec"),
        "response_parts": response_parts(store, fingerprint),
    }


def write_drift(folder: Path, found: Drift | None, others: list[str], failed: Sequence[str]) -> None:
    """drift.md and drift.json; before there is a night to compare with they say so. What `failed` tonight is an alarm in
    both, as it is in the exit status."""
    told = {"last": None, "alert": False, "alarms": [], "outages": [], "changes": []}
    text = "# Drift\n\nThis is the first night of its series: there is nothing to compare with.\n"
    if found:
        told, text = drift_report.to_json(found, others), drift_report.to_markdown(found, others)
    if failed:
        told |= {"alert": True, "alarms": [*failed, *told["alarms"]]}
        lines = [f"- {drift_report.markdown_words(one)}" for one in failed]
        text += "\n".join(["", "## Failed tonight", "", *lines, ""])
    (folder / "drift.json").write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    (folder / "drift.md").write_text(text, encoding="utf-8")


def show_drift(found: Drift | None) -> bool:
    """Print the headline and the alarms; whether there are any."""
    if found is None:
        print("first night of its series: there is nothing to compare with")
        return False
    told = drift_report.alarms(found)
    print(drift_report.headline(found))
    for line in told[:10]:
        print(f"  ! {line}")
    if len(told) > 10:
        print(f"  ! and {len(told) - 10} more, in drift.md")
    return bool(told)
