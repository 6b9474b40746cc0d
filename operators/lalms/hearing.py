"""The clips of a row as a model gets them, within what the model can take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import AudioError, Clip, decode, pcm_hash, resample
from operators.batching import Memo
from operators.locators import shown

# Decoded clips that a worker keeps: the trials of one item ask for the same ones again and again.
KEPT_CLIPS = 32
SLACK_SECONDS = 1e-3  # an encoder's rounding does not make a clip too long


class Unheard(ValueError):
    """A row whose clips cannot be put to the model; the text is "reason: detail"."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AudioLimits:
    """What a model can take of one row: `max_clips` clips of `max_seconds` each, `max_total_seconds` in all of them together;
    None: no limit is known.

    What passes a limit is never cut or left out silently. `over_long`, `over_many`: "stop" ends the run before anything is
    generated and names the items; "skip" gives those rows a reason; "truncate" (for lengths only) lets the model hear the
    first `max_seconds` of each clip, and every such row says so (`audio_seconds_used`, `audio_truncated`); what is then still
    too long together stops the run.
    """

    max_clips: int | None = Field(None, ge=1)
    max_seconds: float | None = Field(None, gt=0)
    max_total_seconds: float | None = Field(None, gt=0)
    over_long: Literal["stop", "skip", "truncate"] = "stop"
    over_many: Literal["stop", "skip"] = "stop"

    def identity(self) -> dict[str, Any]:
        """Limits bear on a response only where they cut: nothing else is generated differently."""
        return {"truncated_to": self.max_seconds if self.over_long == "truncate" else None}

    def too_many(self, n_clips: int) -> str | None:
        """Why `n_clips` clips cannot be asked about, or None."""
        if self.max_clips is None or n_clips <= self.max_clips:
            return None
        return f"too_many_clips: the row has {n_clips} clips, the model takes {self.max_clips}"

    def used(self, seconds: Iterable[float]) -> list[float]:
        """How much is heard of clips of these lengths."""
        cuts = self.over_long == "truncate"
        return [self.max_seconds if cuts and self._over(length) else length for length in seconds]

    def too_long(self, seconds: Iterable[float]) -> str | None:
        """Why clips of these lengths cannot be asked about, or None; a policy of truncation allows long ones."""
        kept = self.used(seconds)
        longest, total = max(kept, default=0.0), sum(kept)
        if self._over(longest):
            return f"audio_too_long: a clip has {longest:.2f} s, the model takes {self.max_seconds:g} s"
        if self.max_total_seconds is None or total <= self.max_total_seconds + SLACK_SECONDS:
            return None
        most = f"the model takes {self.max_total_seconds:g} s"
        return f"audio_too_long: the clips have {total:.2f} s together, {most}"

    def cut(self, clip: Clip) -> Clip:
        """`clip`, or its first `max_seconds` where the policy truncates."""
        if self.over_long != "truncate" or not self._over(clip.seconds):
            return clip
        return Clip(clip.samples[: int(self.max_seconds * clip.sample_rate)], clip.sample_rate)

    def _over(self, seconds: float) -> bool:
        return self.max_seconds is not None and seconds > self.max_seconds + SLACK_SECONDS


class Hearing:
    """Decodes the clips that rows name, checks that they are the sounds that were hashed, and brings them to `rate` Hz.

    `rate` None: each clip keeps its own. Clips of several rows are decoded once while they are among the last `kept` ones.
    """

    def __init__(self, limits: AudioLimits, rate: int | None, kept: int = KEPT_CLIPS) -> None:
        self._limits, self._rate = limits, rate
        self._memo = Memo("decoded", kept, shared=False)

    def clips(
        self, uris: Sequence[str], hashes: Sequence[str | None]
    ) -> tuple[list[Clip], dict[str, float | bool]]:
        """The clips of one row in order, and what `usage` says of them. Raises Unheard."""
        if len(uris) != len(hashes):
            raise Unheard(f"audio_changed: the row names {len(uris)} clips and {len(hashes)} hashes")
        if reason := self._limits.too_many(len(uris)):
            raise Unheard(reason)
        keys = list(zip(uris, hashes, strict=True))
        heard = self._memo.get(keys, lambda missing: [self._hear(*key) for key in missing])
        if errors := [str(clip) for clip in heard if isinstance(clip, str)]:
            raise Unheard("; ".join(dict.fromkeys(errors)))
        if reason := self._limits.too_long(clip.seconds for clip in heard):
            raise Unheard(reason)
        used = [self._limits.cut(clip) for clip in heard]
        total, kept = (sum(clip.seconds for clip in some) for some in (heard, used))
        about = {"n_audio": len(used), "audio_seconds": total, "audio_seconds_used": kept}
        return used, {**about, "audio_truncated": kept < total}

    def _hear(self, uri: str, expected: str | None) -> Clip | str:
        try:
            clip = decode(uri)
        except AudioError as error:
            return str(error)
        if pcm_hash(clip) != expected:
            return f"audio_changed: {shown(uri)} is not the sound that the row's hash names"
        return clip if self._rate is None else resample(clip, self._rate)


def over_limits(
    limits: AudioLimits, items: Iterable[Mapping[str, Any]], seconds_known: bool
) -> list[tuple[str, str]]:
    """(item id, reason) of the items that should stop a run: their clips pass a limit, and nothing says what else to do."""
    found = []
    for item in items:
        many = limits.too_many(len(item["audio_uris"] or ())) if limits.over_many == "stop" else None
        long = None
        if seconds_known and limits.over_long != "skip":
            long = limits.too_long(s for s in item["audio_seconds"] or () if s is not None)
        if many or long:
            found.append((item["item_id"], many or long))
    return found
