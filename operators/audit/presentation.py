"""What a judge is asked about an item: five probes under up to four cues, in a drawn order (sections 3.2, 3.3, C.1).

Pure functions over rows; fan-out comes before generation, and a call carries locators and hashes, never sound.

- pointwise (J): one context C, two replies R1 and R2 as clips; which suits C?   Once per branch.
- pairwise: both contexts CA and CB and both replies as clips; which belongs to which?   Once per item.
- perception (P): one context as clips; the emotion of every turn of the user, from the emotions of both branches.
- oracle (O): one context in writing with its true emotions, replies in writing.   Text only.
- staging: as oracle, with the emotions that the judge itself heard under P.   Text only.

*Our reading* of the presentation order: which response is R1, which branch is CA, which emotion is E1 is drawn by a hash of
(seed, item, probe, cue), and the two branches of an item share the draw. So nothing but the voice changes between the two
pointwise calls of an item, and a judge that ignores it gives both the same answer: one right, one wrong. Counterbalanced,
every call is made a second time with the replies (or emotions) exchanged.

*Our reading* of the perception labels: E1, E2 ... for one turn as for many; the paper's single-turn prompt says R1, R2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from operators.audit.wording import REPLIES, label, question
from operators.benchmarks.emotions import USER, human_emotions
from operators.schema import CLIPS, STRINGS

PROBES = ("pointwise", "pairwise", "perception", "oracle", "staging")
BY_BRANCH = ("pointwise", "perception", "oracle", "staging")
HEARD = ("pointwise", "pairwise", "perception")
CUES = ("none", "soft", "hard", "transition")
SILENCE = "silence"
TEXT_ONLY = "text_only"

# One piece of what is presented: a turn of context C, CA or CB, or a reply. `text` is null for a clip.
PART = pa.struct(
    [("place", pa.string()), ("speaker", pa.string()), ("emotion", pa.string()), ("text", pa.string())]
)

# One call of a judge. `branch` is null for pairwise; `order` is 1 for the exchanged presentation of a counterbalanced run;
# `swapped`: R1 is response 1 (E1 ... are reversed); `contexts_swapped`: CA is branch 1; `names`: what the labels E1 ... mean;
# `turns`: numbers of the user's turns, `contrast`: whether the branches differ there; `gold`: the right labels, comma-separated; `item_error` as of the item.
CALL = pa.schema(
    [
        ("item_id", pa.string()),
        ("benchmark", pa.string()),
        ("kind", pa.string()),
        ("control", pa.string()),
        ("probe", pa.string()),
        ("cue", pa.string()),
        ("branch", pa.int64()),
        ("order", pa.int64()),
        ("swapped", pa.bool_()),
        ("contexts_swapped", pa.bool_()),
        ("names", STRINGS),
        ("turns", pa.list_(pa.int64())),
        ("contrast", pa.list_(pa.bool_())),
        ("gold", pa.string()),
        ("question", pa.string()),
        ("choices", STRINGS),
        ("parts", pa.list_(PART)),
        ("audio_uris", STRINGS),
        ("audio_labels", STRINGS),
        *CLIPS,
        ("item_error", pa.string()),
    ]
)

KEY = ("item_id", "control", "probe", "cue", "branch", "order")


class Design(NamedTuple):
    """Which calls an audit makes. control: "none", "text_only" (words in place of clips) or "silence"."""

    probes: tuple[str, ...]
    cues: tuple[str, ...]
    seed: int
    counterbalance: bool = False
    control: str = "none"


class Heard(NamedTuple):
    """A clip as decoding found it."""

    uri: str
    hash: str
    seconds: float


class Order(NamedTuple):
    """One presentation: `swapped` exchanges the replies (or reverses the emotions), `contexts_swapped` CA and CB."""

    swapped: bool
    contexts_swapped: bool


def cues_of(kind: str) -> tuple[str, ...]:
    """The cues that make sense for a kind of item: the transition cue says that the tone shifts once, which is true of
    positional items alone (section 3.2)."""
    return CUES if kind == "positional_emotion" else CUES[:3]


def drawn_order(seed: int, item_id: str, probe: str, cue: str, order: int) -> Order:
    """The presentation of a call, by hash; `order` 1 exchanges what `order` 0 has drawn."""
    text = "\x1f".join((str(seed), item_id, probe, cue))
    bits = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=1).digest()[0]
    return Order(bool(bits & 1) != bool(order), bool(bits & 2))


def planned_calls(item: Mapping[str, Any], design: Design) -> list[dict[str, Any]]:
    """All calls about one item, staging included, without what they present: keys, order, names, turns and gold."""
    orders = (0, 1) if design.counterbalance else (0,)
    return [
        planned_call(item, design, probe, cue, branch, order)
        for probe in design.probes
        for cue in design.cues
        for branch in ((0, 1) if probe in BY_BRANCH else (None,))
        for order in orders
    ]


def planned_call(
    item: Mapping[str, Any],
    design: Design,
    probe: str,
    cue: str,
    branch: int | None,
    order: int,
    presented: Order | None = None,
) -> dict[str, Any]:
    """One call without its prompt and clips. `presented`: the order that was used, where it is not the drawn one."""
    drawn = presented or drawn_order(design.seed, item["item_id"], probe, cue, order)
    row = {name: item[name] for name in ("item_id", "benchmark", "kind")}
    row |= {"control": design.control, "probe": probe, "cue": cue, "branch": branch, "order": order}
    row |= {"swapped": drawn.swapped, "contexts_swapped": drawn.contexts_swapped and probe == "pairwise"}
    perceives = probe == "perception"
    row["turns"] = user_turns(item["branches"][0]) if perceives else []
    row["names"] = emotion_choices(item, drawn.swapped) if perceives else []
    row["contrast"] = contrast(item) if perceives else []
    return row | {"gold": gold(item, row)}


def presented_call(
    item: Mapping[str, Any],
    planned: Mapping[str, Any],
    heard: Sequence[str] | None = None,
    silence: Heard | None = None,
) -> dict[str, Any]:
    """A planned call with its prompt and clips (CALL). Raises ValueError where clips would be lost.

    item: AUDIT_ITEM with its CLIPS columns. `heard`: the emotions of the user's turns that a staging call tells. `silence`:
    the clip that stands for every turn in the silence control; the replies stay.
    """
    parts, clips = _presented(item, planned, heard, silence)
    row = {
        **planned,
        "choices": [],
        "parts": parts,
        "question": question(planned, len(item["branches"][0]) == 1, parts),
        "audio_uris": [clip.uri for clip in clips],
        "audio_hashes": [clip.hash for clip in clips],
        "audio_seconds": [clip.seconds for clip in clips],
        "audio_labels": [label(part) for part in parts if part["text"] is None],
        "item_error": None,
        "audio_error": None,
    }
    check_clip_count(item, row)
    return row


def user_turns(branch: Sequence[Mapping[str, Any]]) -> list[int]:
    """The numbers, from 1, of the user's turns."""
    return [number for number, turn in enumerate(branch, 1) if turn["speaker"] == USER]


