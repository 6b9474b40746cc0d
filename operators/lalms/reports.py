"""What a cascade's LM is told of the clips of a question, and the same words as a Perception slot."""

from __future__ import annotations

from collections.abc import Sequence

from operators.lalms.listening import Report, entity_name
from operators.mugen.options import labels
from operators.prompts import Prompt

UNHEARD = "unknown"


def entities(reports: Sequence[Report]) -> list[str]:
    """The distinct entities of all clips, in the order of the clips and, within one, likeliest first."""
    return list(dict.fromkeys(entity_name(name) for report in reports for name, _ in report.tags))


def clip_names(choices: Sequence[str], n_clips: int) -> list[str]:
    """What the report calls each clip of a question: nothing where there is but one."""
    if n_clips == 1:
        return [""]
    if list(choices) != labels(len(choices)) or n_clips < len(choices):
        return [f"Clip {place}" for place in range(1, n_clips + 1)]
    n_reference = n_clips - len(choices)
    references = (
        [f"Reference {place}" for place in range(1, n_reference + 1)] if n_reference > 1 else ["Reference"]
    )
    return [*references[:n_reference], *choices]


def perception(reports: Sequence[Report], names: Sequence[str]) -> str:
    """The detectors' report as the Perception slot."""
    described = []
    for report in reports:
        sounds = ", ".join(f"{entity_name(name)} ({probability:.2f})" for name, probability in report.tags)
        words = f'"{report.transcript}"' if report.transcript else "no words"
        described.append(f"The tagger reports {sounds or 'no sound'}. The recogniser hears {words}.")
    return (
        f"Entities: {', '.join(entities(reports)) or 'none'}.\nDescription: {_named(names, described, ' ')}"
    )


def evidence(prompt: Prompt, reports: Sequence[Report], names: Sequence[str]) -> str:
    """The same report as the LM is told it."""
    told = []
    for report in reports:
        sounds = ", ".join(dict.fromkeys(entity_name(name) for name, _ in report.tags))
        speech = f'"{report.transcript}"' if report.transcript else "none."
        told.append(prompt.fill(sounds=sounds or "none", speech=speech))
    return _named(names, told, "\n")


def unheard(prompt: Prompt, names: Sequence[str]) -> str:
    """The report of a listener who heard nothing, in the same form."""
    return _named(names, [prompt.fill(sounds=UNHEARD, speech=UNHEARD)] * len(names), "\n")


def _named(names: Sequence[str], texts: Sequence[str], joint: str) -> str:
    return joint.join(f"{name}: {text}" if name else text for name, text in zip(names, texts, strict=True))
