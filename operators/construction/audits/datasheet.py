"""The datasheet of a built audit, in Markdown, from its record (build.json)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operators.construction.datasheet import markdown_table

DISCARDED_SHOWN = 30


def datasheet(record: Mapping[str, Any]) -> str:
    """The whole sheet."""
    sections = [
        "# Datasheet",
        "Counterfactual audit items: the same words in two realizations, and a response to each. Built by `python -m "
        "pipelines.build_audit`, after section 4 and appendix B of the paper on counterfactual audits. `build.json` "
        "holds the same facts for programs, and what was measured on every clip.",
        "## Items\n\n" + _items(record),
        "## How the clips were made\n\n" + _generator(record),
        "## What was accepted\n\n" + _acceptance(record),
        "## Left out\n\n" + _left_out(record),
        "## How to read it\n\n" + _limits(),
    ]
    return "\n\n".join(sections) + "\n"


def _items(record: Mapping[str, Any]) -> str:
    lines = [
        (kind, entry["items"], entry["pointwise_instances"], entry["turns"], entry["discarded"])
        for kind, entry in record["kinds"].items()
    ]
    contrasts = [
        (kind, what, number)
        for kind, entry in record["kinds"].items()
        for what, number in entry["emotions"].items()
    ]
    sources = [
        (kind, entry["rows"], entry["sha256"][:16], entry["source"])
        for kind, entry in record["sources"].items()
    ]
    return "\n\n".join(
        [
            markdown_table(["kind", "items", "pointwise instances", "turns", "discarded"], lines),
            markdown_table(["kind", "emotions", "items"], contrasts),
            markdown_table(["kind", "rows of the source", "its SHA-256", "what it is"], sources),
        ]
    )


def _generator(record: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    rate = record["sample_rate"]
    told = f"{rate} Hz" if rate else "the generator's own sampling rate"
    return (
        f"Generator: {record['generator']}. Voices: {', '.join(record['voices'])}; two different ones are drawn for user and "
        f"assistant of every item. FLAC, mono, 16 bit, {told}. Seed {record['seed']}. Versions: {versions}."
    )


def _acceptance(record: Mapping[str, Any]) -> str:
    rules = [
        (emotion, " and ".join(_told(condition) for condition in rule) or "everything")
        for emotion, rule in record["scorer"]["rules"].items()
    ]
    model = record["scorer"]["emotion_model"]
    made = [
        (
            emotion,
            entry["lines"],
            entry["kept"],
            entry["attempts"],
            entry["accepted"],
            "" if entry["fitness"] is None else f"{entry['fitness']:.2f}",
            "; ".join(f"{what}: {number}" for what, number in entry["failures"].items()),
        )
        for emotion, entry in record["renderings"].items()
    ]
    return "\n\n".join(
        [
            "A rendering is accepted where all conditions of its emotion hold, against a neutral rendering of the same "
            "words by the same voice: pitch in semitones, rate as a share, loudness in LU; end_slope in semitones/s and "
            f"pause in syllables are absolute. Up to {record['attempts']} attempts, {record['enough']} accepted ones end "
            "them, the one with the widest margin is kept.",
            markdown_table(["emotion", "accepted where"], rules),
            f"Speech-emotion model: {model['class']}."
            if model
            else "No speech-emotion model took part: the conditions are acoustic.",
            markdown_table(
                ["emotion", "lines", "kept", "attempts", "accepted", "mean fitness", "why attempts failed"],
                made,
            ),
        ]
    )


def _told(condition: Mapping[str, Any]) -> str:
    sign, bound = (
        ("≥", condition["at_least"]) if condition["at_most"] is None else ("≤", condition["at_most"])
    )
    words = f" from {condition['from_words']} words on" if condition["from_words"] else ""
    return f"{condition['measure']} {sign} {bound:g}{words}"


def _left_out(record: Mapping[str, Any]) -> str:
    rows = record["discarded"]
    if not rows:
        return "Nothing was discarded."
    shown = [(row["kind"], row["id"], row["place"], row["reason"]) for row in rows[:DISCARDED_SHOWN]]
    rest = len(rows) - len(shown)
    more = f"\n\n{rest} more are in `build.json`." if rest else ""
    return markdown_table(["kind", "item", "place", "why"], shown) + more


def _limits() -> str:
    return (
        "The label of an item is its construction: which realization a response was written for. Whether listeners hear "
        "the difference is another question, which `python -m pipelines.listen` puts to them. Synthesised manners are "
        "not acted emotions; `python -m pipelines.audit_validity` compares audits of synthetic and real speech."
    )
