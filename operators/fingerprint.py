"""Identity: what makes two scores comparable, as a short hash.

A fingerprint covers the class, its `version` and every field that bears on the result; it refuses what it cannot write
down exactly. A row key covers the columns that the Spec reads, except locators: where a clip lies does not matter,
its decoded samples do (`audio_hashes`).
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from operators.base import Batch, Spec

LOCATORS = frozenset({"audio_uris"})


def execution_field(default: Any, **bounds: Any) -> Any:
    """A Spec field that says how, not what, is computed (token budgets, devices): outside the fingerprint.

    bounds: what pydantic's Field checks (`ge`, `gt`, `le`, ...).
    """
    return Field(default, json_schema_extra={"identity": False}, **bounds)


def later_field(default: Any, **bounds: Any) -> Any:
    """A Spec field that a class got after results were stored: part of its identity where it is not `default`."""
    return Field(default, json_schema_extra={"identity": "unless default"}, **bounds)


def _is_identity(field: dataclasses.Field, value: Any) -> bool:
    extra = getattr(field.default, "json_schema_extra", None)
    kind = extra.get("identity", True) if isinstance(extra, dict) else True
    return value != field.default.default if kind == "unless default" else bool(kind)


def canonical(value: Any) -> Any:
    """`value` as plain JSON data. Raises TypeError for callables and unknown types, ValueError for NaN and inf."""
    if hasattr(value, "identity") and callable(value.identity):
        return canonical(value.identity())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [f for f in dataclasses.fields(value) if _is_identity(f, getattr(value, f.name))]
        body = {f.name: canonical(getattr(value, f.name)) for f in kept}
        version = getattr(type(value), "version", None)
        return {
            "class": type(value).__qualname__,
            **({"version": version} if version is not None else {}),
            **body,
        }
    if isinstance(value, enum.Enum):
        return canonical(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be part of a fingerprint")
        return value
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [canonical(item) for item in value]
    raise TypeError(f"{type(value).__qualname__} cannot be part of a fingerprint: {value!r}")


def digest(data: Any, length: int) -> str:
    """The first `length` hex digits of the SHA-256 of plain JSON data."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def fingerprint(spec: Spec) -> str:
    """Sixteen hex digits that change when, and only when, the Spec's result may change."""
    return digest(canonical(spec), 16)


def differing(records: Sequence[Mapping[str, str]], stages: Sequence[str]) -> list[str]:
    """The `stages` whose fingerprints are not the same in all `records` ({stage: fingerprint}): their numbers are not on
    one scale. A fingerprint that only some records hold differs, since what stands behind the others is not known."""
    return [stage for stage in stages if len({record.get(stage) for record in records}) > 1]


def key_columns(spec: Spec) -> tuple[str, ...]:
    """The columns whose content identifies a row for `spec`."""
    return tuple(name for name in spec.reads if name not in LOCATORS)


def row_keys(spec: Spec, batch: Batch) -> list[str]:
    """One 32-digit key per row: the hash of the columns that `spec` reads, by name."""
    names = sorted(key_columns(spec))
    columns = [batch[name] for name in names]
    return [
        digest([[n, _plain(v)] for n, v in zip(names, row, strict=True)], 32)
        for row in zip(*columns, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A cell as JSON data; numpy scalars and arrays become Python's."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        # Lone surrogates are legal in untrusted text but not in UTF-8; ascii JSON writes them exactly.
        return value
    return canonical(value)