def emotion_choices(item: Mapping[str, Any], swapped: bool) -> list[str]:
    """The emotions that the user shows in either branch, in alphabetical order or, `swapped`, in reverse: E1, E2 ..."""
    names = sorted({name for branch in item["branches"] for name in human_emotions(branch)})
    return names[::-1] if swapped else names


def contrast(item: Mapping[str, Any]) -> list[bool]:
    """For each turn of the user, whether its emotion differs between the branches."""
    first, second = (human_emotions(branch) for branch in item["branches"])
    return [a != b for a, b in zip(first, second, strict=True)]


def gold(item: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """The right answer to a call: "R2"; for pairwise the reply to CA; for perception a label per turn, "E1,E1,E2"."""
    if row["probe"] == "perception":
        path = human_emotions(item["branches"][row["branch"]])
        return ",".join(f"E{row['names'].index(name) + 1}" for name in path)
    branch = int(row["contexts_swapped"]) if row["probe"] == "pairwise" else row["branch"]
    return REPLIES[branch != int(row["swapped"])]


def n_clips(item: Mapping[str, Any], probe: str, control: str = "none") -> int:
    """How many clips a call must present: every turn of every context that it holds, and both replies under J."""
    if probe not in HEARD or control == TEXT_ONLY:
        return 0
    turns = len(item["branches"][0])
    return {"pointwise": turns + 2, "pairwise": 2 * turns + 2, "perception": turns}[probe]


def check_clip_count(item: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """Raise ValueError where a call would present another number of clips, hashes or labels than it must."""
    wanted = n_clips(item, row["probe"], row["control"])
    counts = [len(row[name]) for name in ("audio_uris", "audio_hashes", "audio_labels")]
    if counts != [wanted] * 3:
        raise ValueError(
            f"{row['item_id']}, {row['probe']}: {wanted} clips must be presented; locators, hashes, labels: {counts}"
        )


def _presented(
    item: Mapping[str, Any],
    row: Mapping[str, Any],
    heard: Sequence[str] | None,
    silence: Heard | None,
) -> tuple[list[dict[str, Any]], list[Heard]]:
    """The parts of a call in order, and the clips among them."""
    known = {
        uri: Heard(uri, digest, seconds)
        for uri, digest, seconds in zip(
            item["audio_uris"], item["audio_hashes"], item["audio_seconds"], strict=True
        )
    }
    control = row["control"]
    spoken = row["probe"] in HEARD and control != TEXT_ONLY
    parts, clips = [], []
    for place, branch in _contexts(row):
        told = iter(heard or ())
        for number, turn in enumerate(item["branches"][branch], 1):
            hears = row["probe"] == "staging" and turn["speaker"] == USER
            emotion = next(told) if hears else turn["emotion"]
            # What is heard, or read in the text-only control, is not told its emotion.
            parts.append(
                {
                    "place": f"{place} turn {number}",
                    "speaker": turn["speaker"],
                    "emotion": None if row["probe"] in HEARD else emotion,
                    "text": None if spoken else turn["text"],
                }
            )
            clips.append(silence if control == SILENCE else known[turn["audio_uri"]])
    if row["probe"] != "perception":
        for place, index in zip(REPLIES, (1, 0) if row["swapped"] else (0, 1), strict=True):
            reply = item["responses"][index]
            parts.append(
                {
                    "place": place,
                    "speaker": "assistant",
                    "emotion": None,
                    "text": None if spoken else reply["text"],
                }
            )
            clips.append(known[reply["audio_uri"]])
    return parts, clips if spoken else []


def _contexts(row: Mapping[str, Any]) -> list[tuple[str, int]]:
    if row["probe"] != "pairwise":
        return [("C", row["branch"])]
    first = int(row["contexts_swapped"])
    return [("CA", first), ("CB", 1 - first)]


def call_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Calls as a table in the declared schema."""
    return pa.Table.from_pylist(list(rows), schema=CALL)
