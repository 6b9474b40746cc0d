"""Manipulations of a chain of thought that must not pay.

Each is a pure function from what a model said to what it might have said to score higher without reasoning better.
ARIA-Rubrics, Appendix G and Table 13, tries the first three on M1; the others go for the other metrics, which section
3.3 says restrain one another. A chain that a manipulation does not touch comes back equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from operators.cot import SLOTS, Slots
from operators.entities import entities_of

STEPS = ("perception", "analysis", "reasoning")
# Common sounds, for a list that leaves nothing out: headings of the AudioSet ontology and their best-known members.
COMMON_SOUNDS = (
    "speech", "male voice", "female voice", "laughter", "footsteps", "breathing", "music", "singing", "guitar", "piano",
    "drums", "violin", "dog", "cat", "bird", "insect", "wind", "rain", "thunder", "water", "fire", "engine", "car",
    "train", "siren", "alarm", "bell", "telephone", "door", "typing", "tools", "explosion", "glass", "silence", "noise",
)  # fmt: skip
FILLER = {
    "perception": "The recording contains various acoustic elements that can be perceived by listening closely.",
    "analysis": "These elements can be considered from several points of view. Each of them may be of relevance, and "
    "taken together they form a basis for further consideration of the question.",
    "reasoning": "After weighing all of the available information carefully, it is possible to arrive at a "
    "conclusion. The most suitable option is the one that fits best with what has been considered above.",
}
REPEATS = 6


@dataclass(frozen=True)
class Case:
    """What a manipulation may use: the chain, the answer as the model gave it ("" for none), the choices, and the
    chain of the same model on another item (None: there is none)."""

    slots: Slots
    answer: str
    choices: tuple[str, ...] = ()
    other: Slots | None = None


Manipulation = Callable[[Case, np.random.Generator], Slots]


def all_music(case: Case, rng: np.random.Generator) -> Slots:
    """Every entity is called "music" (Table 13 b)."""
    return renamed(case.slots, ["music"] * len(case.slots.entities))


def all_speech(case: Case, rng: np.random.Generator) -> Slots:
    """Every entity is called "speech" (Table 13 c)."""
    return renamed(case.slots, ["speech"] * len(case.slots.entities))


def half_generic(case: Case, rng: np.random.Generator) -> Slots:
    """Half of the entities, at random, are called "music" or "speech" (Table 13 d); of an odd number, a coin rounds."""
    names = list(case.slots.entities)
    half = len(names) // 2 + (len(names) % 2) * int(rng.integers(2))
    for place in rng.permutation(len(names))[:half]:
        names[place] = ("music", "speech")[rng.integers(2)]
    return renamed(case.slots, names)


def entity_stuffing(case: Case, rng: np.random.Generator) -> Slots:
    """A list of common sounds follows the entities, in the hope that some are in the audio."""
    own = case.slots.entities
    names = (*own, *(name for name in COMMON_SOUNDS if name not in own))
    return _with_steps(case, perception=_listed(names, case.slots.perception))


def repeated_word(case: Case, rng: np.random.Generator) -> Slots:
    """The word "music" is all that any slot says, the answer too."""
    phrase = " ".join(["music"] * REPEATS)
    return _chain(f"Entities: music. {phrase}", phrase, phrase, "music")


def repeated_answer(case: Case, rng: np.random.Generator) -> Slots:
    """The chosen answer is all that any slot says."""
    if not case.answer:
        return case.slots
    phrase = f"{case.answer.rstrip('.')}."
    return _chain(f"Entities: {phrase} {phrase}", phrase, phrase, case.answer)


def answer_first(case: Case, rng: np.random.Generator) -> Slots:
    """The perception begins with the chosen answer."""
    if not case.answer:
        return case.slots
    return _with_steps(
        case, perception=f"The answer is {case.answer.rstrip('.')}. {case.slots.perception}".strip()
    )


def every_choice(case: Case, rng: np.random.Generator) -> Slots:
    """Every step ends with a sentence that names all choices."""
    offered = ", ".join(choice.rstrip(".") for choice in case.choices)
    return _with_steps(case, **{
        step: f"{text}\nThe options that come into question here are {offered}."
        for step in STEPS
        if (text := getattr(case.slots, step)) and offered
    })  # fmt: skip


def filler(case: Case, rng: np.random.Generator) -> Slots:
    """Fluent text that says nothing stands in every step; the list of entities stays."""
    named = f"Entities: {', '.join(case.slots.entities)}. " if case.slots.entities else ""
    return _with_steps(case, **{**FILLER, "perception": named + FILLER["perception"]})


def steps_shuffled(case: Case, rng: np.random.Generator) -> Slots:
    """Each step holds the text of another one."""
    turned = np.roll(STEPS, int(rng.integers(1, 3)))
    return _with_steps(case, **{
        step: getattr(case.slots, source) for step, source in zip(STEPS, turned, strict=True)
    })  # fmt: skip


def other_chain(case: Case, rng: np.random.Generator) -> Slots:
    """The steps are those that the model wrote for another item; the answer is its own."""
    if case.other is None:
        return case.slots
    return _with_steps(case, **{step: getattr(case.other, step) for step in STEPS})


MANIPULATIONS: tuple[Manipulation, ...] = (
    all_music, all_speech, half_generic, entity_stuffing, repeated_word, repeated_answer,
    answer_first, every_choice, filler, steps_shuffled, other_chain,
)  # fmt: skip


def render(slots: Slots) -> str:
    """A chain as the response that `parse_slots` reads it from; absent slots have no tag."""
    parts = [(slot, getattr(slots, slot)) for slot in SLOTS]
    return "\n".join(f"[{slot.upper()}] {text}" for slot, text in parts if text)


def renamed(slots: Slots, names: Sequence[str]) -> Slots:
    """`slots` with entity i called names[i] wherever the perception names it, so that the text still reads as before."""
    changed = {old: new for old, new in zip(slots.entities, names, strict=True) if old != new}
    if not changed:
        return slots
    longest = sorted(changed, key=len, reverse=True)
    pattern = "|".join(r"\s+".join(map(re.escape, old.split())) for old in longest)
    text = re.sub(
        rf"(?<!\w)(?:{pattern})(?!\w)",
        lambda found: changed[" ".join(found.group().casefold().split())],
        slots.perception,
        flags=re.IGNORECASE,
    )
    wanted = tuple(dict.fromkeys(names))
    text = text if entities_of(text) == wanted else _listed(wanted, slots.perception)
    return replace(slots, perception=text, entities=entities_of(text))


def _listed(names: Sequence[str], perception: str) -> str:
    """A perception with `names` as its entities; what it said before follows as a description."""
    said = re.sub(r"\bentit(?:y|ies)\b[ \t]*[:：]?", "", perception, flags=re.IGNORECASE).strip()
    return f"Entities: {', '.join(names)}." + (f" Description: {said}" if said else "")


def _chain(perception: str, analysis: str, reasoning: str, answer: str) -> Slots:
    return Slots(perception, analysis, reasoning, answer, entities_of(perception))


def _with_steps(case: Case, **steps: str) -> Slots:
    """The chain with some steps rewritten and the answer as it was given."""
    slots = case.slots
    if all(text == getattr(slots, step) for step, text in steps.items()):
        return slots
    return _chain(*(steps.get(step, getattr(slots, step)) for step in STEPS), slots.answer or case.answer)
