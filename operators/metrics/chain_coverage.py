"""M3, Reasoning Chain Coverage (RCC): does each step hold substance, or words that say nothing?

ARIA-Rubrics, section 3.3.3: a small LM, shown a few examples, gives each of the perception, analysis and reasoning
slots a substantiveness score in [0, 1], from empty or repetitive (0) to specific and informative (1). The answer slot
scores 1 if it is there and 0 if not, an absent slot 0, and

    RCC = (sigma(P) + sigma(A) + sigma(R) + sigma(Ans)) / 4
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.causal_lm import CausalLM, LoadedCausalLM
from operators.backbones.packed_pass import Branch, Row, SharedPrefix, branch_log_probs, check_packing
from operators.base import Batch, Op
from operators.batching import Memo, token_batches, token_budget
from operators.metrics.rows import ScoredRow, columns
from operators.prompts import Prompt, PromptError
from operators.text import is_absent

SLOTS = ("perception", "analysis", "reasoning")
SLOT_MARK = "{{slot_text}}"
VALUES = tuple(f"{tenth / 10:.1f}" for tenth in range(11))
_NUMBER = re.compile(r"(?<![\w.,+-])(?:0?\.\d+|[01](?:\.\d*)?)(?![\w%/]|[.,]\d)")
_ANY_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def chain_coverage(
    perception: float | None, analysis: float | None, reasoning: float | None, answer: float | None
) -> float:
    """Reasoning Chain Coverage in [0, 1]: the mean of the four slot scores, None (absent) counting as 0.

    `answer` is 1 where the answer slot is present. Raises ValueError for a score that is NaN or outside [0, 1].
    """
    scores = [0.0 if score is None else float(score) for score in (perception, analysis, reasoning, answer)]
    for score in scores:
        if not 0 <= score <= 1:
            raise ValueError(f"a slot score must lie in [0, 1], not {score}")
    return sum(scores) / 4


def parse_score(reply: str) -> float | None:
    """The one number in [0, 1] that a scorer's reply holds; None for no number, several, or one out of range.

    >>> parse_score("Score: 0.8"), parse_score("8"), parse_score("0.3 or 0.4"), parse_score("1.")
    (0.8, None, None, 1.0)
    """
    found = _NUMBER.findall(reply)
    if len(found) != 1 or len(_ANY_NUMBER.findall(reply)) != 1:
        return None
    value = float(found[0])
    return value if value <= 1 else None


def turns(prompt: Prompt) -> list[dict[str, str]]:
    """A scorer's prompt as the turns of a chat.

    The file holds turns, each under a line `### system`, `### user` or `### assistant`; the last is a user turn with
    `{{slot_text}}` where the text to be scored goes. Raises PromptError for a file of another form.
    """
    before, *parts = re.split(r"^### (system|user|assistant)\n", prompt.text, flags=re.MULTILINE)
    found = [
        {"role": role, "content": body.strip()} for role, body in zip(parts[::2], parts[1::2], strict=True)
    ]
    marks = [turn["content"].count(SLOT_MARK) for turn in found]
    if before.strip() or not found or found[-1]["role"] != "user" or (marks[-1], sum(marks)) != (1, 1):
        raise PromptError(f"prompt {prompt.name!r} must be turns, the last of the user with one {SLOT_MARK}")
    return found


class SlotScore(NamedTuple):
    """A slot's score (None: no reply could be read) and whether its text was cut."""

    value: float | None
    truncated: bool


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ChainCoverage:
    """M3 as a step of the pipeline: four texts to one score; each distinct slot text is scored once.

    *Our reading.* `mode="generate"` reads one number from at most `max_new_tokens` tokens: greedily first, then, up to
    `max_tries` in all, sampled with a seed drawn from the text, so that no other row bears on it. No readable number
    makes the row null with a reason, never 0. `mode="expectation"` is deterministic and takes the mean of 0.0, 0.1, ...
    1.0 weighted by the probability that the LM gives to each as its reply: very small LMs order texts well by it and
    poorly by the number they would write. A slot keeps the first tokens that fit `max_input_tokens` with the prompt.
    """

    reads: ClassVar[tuple[str, ...]] = (*SLOTS, "answer")
    writes: ClassVar[tuple[str, ...]] = (
        "m3_chain_coverage",
        "m3_chain_coverage_reason",
        "m3_chain_coverage_details",
    )
    version: ClassVar[int] = 1

    backbone: CausalLM
    mode: Literal["generate", "expectation"] = "generate"
    prompt: Prompt = Prompt("rcc_scorer")
    max_input_tokens: int = Field(1024, ge=1)
    max_new_tokens: int = Field(10, ge=1)
    max_tries: int = Field(3, ge=1)

    def build(self) -> Op:
        """Load the LM and read the prompt once. Raises ValueError where prompt and LM do not go together."""
        lm, memo = self.backbone.load(), Memo("texts")
        scorer = (ByExpectation if self.mode == "expectation" else ByGeneration)(self, lm)

        def score(batch: Batch) -> Batch:
            cells = zip(*(batch[name] for name in self.reads), strict=True)
            rows = [[None if is_absent(text) else str(text).strip() for text in row] for row in cells]
            texts = [text for row in rows for text in row[:3] if text is not None]
            known = dict(zip(texts, memo.get(texts, scorer), strict=True))
            return columns(self.writes, [_score_row([known.get(t) for t in row[:3]], row[3]) for row in rows])

        return score


