"""A cascade instead of a LALM: sound tags and a transcript, handed to a text-only LM.

MUGEN (section 4) runs a cascade baseline, ASR + LLM, to see how much of a benchmark words alone can solve; this one also
gets sound tags. No part of it hears tone, emotion, pitch or order, and a small LM reasons poorly: its chains are the
floor that an audio model should rise above, and the metrics should say so.

What is whose:

- `[PERCEPTION]` is scaffolding around the detectors' report, word for word: the entities are the tagger's classes,
  the description is their probabilities and the recogniser's transcript. Nothing in it is written by the LM.
- `[ANALYSIS]` and `[REASONING]` are the LM's own words, one short passage each, whatever their quality.
- `[ANSWER]` is the choice c with the largest (log p(c | report, question) - log p(c | no report, question)) / tokens of
  c. The second term takes out what makes a choice likely unheard, so it has the report's form: as many clips under the
  same names, each unknown. The options are not listed in that prompt: listed, a small LM favours the first. The answer
  does not depend on the passages between.

Where the choices are clips ("Audio 1", "Audio 2" ..., MUGEN), the report calls the last clips by these names and the
ones before them references, and a choice is weighed by what it is and not by its label: the clip c with the largest
log p(question | report on c) - log p(question | no report), both after the reports on the references. A label means
nothing by itself, and a small LM prefers labels for where they stand: of 110 presentations of the built-in questions it
named the five labels 14, 0, 0, 24 and 72 times. Weighed by its report, no option gains from its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.causal_lm import CausalLM
from operators.backbones.speech_recogniser import SpeechRecogniser
from operators.backbones.yamnet import Yamnet
from operators.base import Batch
from operators.lalms.decoding_rules import Limits, Passage
from operators.lalms.guided_writing import GuidedWriter
from operators.lalms.listening import Listener, Report
from operators.lalms.reports import clip_names, evidence, perception, unheard
from operators.prompts import Prompt

TAGS = ("[ANALYSIS]", "[REASONING]")
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
    version: ClassVar[int] = 2

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
    option_prompt: Prompt = Prompt("cascade_option")

    def build(self) -> Callable[[Batch], Batch]:
        """Load the three models. Raises WeightsError where one is missing."""
        limits = Limits(self.passage_tokens, self.sentences, self.no_repeat_ngram)
        writer = GuidedWriter(self.lm.load(), self.lm.tokens_per_batch, limits, self.temperature)
        heard = (self.top_k, self.min_probability, self.speech_probability, self.max_transcript_words)
        listener = Listener(self.tagger.load(), self.recogniser.load(), *heard)
        return lambda batch: answer_rows(self, listener, writer, batch)


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


class Weighing(NamedTuple):
    """How much likelier each of the `texts` is after `informed` than after `uninformed` (both token ids)."""

    informed: list[int]
    uninformed: list[int]
    texts: list[str]


def weigh_texts(
    spec: Cascade, writer: GuidedWriter, question: str, choices: Sequence[str], reports: Sequence[Report]
) -> list[Weighing]:
    """Choices that are texts: each as the answer to the question, after all reports."""
    names = clip_names(choices, len(reports))
    told = [evidence(spec.evidence_prompt, reports, names), unheard(spec.evidence_prompt, names)]
    prompts = [spec.answer_prompt.fill(evidence=writer.plain(text), question=question) for text in told]
    return [Weighing(*map(writer.plain_tokens, prompts), [writer.plain(choice) for choice in choices])]


def weigh_clips(
    spec: Cascade, writer: GuidedWriter, question: str, choices: Sequence[str], reports: Sequence[Report]
) -> list[Weighing]:
    """Choices that are clips: the question after the report on each, which calls it a candidate, whatever its place."""
    n_reference = len(reports) - len(choices)
    references = clip_names(choices, len(reports))[:n_reference]
    before = evidence(spec.evidence_prompt, reports[:n_reference], references) + "\n" if references else ""
    name = ["Candidate"] if references else [""]

    def prompt(told: str) -> list[int]:
        return writer.plain_tokens(spec.option_prompt.fill(evidence=writer.plain(before + told)))

    uninformed = prompt(unheard(spec.evidence_prompt, name))
    told = [evidence(spec.evidence_prompt, [report], name) for report in reports[n_reference:]]
    return [Weighing(prompt(text), uninformed, [question]) for text in told]


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
        names = clip_names(self.choices, len(reports))
        asked, told = writer.plain(question), writer.plain(evidence(spec.evidence_prompt, reports, names))
        offered = writer.plain("; ".join(self.choices))
        request = spec.chain_prompt.fill(evidence=told, question=asked, choices=offered)
        weigh = weigh_clips if names[-len(choices) :] == self.choices else weigh_texts
        self.weighings = weigh(spec, writer, asked, self.choices, reports)
        self.text, self.passages = f"[PERCEPTION]\n{perception(reports, names)}", []
        self.context = writer.conversation(request, writer.plain(f"{self.text}\n\n{TAGS[0]}\n"))
        longest = len(self.context) + 2 * spec.passage_tokens + 16
        for informed, _, texts in self.weighings:
            longest = max(longest, len(informed) + max(len(writer.plain_tokens(text)) for text in texts))
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

    def choose(self, gains: np.ndarray) -> None:
        """Append the choice with the largest of the `gains` [n choices] from what was heard; the first one on a tie."""
        if self._temperature:
            gains = gains + self._temperature * np.random.default_rng(self.seed).gumbel(size=len(gains))
        self.text += f"\n\n[ANSWER]\n{self.choices[int(np.argmax(gains))]}"

    def usage(self) -> dict[str, float]:
        """Tokens that the LM read as prompts and wrote as passages, and seconds of sound."""
        written = sum(passage.tokens for passage in self.passages)
        read = len(self.context) + sum(len(w.informed) + len(w.uninformed) for w in self.weighings)
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
    asked = [weighing for chain in chains for weighing in chain.weighings]
    texts = [weighing.texts for weighing in asked]
    informed = writer.log_likelihoods([weighing.informed for weighing in asked], texts)
    uninformed = writer.log_likelihoods([weighing.uninformed for weighing in asked], texts)
    gains = iter([heard - unheard for heard, unheard in zip(informed, uninformed, strict=True)])
    for chain in chains:
        chain.choose(np.concatenate([next(gains) for _ in chain.weighings]))


def _seed(spec: Cascade, batch: Batch, row: int) -> int:
    """A row's own seed: it depends on the row's content and trial, not on where in which batch the row stands."""
    content = [spec.seed, int(batch["trial"][row]), str(batch["question"][row])]
    content += [
        [str(choice) for choice in batch["choices"][row]],
        [str(h) for h in batch["audio_hashes"][row]],
    ]
    return int(hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16], 16)
