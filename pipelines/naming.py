"""How a model is called in tables: by its option, and by its checkpoint where the command names one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from operators.locators import shown

# Where an option's checkpoint, or the model behind an API, stands in its config.
PLACES = (
    "weights.source",
    "weights.revision",
    "adapter",
    "endpoint.model",
    "lm.weights.source",
    "lm.weights.revision",
)


def model_name(config: DictConfig) -> str:
    """The name of the chosen model of this run."""
    hydra = HydraConfig.get()
    return name_of(hydra.runtime.choices["model"], config.model, hydra.overrides.task)


def name_of(option: str, model: DictConfig, overrides: Sequence[str]) -> str:
    """`option`, followed by what `overrides` put in its checkpoint's place: two checkpoints never share one name.

    A hub id stays as it is, a path is told by its last two folders, a commit by its first eight digits.
    """
    keys = {word.partition("=")[0].lstrip("+") for word in overrides}
    own = [
        place for place in PLACES if any(f"model.{place}.".startswith(f"{key}.") for key in keys - {"model"})
    ]
    told = [
        _told(place, str(value)) for place in own if (value := OmegaConf.select(model, place)) is not None
    ]
    return f"{option} ({', '.join(told)})" if told else option


def _told(place: str, value: str) -> str:
    if place.endswith("revision"):
        return value[:8]
    local = Path(value).expanduser()
    return "/".join(local.parts[-2:]) if local.is_absolute() or local.exists() else shown(value)
