"""Which versions of what made a result."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The installed version of each of `packages`, or "not installed"."""
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
