"""Are the two replies of an item alike in what must not decide (section 5.3, Table 4)?

Absolute differences |R0 - R1| over the items of a benchmark: length in words, characters and seconds, DNSMOS of the clips,
and, where a language model is named, its ratings of each reply by itself from 1 to 5. The paper does not print its judge's
prompt; ours asks for what Table 4 is about (politeness and the like), a reply at a time, without the user's words, so that
fit to the emotion cannot enter. A value that could not be had is missing with a reason, and counted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pyarrow as pa
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audio import AudioError, Clip, decode
from operators.chat_api import UNAVAILABLE, ChatEndpoint, ChatUnavailable
from operators.intervals import t_interval
from operators.prompts import Prompt

RATINGS = ("politeness", "helpfulness", "naturalness", "fluency")

# n: items with both values; mean: of all values; n_missing with the commonest reasons. The interval is Student's over items,
# cut at 0; null for fewer than two.
BALANCE = pa.schema([
    ("quality", pa.string()), ("n", pa.int64()), ("n_missing", pa.int64()), ("mean", pa.float64()),
    ("mean_absolute_difference", pa.float64()), ("difference_low", pa.float64()), ("difference_high", pa.float64()),
    ("sd", pa.float64()), ("largest", pa.float64()), ("item_of_largest", pa.string()), ("reasons", pa.string()),
])  # fmt: skip

Values = dict[str, float | str]  # {quality: value, or a reason}


def text_values(text: str) -> Values:
    """Length in words and characters."""
    return {"words": float(len(text.split())), "characters": float(len(text))}


def clip_values(uri: str, score: Callable[[Clip], Mapping[str, float]], names: Iterable[str]) -> Values:
    """Duration in s and the scores of the clip at `uri`, or the reason why it has none."""
    try:
        sound = decode(uri)
    except AudioError as error:
        return dict.fromkeys(("seconds", *names), f"{error.reason}")
    try:
        return {"seconds": sound.seconds, **score(sound)}
    except ValueError as error:
        return {"seconds": sound.seconds, **dict.fromkeys(names, str(error).partition(":")[0])}


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ReplyRater:
    """A language model that rates replies by RATINGS, 1 to 5."""

    endpoint: ChatEndpoint
    prompt: Prompt = Prompt("audit_reply_ratings")

    def rate(self, replies: Sequence[str]) -> list[Values]:
        """The ratings of each reply, or why there are none. Raises ChatUnavailable where the server is gone."""
        bodies = [
            {"messages": [{"role": "user", "content": self.prompt.fill(reply=reply)}], "temperature": 0}
            for reply in replies
        ]
        found = []
        for reply in self.endpoint.connect().ask(bodies):
            if reply.reason and reply.reason.startswith(UNAVAILABLE):
                raise ChatUnavailable(reply.reason)
            found.append(
                read_ratings(reply.text) if reply.text else dict.fromkeys(RATINGS, reply.reason or "empty")
            )
        return found


def read_ratings(text: str) -> Values:
    """The ratings in the JSON object from the first `{` to the last `}`; a reason for each that is not a number from 1 to 5."""
    start, end = text.find("{"), text.rfind("}")
    try:
        said = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return dict.fromkeys(RATINGS, "unreadable_rating")
    return {name: _rating(said.get(name)) for name in RATINGS}


def _rating(value: Any) -> float | str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 1 <= value <= 5 else "no_rating"


def balance(values: Sequence[tuple[str, Values, Values]]) -> list[dict[str, Any]]:
    """BALANCE: one row per quality. values: (item id, of R0, of R1)."""
    names = list(dict.fromkeys(name for _, first, _ in values for name in first))
    return [
        _row(name, [(item, first[name], second[name]) for item, first, second in values]) for name in names
    ]


def _row(name: str, pairs: Sequence[tuple[str, float | str, float | str]]) -> dict[str, Any]:
    known = [(item, a, b) for item, a, b in pairs if not isinstance(a, str) and not isinstance(b, str)]
    reasons = Counter(value for _, a, b in pairs for value in (a, b) if isinstance(value, str))
    row: dict[str, Any] = {"quality": name, "n": len(known), "n_missing": len(pairs) - len(known)}
    row["reasons"] = "; ".join(f"{reason}: {n}" for reason, n in reasons.most_common(5)) or None
    if not known:
        return row
    apart = [abs(a - b) for _, a, b in known]
    place = max(range(len(apart)), key=apart.__getitem__)
    low, high = t_interval(apart, bounds=(0, math.inf))
    return row | {
        "mean": math.fsum(a + b for _, a, b in known) / (2 * len(known)),
        "mean_absolute_difference": fmean(apart),
        "difference_low": None if math.isnan(low) else low,
        "difference_high": None if math.isnan(high) else high,
        "sd": stdev(apart) if len(apart) > 1 else None,
        "largest": apart[place],
        "item_of_largest": known[place][0],
    }
