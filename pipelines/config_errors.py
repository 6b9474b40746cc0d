"""What is wrong with a configuration, in words: the whole key, what was given, what is allowed there."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import sys
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, InstantiationException, MissingConfigException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from omegaconf.errors import ValidationError as ValidationFailed
from pydantic import ValidationError

from operators.chat_faults import looks_like_a_key

LONGEST = 80  # characters of a wrong value


def unknown_key(key: str, allowed: Iterable[str]) -> str:
    """One sentence: the wrong key, the nearest right one, all that is allowed there."""
    return f"unknown config key {key!r}{_nearest(key.rsplit('.', 1)[-1], allowed)}"


def _nearest(word: str, allowed: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(allowed), n=1)
    hint = f", did you mean {near[0]!r}?" if near else "."
    return f"{hint} Allowed here: {', '.join(sorted(allowed))}"


def refuse_no_option(arguments: Iterable[str], conf: Path, config_name: str) -> None:
    """Exit status 1 where a word of the command line takes away what a group of `conf` gives (model=null, ~model): Hydra
    ends in a traceback, or says of neither what to choose. A group of which a run takes any number, and some unless told
    otherwise, may be left out (~corpora, to name others); where it has too few, the run says so."""
    schema = ConfigStore.instance().load(f"{config_name}_schema.yaml").node
    chosen = {group for group, option in defaults(conf, config_name).items() if option}
    for word in arguments:
        found = re.fullmatch(
            r"~([\w/]+)(?:=.*)?|\+{0,2}([\w/]+)=(?:null|None|~|-?[\d.]+|[Tt]rue|[Ff]alse)?", word
        )
        group = (found[1] or found[2]) if found else None
        spared = found and found[1] in chosen and schema.get(group) == {}
        if group and (conf / group).is_dir() and not spared:
            have = sorted(path.stem for path in (conf / group).glob("*.yaml"))
            sys.exit(
                f"error: config key {group}: {word} is no choice; leave it out, or choose {group}=NAME of {', '.join(have)}"
            )


def defaults(conf: Path, config_name: str) -> dict[str, Any]:
    """{group: option} of a config's defaults list; "???" where a run must choose, an empty list where it need not."""
    entries = OmegaConf.to_container(OmegaConf.load(conf / f"{config_name}.yaml").defaults)
    return {group: option for one in entries if isinstance(one, dict) for group, option in one.items()}


def with_choices_for_help(arguments: list[str], conf: Path, config_name: str) -> list[str]:
    """`arguments` with any option for a group that must be chosen, where they ask for help: Hydra composes before it helps."""
    if not {"--help", "-h"} & set(arguments):
        return arguments
    must = [group for group, option in defaults(conf, config_name).items() if option == "???"]
    lacking = [group for group in must if not any(word.startswith(f"{group}=") for word in arguments)]
    return [
        *arguments,
        *(f"{group}={min(path.stem for path in (conf / group).glob('*.yaml'))}" for group in lacking),
    ]


def not_a_step(node: Any, where: str) -> str | None:
    """What to say of a node of a config that names no class to build, or holds a number that is none; else None."""
    if not isinstance(node, DictConfig) or node.get("_target_") is None:
        given = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
        group = where.replace(".", "/")
        return f"config key {where}: an option is needed here ({group}=NAME), or a mapping with _target_, not {given!r}"
    return _not_a_number(OmegaConf.to_container(node), where)


def _not_a_number(value: Any, where: str) -> str | None:
    if isinstance(value, (dict, list)):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return next(filter(None, (_not_a_number(one, f"{where}.{key}") for key, one in inner)), None)
    unfit = isinstance(value, float) and not math.isfinite(value)
    return f"config key {where}: a finite number is needed, not {value}" if unfit else None


def explain_instantiation(error: InstantiationException, where: str, body: Any) -> str:
    """What Hydra could not build from `body`, which stands at `where`: one line per wrong key.

    The object at fault may lie deep inside: Hydra says where in the last line of its message, and nowhere else.
    """
    inner = re.search(r"\nfull_key: (.+)\Z", str(error))
    path = inner[1] if inner else ""
    key, cause = ".".join(part for part in (where, path) if part), error.__cause__
    if isinstance(cause, ValidationError):
        node = OmegaConf.select(body, path) if path else body
        return _explain_validation(cause, key, target_of(node))
    if isinstance(cause, ValueError):
        return f"config key {key}: {cause}"
    said = str(error).removesuffix(inner[0] if inner else "").partition(", set env var HYDRA_FULL_ERROR")[0]
    return f"{key}: {said}"


