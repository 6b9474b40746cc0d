"""What any audio-language model is asked: clips and text in the order in which they belong, and how it should decode.

A backend turns a `Request` into its own format and gives back a `Said`; everything else is the same for all of them and
stands here: the prompt, the layout of several clips, limits, seeds, and the columns that are written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import NO_AUDIO, Clip
from operators.base import ROW_ERRORS, Batch, Op
from operators.fingerprint import execution_field
from operators.lalms.hearing import AudioLimits, Hearing, Unheard
from operators.mugen.options import labels
from operators.prompts import Prompt
from operators.text import encodable

Part = str | int  # a text, or the index of a clip among those of the row
Answer = Callable[[list["Request"]], Sequence["Said"]]
Ready = tuple[
    Hearing, Answer
]  # what a model loads: ears for the clips of its rows, and what answers requests


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class Lalm:
    """The part of a model's config that every backend has.

    prompt: has the fields question and choices; None: the question is the whole text (MUGEN's strategies bring their own
    instruction). system_prompt: what the conversation opens with, None: what the model's chat template says by itself.
    limits: how many clips of what length the model takes. Decoding: `max_new_tokens`; `temperature` 0 is greedy;
    `top_p` None is 1; `voting_temperature` takes the place of `temperature` in trials that vote (MUGEN, section 5.1), None: it
    does not. Every row has its own seed, from `seed`, its content and its trial, so that a sampled response does
    not depend on which rows share a batch.

    Writes `response` (None where there is `response_error`, "reason: detail"), `finish_reason` ("stop", or "length" for a
    response cut at its limit) and `usage` (JSON text: prompt_tokens, completion_tokens, n_audio, audio_seconds,
    audio_seconds_used, audio_truncated).
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "choices", "audio_uris", "audio_hashes", "trial")
    writes: ClassVar[tuple[str, ...]] = ("response", "finish_reason", "usage", "response_error")
    sends_clips: ClassVar[bool] = True  # whether the model itself is given sound

    prompt: Prompt | None = Prompt("cot_four_step")
    system_prompt: str | None = None
    limits: AudioLimits = AudioLimits()
    max_new_tokens: int = Field(2048, ge=1)
    temperature: float = Field(0.0, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int = Field(0, ge=0)
    voting_temperature: float | None = execution_field(None, ge=0)

    def __post_init__(self) -> None:
        if self.prompt is not None and self.prompt.fields - {"question", "choices"}:
            raise ValueError("prompt may have the fields question and choices, no others")
        if self.prompt is not None and "question" not in self.prompt.fields:
            raise ValueError(
                f"prompt {self.prompt.name!r} asks no question: it has no field {{{{question}}}}"
            )

    @property
    def wordless(self) -> Lalm:
        """This model without its prompt. Models with the same one make the same thing `ready`: it need be loaded once."""
        return dataclasses.replace(self, prompt=None)

    def ready(self) -> Ready:
        """Load what answers, whatever the prompt. Raises what `build` raises."""
        raise NotImplementedError

    def on(self, ready: Ready) -> Op:
        """This model on what it, or one that is the same but for its prompt, made ready."""
        hearing, ask = ready
        return lambda batch: answer_rows(self, hearing, ask, batch)

    def build(self) -> Op:
        """Load what answers; each backend says what it raises where that is missing."""
        return self.on(self.ready())

    @property
    def max_clips(self) -> int | None:
        """The most clips of one row, beyond which a run must not start; None: there is no such number."""
        return self.known_limits.max_clips if self.limits.over_many == "stop" else None

    @property
    def known_limits(self) -> AudioLimits:
        """`limits`, with what the backend itself is known not to take."""
        return self.limits


@plain_dataclass(frozen=True)
class Request:
    """One row, ready to be asked: `parts` in order, `clips` (resampled, cut where the policy says so), a seed."""

    parts: list[Part]
    clips: list[Clip]
    seed: int
    about: dict[str, float | bool] = field(default_factory=dict)  # n_audio, audio_seconds, ..., for `usage`

    @property
    def text(self) -> str:
        """The text alone, as models without interleaving are told it."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@plain_dataclass(frozen=True)
class Said:
    """What a model gave for one request: `text` or a `reason`, never both."""

    text: str | None = None
    finish_reason: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    reason: str | None = None


def layout(text: str, choices: Sequence[str], n_clips: int) -> list[Part]:
    """Clips and text in order, each clip under the name by which the text speaks of it.

    Choices that are the names of clips ("Audio 1", ...) belong to the last clips; clips before them are references. Other
    rows have "Clip 1", ... where there are several, and one clip needs no name. *Our reading* (the papers' prompts are
    figures): clips come before the text, but for clips that are choices: what all orders of an item have in common, the
    references and the text, comes before them, so that a server reads it once for all of them.
    """
    if n_clips == 1 and list(choices) != labels(1):
        return [0, text]
    named = list(choices) if list(choices) == labels(len(choices)) and 0 < len(choices) <= n_clips else []
    before = n_clips - len(named)
    if named:
        fixed = ["Reference"] if before == 1 else [f"Reference {n}" for n in range(1, before + 1)]
    else:
        fixed = [f"Clip {n}" for n in range(1, before + 1)]
    shown: list[list[Part]] = [[f"{name}:", index] for index, name in enumerate([*fixed, *named])]
    place = before if named else n_clips
    return [part for block in (*shown[:place], [text], *shown[place:]) for part in block]


def asked_text(spec: Lalm, question: str, choices: Sequence[str]) -> str:
    """The text of a row: the prompt with its question and its choices, one "(A) ..." a line."""
    if spec.prompt is None:
        return encodable(question)
    values = {"question": question, "choices": lettered(choices)}
    return encodable(spec.prompt.fill(**{name: values[name] for name in spec.prompt.fields}))


def lettered(choices: Sequence[str]) -> str:
    """The choices as a prompt lists them, one "(A) ..." a line."""
    return "\n".join(f"({_letter(place)}) {choice}" for place, choice in enumerate(choices))


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def row_seed(spec: Lalm, batch: Batch, row: int) -> int:
    """A row's own seed, 63 bits: it depends on the row's content and trial, not on where in which batch it stands."""
    content = [spec.seed, int(batch["trial"][row]), str(batch["question"][row])]
    content += [[str(one) for one in _list(batch[name][row])] for name in ("choices", "audio_hashes")]
    return int(hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16], 16) >> 1


def request(spec: Lalm, hearing: Hearing, batch: Batch, row: int) -> Request:
    """The request of one row. Raises Unheard where a clip is missing, broken, changed, too long, or one too many.

    A row without clips is an error, unless its question is the whole text, with neither prompt nor choices: that is asked
    in words alone, as the text probes of an audit are.
    """
    uris, hashes = _list(batch["audio_uris"][row]), _list(batch["audio_hashes"][row])
    choices = [str(choice) for choice in _list(batch["choices"][row])]
    if not uris and (spec.prompt is not None or choices):
        raise Unheard(NO_AUDIO)
    clips, about = hearing.clips(uris, hashes)
    parts = layout(asked_text(spec, str(batch["question"][row]), choices), choices, len(clips))
    spans = [part for part in parts if isinstance(part, int)]
    if spans != list(range(len(uris))) or len(clips) != len(uris):
        raise Unheard(f"audio_spans: {len(uris)} clips in, {len(spans)} in the prompt")
    return Request(parts, clips, row_seed(spec, batch, row), about)


def answer_rows(spec: Lalm, hearing: Hearing, ask: Answer, batch: Batch) -> Batch:
    """Responses for a batch: rows that can be asked go to `ask` together, the others keep their reasons."""
    count = len(batch["question"])
    columns: Batch = {name: np.full(count, None, dtype=object) for name in Lalm.writes}
    requests: dict[int, Request] = {}
    for row in range(count):
        try:
            requests[row] = request(spec, hearing, batch, row)
        except Unheard as error:
            columns["response_error"][row] = str(error)
    said = alone_where_needed(ask, list(requests.values())) if requests else []
    for (row, asked), answer in zip(requests.items(), said, strict=True):
        empty = answer.reason is None and not (answer.text or "").strip()
        reason = "empty_answer: the model ended without a text" if empty else answer.reason
        columns["response_error"][row] = None if reason is None else encodable(reason)
        columns["response"][row] = None if reason else encodable(answer.text)
        columns["finish_reason"][row] = answer.finish_reason
        columns["usage"][row] = json.dumps({**answer.usage, **asked.about}, separators=(",", ":"))
    return columns


def alone_where_needed(ask: Answer, requests: list[Request]) -> list[Said]:
    """Like `ask`, but a request that breaks it does not break its batch-mates: halves, down to the one at fault.

    Out of memory is such a fault too: half a batch may fit where the whole one did not.
    """
    try:
        return list(ask(requests))
    except ROW_ERRORS as error:
        if len(requests) == 1:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return [Said(reason=f"generation_failed: {text}")]
    half = len(requests) // 2
    return alone_where_needed(ask, requests[:half]) + alone_where_needed(ask, requests[half:])


def _list(cell: object) -> list:
    return [] if cell is None else list(cell)
