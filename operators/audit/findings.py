"""What a judge fails at, in plain words, from the tables of an audit.

The diagnosis follows the cascade of section 1: does it judge natively, does it recover the contrast, does it hear, does it
know which reply fits. *Our reading*, since the paper describes profiles and sets no bar: "above chance" means more right
answers than guesses reach in 2.5% of cases, by the exact binomial tail, and a judge is called reliable where the lower end
of the 95% Wilson interval of its reliable mass reaches RELIABLE.
For perception that is asked of the turns at which the two voices differ: whole trajectories can be guessed from the words
(users start content and end annoyed), but an answer that is the same for both voices is right there half of the time at most.

    native judgment above chance?
      no:  pairwise above chance     -> contrast-dependent
           perception not            -> shortcut user          (what it gets right, it gets right without the voice)
           oracle not                -> response-mapping bottleneck
           else                      -> Potemkin
      yes: perception not            -> shortcut user
           reliable mass >= RELIABLE -> reliable
           else                      -> partly reliable, with its largest kind of failure

Where the probe that would decide was not asked, or not one of its replies could be read, the diagnosis cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from operators.audit.tables import GROUP

RELIABLE = 0.8
WIDE = 0.3  # an interval of native accuracy as wide as this, some 40 judgments, leaves the diagnosis open
Row = Mapping[str, Any]

NAMES = {
    "contrast": "contrast-dependent",
    "shortcut": "shortcut user",
    "mapping": "response-mapping bottleneck",
    "potemkin": "Potemkin",
    "reliable": "reliable",
    "partly": "partly reliable",
    "unknown": "cannot be told",
}
_MEANING = {
    "contrast": "It can match voices and replies when it hears both voices side by side, but not when it hears one, as a "
    "judge does in use.",
    "shortcut": "Its answers do not follow the voice. What it gets right, it gets right by the words, the style or place "
    "of the replies, or by luck.",
    "mapping": "It hears how the user sounds, but does not know which reply suits that, even when told in writing.",
    "potemkin": "It hears how the user sounds and knows which reply suits that, but does not put the two together when it "
    "judges.",
    "reliable": "It hears the voice, knows which reply suits it, and judges accordingly.",
    "partly": "It follows the voice better than a guess would, and fails too often to be trusted alone.",
    "unknown": "The probes that were asked, and could be read, do not decide it.",
}
# Failures of section 3.3 by group, for judges above chance.
_GROUPS = {
    "Potemkin failures (heard and knew, and judged wrongly)": ("110",),
    "not hearing the voice": ("010",),
    "not knowing which reply suits": ("100",),
    "right answers without the skills (shortcuts)": ("001", "011", "101"),
    "failing at all three": ("000",),
}


class Finding(NamedTuple):
    """What is said of one judge under one cue: `diagnosis` (a key of NAMES), a headline, and sentences with numbers."""

    model: str
    control: str
    cue: str
    diagnosis: str
    headline: str
    details: list[str]


def findings(accuracy: Sequence[Row], states: Sequence[Row], rates: Sequence[Row]) -> list[Finding]:
    """One Finding per judge, control and cue, in the order of `rates`."""
    found = []
    for rate in rates:
        here = {name: rate[name] for name in GROUP}
        probes = {
            (row["probe"], row["split"]): row for row in accuracy if all(row[n] == v for n, v in here.items())
        }
        masses = {row["state"]: row for row in states if all(row[n] == v for n, v in here.items())}
        diagnosis = diagnose({probe: row for (probe, split), row in probes.items() if split == "all"}, masses)
        headline = f"{_title(diagnosis)}. {_MEANING[diagnosis]}{_caution(probes.get(('pointwise', 'all')), diagnosis)}"
        details = [*_numbers(probes, rate, masses, diagnosis), *_habits(probes), *_gaps(rate), *_lost(probes)]
        found.append(Finding(rate["model"], rate["control"], rate["cue"], diagnosis, headline, details))
    return found


def diagnose(probes: Mapping[str, Row], masses: Mapping[str, Row]) -> str:
    """The key in NAMES for a judge with these accuracies (rows of ACCURACY by probe) and states (rows by state)."""
    above = {name: _above_chance(row) for name, row in probes.items()}
    if above.get("pointwise") is None:
        return "unknown"
    if not above["pointwise"]:
        if above.get("pairwise"):
            return "contrast"
        if not above.get("perception"):
            return "shortcut"
        return {True: "potemkin", False: "mapping", None: "unknown"}[above.get("oracle")]
    if above.get("perception") is False:
        return "shortcut"
    low = masses["111"]["wilson_low"] if masses else None
    if low is None:
        return "unknown"
    return "reliable" if low >= RELIABLE else "partly"


def _above_chance(row: Row) -> bool | None:
    if not row["n_scored"]:
        return None
    if row["probe"] == "perception":
        return row["contrast_low"] > 0.5
    return beats(row["n_correct"], row["n_scored"], row["chance"])


def beats(k: int, n: int, chance: float) -> bool:
    """Whether k of n is more than blind guesses would reach in 2.5% of cases (exact binomial tail; 4 of 4 is not)."""
    from scipy.stats import binom

    return bool(binom.sf(k - 1, n, chance) < 0.025)


def _title(diagnosis: str) -> str:
    name = NAMES[diagnosis]
    return name[:1].upper() + name[1:]


def _caution(row: Row | None, diagnosis: str) -> str:
    """With few cases, a judge that looks like a guesser may be a good one, and the reader should know."""
    if diagnosis in ("reliable", "unknown") or row is None or row["wilson_high"] - row["wilson_low"] < WIDE:
        return ""
    return (
        f" But {row['n_scored']} judgments are few: its native accuracy may be anything from "
        f"{_percent(row['wilson_low'])} to {_percent(row['wilson_high'])}; ask about more items before you decide."
    )


def leaks(accuracy: Sequence[Row]) -> list[str]:
    """Sentences about the items themselves: a judge that reads only the words must not do better than a guess."""
    told = []
    for row in accuracy:
        if (
            row["control"] != "text_only"
            or row["split"] != "all"
            or row["probe"] not in ("pointwise", "pairwise")
        ):
            continue
        if _above_chance(row):
            told.append(
                f"The items leak: reading only the words, {row['model']} gets {_percent(row['accuracy'])} of "
                f"{row['probe']} calls right under the cue {row['cue']}."
            )
    return told


def _numbers(probes: Mapping, rate: Row, masses: Mapping[str, Row], diagnosis: str) -> Iterable[str]:
    names = {
        "pointwise": "One voice, two replies: right in",
        "pairwise": "Both voices, both replies: right in",
        "perception": "Names the user's emotion rightly, in every turn, in",
        "oracle": "Told the emotions in writing, chooses the right reply in",
        "staging": "Told the emotions that it heard itself, chooses the right reply in",
    }
    for probe, says in names.items():
        row = probes.get((probe, "all"))
        if row and row["n_scored"]:
            more = _per_turn(row) if probe == "perception" else f"a guess gets {_percent(row['chance'])}"
            yield f"{says} {_interval(row)}; {more}: {_against_chance(row)}."
    if rate["reliable_mass"] is not None:
        yield (
            f"Reliable (all three right) in {_percent(rate['reliable_mass'])} of {rate['n_instances']} cases; "
            f"shortcuts {_percent(rate['shortcut_mass'])}; Potemkin failures {_percent(rate['potemkin_mass'])}."
        )
    if rate["conditional_potemkin"] is not None:
        yield (
            f"Where it hears the voice and knows the reply, it still judges wrongly in {_percent(rate['conditional_potemkin'])} "
            f"of {rate['n_both_probes']} cases ({_percent(rate['conditional_low'])} to {_percent(rate['conditional_high'])})."
        )
    if diagnosis == "partly" and masses:
        sizes = {name: sum(masses[state]["mass"] for state in group) for name, group in _GROUPS.items()}
        worst = max(sizes, key=sizes.__getitem__)
        yield f"Its largest kind of failure: {worst}, {_percent(sizes[worst])}."


def _per_turn(row: Row) -> str:
    if row["contrast_accuracy"] == row["turn_accuracy"] == row["accuracy"]:
        return "without ears at most 50.0%"
    at = f"{_percent(row['contrast_accuracy'])} ({_percent(row['contrast_low'])} to {_percent(row['contrast_high'])})"
    return f"turn by turn {_percent(row['turn_accuracy'])}, where the two voices differ {at}; without ears at most 50.0%"


def _against_chance(row: Row) -> str:
    """Better, worse, or not to be told; with few calls, how good a judge would have to be to stand out."""
    if _above_chance(row):
        return "better than a guess"
    n = row["n_scored"]
    if row["probe"] == "perception":
        return f"not to be told from one on {n} calls"
    if row["wilson_high"] < row["chance"]:
        return "worse than a guess; are the responses of the items on the right branches?"
    needed = next((k for k in range(n + 1) if beats(k, n, row["chance"])), None)
    if needed is None:
        return f"no result on {n} calls could be told from one"
    return f"not to be told from one (on {n} calls that takes {_percent(needed / n)})"


def _habits(probes: Mapping) -> Iterable[str]:
    row = probes.get(("pointwise", "all"))
    if not row or not row["n_scored"]:
        return
    if row["n_pairs"]:
        yield (
            f"Its answer changed with the voice in {_percent(row['voice_changes'])} of {row['n_pairs']} pairs of calls that "
            f"differ in the voice alone (it should always)."
        )
    n = row["n_scored"]
    if row["said_first_low"] > 0.5 or row["said_first_high"] < 0.5:
        by_place = [probes[("pointwise", f"right_{place}")]["accuracy"] for place in ("first", "second")]
        places = " and ".join(
            f"{_percent(share)} where the right one is R{number}"
            for number, share in enumerate(by_place, 1)
            if share is not None
        )
        yield f"Position bias: it says R1 in {_percent(row['said_first'])} of {n} answers, and is right in {places}."
    if row["n_both_orders"]:
        kept = row["order_consistency"]
        yield (
            f"With the replies exchanged it keeps to its choice in {_percent(kept)} of {row['n_both_orders']} calls"
            f"{': its choice hangs on the place more often than not.' if kept < 0.5 else '.'}"
        )
    else:
        yield "Whether its choice hangs on the order of the replies was not measured: counterbalance=true."


def _gaps(rate: Row) -> Iterable[str]:
    if rate["gap_low"] is not None:
        sign = "loses" if rate["gap_low"] > 0 else ("gains" if rate["gap_high"] < 0 else None)
        if sign:
            yield (
                f"It {sign} {abs(100 * rate['protocol_gap']):.1f} points when it hears one voice and not both (protocol gap "
                f"{_points(rate['protocol_gap'])}, {_points(rate['gap_low'])} to {_points(rate['gap_high'])})."
            )
    for name, what in (("cue", "one voice"), ("cue_pairwise", "both voices")):
        low, high = rate[f"{name}_low"], rate[f"{name}_high"]
        value = rate[name.replace("cue", "cue_dependence")]
        if low is not None and (low > 0 or high < 0):
            yield (
                f"It depends on the prompt: the cue changes its accuracy by {_points(value)} points with {what} "
                f"({_points(low)} to {_points(high)})."
            )


def _lost(probes: Mapping) -> Iterable[str]:
    for (probe, split), row in probes.items():
        lost = row["n_unparsed"] + row["n_failed"]
        if split == "all" and lost:
            yield (
                f"{probe}: {row['n_unparsed']} unreadable and {row['n_failed']} missing answers of {row['n_calls']} are left "
                f"out; with them the accuracy lies between {_percent(row['accuracy_least'])} and {_percent(row['accuracy_most'])}."
            )


def _interval(row: Row) -> str:
    return (
        f"{_percent(row['accuracy'])} ({_percent(row['wilson_low'])} to {_percent(row['wilson_high'])}, "
        f"{row['n_correct']} of {row['n_scored']})"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
