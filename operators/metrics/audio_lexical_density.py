"""Audio Lexical Density (M6): how close to audio is the vocabulary of the chain?

ARIA-Rubrics, section 3.3.6 and Table 11: for each word of the chain of thought the maximum cosine to the
audio words (417 terms from the AudioSet ontology; Gemmeke et al., 2017), averaged over all words. Word
vectors: word2vec (Mikolov et al., 2013), L2-normalised. Tags and stop words are removed, words have at least
3 characters, lemmas are taken verb first, then noun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.backbones.word_vectors import GloVe, Word2Vec, WordVectors
from operators.base import Batch, Op
from operators.batching import Memo
from operators.metrics.rows import ScoredRow, columns
from operators.text import words
from operators.weights import Weights

SLOTS = ("perception", "analysis", "reasoning", "answer")
DATA = Path(__file__).parents[1] / "data"


def audio_lexical_density(similarities: Iterable[float]) -> float:
    """ALD in [0, 1]: the mean of `similarities` [W], each word's largest cosine to an audio word.

    *Our reading*: a word that comes twice counts twice (the paper averages over all words of the chain), a
    negative maximum counts as 0, and a chain without words has density 0. Raises ValueError for NaN or values
    outside [-1, 1].
    """
    values = np.asarray(list(similarities), dtype=np.float64)
    if not np.all(np.abs(values) <= 1 + 1e-6):
        raise ValueError("similarities are cosines: finite and within [-1, 1]")
    return float(np.clip(values, 0, 1).mean()) if len(values) else 0.0


@lru_cache(maxsize=65536)
def lemma(word: str) -> str:
    """Base form of a lower-case English word: as a verb, and if that leaves it as it is, as a noun.

    Dictionary look-up only (SPECIALIST lexicon through lemminflect): an unknown word is its own lemma.
    """
    from lemminflect import getLemma

    for part_of_speech in ("VERB", "NOUN"):
        forms = getLemma(word, upos=part_of_speech, lemmatize_oov=False)
        if forms and forms[0] != word:
            return forms[0]
    return word


def content_words(text: str, stop_words: frozenset[str], min_length: int) -> tuple[list[str], int]:
    """Lemmas of the words of `text` that count, in order, with repeats, and the number of stop words."""
    found = words(text)
    kept = [word for word in found if word not in stop_words]
    return [lemma(word) for word in kept if len(word) >= min_length], len(found) - len(kept)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AudioLexicalDensity:
    """M6 over a batch; the words are those of all four slots.

    *Our reading*: a word out of the backbone's vocabulary is left out and counted in the details; a chain all
    of whose words are unknown has no density (null, `no_word_in_vocabulary`). `audio_words` is our own
    selection: the paper's is not public. `stop_words` is NLTK's English list, `extra_stop_words` our 30 words
    beside it.
    """

    backbone: GloVe | Word2Vec
    stop_words: Weights
    extra_stop_words: Weights = Weights(str(DATA / "stop_words_extra.txt"))
    audio_words: Weights = Weights(str(DATA / "audioset_words.txt"))
    min_length: int = Field(default=3, ge=1)

    reads: ClassVar[tuple[str, ...]] = SLOTS
    writes: ClassVar[tuple[str, ...]] = (
        "m6_audio_lexical_density",
        "m6_audio_lexical_density_reason",
        "m6_audio_lexical_density_details",
    )
    version: ClassVar[int] = 1

    def build(self) -> Op:
        similarity = _similarity(self.backbone.load(), word_list(self.audio_words))
        stop_words = frozenset(word_list(self.stop_words)) | frozenset(word_list(self.extra_stop_words))
        memo = Memo("words")

        def score(batch: Batch) -> Batch:
            texts = ["\n".join(slots) for slots in zip(*(batch[slot] for slot in SLOTS), strict=True)]
            rows = [content_words(text, stop_words, self.min_length) for text in texts]
            chains = [word for found, _ in rows for word in found]
            known = dict(zip(chains, memo.get(chains, similarity), strict=True))
            return columns(self.writes, [_score_row(found, n_stop, known) for found, n_stop in rows])

        return score


def word_list(weights: Weights) -> list[str]:
    """The words of a text file, one per line; lines that start with # and empty lines do not count."""
    lines = weights.folder().read_text(encoding="utf-8").splitlines()
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise ValueError(f"{weights.source}: no words in the file")
    return found


def _similarity(vectors: WordVectors, audio_words: list[str]) -> Callable[[list[str]], list[float]]:
    """Each word's largest cosine to the audio words, NaN where the word is unknown."""
    audio, in_vocabulary = vectors.vectors(audio_words)
    if not in_vocabulary.any():
        raise ValueError(f"the word vectors know none of the audio words ({audio_words[0]!r}, ...)")
    audio = audio[in_vocabulary]

    def similarity(chain: list[str]) -> list[float]:
        found, known = vectors.vectors(chain)
        return np.where(known, (found @ audio.T).max(axis=1), np.nan).astype(np.float64).tolist()

    return similarity


def _score_row(chain: list[str], n_stop_words: int, known: dict[str, float]) -> ScoredRow:
    values = [known[word] for word in chain]
    in_vocabulary = [value for value in values if value == value]
    details = {
        "n_words": len(chain),
        "n_out_of_vocabulary": len(chain) - len(in_vocabulary),
        "n_stop_words": n_stop_words,
    }
    if chain and not in_vocabulary:
        return ScoredRow(float("nan"), "no_word_in_vocabulary", details)
    return ScoredRow(audio_lexical_density(in_vocabulary), None, details)
