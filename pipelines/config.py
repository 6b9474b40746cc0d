"""The schema of a run's configuration, and errors that name the key and what is allowed there.

Identity (model, benchmark, scorers) and execution (cluster, store) are separate: only the former reaches a fingerprint.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from operators.base import ColumnError
from operators.chat_api import ChatUnavailable
from operators.chat_faults import looks_like_a_key, may_be_a_key
from operators.locators import holds_credentials
from operators.store import StoreError
from operators.tables import TableError
from operators.weights import WeightsError
from pipelines.config_errors import (
    explain_composition,
    explain_instantiation,
    not_a_step,
    refuse_no_option,
    unknown_key,
    with_choices_for_help,
)
from pipelines.room import ResourceError
from pipelines.sweeps import Sweep, for_every_option, in_sweep

CONF = Path(__file__).resolve().parent.parent / "conf"


# Errors whose message tells the user what to do: shown without a traceback.
MENDABLE = (TableError, WeightsError, StoreError, ResourceError, ColumnError, ChatUnavailable)


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the key, its value and what is allowed."""


@dataclass
class StageResources:
    """Where one stage runs. `cpus: 0` means every core of the machine; stages of one `pool` share a process."""

    cpus: float = 0.0
    gpus: float = 0.0
    actors: int = 1
    batch_size: int = 256
    pool: str | None = None


@dataclass
class Cluster:
    """What each stage may use. The default suits a small machine: one worker process, one stage after the other."""

    name: str = "local"
    address: str | None = None  # of a running Ray cluster; null starts Ray on this machine
    num_cpus: int | None = None  # null: what Ray finds
    num_gpus: int | None = None
    gpu_memory_gb: float | None = None  # of each GPU; null: not known, so what fits there is not judged
    object_store_mb: int = 200
    audio: StageResources = field(default_factory=lambda: StageResources(cpus=1))
    generate: StageResources = field(default_factory=lambda: StageResources(batch_size=8))
    extract: StageResources = field(default_factory=lambda: StageResources(cpus=1, batch_size=2048))
    judge: StageResources = field(default_factory=lambda: StageResources(cpus=1, batch_size=64))
    m1: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))
    m2: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))
    m3: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))
    m4: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))
    m5: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))
    m6: StageResources = field(default_factory=lambda: StageResources(pool="scorers"))


@dataclass
class Scorers:
    """One Spec per metric."""

    m1: Any = MISSING
    m2: Any = MISSING
    m3: Any = MISSING
    m4: Any = MISSING
    m5: Any = MISSING
    m6: Any = MISSING


@dataclass
class StoreConfig:
    """Where responses and scores are kept: a folder or an fsspec URI (s3://bucket/prefix)."""

    root: str = "store"


@dataclass
class AriaEval:
    """`python -m pipelines.aria_eval`."""

    model: Any = MISSING
    benchmark: Any = MISSING
    scorers: Scorers = field(default_factory=Scorers)
    judges: dict[str, Any] = field(default_factory=dict)  # LLM judges of the chains (Table 2), by name
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    yardsticks: bool = True  # also score the response sets that a benchmark ships for comparison
    # Of a stage's usable rows, and of the items; past it the run exits with status 1. Null: 0.5 of the former, all of the latter.
    max_failure_rate: float | None = None
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-<benchmark>-<model>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


# Every pipeline registers the schema that its conf/<name>.yaml names where the schema is defined, never in the
# entry module: under `python -m` that one is `__main__`.
ConfigStore.instance().store(name="aria_eval_schema", node=AriaEval)


def plain(config: DictConfig) -> Any:
    """The typed config as its dataclass. Keys smuggled in with `+` that the schema lacks are refused."""
    _refuse_unknown(config, "")
    if missing := sorted(OmegaConf.missing_keys(config)):
        raise ConfigError(f"set {', '.join(f'{key}=...' for key in missing)}")
    settings = OmegaConf.to_object(config)
    _check_values(settings)
    return settings


def _check_values(settings: Any) -> None:
    """Numbers that compose but cannot run."""
    cluster = getattr(settings, "cluster", None) or Cluster()
    _at_least(cluster, "cluster", num_cpus=1, num_gpus=0, gpu_memory_gb=0, object_store_mb=1)
    for name, stage in vars(cluster).items():
        if isinstance(stage, StageResources):
            _at_least(stage, f"cluster.{name}", cpus=0, gpus=0, actors=1, batch_size=1)
    if (store := getattr(settings, "store", None)) is not None and not store.root.strip():
        raise ConfigError("config key store.root: name a folder or a URI such as s3://bucket/prefix")
    if (rows := getattr(settings, "rows_at_once", 1)) < 1:
        raise ConfigError(f"config key rows_at_once: at least 1, not {rows}")
    limit = getattr(settings, "max_failure_rate", None)
    if limit is not None and not 0 <= limit <= 1:
        raise ConfigError(f"config key max_failure_rate: from 0 to 1, not {limit}")


def _at_least(settings: Any, where: str, **least: float) -> None:
    for key, bound in least.items():
        value = getattr(settings, key)
        if value is not None and not bound <= value < math.inf:
            raise ConfigError(f"config key {where}.{key}: at least {bound}, not {value}")


