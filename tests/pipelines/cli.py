"""Runs `python -m pipelines.aria_eval` as a user would, in a process of its own, or faster in this one."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir

from pipelines.aria_eval import evaluate
from pipelines.config import CONF, Cluster
from pipelines.execution import session

ROOT = Path(__file__).resolve().parents[2]
TOYS = ["--config-dir", str(ROOT / "tests" / "conf"), "scorers=toy"]
TOY_PATH = f"hydra.searchpath=[file://{ROOT / 'tests' / 'conf'}]"


def aria_eval(folder: Path, *arguments: str, timeout: int = 300) -> subprocess.CompletedProcess:
    """One run with its store and tables under `folder`."""
    where = [f"store.root={folder / 'store'}", f"out={folder / 'run'}"]
    command = [sys.executable, "-m", "pipelines.aria_eval", *arguments, *where]
    # A hub must never be asked; HYDRA_FULL_ERROR is set by the program itself where it needs it.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)


def composed(*overrides: str, pipeline: str = "aria_eval"):
    """The configuration of `pipeline` that `overrides` compose."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(pipeline, overrides=list(overrides))


def evaluated(folder: Path, *overrides: str) -> subprocess.CompletedProcess:
    """The same run in this process, on the Ray session that is open; SystemExit becomes a return code."""
    config = composed(*overrides, f"store.root={folder / 'store'}", f"out={folder / 'run'}")
    out, error = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            evaluate(config, "model", "test")
        except SystemExit as end:
            code = 1
            print(end.code, file=error)
    return subprocess.CompletedProcess(overrides, code, out.getvalue(), error.getvalue())


@contextlib.contextmanager
def own_ray():
    """A Ray whose workers inherit the environment as it is now: one that is open is older, and ends."""
    import ray

    ray.shutdown()
    with session(Cluster(num_cpus=2)):
        yield
