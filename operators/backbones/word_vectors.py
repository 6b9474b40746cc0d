"""Word vectors: a unit vector per word, or none where the word is out of vocabulary.

Two kinds with one interface. `GloVe` (Pennington et al., 2014) reads a matrix and its vocabulary as files
that map into memory. `Word2Vec` (Mikolov et al., 2013) reads the binary word2vec format, the one of
GoogleNews-vectors-negative300.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.text import encodable
from operators.weights import Weights, WeightsError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class GloVe:
    """A folder with one `*.npy` matrix [V, D] and one `*.parquet` file, its first column the V words."""

    version: ClassVar[int] = 1

    weights: Weights

    def load(self) -> WordVectors:
        """Map the matrix (pages are read as words are looked up, shared between processes) and its words."""
        import pyarrow.parquet as pq

        folder = self.weights.folder()
        matrix = np.load(_only(folder, "*.npy"), mmap_mode="r", allow_pickle=False)
        vocabulary = pq.read_table(_only(folder, "*.parquet")).column(0).to_pylist()
        if len(vocabulary) != len(matrix):
            raise WeightsError(f"{folder}: {len(vocabulary)} words but {len(matrix)} vectors")
        # Backwards, so that of a word that comes twice the first place counts.
        index = dict(zip(reversed(vocabulary), reversed(range(len(vocabulary))), strict=True))
        return WordVectors(matrix, lambda words: [index.get(encodable(word)) for word in words])


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Word2Vec:
    """A file in the binary word2vec format (`.bin`, or `.gz` of it); needs the package gensim.

    GoogleNews-vectors-negative300 in this format is `word2vec-google-news-300.gz` of the gensim-data project;
    `python -m gensim.downloader --download word2vec-google-news-300` puts it under `~/gensim-data`.
    Repositories that hold gensim's own `.model` files are of no use here: loading those unpickles.

    The vocabulary is cased: a word is looked up as it is, then capitalised, then in capitals ("gospel",
    "Gospel", "GOSPEL"). `limit` keeps only the most frequent words, to save memory (3.4 GB for all three
    million).
    """

    version: ClassVar[int] = 1

    weights: Weights
    limit: int | None = None

    def load(self) -> WordVectors:
        """Read the file. Raises WeightsError where it is not in the binary word2vec format."""
        from gensim.models import KeyedVectors

        path = self.weights.folder()
        try:
            vectors = KeyedVectors.load_word2vec_format(str(path), binary=True, limit=self.limit)
        except (ValueError, EOFError, UnicodeDecodeError) as error:
            raise WeightsError(f"{path} is not a file in the binary word2vec format: {error}") from error
        index = vectors.key_to_index

        def positions(words: Sequence[str]) -> list[int | None]:
            forms = ((word, word.capitalize(), word.upper()) for word in words)
            return [next((index[form] for form in group if form in index), None) for group in forms]

        return WordVectors(vectors.vectors, positions)


class WordVectors:
    """The working lookup over a matrix [V, D]."""

    def __init__(self, matrix: np.ndarray, positions: Callable[[Sequence[str]], list[int | None]]) -> None:
        self._matrix = matrix
        self._positions = positions

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors [N, D] float32 and [N] bool, whether a word is known; unknown words have zero vectors.

        A word whose vector is zero or not finite counts as unknown: it has no direction.
        """
        found = self._positions(words)
        result = np.zeros((len(words), self._matrix.shape[1]), dtype=np.float32)
        rows = [row for row, position in enumerate(found) if position is not None]
        result[rows] = self._matrix[[found[row] for row in rows]]
        norms = np.linalg.norm(result, axis=1, keepdims=True)
        known = (np.isfinite(norms) & (norms > 0))[:, 0]
        result[~known] = 0
        return np.divide(result, norms, out=result, where=known[:, None]), known


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise WeightsError(f"{folder}: expected exactly one {pattern}, found {[file.name for file in found]}")
    return found[0]
