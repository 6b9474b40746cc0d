"""What `pipelines.build_audit` was asked for, or an error that names the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from operators.construction import writing
from operators.locators import shown
from operators.speech.acceptance import AudioScorer
from pipelines.config import ConfigError

KINDS = ("single_turn_emotions", "positional_emotion", "emotional_conversations")
OWN_SOURCES = Path(__file__).resolve().parents[1] / "operators" / "data" / "audit_sources"


@dataclass
class Sources:
    """One file of sentences or dialogues per kind; null: the project's own."""

    single_turn_emotions: str | None = None
    positional_emotion: str | None = None
    emotional_conversations: str | None = None


@dataclass
class BuildAudit:
    """`python -m pipelines.build_audit`."""

    sources: Sources = field(default_factory=Sources)
    kinds: list[str] | None = None  # null: those whose source is given, or all where none is
    limit: int | None = None  # rows of each source; null: all
    output: str = "audit_built"
    overwrite: bool = False  # replace the audit that `output` holds
    seed: int = 0  # of voices, failed goals and emotions
    speech: Any = MISSING
    scorer: Any = MISSING
    writer: Any = None  # +writer=llm writes what the sources lack
    attempts: int = 10  # per turn, at most
    enough: int = 3  # accepted attempts that end them
    response_emotion: str = "empathetic"  # how the final responses are spoken
    sample_rate: int | None = None  # Hz of the clips; null: the generator's
    dry_run: bool = False  # say what would be written and rendered, and stop


ConfigStore.instance().store(name="build_audit_schema", node=BuildAudit)


def chosen_sources(settings: BuildAudit) -> dict[str, str]:
    """{kind: path of its table}. Raises ConfigError for what cannot be meant."""
    given = {kind: getattr(settings.sources, kind) for kind in KINDS}
    kinds = settings.kinds or [kind for kind in KINDS if given[kind]] or list(KINDS)
    if wrong := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"config key kinds: no kind is called {wrong[0]!r}; there are {', '.join(KINDS)}")
    for key, least in (("attempts", 1), ("enough", 1), ("limit", 1), ("sample_rate", 8000)):
        value = getattr(settings, key)
        if value is not None and value < least:
            raise ConfigError(f"config key {key}: at least {least}, not {value}")
    try:
        writing.check_output(Path(settings.output), settings.overwrite)
    except writing.OutputError as error:
        raise ConfigError(str(error)) from error
    return {kind: given[kind] or str(OWN_SOURCES / f"{kind}.jsonl") for kind in kinds}


def check_emotions(wanted: set[str], speech: Any, scorer: AudioScorer) -> None:
    """Raise ConfigError where an emotion of the scripts can be rendered or judged by nobody."""
    if missing := sorted(wanted - speech.emotions):
        have = ", ".join(sorted(speech.emotions))
        raise ConfigError(f"speech has no manner for {', '.join(missing)}; it has {have}")
    if unusable := scorer.unusable(wanted):
        lines = [f"scorer, {emotion}: {reason}" for emotion, reason in sorted(unusable.items())]
        raise ConfigError("\n".join(lines))


def source_name(path: str) -> str:
    """How items and record call a source: the path as given, without secrets; the project's own by its name."""
    own = Path(path).parent == OWN_SOURCES
    return f"the project's own {Path(path).name}" if own else shown(path)