def _explain_validation(error: ValidationError, where: str, target: type | None) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        *above, name = problem["loc"] or ("",)
        key = ".".join([where, *map(str, above), str(name)]).rstrip(".")
        if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            lines.append(unknown_key(key, _fields(_inside(target, above))))
        else:
            said = problem["msg"].removeprefix("Value error, ")
            lines.append(f"config key {key}: {said}{_given(problem, said)}")
    return "\n".join(lines)


def _given(problem: Any, said: str) -> str:
    """The wrong value, where that is one value (a rule between fields has all of them) and no secret."""
    given, value = problem["input"], repr(problem["input"])
    # A rule of ours says itself what may be said of the value.
    own_rule = problem["type"] == "value_error"
    if own_rule or not isinstance(given, (str, int, float, bool, type(None))) or looks_like_a_key(value):
        return ""
    return f", not {value if len(value) <= LONGEST else value[: LONGEST - 3] + '...'}"


def target_of(node: Any) -> type | None:
    """The class that a node of a config names by `_target_`, or None."""
    try:
        return hydra.utils.get_class(node["_target_"]) if "_target_" in node else None
    except (ImportError, ValueError, TypeError, HydraException):
        return None


def _inside(target: type | None, path: Sequence[str | int]) -> type | None:
    """The class of the field that `path` leads to from `target`; a field that may be None counts as what else it may be."""
    for part in path:
        hint = typing.get_type_hints(target).get(part) if isinstance(target, type) else None
        target = next(
            (kind for kind in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(kind)), None
        )
    return target


def _fields(kind: Any) -> list[str]:
    return (
        [one.name for one in dataclasses.fields(kind) if one.init] if dataclasses.is_dataclass(kind) else []
    )


def explain_composition(error: HydraException) -> str:
    """What Hydra could not compose from files and command line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _no_such_option(error)
    cause = error.__cause__
    if not isinstance(cause, OmegaConfBaseException) or not isinstance(cause.parent_node, DictConfig):
        return str(error)
    node, key, full = cause.parent_node, str(cause.key), str(cause.full_key)
    fields = _fields(OmegaConf.get_type(node)) or _fields(target_of(node))
    present = [str(one) for one in node if not str(one).startswith("_")]
    if cause.key is None or key in present or key in _fields(OmegaConf.get_type(node)):
        return f"config key {full}: {_kind_needed(cause, node, key, full) or str(cause.msg).splitlines()[0]}"
    if key in fields:
        return f"config key {full}: no file sets it, so it is added: +{full}=..."
    if not fields:
        has = f" Set here: {', '.join(sorted(present))}." if present else ""
        return f"unknown config key {full!r}.{has} A further one is added: +{full}=..."
    return unknown_key(full, {*fields, *present})


def _kind_needed(cause: OmegaConfBaseException, node: DictConfig, key: str, full: str) -> str | None:
    """What to write instead of one value where a mapping or a list stands; None where something else is wrong."""
    held = node._get_node(key) if isinstance(cause, ValidationFailed) else None
    if isinstance(held, ListConfig):
        return f"a list is needed: '{full}=[A,B]', or '{full}=[A]' for one"
    if isinstance(held, DictConfig) and (fields := _fields(OmegaConf.get_type(held))):
        return f"it has keys of its own: set {', '.join(f'{full}.{name}=...' for name in fields)}"
    return None


def _no_such_option(error: MissingConfigException) -> str:
    """Hydra lists the options for a choice from a group, but not for a list of choices."""
    group, _, option = str(error.missing_cfg_file).rpartition("/")
    folders = [Path(place, group) for place in re.findall(r"path=file://(.+)", str(error))]
    have = error.options or {file.stem for folder in folders for file in folder.glob("*.yaml")}
    if not group or not have:
        return str(error)
    return f"{group} has no option {option!r}{_nearest(option, have)}"
