"""The phases of an audit: refuse what cannot be heard, present, ask until a verdict can be read, stage.

Fan-out comes before generation and a call carries no audio: clips are decoded and hashed once per item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audio import decode, pcm_hash
from operators.audit.controls import BLUFFS, SILENT_CLIP, bluff
from operators.audit.outcomes import heard_emotions, judged, read_reply
from operators.audit.presentation import SILENCE, Design, Heard, call_table, planned_calls, presented_call
from operators.base import Spec
from operators.frames import with_columns
from operators.store import Store
from pipelines import phases
from pipelines.config import Cluster
from pipelines.phases import Journal

Row = dict[str, Any]
_NOTHING_HEARD = "no_perception: the perception verdict of this call is null, so there is nothing to tell"


def refuse_unheard(clips: pa.Table) -> pa.Table:
    """Items that cannot be asked get an `item_error`: a clip is missing or broken, or both branches, or both responses,
    are one and the same sound."""
    errors = [item["item_error"] or item["audio_error"] or same_sound(item) for item in clips.to_pylist()]
    return with_columns(clips, {"item_error": pa.array(errors, pa.string())})


def same_sound(item: Mapping[str, Any]) -> str | None:
    """The reason to refuse an item without a contrast to hear, else None, as where its clips were not decoded."""
    n, hashes = len(item["branches"][0]), item["audio_hashes"]
    if hashes is None:
        return None
    if hashes[:n] == hashes[n : 2 * n]:
        return "same_sound: the two branches are the same clips"
    if hashes[-2] == hashes[-1]:
        return "same_sound: the two responses are the same clip"
    return None


def usable(items: pa.Table) -> list[Row]:
    """The items that can be asked."""
    return [item for item in items.to_pylist() if item["item_error"] is None]


def silent_clip() -> Heard:
    """The clip of the silence control."""
    clip = decode(str(SILENT_CLIP))
    return Heard(str(SILENT_CLIP), pcm_hash(clip), clip.seconds)


class Court:
    """Asks one judge: the store first, then Ray; a reply that cannot be read is asked for again."""

    def __init__(
        self, name: str, judge: Spec, attempts: int, store: Store, cluster: Cluster, journal: Journal
    ) -> None:
        self.name, self._judge, self._attempts = name, judge, attempts
        self._store, self._cluster, self._journal = store, cluster, journal

    def ask(self, calls: Sequence[Row]) -> list[Row]:
        """The verdict of every call (VERDICT rows), in order.

        Attempt k is trial k of the judge, so that a reply is found in the store by another run. A call without any reply
        is not asked again here: why it failed is no matter of luck, and the next run tries it.
        """
        said: list[list[Row]] = [[] for _ in calls]
        open_ = list(range(len(calls)))
        for attempt in range(self._attempts):
            if not open_:
                break
            for place, reply in zip(open_, self._replies([calls[i] for i in open_], attempt), strict=True):
                said[place].append(reply)
            open_ = [i for i in open_ if _unreadable(calls[i], said[i][-1])]
        return [judged(call, self.name, replies) for call, replies in zip(calls, said, strict=True)]

    def _replies(self, calls: Sequence[Row], attempt: int) -> list[Row]:
        table = with_columns(call_table(calls), {"trial": pa.array([attempt] * len(calls), pa.int64())})
        where = (self._store, self._cluster, self._journal)
        return phases.generate(table, self.name, self._judge, *where).to_pylist()


def _unreadable(call: Row, reply: Row) -> bool:
    return reply["response"] is not None and read_reply(call, reply["response"]).reason is not None


def judge_all(items: Sequence[Row], designs: Sequence[Design], court: Court) -> list[Row]:
    """The verdicts of one judge under all designs: everything that does not wait is asked together, then staging."""
    by_id = {item["item_id"]: item for item in items}
    planned = [call for design in designs for item in items for call in planned_calls(item, design)]
    silence = silent_clip() if any(design.control == SILENCE for design in designs) else None
    first = [
        presented_call(by_id[call["item_id"]], call, silence=silence)
        for call in planned
        if call["probe"] != "staging"
    ]
    verdicts = court.ask(first)
    heard = {
        _heard_key(row): heard_emotions(row, row["pred"]) for row in verdicts if row["probe"] == "perception"
    }
    staged = [(call, heard.get(_heard_key(call))) for call in planned if call["probe"] == "staging"]
    told = [presented_call(by_id[call["item_id"]], call, heard=path) for call, path in staged if path]
    untold = [call for call, path in staged if not path]
    nothing = {"response": None, "response_error": _NOTHING_HEARD}
    return [*verdicts, *court.ask(told), *(judged(call, court.name, [nothing]) for call in untold)]


def _heard_key(row: Mapping[str, Any]) -> tuple:
    return tuple(row[name] for name in ("item_id", "control", "cue", "branch", "order"))


def bluff_all(items: Sequence[Row], design: Design, names: Iterable[str]) -> list[Row]:
    """The verdicts of the controls that are no judge, each under its own name."""
    rows = []
    for name in names:
        for item in items:
            for call in planned_calls(item, design._replace(control=name)):
                reply = {"response": bluff(name, call, design.seed), "response_error": None}
                rows.append(judged(call, name, [reply]))
    return rows


def counts(verdicts: Sequence[Row]) -> dict[str, Any]:
    """What run.json says of the calls: how many of each probe, their attempts, and what became of them."""
    asked = [row for row in verdicts if row["control"] not in BLUFFS]
    return {
        "calls": dict(Counter(row["probe"] for row in asked)),
        "replies": sum(row["n_attempts"] for row in asked),
        "null_verdicts": dict(
            Counter(row["reason"].split(":", 1)[0] for row in asked if row["pred"] is None)
        ),
    }
