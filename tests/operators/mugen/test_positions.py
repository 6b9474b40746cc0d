"""Position bias by hand."""

import math

import pytest

from operators.mugen.positions import of_trials, position_bias


def test_histogram_and_chi_square_by_hand():
    # 8 trials of 2 clips: 6 choose the first. Chance: 4 and 4. (6 - 4)^2 / 4 + (2 - 4)^2 / 4 = 2.
    bias = position_bias([0, 0, 0, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1], [2] * 8)
    assert bias.chosen == [6, 2] and bias.expected == [4, 4] and bias.gold == [4, 4]
    assert bias.chi_square == 2.0 and bias.degrees == 1
    assert bias.p == pytest.approx(math.erfc(math.sqrt(2.0 / 2)))  # the tail of chi-square with one degree
    assert bias.correct == [3, 1] and bias.accuracy_by_gold == [0.75, 0.25]


def test_items_of_different_sizes_share_chance_fairly():
    # One trial of 2 and one of 3: position 0 is expected 1/2 + 1/3, position 2 only 1/3.
    bias = position_bias([0, 2], [0, 2], [2, 3])
    assert bias.expected == pytest.approx([5 / 6, 5 / 6, 1 / 3])


def test_no_trials_have_no_test_and_unpresented_positions_are_refused():
    assert math.isnan(position_bias([], [], []).p)
    with pytest.raises(ValueError, match="not presented"):
        position_bias([2], [0], [2])
    with pytest.raises(ValueError, match="one entry"):
        position_bias([0], [0, 1], [2])


def test_unreadable_trials_do_not_count():
    rows = [{"option_position": p, "gold_position": 0, "audio_order": [1, 0]} for p in (0, None, 1)]
    assert of_trials(rows).chosen == [1, 1]
