"""M4, Reasoning Step Causality (RSC): does each step make the right answer more predictable?

ARIA-Rubrics, section 3.3.4, Eq. 3:

    Info_A = PPL(gold | P, A) - PPL(gold | P)
    Info_R = PPL(gold | P, A, R) - PPL(gold | P, A)
    RSC    = 1/2 * sum over i in {A, R} of 1 / (1 + exp(Info_i))

with P, A, R the perception, analysis and reasoning slots and PPL the perplexity of the gold answer under a small LM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass as plain_dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.causal_lm import CausalLM, LoadedCausalLM
from operators.backbones.packed_pass import Branch, Row, branch_log_probs, check_packing
from operators.base import Batch, Op
from operators.batching import Memo
from operators.metrics.rows import ScoredRow, columns
from operators.text import is_absent

Form = Literal["difference", "log_ratio"]
Absent = Literal["info_zero", "score_zero"]
SLOTS = ("perception", "analysis", "reasoning")


def step_causality(
    ppl_p: float | None,
    ppl_pa: float | None,
    ppl_par: float | None,
    form: Form = "difference",
    absent: Absent = "info_zero",
) -> float:
    """Reasoning Step Causality in [0, 1] from the gold answer's perplexity after P, after P, A and after P, A, R.

    0.5 means that the steps changed nothing, above 0.5 that they made the answer more predictable. A perplexity is None
    where the slot that ends its context is absent. Raises ValueError for one that is not finite and positive, and for an
    unknown `form` or `absent`.

    *Our reading.* A step is compared with the longest context before it: where A is absent, R is compared with P. A step
    that is absent, or has nothing before it to be compared with, has Info = 0 and so a term of 0.5; with
    `absent="score_zero"` that term is 0. `form="log_ratio"` takes Info from log-perplexities, because the paper's raw
    difference saturates where perplexities are large.
    """
    for value in (ppl_p, ppl_pa, ppl_par):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"a perplexity must be finite and positive, not {value}")
    if form not in get_args(Form) or absent not in get_args(Absent):
        raise ValueError(
            f"form is one of {get_args(Form)}, absent one of {get_args(Absent)}, not {form!r}, {absent!r}"
        )
    before_r = ppl_pa if ppl_pa is not None else ppl_p
    terms = (_term(ppl_pa, ppl_p, form, absent), _term(ppl_par, before_r, form, absent))
    return 0.5 * sum(terms)


def _term(after: float | None, before: float | None, form: Form, absent: Absent) -> float:
    """1 / (1 + exp(Info)) for one step."""
    if after is None or before is None:
        return 0.5 if absent == "info_zero" else 0.0
    info = after - before if form == "difference" else math.log(after) - math.log(before)
    # exp of a negative number cannot overflow, so the sigmoid is written for either sign.
    small = math.exp(-abs(info))
    return small / (1 + small) if info > 0 else 1 / (1 + small)


@plain_dataclass(frozen=True)
class Perplexities:
    """The gold answer's perplexity after P, P+A and P+A+R (None: slot absent), and what was cut."""

    p: float | None
    pa: float | None
    par: float | None
    truncated: tuple[str, ...]
    answer_tokens: int


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class StepCausality:
    """M4 as a step of the pipeline: four texts (and the question, if asked for) to one score.

    *Our reading.* The context is the question (only with `include_question`) and the present slots in order, one to a
    line; each slot keeps its first `max_slot_tokens` tokens, so the three contexts stay nested, and `truncated` in the
    details names those that lost some. Then come `cue` and the answer; perplexity is over the answer's tokens alone. Slots and
    cue are tokenised apart, so that a cut lies at the same token in all three contexts.
    """

    reads: ClassVar[tuple[str, ...]] = (*SLOTS, "gold_answer", "question")
    writes: ClassVar[tuple[str, ...]] = (
        "m4_step_causality",
        "m4_step_causality_reason",
        "m4_step_causality_details",
    )
    version: ClassVar[int] = 1

    backbone: CausalLM
    form: Form = "difference"
    absent: Absent = "info_zero"
    include_question: bool = False
    cue: str = Field("The answer is:", min_length=1)
    max_slot_tokens: int = Field(1024, ge=1)
    max_answer_tokens: int = Field(128, ge=1)

    def build(self) -> Op:
        """Load the LM. Raises ValueError where its context is too short for the limits, or cannot be packed."""
        lm, memo = self.backbone.load(), Memo("chains")
        cue = len(lm.token_ids(self.cue))
        check_packing(
            lm, (3 + self.include_question) * (self.max_slot_tokens + 1) + cue + self.max_answer_tokens + 1
        )

        def score(batch: Batch) -> Batch:
            texts = zip(*(batch[name] for name in self.reads), strict=True)
            rows = [tuple("" if is_absent(text) else str(text) for text in row) for row in texts]
            keys = [row if self.include_question else (*row[:4], "") for row in rows]
            found = memo.get(keys, lambda new: self._perplexities(lm, new))
            return columns(self.writes, [self._score_row(one) for one in found])

        return score

    def _score_row(self, found: Perplexities | None) -> ScoredRow:
        if found is None:
            return ScoredRow(math.nan, "no_gold_answer", {})
        raw = {"ppl_p": found.p, "ppl_pa": found.pa, "ppl_par": found.par}
        finite = {
            name: value if value is not None and math.isfinite(value) else None for name, value in raw.items()
        }
        details = {**finite, "truncated": list(found.truncated), "answer_tokens": found.answer_tokens}
        if finite != raw:
            return ScoredRow(math.nan, "perplexity_not_finite", details)
        return ScoredRow(step_causality(found.p, found.pa, found.par, self.form, self.absent), None, details)

    def _perplexities(self, lm: LoadedCausalLM, keys: list[tuple[str, ...]]) -> list[Perplexities | None]:
        """One packed pass over the longest context of each row, the answer branching off after each slot."""
        plans = [self.plan(lm, *key) for key in keys]
        rows = [plan.row for plan in plans if plan is not None and plan.row.branches]
        found = iter(branch_log_probs(lm, rows, self.backbone.tokens_per_batch))
        return [
            None if plan is None else plan.read(next(found) if plan.row.branches else []) for plan in plans
        ]

    def plan(self, lm: LoadedCausalLM, p: str, a: str, r: str, gold: str, question: str = "") -> Plan | None:
        """The packed row of one item; None without a gold answer."""
        if is_absent(gold):
            return None
        cue, answer = lm.continuation_ids(self.cue, gold.strip())
        truncated = ["gold_answer"] if len(answer) > self.max_answer_tokens else []
        answer = answer[: self.max_answer_tokens]
        reads = tuple((len(cue) - 1 + at, token) for at, token in enumerate(answer))
        context, cuts = list(lm.opening_ids()), {}
        for slot, text in {"question": question, "perception": p, "analysis": a, "reasoning": r}.items():
            if is_absent(text):
                continue
            ids = lm.token_ids(text.strip())
            context += [*ids[: self.max_slot_tokens], *lm.token_ids("\n")]
            cuts[slot] = len(context)
            truncated += [slot] if len(ids) > self.max_slot_tokens else []
        cuts.pop("question", None)
        branches = tuple(Branch(cut, (*cue, *answer[:-1]), reads) for cut in cuts.values())
        return Plan(Row(tuple(context), branches), tuple(cuts), tuple(truncated), len(answer))


@plain_dataclass(frozen=True)
class Plan:
    """A packed row, and which slot ends the context of each of its branches."""

    row: Row
    slots: tuple[str, ...]
    truncated: tuple[str, ...]
    answer_tokens: int

    def read(self, log_probs: list[np.ndarray]) -> Perplexities:
        """exp of the mean negative log-likelihood of each branch; inf where that overflows."""
        with np.errstate(over="ignore"):
            ppl = {
                slot: float(np.exp(-found.mean())) for slot, found in zip(self.slots, log_probs, strict=True)
            }
        return Perplexities(*(ppl.get(slot) for slot in SLOTS), self.truncated, self.answer_tokens)
