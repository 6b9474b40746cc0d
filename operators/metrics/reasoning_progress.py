"""Reasoning Progress Score (M5): does each step follow from the one before it?

ARIA-Rubrics, section 3.3.5, Eq. 4: RPS = 1/3 (g(P, A) + g(A, R) + g(R, Ans)), with g(premise, hypothesis) the
entailment probability of an NLI model (RoBERTa-large-MNLI; Liu et al., 2019). If a slot is absent, its score
is 0.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.entailment import MiniLMAdapter, SequenceClassifier
from operators.base import Batch, Op
from operators.batching import Memo
from operators.metrics.rows import ScoredRow, columns
from operators.text import at_most, is_absent, sentences

SLOTS = ("perception", "analysis", "reasoning", "answer")
TERMS = ("p_a", "a_r", "r_ans")

Scored = tuple[float, bool]


def reasoning_progress(p_a: float | None, a_r: float | None, r_ans: float | None) -> float:
    """RPS (Eq. 4) in [0, 1] from the three entailment probabilities; None = one of the term's slots is absent
    -> 0.

    Raises ValueError for a probability that is NaN or outside [0, 1].
    """
    terms = [0.0 if term is None else float(term) for term in (p_a, a_r, r_ans)]
    if not all(0.0 <= term <= 1.0 for term in terms):
        raise ValueError(f"entailment probabilities lie in [0, 1], not {terms}")
    return sum(terms) / 3


def sentence_minmax(scores: np.ndarray) -> float:
    """Entailment of a text from that of its sentences, `scores` [premise sentences, hypothesis sentences] in
    [0, 1].

    Each hypothesis sentence counts by the premise sentence that supports it best, the text by its weakest
    sentence.
    """
    if scores.ndim != 2 or not scores.size:
        raise ValueError(f"scores must be [premises, hypotheses] and not empty, not of shape {scores.shape}")
    return float(scores.max(axis=0).min())


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ReasoningProgress:
    """M5 over a batch.

    *Our reading*: Ans is the model's own answer slot, as it stands, with a letter if it has one (in M4 it is
    the gold answer). `granularity="whole"` is the paper's: a slot is one text, cut with its partner at the
    backbone's `max_tokens`. `"sentence_minmax"` suits small models, which read paragraphs badly; a slot of
    more than `max_sentences` sentences is taken as that many runs of neighbouring sentences, flagged
    `merged`, so that a very long response costs at most `max_sentences`^2 pairs per term and loses no text
    before the token limit.
    """

    backbone: SequenceClassifier | MiniLMAdapter
    granularity: Literal["whole", "sentence_minmax"] = "whole"
    max_sentences: int = Field(default=12, ge=1)

    reads: ClassVar[tuple[str, ...]] = SLOTS
    writes: ClassVar[tuple[str, ...]] = (
        "m5_reasoning_progress",
        "m5_reasoning_progress_reason",
        "m5_reasoning_progress_details",
    )
    version: ClassVar[int] = 1

    def build(self) -> Op:
        scorer, memo = self.backbone.load(), Memo("pairs")

        def entailment(pairs: list[tuple[str, str]]) -> list[Scored]:
            scores, truncated = scorer.entailment([p for p, _ in pairs], [h for _, h in pairs])
            return list(zip(scores.tolist(), truncated.tolist(), strict=True))

        def score(batch: Batch) -> Batch:
            cells = zip(*(batch[slot] for slot in SLOTS), strict=True)
            rows = [[self._pieces(text) for text in row] for row in cells]
            terms = [term for row in rows for term in pairwise(pieces for pieces, _ in row)]
            pairs = [pair for premises, hypotheses in terms for pair in _pairs(premises, hypotheses)]
            known = dict(zip(pairs, memo.get(pairs, entailment), strict=True))
            return columns(self.writes, [_score_row(row, known) for row in rows])

        return score

    def _pieces(self, text: str) -> tuple[list[str], bool]:
        """The texts a slot consists of for the NLI model (none: absent), and whether any were joined."""
        if is_absent(text):
            return [], False
        if self.granularity == "whole":
            return [text], False
        found = [sentence for sentence in sentences(text) if not is_absent(sentence)]
        return at_most(found, self.max_sentences), len(found) > self.max_sentences


def _pairs(premises: list[str], hypotheses: list[str]) -> list[tuple[str, str]]:
    return [(premise, hypothesis) for premise in premises for hypothesis in hypotheses]


def _score_row(row: list[tuple[list[str], bool]], known: dict[tuple[str, str], Scored]) -> ScoredRow:
    terms: dict[str, float | None] = {}
    truncated = []
    for name, (premises, hypotheses) in zip(TERMS, pairwise(pieces for pieces, _ in row), strict=True):
        scored = [known[pair] for pair in _pairs(premises, hypotheses)]
        table = np.asarray([value for value, _ in scored]).reshape(len(premises), len(hypotheses))
        terms[name] = sentence_minmax(table) if scored else None
        truncated += [name] if any(cut for _, cut in scored) else []
    merged = [slot for slot, (_, joined) in zip(SLOTS, row, strict=True) if joined]
    details = {"truncated": truncated, "merged": merged}
    try:
        value = reasoning_progress(*terms.values())
    except ValueError as error:
        return ScoredRow(float("nan"), f"no_probability: {error}", details)
    return ScoredRow(value, None, {**terms, **details})