def _refuse_unknown(node: DictConfig, path: str) -> None:
    kind = OmegaConf.get_type(node)
    if not dataclasses.is_dataclass(kind):
        return
    allowed = [f.name for f in dataclasses.fields(kind)]
    for key in node:
        if key not in allowed:
            raise ConfigError(unknown_key(f"{path}{key}", allowed))
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            _refuse_unknown(child, f"{path}{key}.")


def build(node: Any, where: str) -> Any:
    """Instantiate the object that a config group names by `_target_`; errors name the key and what is allowed."""
    body = OmegaConf.create(node) if isinstance(node, dict) else node
    if unfit := not_a_step(body, where):
        raise ConfigError(unfit)
    missing = sorted(OmegaConf.missing_keys(body)) if isinstance(body, DictConfig) else []
    if missing:
        raise ConfigError(f"set {', '.join(f'{where}.{key}=...' for key in missing)}")
    try:
        return hydra.utils.instantiate(body, _convert_="all")
    except hydra.errors.InstantiationException as error:
        raise ConfigError(explain_instantiation(error, where, body)) from error


def entry(config_name: str, task: Callable[[DictConfig], None], lists: Sequence[str] = ()) -> None:
    """Run `task` under Hydra; whatever is the user's to mend is printed as one readable message, exit status 1.

    lists: keys for which `key=a,b` on the command line means the list [a,b] of one run.
    """
    refuse_credentials(sys.argv[1:])
    refuse_no_option(sys.argv[1:], CONF, config_name)
    sys.argv[1:] = for_every_option(as_lists(with_choices_for_help(sys.argv[1:], CONF, config_name), lists))
    os.environ["HYDRA_FULL_ERROR"] = (
        "1"  # Hydra then raises instead of printing, and we can say what is allowed
    )

    sweep = Sweep()

    @functools.wraps(task)
    def readable(config: DictConfig) -> None:
        # Caught inside the job: Hydra announces with all overrides whatever error leaves it.
        with sweep.job() if in_sweep() else nullcontext():
            RefuseCredentials().on_run_start(config)
            try:
                task(config)
            except (ConfigError, OmegaConfBaseException, *MENDABLE) as error:
                sys.exit(f"error: {error}")
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                where = f" ({error.filename})" if error.filename else ""
                sys.exit(
                    f"error: {os.strerror(error.errno)} where this run writes its tables{where}: make room, or set out=<folder "
                    "on another disk>, and run the same command again; what is in the store is safe"
                )

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=config_name)(readable)()
    except HydraException as error:
        sys.exit(f"error: {explain_composition(error)}")
    except OmegaConfBaseException as error:
        sys.exit(f"error: {error}")
    finally:
        if verdict := sweep.verdict():
            print(verdict, file=sys.stderr)
    if sweep.failed:
        sys.exit(1)


def refuse_credentials(arguments: Sequence[str]) -> None:
    """Exit status 1 where a word of the command line is a key, or an address with a password, key or signature.

    Hydra writes the overrides of a sweep, and of a run where it is told to, to disk before any of our code sees them.
    """
    for word in arguments:
        key = word.partition("://")[0].partition("=")[0].lstrip("+~") if "=" in word else "an argument"
        if said := _secret_in(word, word.partition("=")[2] if key.endswith("key_variable") else ""):
            sys.exit(said.format(key=key))


_CREDENTIALS = (
    "error: {key}: its address comes with credentials, which would be written down: leave them out and set "
    "them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY for s3://)"
)
_KEY = (
    "error: {key}: this looks like an API key, which would be written down: put it into an environment variable and "
    "give the variable's name as key_variable"
)


def _secret_in(text: str, variable: str) -> str | None:
    """What to say of a text that nobody may see, {key} standing for where it was found; None: it is no secret.

    variable: the part of it that should name an environment variable (several of a sweep, by commas), "" if none should.
    """
    if holds_credentials(text):
        return _CREDENTIALS
    names = [name.strip(" '\"") for name in variable.split(",")]
    secret = looks_like_a_key(text) or any(may_be_a_key(name) for name in names if "$" not in name)
    return _KEY if secret else None


class RefuseCredentials(Callback):
    """The same for what files say, a user's own (--config-dir) among them: called before Hydra writes multirun.yaml or .hydra.

    What only some jobs of a sweep choose is seen when such a job starts; Hydra writes that only where `hydra.output_subdir`
    is set, which it is not.
    """

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        for key, value in _leaves(OmegaConf.to_container(config), ""):
            named = value if key.endswith("key_variable") else ""
            if isinstance(value, str) and (said := _secret_in(value, named)):
                sys.exit(said.format(key=f"config key {key}"))

    on_multirun_start = on_run_start


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(key, value) of everything in a config that is no mapping or list; keys joined by dots."""
    if not isinstance(node, (dict, list)):
        yield path, node
        return
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        yield from _leaves(child, f"{path}.{key}" if path else str(key))


def as_lists(arguments: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Words of a command line with `key=a,b` spelled `key=[a,b]` for these keys.

    Without brackets Hydra takes it for a sweep and refuses it; with -m it is one, and stays as it is.
    """
    if {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    listed = re.compile(rf"({'|'.join(map(re.escape, keys))})=([\w./-]+(?:,[\w./-]+)+)") if keys else None
    found = [listed and listed.fullmatch(word) for word in arguments]
    return [f"{m[1]}=[{m[2]}]" if m else word for m, word in zip(found, arguments, strict=True)]
