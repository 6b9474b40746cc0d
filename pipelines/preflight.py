"""What is certain to fail is said before anything is generated: a key that is not there, clips beyond a model's limits."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from operators.lalms.hearing import over_limits
from operators.spool import Spool, portions
from pipelines.config import ConfigError

PORTION = 4096  # rows that are Python objects at one time

CHOOSE_LENGTH = (
    "set model.limits.over_long=skip to leave those rows out by name, or =truncate to let the model hear the beginning of "
    "their clips, which their rows then say"
)
# Clips are cut one by one: no limit on all of them says how much of each is to be heard.
OF_EACH = ", with as many seconds of each in model.limits.max_seconds as fit together"


def check_ready(model: Any) -> None:
    """Ask the model itself whether it can run, where it can tell. Raises what its `check()` raises."""
    check = getattr(model, "check", None)
    if check is not None:
        check()


def check_counts(model: Any, needs: Iterable[tuple[int, str]], advice: str) -> None:
    """Refuse a model that cannot take all clips of an item; say so where nobody told how many it takes. `needs`: (clips,
    item id). Raises ConfigError."""
    most, limits = getattr(model, "max_clips", None), getattr(model, "known_limits", None)
    over = [(need, name) for need, name in needs if need > (most or 1)]
    if not over:
        return
    need, name = max(over)
    if most is not None:
        more = "" if limits is None else ", or a larger model.limits.max_clips if it can take them"
        raise ConfigError(
            f"{type(model).__name__} takes at most {most} clips, and {len(over)} items need more (item {name!r}: {need}); "
            f"{advice}{more}"
        )
    if limits is not None and limits.max_clips is None and model.sends_clips:
        print(
            f"note: how many clips {type(model).__name__} takes is not known (model.limits.max_clips is null), and {len(over)} "
            f"items have several (item {name!r}: {need}); a checkpoint or server that takes one fails on them row by row",
            file=sys.stderr,
        )


def sized(model: Any, needs: Iterable[tuple[int, str]]) -> Any:
    """`model`, whose engine sets memory aside for as many clips a prompt as the items need and no more, if it is one that does.

    needs: (clips, item id). No part of its identity: what it takes, it takes as before.
    """
    most = max((need for need, _ in needs), default=0)
    if not most or getattr(model, "clips_per_prompt", most) is not None:
        return model
    return dataclasses.replace(model, clips_per_prompt=most)


def check_seconds(model: Any, rows: pa.Table | Spool) -> None:
    """Refuse clips that are longer than a model can take, or larger than its server does, before the first of `rows` is
    generated. Raises ConfigError."""
    limits = getattr(model, "limits", None)
    if limits is None:
        return
    over = over_limits(limits, _usable(rows), True) or list(_too_large(model, _usable(rows)))
    if over:
        distinct = dict(over)
        name, reason = next(iter(distinct.items()))
        raise ConfigError(
            f"{len(distinct)} items pass a limit of the model (item {name!r}: {reason}); {_advice(reason)}"
        )


def _usable(rows: pa.Table | Spool) -> Iterator[dict[str, Any]]:
    for table in portions(rows):
        usable = table.filter(pc.and_(pc.is_null(table["item_error"]), pc.is_null(table["audio_error"])))
        for some in usable.select(["item_id", "audio_uris", "audio_seconds"]).to_batches(PORTION):
            yield from some.to_pylist()


def _too_large(model: Any, items: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(item id, reason) of items whose clips the model's server does not take in one request; trials are looked at once."""
    ask = getattr(model, "too_large", None)
    seen: set[str] = set()
    for item in items if ask else ():
        if item["item_id"] not in seen and (reason := ask(item["audio_uris"], item["audio_seconds"])):
            yield item["item_id"], reason
        seen.add(item["item_id"])


def _advice(reason: str) -> str:
    if reason.startswith("audio_too_long"):
        return CHOOSE_LENGTH + (OF_EACH if "together" in reason else "")
    if reason.startswith("request_too_large"):
        return (
            "set model.limits.over_long=skip to leave those rows out by name, model.sample_rate=16000 to send less of clips "
            "with more, or model.limits.over_long=truncate and model.limits.max_seconds=... to send their beginning"
        )
    return "set model.limits.over_many=skip to leave those rows out by name, or choose another model"


def needs_of(items: pa.Table) -> Sequence[tuple[int, str]]:
    """(number of clips, item id) of the items that can be asked at all."""
    usable = items.filter(pc.is_null(items["item_error"]))
    names, clips = usable["item_id"].to_pylist(), usable["audio_uris"].to_pylist()
    return [(len(uris or ()), name) for uris, name in zip(clips, names, strict=True)]
