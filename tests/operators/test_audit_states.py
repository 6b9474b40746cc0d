"""The eight states of a judge, their masses, and what an unscored probe may and may not do to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.audit_states import (
    STATE_NAMES,
    complete_items,
    conditional_potemkin_rate,
    mass_bounds,
    native_accuracy,
    potemkin_mass,
    reliable_mass,
    state_masses,
)

items = st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=40)
gappy = st.lists(st.tuples(*[st.sampled_from([0, 1, None])] * 3), min_size=1, max_size=20)


def test_eight_states_in_order_each_with_a_name() -> None:
    assert list(STATE_NAMES) == [f"{i:03b}" for i in range(8)]
    assert STATE_NAMES["110"] == "Potemkin failure"
    assert STATE_NAMES["111"] == "reliable integrated judgment"
    assert all("shortcut" in STATE_NAMES[state] for state in ("001", "011", "101"))


def test_masses_by_hand() -> None:
    masses = state_masses(p=[1, 1, 0, 1, 0], o=[1, 1, 1, 0, 0], j=[1, 0, 0, 0, 1])
    assert masses == {
        "000": 0, "001": 1 / 5, "010": 1 / 5, "011": 0, "100": 1 / 5, "101": 0, "110": 1 / 5, "111": 1 / 5,
    }  # fmt: skip
    assert (reliable_mass(masses), potemkin_mass(masses)) == (1 / 5, 1 / 5)
    assert conditional_potemkin_rate(masses) == pytest.approx(1 / 2)
    assert native_accuracy(masses) == pytest.approx(2 / 5)


def test_conditional_rate_as_published() -> None:
    # Gemini-3-Pro, single turn: a Potemkin mass of 19 % and a conditional rate of 26 % leave 54 % reliable.
    assert conditional_potemkin_rate({"110": 0.19, "111": 0.54}) == pytest.approx(0.26, abs=0.005)


def test_no_item_that_passes_both_probes_has_no_rate() -> None:
    assert math.isnan(conditional_potemkin_rate(state_masses([0, 1], [1, 0], [1, 1])))


@settings(max_examples=100, deadline=None)
@given(items)
def test_masses_sum_to_one_and_contain_the_accuracies(outcomes: list[tuple[bool, ...]]) -> None:
    p, o, j = (np.array(column) for column in zip(*outcomes, strict=True))
    masses = state_masses(p, o, j)
    assert sum(masses.values()) == pytest.approx(1)
    assert native_accuracy(masses) == pytest.approx(j.mean())
    assert sum(mass for state, mass in masses.items() if state[0] == "1") == pytest.approx(p.mean())
    assert sum(mass for state, mass in masses.items() if state[1] == "1") == pytest.approx(o.mean())


@pytest.mark.parametrize("null", [None, math.nan])
def test_an_unscored_probe_is_neither_wrong_nor_dropped_in_silence(null: float | None) -> None:
    p, o, j = [1, 1, 0], [1, null, 1], [0, 1, 0]
    with pytest.raises(ValueError, match="1 of 3 items lack an outcome"):
        state_masses(p, o, j)
    known = complete_items(p, o, j)
    assert known == ([1, 0], [1, 1], [0, 0], 1)
    assert state_masses(known.p, known.o, known.j)["110"] == 1 / 2
    assert complete_items([None], [1], [1]) == ([], [], [], 1)


def test_bounds_by_hand() -> None:
    bounds = mass_bounds(p=[1, 1, 0], o=[1, None, 1], j=[0, 0, 0])
    assert bounds["110"] == (1 / 3, 2 / 3)
    assert bounds["100"] == (0, 1 / 3)
    assert bounds["010"] == (1 / 3, 1 / 3)
    assert bounds["111"] == (0, 0)


@settings(max_examples=100, deadline=None)
@given(gappy, st.integers(0, 1))
def test_bounds_hold_whatever_the_gaps_turn_out_to_be(outcomes: list, guess: int) -> None:
    bounds = mass_bounds(*zip(*outcomes, strict=True))
    filled = [tuple(guess if value is None else value for value in item) for item in outcomes]
    masses = state_masses(*zip(*filled, strict=True))
    assert all(low <= masses[state] <= high for state, (low, high) in bounds.items())


@pytest.mark.parametrize("function", [state_masses, mass_bounds])
def test_bad_input_is_refused(function) -> None:
    for outcomes, message in [
        (([], [], []), "at least one item"),
        (([1], [1, 0], [1]), "differ in length"),
        (([2], [1], [0]), "an outcome is 0, 1"),
        ((["1"], [1], [0]), "an outcome is 0, 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            function(*outcomes)
