"""A cascade instead of a LALM: sound tags and a transcript, handed to a text-only LM.

MUGEN (section 4) runs a cascade baseline, ASR + LLM, to see how much of a benchmark words alone can solve; this one also
gets sound tags. No part of it hears tone, emotion, pitch or order, and a small LM reasons poorly: its chains are the
floor that an audio model should rise above, and the metrics should say so.

What is whose:

- `[PERCEPTION]` is scaffolding around the detectors' report, word for word: the entities are the tagger's classes,
  the description is their probabilities and the recogniser's transcript. Nothing in it is written by the LM.
- `[ANALYSIS]` and `[REASONING]` are the LM's own words, one short passage each, whatever their quality.
- `[ANSWER]` is the choice c with the largest (log p(c | report, question) - log p(c | no report, question)) / tokens of
  c. The second term takes out what makes a choice likely unheard, and the options are not listed in that prompt:
  listed, a small LM favours the first. The answer does not depend on the passages between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.causal_lm import CausalLM
from operators.backbones.speech_recogniser import SpeechRecogniser
from operators.backbones.yamnet import Yamnet
from operators.base import Batch
from operators.lalms.decoding_rules import Limits, Passage
from operators.lalms.guided_writing import GuidedWriter
from operators.lalms.listening import Listener, Report, entity_name
from operators.prompts import Prompt

TAGS = ("[ANALYSIS]", "[REASONING]")
UNHEARD = "unknown"
NO_CHOICES = "no_choices: the question offers no choices, and the cascade can only choose"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Cascade:
    """The cascade's parts and how they are joined.

    Of the tagger's classes those with probability >= `min_probability` are reported, at most `top_k`; "Silence" is no
    sound and is left out. The recogniser is asked only about clips in which a speech class reaches
    `speech_probability` in some 10 s window, because it writes words over noise. Of a transcript at most
    `max_transcript_words` words are used, then " ...". A passage ends after `sentences` sentences or `passage_tokens` tokens.
    With `temperature` 0 every trial is the same; above it, `seed`, the row and `trial` decide.

    Writes `response` (None where there is `response_error`, "reason: detail"), `finish_reason` ("length" where a
    passage was cut at its limit, else "stop") and `usage` (JSON text: prompt_tokens, completion_tokens, audio_seconds).
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "choices", "audio_uris", "audio_hashes", "trial")
    writes: ClassVar[tuple[str, ...]] = ("response", "finish_reason", "usage", "response_error")
    version: ClassVar[int] = 1

    lm: CausalLM
    tagger: Yamnet = Yamnet()
    recogniser: SpeechRecogniser = SpeechRecogniser()
    top_k: int = Field(6, ge=1)
    min_probability: float = Field(0.05, ge=0, le=1)
    speech_probability: float = Field(0.3, ge=0, le=1)
    max_transcript_words: int = Field(150, ge=1)
    passage_tokens: int = Field(40, ge=1)
    sentences: int = Field(2, ge=1)
    no_repeat_ngram: int = Field(4, ge=1)
    temperature: float = Field(0.0, ge=0)
    seed: int = Field(0, ge=0)
    evidence_prompt: Prompt = Prompt("cascade_evidence")
    chain_prompt: Prompt = Prompt("cascade_chain")
    answer_prompt: Prompt = Prompt("cascade_answer")

    def build(self) -> Callable[[Batch], Batch]:
        """Load the three models. Raises WeightsError where one is missing."""
        limits = Limits(self.passage_tokens, self.sentences, self.no_repeat_ngram)
        writer = GuidedWriter(self.lm.load(), self.lm.tokens_per_batch, limits, self.temperature)
        heard = (self.top_k, self.min_probability, self.speech_probability, self.max_transcript_words)
        listener = Listener(self.tagger.load(), self.recogniser.load(), *heard)
        return lambda batch: answer_rows(self, listener, writer, batch)


def entities(reports: Sequence[Report]) -> list[str]:
    """The distinct entities of all clips, in the order of the clips and, within one, likeliest first."""
    return list(dict.fromkeys(entity_name(name) for report in reports for name, _ in report.tags))


def perception(reports: Sequence[Report]) -> str:
    """The detectors' report as the Perception slot; several clips are numbered."""
    described = []
    for report in reports:
        sounds = ", ".join(f"{entity_name(name)} ({probability:.2f})" for name, probability in report.tags)
        words = f'"{report.transcript}"' if report.transcript else "no words"
        described.append(f"The tagger reports {sounds or 'no sound'}. The recogniser hears {words}.")
    return f"Entities: {', '.join(entities(reports)) or 'none'}.\nDescription: {_numbered(described, ' ')}"


def evidence(spec: Cascade, reports: Sequence[Report]) -> str:
    """The same report as the LM is told it."""
    told = []
    for report in reports:
        sounds = ", ".join(dict.fromkeys(entity_name(name) for name, _ in report.tags))
        speech = f'"{report.transcript}"' if report.transcript else "none."
        told.append(spec.evidence_prompt.fill(sounds=sounds or "none", speech=speech))
    return _numbered(told, "\n")


def _numbered(texts: Sequence[str], joint: str) -> str:
    return texts[0] if len(texts) == 1 else joint.join(f"Clip {n}: {text}" for n, text in enumerate(texts, 1))


