"""Diagnostic states of an audio judge (counterfactual audits, section 3.3 and Table 1).

Each item has three outcomes: P, the perception probe is right; O, the oracle response-mapping probe is right;
J, the native judgment is right. The state is written in this order: "110" hears the cue and knows the answer
to it, and fails to put the two together. *Our reading*: a probe whose reply could not be scored is not a
wrong one. The masses refuse incomplete items; `complete_items` leaves them out and counts them, `mass_bounds`
says what they could have been.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

# The groups in which the paper reports the states; where J is right although a component is not, it speaks of
# shortcut-like success, and which component was missing is ours to add.
STATE_NAMES: dict[str, str] = {
    "000": "full-stack failure",
    "001": "shortcut-like success (without perception and mapping)",
    "010": "perception bottleneck",
    "011": "shortcut-like success (without perception)",
    "100": "response-mapping bottleneck",
    "101": "shortcut-like success (without mapping)",
    "110": "Potemkin failure",
    "111": "reliable integrated judgment",
}

Outcome = bool | int | float | None


class CompleteItems(NamedTuple):
    """The outcomes of the items for which all three are known, and how many were left out."""

    p: list[int]
    o: list[int]
    j: list[int]
    n_excluded: int


def state_masses(p: Iterable[Outcome], o: Iterable[Outcome], j: Iterable[Outcome]) -> dict[str, float]:
    """pi_poj: the share of items in each of the eight states, "000" to "111"; they add up to 1.

    p, o, j: [n] outcomes, 0/1 or booleans, n >= 1. Raises ValueError for other lengths or values, and for a
    null or NaN among them (see `complete_items`).
    """
    items = _items(p, o, j)
    unknown = sum(None in item for item in items)
    if unknown:
        raise ValueError(
            f"{unknown} of {len(items)} items lack an outcome; use complete_items and report how many"
        )
    if not items:
        raise ValueError("state masses need at least one item")
    codes = np.array([4 * a + 2 * b + c for a, b, c in items])
    counts = np.bincount(codes, minlength=len(STATE_NAMES))
    return {state: count / len(items) for state, count in zip(STATE_NAMES, counts.tolist(), strict=True)}


def complete_items(p: Iterable[Outcome], o: Iterable[Outcome], j: Iterable[Outcome]) -> CompleteItems:
    """Leave out the items of which an outcome is null or NaN, and say how many they were."""
    items = _items(p, o, j)
    known = [item for item in items if None not in item]
    columns = [list(column) for column in zip(*known, strict=True)] or [[], [], []]
    return CompleteItems(*columns, n_excluded=len(items) - len(known))


def mass_bounds(
    p: Iterable[Outcome], o: Iterable[Outcome], j: Iterable[Outcome]
) -> dict[str, tuple[float, float]]:
    """Per state, its least and greatest mass over all that the unknown outcomes could have been."""
    items = _items(p, o, j)
    if not items:
        raise ValueError("state masses need at least one item")
    bounds = {}
    for state in STATE_NAMES:
        wanted = [int(digit) for digit in state]
        certain = sum(list(item) == wanted for item in items)
        possible = sum(all(a is None or a == b for a, b in zip(item, wanted, strict=True)) for item in items)
        bounds[state] = (certain / len(items), possible / len(items))
    return bounds


def reliable_mass(masses: Mapping[str, float]) -> float:
    """pi_111: heard, mapped and judged rightly."""
    return masses["111"]


def potemkin_mass(masses: Mapping[str, float]) -> float:
    """pi_110: both component probes right, the native judgment wrong."""
    return masses["110"]


def conditional_potemkin_rate(masses: Mapping[str, float]) -> float:
    """pi_110 / (pi_110 + pi_111): how often the judgment fails where both probes succeed (Figure 4).

    NaN where no item passes both probes.
    """
    both = masses["110"] + masses["111"]
    return masses["110"] / both if both else math.nan


def native_accuracy(masses: Mapping[str, float]) -> float:
    """The accuracy of the judge: the mass of the four states with J = 1, shortcuts included."""
    return sum(mass for state, mass in masses.items() if state[2] == "1")


def youdens_j(said_first: Sequence[bool], first_is_right: Sequence[bool]) -> float:
    """Youden's J = sensitivity + specificity - 1, in [-1, 1], of naming the first option where it is right.

    said_first, first_is_right: [n]. 0 for a judge whose answer does not depend on which option is right, whatever its
    favourite place; 1 for a perfect one. NaN where one of the two cases does not occur.
    """
    if len(said_first) != len(first_is_right):
        raise ValueError(f"{len(said_first)} answers for {len(first_is_right)} calls")
    right = [said for said, gold in zip(said_first, first_is_right, strict=True) if gold]
    wrong = [said for said, gold in zip(said_first, first_is_right, strict=True) if not gold]
    if not right or not wrong:
        return math.nan
    return sum(right) / len(right) - sum(wrong) / len(wrong)


def agreement_rate(pairs: Iterable[tuple[Outcome, Outcome]]) -> tuple[float, int]:
    """The share of pairs whose two answers are equal, and the number of pairs without a null; (NaN, 0) for none.

    Of the two orders of one call: order consistency. Of the two branches of one item: how often the voice made no
    difference.
    """
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return (sum(a == b for a, b in known) / len(known) if known else math.nan), len(known)


def _items(*outcomes: Iterable[Outcome]) -> list[tuple[int | None, ...]]:
    columns: list[Sequence[Outcome]] = [list(column) for column in outcomes]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"p, o and j differ in length: {[len(column) for column in columns]}")
    checked = [[_outcome(value) for value in column] for column in columns]
    return list(zip(*checked, strict=True))


def _outcome(value: Outcome) -> int | None:
    if value is None or value != value:
        return None
    if value not in (0, 1):
        raise ValueError(f"an outcome is 0, 1, a boolean or null, got {value!r}")
    return int(value)
