"""GGUF to safetensors, once: dequantising takes tens of seconds, reading the result half a second.

The converted copy lies in the user's cache. It is written to a folder of its own and renamed into place, so a reader
sees a whole copy or none; a manifest of file sizes tells a whole copy from one that something cut off later.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from operators.backbones.loading import quiet_loading
from operators.fingerprint import canonical
from operators.weights import Weights, WeightsError, cache_folder

MANIFEST = "converted.json"
CONVERSION = 1  # raise it when the conversion itself changes


def converted_folder(weights: Weights, gguf_file: str) -> Path:
    """The folder with the safetensors copy of `gguf_file`, made on first use; safe with many processes at once.

    Raises WeightsError when the weights' folder holds no such file.
    """
    source = weights.folder() / gguf_file
    if not source.is_file():
        raise WeightsError(
            f"{weights.folder()} holds no {gguf_file!r}; set `gguf_file` to one of its GGUF files"
        )
    origin = json.dumps(canonical([CONVERSION, weights, gguf_file, source.stat().st_size]), sort_keys=True)
    key = hashlib.sha256(origin.encode()).hexdigest()[:16]
    target = cache_folder() / "gguf" / f"{source.stem}-{key}"
    if is_whole(target):
        return target
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    # The lock only spares work: whoever waits finds the copy made. Correctness rests on the rename.
    with FileLock(f"{target}.lock"):
        if not is_whole(target):
            _convert_into(target, source)
    return target


def is_whole(folder: Path) -> bool:
    """Whether a converted copy is complete: every file of its manifest is there, with the size it was written with."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    if not isinstance(sizes, dict) or not sizes:
        return False
    files = {name: folder / name for name in sizes}
    return all(file.is_file() and file.stat().st_size == sizes[name] for name, file in files.items())


def _convert_into(target: Path, source: Path) -> None:
    with tempfile.TemporaryDirectory(
        dir=target.parent, prefix=f".{target.name}-", ignore_cleanup_errors=True
    ) as made:
        new = Path(made) / "new"
        with quiet_loading():
            tokenizer, model = _dequantised(source)
            model.save_pretrained(new)
            tokenizer.save_pretrained(new)
        sizes = {file.name: file.stat().st_size for file in sorted(new.iterdir())}
        (new / MANIFEST).write_text(json.dumps(sizes))
        if target.exists():
            os.replace(target, Path(made) / "broken")
        os.replace(new, target)
        shutil.rmtree(Path(made) / "broken", ignore_errors=True)


def _dequantised(source: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"gguf_file": source.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    quantised = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
    config = copy.deepcopy(quantised.config)
    # A saved quantization_config would make the copy ask for its GGUF file again.
    del config.quantization_config
    plain = type(quantised)(config)
    plain.load_state_dict(quantised.state_dict())
    return tokenizer, plain
