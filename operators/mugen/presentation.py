"""Questions whose options are clips: what a trial presents, and what a chosen position means (MUGEN sections 2, 4.2, 5.1).

Pure functions over rows. A row of one trial carries `trial` and `audio_order`, the original index of the candidate at
each position, and locators and hashes in that order: never sound. References come first and are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import ConfigDict, ValidationError, field_validator
from pydantic.dataclasses import dataclass

from operators.locators import shown
from operators.mugen.options import labels
from operators.permutation import audio_order, fan_out, in_order, to_original_index
from operators.prompts import Prompt
from operators.schema import CLIPS, ITEM

DIMENSIONS = {
    "Semantics & Pragmatics": "S&P",
    "Speaker & Demographics": "S&D",
    "Affective & Paralinguistic State": "A&P",
    "Temporal Awareness": "TA",
    "Acoustic Scene & Event Analysis": "AS&E",
    "Music Analysis": "MA",
    "Compositional Acoustic Reasoning": "CA",
}

PROMPT_FIELDS = frozenset({"heard", "order", "question"})

# An item whose choices are clips. `audio_uris`: references, then candidates; `category`: the dimension.
MUGEN_ITEM = pa.schema(
    [
        *ITEM,
        ("n_reference", pa.int64()),
        ("task", pa.string()),
        ("ranking", pa.bool_()),
        ("licence", pa.string()),
        ("source", pa.string()),
    ]
)

# One presentation of one item. `n_candidates` is null where all candidates are presented, outside a scaling study.
TRIAL_ROW = pa.schema(
    [
        *ITEM,
        *CLIPS,
        ("n_reference", pa.int64()),
        ("n_candidates", pa.int64()),
        ("trial", pa.int64()),
        ("audio_order", pa.list_(pa.int64())),
        ("prompt", pa.string()),
        ("permuted", pa.bool_()),
        ("voting", pa.bool_()),
    ]
)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Strategy:
    """One row of Table 3. prompt: a name in operators/data/prompts; permute: audio candidates change their order from
    trial to trial (APSC); vote: all trials vote, otherwise the first trial alone is the answer."""

    prompt: str
    permute: bool = False
    vote: bool = False

    @field_validator("prompt")
    @classmethod
    def _usable(cls, name: str) -> str:
        try:
            fields = Prompt(name).fields
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"]) from None
        if fields != PROMPT_FIELDS:
            raise ValueError(f"the prompt needs the fields {sorted(PROMPT_FIELDS)}, it has {sorted(fields)}")
        return name


class GenerationSet(NamedTuple):
    """Generations that strategies share: one prompt, original or permuted order, and which sampling settings."""

    prompt: str
    permute: bool
    voting: bool  # with the voting temperature and top-p, where they differ from the model's own

    @property
    def name(self) -> str:
        """For stages and tables: "mugen_direct, permuted"."""
        return f"{self.prompt}, {'permuted' if self.permute else 'original order'}" + (
            ", voting" if self.voting else ""
        )


def generation_set(strategy: Strategy, separate_voting: bool) -> GenerationSet:
    """The set that a strategy draws from. A single answer is trial 0 of the votes in original order, unless the votes
    are sampled with settings of their own (MUGEN section 5.1: greedy for one answer, temperature 0.2 for ten)."""
    return GenerationSet(strategy.prompt, strategy.permute, separate_voting and strategy.vote)


def kept_candidates(item_id: str, gold: int, n_candidates: int, n: int, seed: int) -> list[int]:
    """The original indices of the `n` candidates that stay, in their order: the gold one and n - 1 distractors.

    MUGEN section 4.2 removes one option at a time, so the sets are nested: what stays for n stays for n + 1. *Our
    reading* of which goes first: random by seed and item. Raises ValueError where n is not in 2..n_candidates.
    """
    if not 2 <= n <= n_candidates:
        raise ValueError(f"item {item_id!r} has {n_candidates} candidates, n must be from 2 to that, not {n}")
    distractors = [index for index in range(n_candidates) if index != gold]
    drawn = audio_order(f"{item_id}\x1fkept", len(distractors), 0, seed)
    return sorted([gold, *(distractors[place] for place in drawn[: n - 1])])


def map_back(order: Sequence[int], position: int | None) -> int | None:
    """The original index of the candidate at a chosen `position`; None stays None.

    `order` lists original indices and may be of a reduced item, say [4, 0, 2]. Raises ValueError for a position that
    was not presented or an order that names a candidate twice.
    """
    kept = sorted(order)
    if len(set(kept)) < len(kept):
        raise ValueError(f"audio_order {list(order)} presents a candidate twice")
    place = to_original_index([kept.index(index) for index in order], position)
    return None if place is None else kept[place]


def present(
    item: Mapping[str, Any], order: Sequence[int], trial: int, n_candidates: int | None
) -> dict[str, Any]:
    """`item` as one trial presents it: clips and hashes in that order, labels for as many as there are."""
    fixed = item["n_reference"]
    row = {name: item[name] for name in TRIAL_ROW.names if name in item}
    kept = sorted(order)
    for column in ("audio_uris", "audio_hashes", "audio_seconds"):
        if clips := item.get(column):
            presented = [*clips[:fixed], *(clips[fixed + index] for index in kept)]
            row[column] = in_order(presented, [kept.index(index) for index in order], fixed)
    given = {"trial": trial, "audio_order": list(order), "n_candidates": n_candidates}
    return {**row, **given, "choices": labels(len(order))}


def orders(
    item: Mapping[str, Any], n_trials: int, seed: int, permute: bool, n_candidates: int | None
) -> list[list[int]]:
    """The order of every trial, in original indices of the candidates that stay. Depends on (seed, item, trial)."""
    fixed, clips = item["n_reference"], item["audio_uris"]
    total = len(clips) - fixed
    n = total if n_candidates is None else n_candidates
    kept = kept_candidates(item["item_id"], item["gold_index"], total, n, seed)
    reduced = {"item_id": item["item_id"], "audio_uris": [*clips[:fixed], *(clips[fixed + i] for i in kept)]}
    return [[kept[i] for i in row["audio_order"]] for row in fan_out(reduced, n_trials, seed, fixed, permute)]


def trial_rows(
    item: Mapping[str, Any], n_trials: int, seed: int, permute: bool, n_candidates: int | None = None
) -> list[dict[str, Any]]:
    """The item once per trial, before generation (TRIAL_ROW)."""
    fanned = orders(item, n_trials, seed, permute, n_candidates)
    return [present(item, order, trial, n_candidates) for trial, order in enumerate(fanned)]


def instruction(prompt: Prompt, question: str, n_reference: int, n_options: int) -> str:
    """The text that a model is asked for one item. Clips are announced in the order in which they are handed over."""
    candidates = f"{n_options} candidates"
    heard = f"{candidates}" if not n_reference else f"{_references(n_reference)} and {candidates}"
    called = (
        [f"reference {place}" for place in range(1, n_reference + 1)]
        if n_reference > 1
        else ["the reference"]
    )
    order = ", ".join([*called[:n_reference], *labels(n_options)])
    return prompt.fill(heard=heard, order=order, question=question)


def _references(n: int) -> str:
    return "1 reference clip" if n == 1 else f"{n} reference clips"


def scalable(item: Mapping[str, Any], n: int) -> bool:
    """Whether an item takes part in the scaling study with n candidates: no ranking task, and enough candidates.

    Section 4.2: with fewer options "the third longest" is ill defined, so ranking tasks are left out for every n.
    """
    return not item["ranking"] and len(item["audio_uris"]) - item["n_reference"] >= n


def same_clip_twice(item: Mapping[str, Any], given: Sequence[str] | None = None) -> str | None:
    """The reason to refuse an item two of whose candidates are one clip, by locator or by decoded sound, else None.

    Two equal candidates are two right answers, or two indistinguishable wrong ones. A reference may be a candidate. The
    reason names both by number and as the benchmark calls them (`given`, per candidate; else by their locators).
    """
    fixed = item["n_reference"]
    names = item["audio_uris"][fixed:] if given is None else given
    for column, what in (("audio_uris", "the same file"), ("audio_hashes", "the same sound")):
        seen: dict[str, int] = {}
        for index, key in enumerate((item.get(column) or [])[fixed:]):
            first = seen.setdefault(key, index) if key is not None else index
            if first != index:
                both = " and ".join(f"{place + 1} ({shown(names[place])})" for place in (first, index))
                return f"same_clip_twice: candidates {both} are {what}"
    return None
