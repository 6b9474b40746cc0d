"""Sentence embeddings: one unit vector per text.

The checkpoint itself says how token vectors become a sentence vector (its `modules.json`), so any
sentence-transformers folder works: all-mpnet-base-v2 (Song et al., 2020), all-MiniLM-L6-v2, or your own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.loading import quiet_loading
from operators.batching import token_batches, token_budget
from operators.fingerprint import execution_field
from operators.text import encodable
from operators.weights import Weights

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SentenceEncoder:
    """A sentence-transformers checkpoint. Texts are cut at `max_tokens`, special tokens included."""

    version: ClassVar[int] = 1

    weights: Weights
    max_tokens: int = 384
    tokens_per_batch: int | None = execution_field(None, ge=1)
    device: str | None = execution_field(None)

    def load(self) -> LoadedSentenceEncoder:
        """Read the weights (safetensors, float32) onto `device`, or onto a GPU where there is one."""
        import torch
        from sentence_transformers import SentenceTransformer

        folder = str(self.weights.folder())
        with quiet_loading():
            model = SentenceTransformer(
                folder,
                device=self.device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
        positions = getattr(model[0].auto_model.config, "max_position_embeddings", None)
        if positions is not None and not 3 <= self.max_tokens <= positions:
            name = self.weights.source
            raise ValueError(f"{name}: max_tokens must be in 3..{positions}, not {self.max_tokens}")
        if not len(model.tokenizer):
            raise ValueError(f"{self.weights.source}: the tokenizer is empty; its files are missing")
        model.max_seq_length = self.max_tokens
        return LoadedSentenceEncoder(
            model.eval(), self.max_tokens, token_budget(self.tokens_per_batch, model.device)
        )


class LoadedSentenceEncoder:
    """The working encoder: `encode` is a pure function of its texts, whatever the batches."""

    def __init__(self, model: SentenceTransformer, max_tokens: int, tokens_per_batch: int) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._tokens_per_batch = tokens_per_batch
        self.dimension = int(model.get_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Embeddings [N, D] float32 of unit length, and per text whether it was cut at `max_tokens` ([N]
        bool).

        An empty text gets the embedding of its special tokens: callers that mean "absent" must say so
        themselves. Lone surrogates are read as U+FFFD.
        """
        clean = [encodable(text) for text in texts]
        lengths = self._lengths(clean)
        embeddings = np.zeros((len(clean), self.dimension), dtype=np.float32)
        for batch in token_batches(np.minimum(lengths, self._max_tokens), self._tokens_per_batch):
            embeddings[batch] = self._model.encode(
                [clean[index] for index in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return embeddings, lengths > self._max_tokens

    def _lengths(self, texts: list[str]) -> np.ndarray:
        """Tokens of each text before any cut, special tokens included."""
        if not texts:
            return np.zeros(0, dtype=np.int64)
        tokenizer = self._model.tokenizer
        encoded = tokenizer(texts, truncation=False, return_attention_mask=False, verbose=False)
        return np.asarray([len(row) for row in encoded["input_ids"]], dtype=np.int64)
