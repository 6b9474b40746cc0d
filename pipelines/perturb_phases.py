"""The phases of a perturbed run: the same items under every condition, in two goes with the model.

Conditions differ in the prompt and in the question, never in what is loaded: every worker loads the model once a go.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pyarrow as pa

from operators.frames import with_columns
from operators.lalms.asking import Lalm
from operators.perturbations import AFTER_COT, CONDITIONS, NOTHING_TO_INJECT, rewritten
from operators.prompts import Prompt
from operators.store import Store
from pipelines.config import Cluster
from pipelines.perturb_settings import Perturb
from pipelines.phases import Journal, extract, generate_together
from pipelines.responses import join_items


def under(model: Lalm, condition: str) -> Lalm:
    """`model` with the prompt of `condition`: another model as far as its responses are concerned."""
    prompt = CONDITIONS[condition].prompt
    return dataclasses.replace(model, prompt=None if prompt is None else Prompt(prompt))


def answered(
    clips: pa.Table,
    conditions: list[str],
    name: str,
    model: Lalm,
    settings: Perturb,
    journal: Journal,
) -> dict[str, pa.Table]:
    """Per condition the items with what the model said and the answer that was read, in the order of the items.

    Asked in two goes, in each of which every worker loads the model once: first all that do not need what it says under `cot`.
    """
    items, done, store = clips.to_pylist(), {}, Store(settings.store.root)
    first = [condition for condition in conditions if condition not in AFTER_COT]
    for together in (first, [condition for condition in conditions if condition in AFTER_COT]):
        originals = done["cot"].to_pylist() if done else items
        asked = {
            condition: (
                under(model, condition),
                to_ask(clips, rewritten(condition, items, originals, settings.seed)),
            )
            for condition in together
        }
        if asked:
            said = generate_together(asked, name, store, settings.cluster, journal)
            done |= read(clips, said, settings.cluster, journal)
    return {condition: done[condition] for condition in conditions}


def to_ask(clips: pa.Table, questions: Sequence[str | None]) -> pa.Table:
    """The items with other `questions`; where there is none, with the reason why."""
    error = [
        broken or (None if question else NOTHING_TO_INJECT)
        for broken, question in zip(clips["item_error"].to_pylist(), questions, strict=True)
    ]
    columns = {
        "question": pa.array([question or "" for question in questions], pa.string()),
        "item_error": pa.array(error, pa.string()),
        "trial": pa.array([0] * clips.num_rows, pa.int64()),
    }
    return with_columns(clips, columns)


def read(
    clips: pa.Table, said: Mapping[str, pa.Table], cluster: Cluster, journal: Journal
) -> dict[str, pa.Table]:
    """The items with what was said and the answers in it, by condition; the slots of all are read in one go."""
    joined = pa.concat_tables(join_items(clips, responses) for responses in said.values())
    found, n = extract(joined, cluster, journal), clips.num_rows
    return {condition: found.slice(place * n, n) for place, condition in enumerate(said)}
