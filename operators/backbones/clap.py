"""CLAP: sound and text in one space (Wu et al., 2023), through transformers' `ClapModel`.

*Our reading* of "the whole audio": consecutive windows of 48 kHz mono as long as the model hears at once
(10 s), whose embeddings are averaged with their durations as weights and normalised again. A window that is
too short is repeated until it is full, as in training. Nothing is cropped at random, which is what the
feature extractor does by itself with longer sound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audio import Clip, resample, windows
from operators.backbones.loading import quiet_loading, refuse_missing
from operators.batching import token_batches, token_budget
from operators.fingerprint import execution_field
from operators.text import encodable
from operators.weights import Weights

if TYPE_CHECKING:
    from transformers import ClapModel, ClapProcessor


def whole_clip_embedding(embeddings: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Unit vector [D]: the mean of window embeddings [W, D] weighted by their lengths [W]."""
    mean = np.average(embeddings.astype(np.float64), axis=0, weights=lengths)
    return (mean / np.linalg.norm(mean)).astype(np.float32)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Clap:
    """A CLAP checkpoint in transformers' format. `template` frames an entity; "{}" is the entity alone, as
    in the paper."""

    version: ClassVar[int] = 1

    weights: Weights
    max_tokens: int = 77
    template: str = "{}"
    windows_per_batch: int = execution_field(16, ge=1)
    tokens_per_batch: int | None = execution_field(None, ge=1)
    device: str | None = execution_field(None)

    def load(self) -> LoadedClap:
        """Read model and processor (safetensors, float32) onto `device`, or onto a GPU where there is one."""
        import torch
        from transformers import ClapModel, ClapProcessor

        if self.template.count("{}") != 1:
            raise ValueError(f"template must hold {{}} once, where the entity goes, not {self.template!r}")
        folder = str(self.weights.folder())
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        with quiet_loading():
            model, found = ClapModel.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        refuse_missing(found, folder)
        processor = ClapProcessor.from_pretrained(folder, local_files_only=True)
        if not len(processor.tokenizer):
            raise ValueError(f"{self.weights.source}: the tokenizer is empty; its files are missing")
        return LoadedClap(self, model.to(device).eval(), processor)


class LoadedClap:
    """The working backbone: codes of clips and of entities, and their similarity."""

    def __init__(self, config: Clap, model: ClapModel, processor: ClapProcessor) -> None:
        self._config, self._model = config, model
        self._tokenizer, self._extractor = processor.tokenizer, processor.feature_extractor

    def encode_clips(self, clips: list[Clip]) -> np.ndarray:
        """Embeddings [A, D] of unit length."""
        rate, longest = self._extractor.sampling_rate, self._extractor.max_length_s
        cut = [windows(resample(clip, rate).samples, rate, longest) for clip in clips]
        flat = [window for pieces in cut for window in pieces]
        size = self._config.windows_per_batch
        embedded = [self._embed_windows(flat[start : start + size]) for start in range(0, len(flat), size)]
        parts = np.split(np.concatenate(embedded), np.cumsum([len(pieces) for pieces in cut])[:-1])
        return np.stack(
            [
                whole_clip_embedding(part, np.array([len(w) for w in ws]))
                for part, ws in zip(parts, cut, strict=True)
            ]
        )

    def encode_entities(self, entities: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Embeddings [E, D] of unit length, and whether each text was cut at `max_tokens` ([E] bool)."""
        texts = [self._config.template.replace("{}", encodable(entity)) for entity in entities]
        lengths = np.array([len(ids) for ids in self._tokenizer(texts, verbose=False)["input_ids"]])
        found: dict[int, np.ndarray] = {}
        kept = np.minimum(lengths, self._config.max_tokens)
        budget = token_budget(self._config.tokens_per_batch, self._model.device)
        for batch in token_batches(kept, budget):
            found.update(zip(batch.tolist(), self._embed_texts([texts[i] for i in batch]), strict=True))
        return np.stack([found[i] for i in range(len(texts))]), lengths > self._config.max_tokens

    def similarity(self, clips: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """Cosines [A, E] of clip codes [A, D] and entity codes [E, D]."""
        return np.clip(clips @ entities.T, -1, 1)  # float32 may pass 1 by a hair

    def _embed_windows(self, pieces: list[np.ndarray]) -> np.ndarray:
        import torch

        rate = self._extractor.sampling_rate
        made = self._extractor(pieces, sampling_rate=rate, padding="repeatpad", return_tensors="pt")
        features = made["input_features"].to(self._model.device, torch.float32)
        # No window is longer than the model hears; a fusion checkpoint's extractor would mark one at random.
        longer = torch.zeros((len(pieces), 1), dtype=torch.bool, device=self._model.device)
        with torch.inference_mode():
            output = self._model.get_audio_features(input_features=features, is_longer=longer)
        return output.pooler_output.float().cpu().numpy()

    def _embed_texts(self, texts: list[str]) -> np.ndarray:
        import torch

        limit = self._config.max_tokens
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
        tokens = {name: tokens[name].to(self._model.device) for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            return self._model.get_text_features(**tokens).pooler_output.float().cpu().numpy()
