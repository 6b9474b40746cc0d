"""Speech-emotion models: probabilities of named emotions for one clip (counterfactual audits, appendix B.2.3).

`Emotion2Vec` is the paper's (Ma et al., 2024, emotion2vec+ large). It comes as a PyTorch checkpoint and runs through
`funasr` (MIT, not a dependency of this project: it wants its own environment); torch >= 2.6, which this project pins,
reads nothing but tensors from such a file. `EmotionClassifier` takes any audio classifier in transformers' format as
safetensors. No package index carries either one's weights: without them, use a scorer whose rules are acoustic.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip, resample
from operators.fingerprint import execution_field
from operators.speech.acceptance import Probabilities
from operators.speech.rendering import SpeechError
from operators.weights import Weights

RATE = 16_000


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Emotion2Vec:
    """The folder of an emotion2vec+ checkpoint (`model.pt`, `config.yaml`, `tokens.txt`), fetched beforehand.

    Probabilities of angry, disgusted, fearful, happy, neutral, other, sad, surprised and unknown; they add up to 1.
    """

    weights: Weights
    device: str = execution_field("cpu")

    def load(self) -> Probabilities:
        """Raises SpeechError without `funasr`, WeightsError without the folder."""
        if importlib.util.find_spec("funasr") is None:
            raise SpeechError(
                "emotion2vec is absent: it needs the package funasr (pip install funasr, in an environment of its own); "
                "or choose scorer=prosody, whose rules need no emotion model"
            )
        from funasr import AutoModel

        model = AutoModel(model=str(self.weights.folder()), device=self.device, disable_update=True)

        def probabilities(sound: Clip) -> Mapping[str, float]:
            samples = resample(sound, RATE).samples
            found = model.generate(
                samples, granularity="utterance", extract_embedding=False, disable_pbar=True
            )[0]
            return named(found["labels"], found["scores"], {"<unk>": "unknown"})

        return probabilities


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class EmotionClassifier:
    """An audio classifier of transformers. labels: {the model's label: the name in the scorer's rules}."""

    weights: Weights
    labels: dict[str, str] = Field(default_factory=dict)
    device: str = execution_field("cpu")

    def load(self) -> Probabilities:
        """Raises WeightsError where the folder, or a weight in it, is missing."""
        folder = str(self.weights.folder())
        import torch
        from transformers import AutoFeatureExtractor, AutoModelForAudioClassification

        from operators.backbones.loading import quiet_loading, refuse_missing

        extractor = AutoFeatureExtractor.from_pretrained(folder, local_files_only=True)
        with quiet_loading():
            model, found = AutoModelForAudioClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
        refuse_missing(found, folder)
        model.to(self.device).eval()
        names = [model.config.id2label[index] for index in range(model.config.num_labels)]

        def probabilities(sound: Clip) -> Mapping[str, float]:
            samples = resample(sound, extractor.sampling_rate).samples
            inputs = extractor(samples, sampling_rate=extractor.sampling_rate, return_tensors="pt")
            with torch.inference_mode():
                logits = model(**inputs.to(self.device)).logits[0]
            return named(names, logits.softmax(-1).tolist(), self.labels)

        return probabilities


def named(labels: list[str], scores: list[float], renamed: Mapping[str, str]) -> dict[str, float]:
    """{name: probability}; "生气/angry" is called angry, and labels of one name add up."""
    found: dict[str, float] = {}
    for label, score in zip(labels, scores, strict=True):
        name = renamed.get(label, label.rpartition("/")[2].strip().lower())
        found[name] = found.get(name, 0.0) + float(score)
    return found
