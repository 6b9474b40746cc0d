"""What the paper's text prints, recomputed from counts.

The copy of the paper that we have keeps the numbers of its running text; the cells of its tables are images or lost. A
percentage of n calls is possible only if some k of n rounds to it.
"""

import pytest

from operators.audit_states import conditional_potemkin_rate
from operators.intervals import wilson_interval

SINGLE, SINGLE_CALLS = 189, 378  # section 4.1
POSITIONAL, POSITIONAL_CALLS = 500, 1000  # appendix B.2.1


def possible(percent, n):
    """The counts k of n that print as `percent` with one decimal."""
    return [k for k in range(n + 1) if f"{100 * k / n:.1f}" == f"{percent:.1f}"]


@pytest.mark.parametrize(
    ("percent", "n", "counts"),
    [
        (91.0, SINGLE, [172]),  # Gemini-3-Pro, pairwise, hard cue
        (65.3, SINGLE_CALLS, [247]),  # the same, pointwise
        (60.1, SINGLE_CALLS, [227]),  # Gemini-2.5-Pro, pointwise
        (79.4, POSITIONAL, [397]),  # Gemini-3-Flash, pairwise, transition cue
        (53.0, POSITIONAL_CALLS, [530]),
        (51.6, POSITIONAL_CALLS, [516]),
        (49.2, POSITIONAL_CALLS, [492]),
        (51.1, POSITIONAL_CALLS, [511]),
    ],
)
def test_printed_accuracies_are_counts_of_all_items(percent, n, counts):
    assert possible(percent, n) == counts


def test_one_printed_accuracy_is_no_count_of_all_items():
    """Gemini-2.5-Pro, pairwise, single turn, 86.0%: 162 of 189 is 85.7, 163 is 86.2. So some items were left out, as the
    parsing rule (five attempts, then nothing) would do, or the digit is another one's."""
    assert possible(86.0, SINGLE) == []
    assert 160 in possible(86.0, 186)


@pytest.mark.parametrize(
    ("parts", "printed"),
    [
        ((52, 52, 49), (27.5, 27.5, 25.9)),
        ((171, 141, 112, 24, 52), (34.2, 28.2, 22.4, 4.8, 10.4)),
    ],
)
def test_the_composition_of_the_data_sets(parts, printed):
    n = SINGLE if len(parts) == 3 else POSITIONAL
    assert tuple(round(100 * k / n, 1) for k in parts) == printed


def test_one_share_of_the_composition_is_rounded_up():
    """36 of 189 is 19.05%, which prints as 19.0; the paper has 19.1 (its four shares then add up to 100)."""
    assert sum((52, 52, 49, 36)) == SINGLE
    assert f"{100 * 36 / SINGLE:.1f}" == "19.0"


def test_the_conditional_rate_fits_the_masses():
    """Gemini-3-Pro: Potemkin mass 19%, conditional rate 26%: both probes succeed in 73%, so the reliable mass is 54%."""
    masses = dict.fromkeys((f"{i:03b}" for i in range(8)), 0.0) | {"110": 0.19, "111": 0.54}
    assert round(100 * conditional_potemkin_rate(masses)) == 26


def test_what_the_text_calls_near_chance_is():
    """Positional pointwise accuracies, 95% Wilson: 0.5 lies within, or (53.0%) just within."""
    for k in (516, 492, 511, 530):
        low, high = wilson_interval(k, POSITIONAL_CALLS)
        assert low < 0.5 < high
    low, _ = wilson_interval(247, SINGLE_CALLS)
    assert low > 0.5  # 65.3% is not


def test_annotators_judged_fifty_items_each():
    assert all(possible(percent, 50) for percent in (62.0, 100.0, 88.0, 92.0))
