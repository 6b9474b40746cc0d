"""Runs `python -m pipelines.aria_eval` as a user would, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOYS = ["--config-dir", str(ROOT / "tests" / "conf"), "scorers=toy"]


def aria_eval(folder: Path, *arguments: str, timeout: int = 300) -> subprocess.CompletedProcess:
    """One run with its store and tables under `folder`."""
    where = [f"store.root={folder / 'store'}", f"hydra.run.dir={folder / 'run'}"]
    command = [sys.executable, "-m", "pipelines.aria_eval", *arguments, *where]
    # A hub must never be asked; HYDRA_FULL_ERROR is set by the program itself where it needs it.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)
