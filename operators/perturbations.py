"""Other prompts and injected chains: does the answer of a model depend on its chain of thought?

ARIA-Rubrics, appendix B.1 (Tables 6 and 7) and section 4 with appendix B.4 (Table 4). A condition is a prompt, and for some a
question that is rewritten before it is asked; the clips stay as they are.

*Our reading*: the prompts are figures in the paper, so their words are ours; what they do follows from their names and from
their results. `answer_swap` tells the model not to answer what it concluded (accuracy falls to a few percent in Table 7).
`wrong_perception` gives it what it perceived in another item's audio. `random_hint` hints at a choice drawn from all of
them, the right one included. The scaffolding chain keeps the four steps and leads to a wrong choice ("pointing to Owl"), the
decoration chain is random words. All draws depend on (seed, item) alone.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operators.lalms.asking import lettered
from operators.prompts import PROMPTS, Prompt

N_WORDS = 40
NOTHING_TO_INJECT = "nothing_to_inject: no other perception or wrong choice can be drawn for this item"


@dataclass(frozen=True)
class Condition:
    """How a model is asked: its `title` in the paper's tables, and the prompt that takes question and choices.

    prompt None: the rewritten question is the whole text, choices and all.
    """

    title: str
    prompt: str | None = "cot_four_step"


# In the order of Table 6, Table 7 and appendix B.4.
CONDITIONS: dict[str, Condition] = {
    "cot": Condition("Original CoT"),
    "free": Condition("Baseline", "free"),
    "no_structure": Condition("NoStruct", "cot_no_structure"),
    "answer_swap": Condition("AnsSwap", "cot_answer_swap"),
    "irrelevant": Condition("Irrelevant", "cot_irrelevant"),
    "wrong_perception": Condition("WrongPerc"),
    "random_hint": Condition("RandHints"),
    "decoration": Condition("Decoration", None),
    "scaffolding": Condition("Scaffolding", None),
}
INJECTED = ("decoration", "scaffolding")
AFTER_COT = ("wrong_perception", "scaffolding")  # their questions are made of what the model said under `cot`


def rewritten(
    condition: str, items: Sequence[Mapping[str, Any]], originals: Sequence[Mapping[str, Any]], seed: int
) -> list[str | None]:
    """The question to ask for each item under `condition`; None where there is nothing to put in.

    items: with item_id, question, choices, gold_index; an item that is broken has None in their place. originals: what the
    model said to each of them under `cot`: with perception (None: no response), and answer_index (None: no answer).
    """
    if condition == "wrong_perception":
        given = other_perceptions([row["perception"] for row in originals], items, seed)
        return [
            _filled("given_perception", item, perception=text)
            for item, text in zip(items, given, strict=True)
        ]
    if condition == "random_hint":
        return [_filled("given_hint", item, hint=random_hint(item, seed)) for item in items]
    if condition == "decoration":
        return [_continued(item, decoration_chain(item["item_id"], seed)) for item in items]
    if condition == "scaffolding":
        wrong = wrong_choices(items, originals, seed)
        chains = [
            None if index is None else scaffolding_chain(item["choices"][index])
            for item, index in zip(items, wrong, strict=True)
        ]
        return [_continued(item, chain) for item, chain in zip(items, chains, strict=True)]
    return [item["question"] for item in items]


def _filled(prompt: str, item: Mapping[str, Any], **given: str | None) -> str | None:
    if item["question"] is None or None in given.values():
        return None
    return Prompt(prompt).fill(question=item["question"], **given)


def _continued(item: Mapping[str, Any], chain: str | None) -> str | None:
    """Question, choices and the chain, which stands last: the model goes on from where it stops."""
    return _filled("continue_chain", item, choices=lettered(item["choices"] or ()), chain=chain)


def random_hint(item: Mapping[str, Any], seed: int) -> str | None:
    """One of the item's choices, each as likely as another; None for an item without choices."""
    choices = list(item["choices"] or ())
    return _draws("hint", item["item_id"], seed).choice(choices) if choices else None


def other_perceptions(
    perceptions: Sequence[str | None], items: Sequence[Mapping[str, Any]], seed: int
) -> list[str | None]:
    """For each item the perception of another item, with other words; None where no other item has one.

    A perception is None where the model gave no response. Items lie on a ring by their hashes and an item takes the next
    perception from its own place on, so that one that is new, or gone, changes what its few neighbours are given: a run that
    is repeated for some failed rows asks little else again.
    """
    told = {
        _digest("told", item["item_id"], seed): text
        for item, text in zip(items, perceptions, strict=True)
        if text and text.strip()
    }
    ring = sorted(told)
    several = {*told.values()}
    given: list[str | None] = []
    for item, own in zip(items, perceptions, strict=True):
        if not several - {own}:
            given.append(None)
            continue
        place = bisect_left(ring, _digest("perception", item["item_id"], seed))
        turn = (told[ring[number % len(ring)]] for number in range(place, place + len(ring)))
        given.append(next(text for text in turn if text != own))
    return given


def wrong_choices(
    items: Sequence[Mapping[str, Any]], originals: Sequence[Mapping[str, Any]], seed: int
) -> list[int | None]:
    """Per item the choice that its scaffolding chain leads to: not the gold one and not the model's own answer.

    None where no choice is left, or the item has no gold choice: a chain that leads to where the model already was would
    show nothing.
    """
    wrong: list[int | None] = []
    for item, original in zip(items, originals, strict=True):
        taken = {item["gold_index"], original["answer_index"]}
        left = [index for index in range(len(item["choices"] or ())) if index not in taken]
        able = left and item["gold_index"] is not None
        wrong.append(_draws("scaffolding", item["item_id"], seed).choice(left) if able else None)
    return wrong


def decoration_chain(item_id: str, seed: int) -> str:
    """Forty random words without structure, and without bearing on any audio."""
    words = (PROMPTS.parent / "decoration_words.txt").read_text(encoding="utf-8").split()
    return " ".join(_draws("decoration", item_id, seed).choices(words, k=N_WORDS))


def scaffolding_chain(wrong: str) -> str:
    """A chain with the right structure and fabricated content, whose conclusion is the choice `wrong`."""
    return Prompt("scaffolding_chain").fill(wrong=wrong)


def _draws(what: str, item_id: str, seed: int) -> random.Random:
    return random.Random(_digest(what, item_id, seed))


def _digest(what: str, item_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{what}\0{seed}\0{item_id}".encode()).digest()
