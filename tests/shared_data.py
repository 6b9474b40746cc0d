"""Where the test-only data lies, and an honest skip where it does not."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("AUDIO_REASONING_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def shared(name: str) -> Path:
    """Path of a folder or file of the shared test data; skips the calling test where it is absent."""
    for folder in (ROOT / "data", ROOT):
        if (folder / name).exists():
            return folder / name
    pytest.skip(
        f"test data {name!r} is not at {ROOT}; set AUDIO_REASONING_SHARED to the folder that holds data/"
    )
