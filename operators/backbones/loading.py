"""Loading checkpoints through `transformers`: quietly, and never with weights that the checkpoint does not hold."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from operators.weights import WeightsError


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep loading bars, and reports of weights that are simply not used, off the screen of every worker.

    Reports of weights that are missing still come through.
    """
    from transformers.utils import logging as messages

    shown, log = messages.is_progress_bar_enabled(), messages.get_logger("transformers.modeling_utils")
    messages.disable_progress_bar()
    log.addFilter(_worth_reading)
    try:
        yield
    finally:
        log.removeFilter(_worth_reading)
        if shown:
            messages.enable_progress_bar()


def _worth_reading(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return "LOAD REPORT" not in text or "MISSING" in text or "MISMATCH" in text


def refuse_missing(found: Mapping[str, Any], folder: Path | str) -> None:
    """Raise WeightsError where a checkpoint lacks weights, which `transformers` would draw at random.

    `found` is what `from_pretrained` returns beside the model with `output_loading_info=True`.
    """
    if missing := sorted(found["missing_keys"]):
        some = ", ".join(missing[:3])
        raise WeightsError(f"{folder} lacks {len(missing)} weights that the model needs ({some}, ...)")
