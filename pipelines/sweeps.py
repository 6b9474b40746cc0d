"""Jobs of a sweep (`-m`): one that fails does not stop the others, and the sweep says at its end which ones did."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from operators.locators import shown


def in_sweep() -> bool:
    """Whether the job that runs now is one of several."""
    return HydraConfig.get().mode == RunMode.MULTIRUN


def for_every_option(arguments: Sequence[str]) -> list[str]:
    """Words of a command line with -m, in which `model.x=1` beside `model=a,b` is spelled `++model.x=1`.

    Hydra first composes the sweep as a whole with the option that no word chose, or none, and refuses fields which that one
    lacks. `++` sets a field there or adds it; what an option does not know its own class refuses in its job.
    """
    if not {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    parser = OverridesParser.create()
    swept: set[str] = set()
    for word in arguments:
        try:
            override = parser.parse_override(word)
        except HydraException:  # an option of Hydra, or what Hydra itself will complain of
            continue
        if override.is_sweep_override():
            swept.add(override.key_or_group.replace("/", "."))
    return [
        f"++{word}" if any(word.startswith(f"{group}.") for group in swept) else word for word in arguments
    ]


def with_own_folder(config: DictConfig) -> DictConfig:
    """`config` with the folder `out`/<number of the job>, where this is a job of a sweep that all have one `out`."""
    if config.out is None or not in_sweep():
        return config
    return OmegaConf.merge(config, {"out": f"{config.out}/{HydraConfig.get().job.num}"})


class Sweep:
    """The jobs of one process: how many began and which of them did not end well."""

    def __init__(self) -> None:
        self.n_jobs = 0
        self.failed: list[str] = []

    @contextmanager
    def job(self) -> Iterator[None]:
        """Around one job of a sweep: the SystemExit of a job that failed is printed and ends no more than this job.

        Hydra keeps any other exception until all jobs are done, and raises the first of them.
        """
        name = _name()
        self.n_jobs += 1
        self.failed.append(name)
        try:
            yield
        except SystemExit as end:
            if end.code not in (None, 0):
                print(end.code if isinstance(end.code, str) else f"exit status {end.code}", file=sys.stderr)
                return
        self.failed.remove(name)

    def verdict(self) -> str | None:
        """What to say at the end of a sweep with failed jobs; None where none failed."""
        if not self.failed:
            return None
        listed = "".join(f"\n  {name}" for name in self.failed)
        told = "the same command does again only what is missing"
        return f"error: {len(self.failed)} of {self.n_jobs} jobs failed; {told}:{listed}"


def _name() -> str:
    """The number of the job and what was set for it, without secrets."""
    told = [word.partition("=") for word in HydraConfig.get().overrides.task]
    return " ".join([f"#{HydraConfig.get().job.num}", *(f"{key}={shown(value)}" for key, _, value in told)])