class PromptTooLong(ValueError):
    """A row whose question, choices and report do not fit into the LM's context."""


def answer_rows(spec: Cascade, listener: Listener, writer: GuidedWriter, batch: Batch) -> Batch:
    """Responses for a batch. A row that cannot be answered gets a `response_error`; the others do not notice."""
    count = len(batch["question"])
    columns: Batch = {name: np.full(count, None, dtype=object) for name in Cascade.writes}
    chains: dict[int, Chain] = {}
    for row in range(count):
        choices = [str(choice) for choice in batch["choices"][row]]
        reports = listener.reports(list(batch["audio_uris"][row]), list(batch["audio_hashes"][row]))
        if isinstance(reports, str) or not choices:
            columns["response_error"][row] = reports if isinstance(reports, str) else NO_CHOICES
            continue
        try:
            chains[row] = Chain(
                spec, writer, str(batch["question"][row]), choices, reports, _seed(spec, batch, row)
            )
        except PromptTooLong as error:
            columns["response_error"][row] = f"prompt_too_long: {error}"
    reason(writer, list(chains.values()))
    for row, chain in chains.items():
        columns["response"][row] = chain.text
        columns["finish_reason"][row] = (
            "stop" if all(passage.ended for passage in chain.passages) else "length"
        )
        columns["usage"][row] = json.dumps(chain.usage(), separators=(",", ":"))
    return columns


class Chain:
    """One response in the making: its prompts, and the text so far, which only grows."""

    def __init__(
        self,
        spec: Cascade,
        writer: GuidedWriter,
        question: str,
        choices: list[str],
        reports: list[Report],
        seed: int,
    ) -> None:
        self.choices, self.reports, self.seed = (
            [" ".join(choice.split()) for choice in choices],
            reports,
            seed,
        )
        self._temperature = spec.temperature
        asked, told = writer.plain(question), writer.plain(evidence(spec, reports))
        offered = writer.plain("; ".join(self.choices))
        request = spec.chain_prompt.fill(evidence=told, question=asked, choices=offered)
        unheard = spec.evidence_prompt.fill(sounds=UNHEARD, speech=UNHEARD)
        self.informed, self.uninformed = (
            writer.plain_tokens(spec.answer_prompt.fill(evidence=known, question=asked))
            for known in (told, unheard)
        )
        self.text, self.passages = f"[PERCEPTION]\n{perception(reports)}", []
        self.context = writer.conversation(request, writer.plain(f"{self.text}\n\n{TAGS[0]}\n"))
        longest = max(len(self.context) + 2 * spec.passage_tokens + 16, len(self.informed))
        longest += max(len(writer.plain_tokens(choice)) for choice in self.choices)
        if longest > writer.context_length:
            raise PromptTooLong(
                f"{longest} tokens are needed, {spec.lm.weights.source} takes {writer.context_length}"
            )

    def add(self, passages: Sequence[Passage]) -> None:
        """Append the LM's passages under their tags; a passage without words leaves its slot out."""
        self.passages = list(passages)
        for tag, passage in zip(TAGS, passages, strict=True):
            if passage.text:
                self.text += f"\n\n{tag}\n{passage.text}"

    def choose(self, informed: np.ndarray, uninformed: np.ndarray) -> None:
        """Append the choice whose log-likelihood per token gains most from the report; the first one on a tie."""
        gain = informed - uninformed
        if self._temperature:
            gain = gain + self._temperature * np.random.default_rng(self.seed).gumbel(size=len(gain))
        self.text += f"\n\n[ANSWER]\n{self.choices[int(np.argmax(gain))]}"

    def usage(self) -> dict[str, float]:
        """Tokens that the LM read as prompts and wrote as passages, and seconds of sound."""
        written = sum(passage.tokens for passage in self.passages)
        read = len(self.context) + len(self.informed) + len(self.uninformed)
        heard = sum(report.seconds for report in self.reports)
        return {"prompt_tokens": read, "completion_tokens": written, "audio_seconds": heard}


def reason(writer: GuidedWriter, chains: Sequence[Chain]) -> None:
    """Analysis, Reasoning and Answer for all chains."""
    if not chains:
        return
    written = writer.write(
        [chain.context for chain in chains], [chain.seed for chain in chains], [f"\n\n{TAGS[1]}\n"]
    )
    for chain, passages in zip(chains, written, strict=True):
        chain.add(passages)
    answers = [[writer.plain(choice) for choice in chain.choices] for chain in chains]
    informed = writer.log_likelihoods([chain.informed for chain in chains], answers)
    uninformed = writer.log_likelihoods([chain.uninformed for chain in chains], answers)
    for chain, with_report, without in zip(chains, informed, uninformed, strict=True):
        chain.choose(with_report, without)


def _seed(spec: Cascade, batch: Batch, row: int) -> int:
    """A row's own seed: it depends on the row's content and trial, not on where in which batch the row stands."""
    content = [spec.seed, int(batch["trial"][row]), str(batch["question"][row])]
    content += [
        [str(choice) for choice in batch["choices"][row]],
        [str(h) for h in batch["audio_hashes"][row]],
    ]
    return int(hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16], 16)
