"""Judges that are useless by construction: what an audit must expose, and what a real judge must beat.

- text_only: the judge itself reads the words instead of hearing the clips. Both branches are then one and the same prompt,
  so an item whose construction is sound is decided right exactly half of the time.
- silence: the judge hears ten seconds of silence for every turn of the contexts, and the true replies. It shows how much of a
  result is style of the replies, or habit.
- always_first: says R1, {"CA": "R1", "CB": "R2"}, and E1 for every turn, whatever it is asked.
- random: draws an answer by a hash of (seed, call).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from operators.audit.presentation import KEY, SILENCE, TEXT_ONLY
from operators.audit.wording import REPLIES

BLIND = (TEXT_ONLY, SILENCE)  # the judge itself, without the voice
BLUFFS = ("always_first", "random")  # no judge at all
CONTROLS = (*BLIND, *BLUFFS)

SILENT_CLIP = Path(__file__).parents[1] / "data" / "silence.flac"


def bluff(name: str, call: Mapping[str, Any], seed: int) -> str:
    """The reply of the control `name` (one of BLUFFS) to a call."""
    text = json.dumps([seed, *(call[part] for part in KEY if part != "control")])
    bits = (
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")
        if name == "random"
        else 0
    )
    if call["probe"] == "perception":
        said = []
        for _ in call["turns"]:
            bits, place = divmod(bits, len(call["names"]))
            said.append(f"E{place + 1}")
        single = call["kind"] == "single_turn_emotions"
        pred: Any = (
            said[0] if single else dict(zip((f"C{turn}" for turn in call["turns"]), said, strict=True))
        )
    else:
        first = bits % 2
        pred = REPLIES[first]
        if call["probe"] == "pairwise":
            pred = {"CA": REPLIES[first], "CB": REPLIES[1 - first]}
    return json.dumps({"reasoning": f"control: {name}", "pred": pred})