def _score_row(slots: list[SlotScore | None], answer: str | None) -> ScoredRow:
    named = list(zip(SLOTS, slots, strict=True))
    values = [None if slot is None else slot.value for slot in slots]
    said = 0.0 if answer is None else 1.0
    truncated = [name for name, slot in named if slot and slot.truncated]
    details = {**dict(zip(SLOTS, values, strict=True)), "answer": said, "truncated": truncated}
    unread = [name for name, slot in named if slot and slot.value is None]
    if unread:
        return ScoredRow(math.nan, f"unparsable_slot_score: {', '.join(unread)}", details)
    return ScoredRow(chain_coverage(*values, said), None, details)


class FewShot:
    """The prompt in tokens around a slot's text. Text is never read as template or as special tokens."""

    def __init__(self, spec: ChainCoverage, lm: LoadedCausalLM) -> None:
        self.spec, self.lm = spec, lm
        if lm.tokenizer.chat_template is None:
            raise ValueError(
                f"{spec.backbone.weights.source} has no chat template: M3 needs an instruction-tuned LM"
            )
        whole = lm.tokenizer.apply_chat_template(
            turns(spec.prompt), tokenize=False, add_generation_prompt=True
        )
        head, tail = whole.split(SLOT_MARK)
        self.head, self.tail = lm.template_ids(head), lm.template_ids(tail)
        self.room = spec.max_input_tokens - len(self.head) - len(self.tail)
        if self.room < 16:
            raise ValueError(
                f"prompt {spec.prompt.name!r} leaves {self.room} of {spec.max_input_tokens} tokens"
            )

    def cut(self, text: str) -> tuple[list[int], bool]:
        """The tokens of a slot's text that fit, and whether some did not."""
        ids = self.lm.token_ids(text)
        return ids[: self.room], len(ids) > self.room


class ByExpectation(FewShot):
    """Texts to scores: the mean of VALUES under the LM's own probabilities of replying with each."""

    def __init__(self, spec: ChainCoverage, lm: LoadedCausalLM) -> None:
        super().__init__(spec, lm)
        check_packing(lm, spec.max_input_tokens + spec.max_new_tokens)
        self.prefix = SharedPrefix(lm, self.head)
        replies = [tuple(lm.token_ids(value)) for value in VALUES]
        # Replies that differ in their last token alone ("0.1", "0.2") share a branch.
        self.stems = list(dict.fromkeys(reply[:-1] for reply in replies))
        self.found_at = [(self.stems.index(reply[:-1]), reply) for reply in replies]

    def __call__(self, texts: list[str]) -> list[SlotScore]:
        cut = [self.cut(text) for text in texts]
        rows = [self.row(ids) for ids, _ in cut]
        found = branch_log_probs(self.lm, rows, self.spec.backbone.tokens_per_batch, self.prefix)
        return [SlotScore(self.mean(one), was_cut) for one, (_, was_cut) in zip(found, cut, strict=True)]

    def row(self, ids: list[int]) -> Row:
        """The text and the rest of the prompt; its last token starts every branch."""
        *context, last = (*ids, *self.tail)
        branches = []
        for number, stem in enumerate(self.stems):
            reads = [(at, token) for at, token in enumerate(stem)]
            reads += [(len(stem), reply[-1]) for stem_number, reply in self.found_at if stem_number == number]
            branches.append(Branch(len(context), (last, *stem), tuple(reads)))
        return Row(tuple(context), tuple(branches))

    def mean(self, log_probs: list[np.ndarray]) -> float:
        """The expectation over VALUES from the branches' reads: a stem's tokens, then its last tokens in order."""
        ends = [
            list(found[len(stem) :] + found[: len(stem)].sum())
            for stem, found in zip(self.stems, log_probs, strict=True)
        ]
        joint = np.array([ends[number].pop(0) for number, _ in self.found_at])
        weights = np.exp(joint - joint.max())
        return float(weights @ np.array(VALUES, dtype=np.float64) / weights.sum())


class ByGeneration(FewShot):
    """Texts to scores: the number that the LM writes."""

    def __call__(self, texts: list[str]) -> list[SlotScore]:
        cut = [self.cut(text) for text in texts]
        prompts = [[*self.head, *ids, *self.tail] for ids, _ in cut]
        values: list[float | None] = [None] * len(texts)
        budget = token_budget(self.spec.backbone.tokens_per_batch, self.lm.device, writing=True)
        for batch in token_batches([len(prompt) for prompt in prompts], budget):
            replies = self.replies([prompts[index] for index in batch])
            for index, reply in zip(batch, replies, strict=True):
                values[index] = parse_score(reply)
        tries = range(1, self.spec.max_tries)
        for index, text in enumerate(texts):
            seeds = (
                int.from_bytes(hashlib.sha256(f"{n}:{text!r}".encode()).digest()[:4], "big") for n in tries
            )
            while values[index] is None and (seed := next(seeds, None)) is not None:
                values[index] = parse_score(self.replies([prompts[index]], seed)[0])
        return [SlotScore(value, was_cut) for value, (_, was_cut) in zip(values, cut, strict=True)]

    def replies(self, prompts: list[list[int]], seed: int | None = None) -> list[str]:
        """What the LM writes after each prompt: greedily, or sampled with `seed`."""
        import torch

        width = max(len(prompt) for prompt in prompts)
        ids = np.full((len(prompts), width), self.lm.padding_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :], mask[row, width - len(prompt) :] = prompt, 1
        how = (
            {"do_sample": False}
            if seed is None
            else {"do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
        )
        devices = [self.lm.device] if self.lm.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed or 0)
            written = self.lm.model.generate(
                input_ids=torch.from_numpy(ids).to(self.lm.device),
                attention_mask=torch.from_numpy(mask).to(self.lm.device),
                max_new_tokens=self.spec.max_new_tokens,
                pad_token_id=self.lm.padding_id,
                **how,
            )
        return self.lm.tokenizer.batch_decode(written[:, width:], skip_special_tokens=True)
