"""Inter-step Coherence Score (M2): does each step refer to the one before it?

ARIA-Rubrics, section 3.3.2, Eq. 2: ICS = 1/2 (c(f(A), f(P)) + c(f(R), f(A))), with f a sentence embedding
(all-mpnet-base-v2; Song et al., 2020) and c the cosine. If a slot is absent, M2 is 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.sentence_encoder import SentenceEncoder
from operators.base import Batch, Op
from operators.batching import Memo
from operators.metrics.rows import ScoredRow, columns
from operators.text import is_absent

SLOTS = ("perception", "analysis", "reasoning")


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    """Cosine of two vectors [D], in [-1, 1]. Raises ValueError for zero, non-finite or unequal ones."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"a cosine needs two vectors of one length, not {x.shape} and {y.shape}")
    norm = float(np.linalg.norm(x) * np.linalg.norm(y))
    if not np.isfinite(norm) or norm == 0:
        raise ValueError("a zero or non-finite vector has no cosine")
    return float(np.clip(x @ y / norm, -1, 1))


def inter_step_coherence(p: np.ndarray | None, a: np.ndarray | None, r: np.ndarray | None) -> float:
    """ICS (Eq. 2) in [0, 1] from the embeddings [D] of perception, analysis and reasoning; None = absent slot
    -> 0.

    The vectors need not be normalised. *Our reading*: each negative cosine counts as 0, as in M1.
    Raises ValueError for a zero or non-finite vector.
    """
    if p is None or a is None or r is None:
        return 0.0
    return (max(0.0, cosine(a, p)) + max(0.0, cosine(r, a))) / 2


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class InterStepCoherence:
    """M2 over a batch. *Our reading*: a slot is embedded as one text, cut at the backbone's `max_tokens`."""

    backbone: SentenceEncoder

    reads: ClassVar[tuple[str, ...]] = SLOTS
    writes: ClassVar[tuple[str, ...]] = (
        "m2_inter_step_coherence",
        "m2_inter_step_coherence_reason",
        "m2_inter_step_coherence_details",
    )
    version: ClassVar[int] = 1

    def build(self) -> Op:
        encoder, memo = self.backbone.load(), Memo("texts")

        def embed(texts: list[str]) -> list[tuple[np.ndarray, bool]]:
            embeddings, truncated = encoder.encode(texts)
            return list(zip(embeddings, truncated.tolist(), strict=True))

        def score(batch: Batch) -> Batch:
            cells = zip(*(batch[slot] for slot in SLOTS), strict=True)
            rows = [[None if is_absent(text) else text for text in row] for row in cells]
            texts = [text for row in rows for text in row if text is not None]
            known = dict(zip(texts, memo.get(texts, embed), strict=True))
            return columns(self.writes, [_score_row([known.get(text) for text in row]) for row in rows])

        return score


def _score_row(slots: list[tuple[np.ndarray, bool] | None]) -> ScoredRow:
    p, a, r = (slot[0] if slot else None for slot in slots)
    details = {
        "cosine_p_a": None,
        "cosine_a_r": None,
        "truncated": [name for name, slot in zip(SLOTS, slots, strict=True) if slot and slot[1]],
    }
    try:
        if p is not None and a is not None:
            details["cosine_p_a"] = cosine(a, p)
        if a is not None and r is not None:
            details["cosine_a_r"] = cosine(r, a)
        return ScoredRow(inter_step_coherence(p, a, r), None, details)
    except ValueError as error:
        return ScoredRow(float("nan"), f"no_cosine: {error}", details)
