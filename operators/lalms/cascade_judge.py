"""The cascade as an audio judge: what words and sound tags alone can decide, in the verdict format of an audit.

No part of it hears tone of voice: a transcript is the same for both branches of an item, so its native judgments are the
floor that a judge with ears must rise above. Of a voice it knows what the tagger has a class for (shout, laughter, crying).

A reply r suits a context c by the gain (log p(r | c) - log p(r | unknown context)) / tokens of r under the text LM; the
replies are transcripts too, or the texts where a probe is in writing. Pairwise compares the sums of the two matchings. An
emotion e of a turn is chosen by the same gain of its name after the turn's words. Ties go to the first label.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audit.wording import REPLIES
from operators.base import Batch
from operators.lalms.cascade import Cascade, PromptTooLong
from operators.lalms.decoding_rules import Limits
from operators.lalms.guided_writing import GuidedWriter
from operators.lalms.listening import Listener, Report, entity_name
from operators.lalms.reports import UNHEARD
from operators.prompts import Prompt

_PLAIN_SPEECH = frozenset({"speech", "narration", "conversation", "speech synthesizer"})


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CascadeJudge:
    """The parts of `cascade` as a judge; its writing prompts and settings play no part."""

    reads: ClassVar[tuple[str, ...]] = ("probe", "parts", "names", "turns", "audio_uris", "audio_hashes")
    writes: ClassVar[tuple[str, ...]] = ("response", "finish_reason", "usage", "response_error")
    version: ClassVar[int] = 1

    cascade: Cascade
    reply_prompt: Prompt = Prompt("cascade_judge_reply")
    emotion_prompt: Prompt = Prompt("cascade_judge_emotion")

    def build(self) -> Callable[[Batch], Batch]:
        """Load tagger, recogniser and LM. Raises WeightsError where one is missing."""
        parts = self.cascade
        heard = (parts.top_k, parts.min_probability, parts.speech_probability, parts.max_transcript_words)
        listener = Listener(parts.tagger.load(), parts.recogniser.load(), *heard)
        writer = GuidedWriter(parts.lm.load(), parts.lm.tokens_per_batch, Limits(1, 1, 1))
        return lambda batch: judge_rows(self, listener, writer, batch)


class Asked(NamedTuple):
    """Texts to weigh: how much likelier each of `answers` becomes with `told` in place of `untold`."""

    told: str
    untold: str
    answers: tuple[str, ...]


def judge_rows(spec: CascadeJudge, listener: Listener, writer: GuidedWriter, batch: Batch) -> Batch:
    """A verdict per row, or a `response_error`."""
    count = len(batch["probe"])
    columns: Batch = {name: np.full(count, None, dtype=object) for name in spec.writes}
    asked: dict[int, list[Asked]] = {}
    for row in range(count):
        cells = {name: batch[name][row] for name in spec.reads}
        reports = listener.reports(list(cells["audio_uris"]), list(cells["audio_hashes"])) if len(cells["audio_uris"]) else []  # fmt: skip
        if isinstance(reports, str):
            columns["response_error"][row] = reports
            continue
        asked[row] = questions(spec, cells, told_texts(cells["parts"], reports))
    for row, gains in weigh(writer, asked, columns["response_error"]).items():
        verdict = {"reasoning": describe(batch["probe"][row], gains), "pred": decide(batch, row, gains)}
        columns["response"][row] = json.dumps(verdict, ensure_ascii=False)
        columns["finish_reason"][row] = "stop"
        columns["usage"][row] = json.dumps({"audio_clips": len(batch["audio_uris"][row])})
    return columns


def told_texts(parts: Sequence[Mapping[str, Any]], reports: Sequence[Report]) -> list[str]:
    """The words of every part: as written, or as recognised, with the sounds beside speech that the tagger names."""
    heard = iter(reports)
    texts = []
    for part in parts:
        if part["text"] is not None:
            texts.append(" ".join(part["text"].split()))
            continue
        report = next(heard)
        sounds = [name for name in (entity_name(tag) for tag, _ in report.tags) if name not in _PLAIN_SPEECH]
        extra = (
            f" (sounds: {', '.join(dict.fromkeys(sounds))})"
            if sounds and part["place"] not in REPLIES
            else ""
        )
        texts.append(f"{report.transcript or '...'}{extra}")
    return texts


def questions(spec: CascadeJudge, cells: Mapping[str, Any], texts: Sequence[str]) -> list[Asked]:
    """What to weigh for one row: per context both replies, or per turn of the user all emotions."""
    parts = list(zip(cells["parts"], texts, strict=True))
    if cells["probe"] == "perception":
        unheard = spec.emotion_prompt.fill(words=UNHEARD)
        wanted = [text for part, text in parts if part["speaker"] == "user"]
        return [
            Asked(spec.emotion_prompt.fill(words=words), unheard, tuple(cells["names"])) for words in wanted
        ]
    answers = tuple(text for part, text in parts if part["place"] in REPLIES)
    unheard = spec.reply_prompt.fill(context=f"User: {UNHEARD}")
    contexts: dict[str, list[str]] = {}
    for part, text in parts:
        if part["place"] not in REPLIES:
            who = "User" if part["speaker"] == "user" else "Voice assistant"
            tone = f" (in a tone that is {part['emotion']})" if part["emotion"] else ""
            contexts.setdefault(part["place"].split()[0], []).append(f"{who}{tone}: {text}")
    return [
        Asked(spec.reply_prompt.fill(context="\n".join(lines)), unheard, answers)
        for lines in contexts.values()
    ]


def weigh(
    writer: GuidedWriter, asked: Mapping[int, list[Asked]], errors: np.ndarray
) -> dict[int, list[np.ndarray]]:
    """Per row the gains [answers] of each of its questions; a row that does not fit the LM gets an error instead."""
    fitting = {}
    for row, some in asked.items():
        try:
            fitting[row] = [_tokens(writer, one) for one in some]
        except PromptTooLong as error:
            errors[row] = f"prompt_too_long: {error}"
    flat = [one for some in fitting.values() for one in some]
    told = writer.log_likelihoods([one[0] for one in flat], [one[2] for one in flat]) if flat else []
    untold = writer.log_likelihoods([one[1] for one in flat], [one[2] for one in flat]) if flat else []
    gains = iter([a - b for a, b in zip(told, untold, strict=True)])
    return {row: [next(gains) for _ in some] for row, some in fitting.items()}


def _tokens(writer: GuidedWriter, asked: Asked) -> tuple[list[int], list[int], list[str]]:
    told, untold = (writer.plain_tokens(writer.plain(text)) for text in (asked.told, asked.untold))
    answers = [writer.plain(text) or "..." for text in asked.answers]
    longest = max(len(told), len(untold)) + max(len(writer.plain_tokens(text)) for text in answers)
    if longest > writer.context_length:
        raise PromptTooLong(f"{longest} tokens are needed, the LM takes {writer.context_length}")
    return told, untold, answers


def decide(batch: Batch, row: int, gains: Sequence[np.ndarray]) -> Any:
    """The value of "pred" for one row."""
    probe = batch["probe"][row]
    if probe == "pairwise":
        straight, crossed = (gains[0][i] + gains[1][1 - i] for i in (0, 1))
        first, second = REPLIES if straight >= crossed else REPLIES[::-1]
        return {"CA": first, "CB": second}
    if probe != "perception":
        return REPLIES[int(np.argmax(gains[0]))]
    labels = [f"E{int(np.argmax(gain)) + 1}" for gain in gains]
    if len(labels) == 1:
        return labels[0]
    return {f"C{turn}": label for turn, label in zip(batch["turns"][row], labels, strict=True)}


def describe(probe: str, gains: Sequence[np.ndarray]) -> str:
    """The numbers behind a verdict, in words."""
    what = "emotion" if probe == "perception" else "reply"
    told = "; ".join(", ".join(f"{gain:+.3f}" for gain in some) for some in gains)
    return f"gain of each {what} in nats per token, from words and tags: {told}"
