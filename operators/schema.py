"""One declared Arrow schema per kind of row, so that a column of nulls keeps its type and a reader knows what to expect."""

from __future__ import annotations

import pyarrow as pa

STRINGS = pa.list_(pa.string())

METRICS = (
    "m1_acoustic_grounding",
    "m2_inter_step_coherence",
    "m3_chain_coverage",
    "m4_step_causality",
    "m5_reasoning_progress",
    "m6_audio_lexical_density",
)


def _join(*parts: pa.Schema | list[pa.Field]) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for part in parts:
        for field in part:
            fields.setdefault(field.name, field)
    return pa.schema(list(fields.values()))


# One multiple-choice question about one or more clips. `groups` is a JSON object of further names under which results are
# broken down beside `category` ({"difficulty": "hard"}). `item_error` names why an item cannot be used ("reason: detail").
ITEM = pa.schema(
    [
        ("item_id", pa.string()),
        ("benchmark", pa.string()),
        ("question", pa.string()),
        ("choices", STRINGS),
        ("gold_index", pa.int64()),
        ("audio_uris", STRINGS),
        ("category", pa.string()),
        ("groups", pa.string()),
        ("item_error", pa.string()),
    ]
)

# What decoding found out about the clips of an item, in the order of `audio_uris`.
CLIPS = pa.schema(
    [
        ("audio_hashes", STRINGS),
        ("audio_seconds", pa.list_(pa.float64())),
        ("audio_error", pa.string()),
    ]
)

# What a model said. `usage` is JSON text; `audio_seconds_used`: how much of the clips it was given, where it tells;
# `response_error` names why there is no response.
RESPONSE = pa.schema(
    [
        ("item_id", pa.string()),
        ("model", pa.string()),
        ("trial", pa.int64()),
        ("response", pa.string()),
        ("finish_reason", pa.string()),
        ("usage", pa.string()),
        ("audio_seconds_used", pa.float64()),
        ("response_error", pa.string()),
    ]
)

# The chain of thought in four slots ("" = absent) and the chosen answer under both extraction rules.
CHAIN = pa.schema(
    [
        ("perception", pa.string()),
        ("analysis", pa.string()),
        ("reasoning", pa.string()),
        ("answer", pa.string()),
        ("entities", STRINGS),
        ("answer_index", pa.int64()),
        ("answer_stage", pa.string()),
        ("answer_reason", pa.string()),
        ("answer_index_paper", pa.int64()),
        ("answer_stage_paper", pa.string()),
        ("answer_reason_paper", pa.string()),
    ]
)

# One stored response / one stored score. Only successes are stored, so `value` and `response` are never null.
STORED_RESPONSE = pa.schema(
    [
        ("key", pa.string()),
        ("item_id", pa.string()),
        ("benchmark", pa.string()),
        ("trial", pa.int64()),
        ("response", pa.string()),
        ("finish_reason", pa.string()),
        ("usage", pa.string()),
    ]
)
STORED_SCORE = pa.schema([("key", pa.string()), ("value", pa.float64()), ("details", pa.string())])

# What a model was asked, and how to find what it said: the item as the benchmark held it at `asked_at`, the name the model
# went by, and the key of its response. `content` digests all but `key` and `asked_at`; of several rows about one item and
# trial the last is valid. `response_error` names why there can be no response (a recorded one is missing, say).
ASKED = _join(
    pa.schema(
        [
            ("key", pa.string()),
            ("content", pa.string()),
            ("asked_at", pa.timestamp("us", "UTC")),
            ("model", pa.string()),
            ("trial", pa.int64()),
            ("response_key", pa.string()),
            ("response_error", pa.string()),
        ]
    ),
    ITEM,
    CLIPS,
)

# One trial of one strategy of MUGEN as a model was asked it: `audio_order` lists original indices, `gold_index` and `question`
# are the benchmark's, `state` digests what all trials of an item have in common. The rest is as in ASKED.
PRESENTED = pa.schema(
    [
        ("key", pa.string()),
        ("content", pa.string()),
        ("asked_at", pa.timestamp("us", "UTC")),
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("strategy", pa.string()),
        ("n_candidates", pa.int64()),
        ("item_id", pa.string()),
        ("trial", pa.int64()),
        ("state", pa.string()),
        ("question", pa.string()),
        ("category", pa.string()),
        ("gold_index", pa.int64()),
        ("audio_order", pa.list_(pa.int64())),
        ("response_key", pa.string()),
        ("response_error", pa.string()),
        ("reader", pa.string()),  # fingerprint of the judge that reads the option; null: rules do
    ]
)


def score_columns(metric: str) -> list[pa.Field]:
    """The three columns that a metric adds to the result table: value, reason for a null, details as JSON."""
    return [
        pa.field(metric, pa.float64()),
        pa.field(f"{metric}_reason", pa.string()),
        pa.field(f"{metric}_details", pa.string()),
    ]


def result_schema() -> pa.Schema:
    """The wide table of a run: one row per item, model and trial."""
    scores = [field for metric in METRICS for field in score_columns(metric)]
    verdict = [
        pa.field("aria", pa.float64()),
        pa.field("correct", pa.bool_()),
        pa.field("correct_paper", pa.bool_()),
    ]
    error = [pa.field("row_error", pa.string())]
    return _join(ITEM, CLIPS, RESPONSE, CHAIN, scores, verdict, error)
