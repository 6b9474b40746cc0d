"""What a processor and an audio encoder made of a clip, kept for the next prompt that holds the same clip.

With k trials a model is given every clip of an item k times, in k orders. A spectrogram, and what an encoder makes of it that
hears each clip apart from the others, are the same every time, whatever the clip's place and its batch-mates: computed once,
they can be taken again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from operators.batching import Memo

if TYPE_CHECKING:
    import torch

# Encoders of `transformers` for which the tests show it, with what one row of them is: Audio Flamingo 3 cuts a long clip
# into windows of 30 s. Every other encoder hears every clip of every prompt.
ROWS = {
    "Qwen2AudioEncoder": "clips",
    "Qwen2_5OmniAudioEncoder": "clips",
    "AudioFlamingo3Encoder": "windows",
}
# What the models give them beside the sound, one row per clip.
MASKS = ("attention_mask", "input_features_mask")
LENGTHS = ("feature_lens", "aftercnn_lens")  # Qwen2.5-Omni: all clips stand end to end in one long row


def remember_clips(model: Any, kept: int) -> None:
    """Make the encoder in `model` keep what it made of the last `kept` clips; 0: nothing is kept and nothing changes.

    A clip that is not known is encoded alone, so that in every dtype what is kept depends on that clip and nothing else. It
    lies in main memory: 30 s of sound take 2 MB (Qwen2-Audio) to 5 MB (Qwen2.5-Omni) in bfloat16.
    """
    found = [part for part in model.modules() if type(part).__name__ in ROWS]
    if kept and len(found) == 1:
        memo = Memo(ROWS[type(found[0]).__name__], kept, shared=False)
        found[0].forward = _remembering(found[0].forward, memo)


def _remembering(forward: Callable[..., Any], memo: Memo) -> Callable[..., Any]:
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    def encode(input_features: torch.Tensor, **given: Any) -> BaseModelOutputWithPooling:
        flags = {name: value for name, value in given.items() if name not in (*MASKS, *LENGTHS)}
        rows = _rows(input_features, given)
        keys = [_digest({name: _bytes(value) for name, value in row.items()}) for row in rows]
        known = dict(zip(keys, rows, strict=True))

        def alone(missing: list[str]) -> list[torch.Tensor]:
            return [forward(**known[key], **flags).last_hidden_state.cpu() for key in missing]

        heard = torch.cat(memo.get(keys, alone))
        return BaseModelOutputWithPooling(last_hidden_state=heard.to(input_features.device))

    return encode


def _rows(features: torch.Tensor, given: Mapping[str, Any]) -> list[dict[str, torch.Tensor]]:
    """What the encoder would be given for each clip alone."""
    if (lengths := given.get(LENGTHS[0])) is not None:
        clips = features.split(lengths.tolist(), dim=-1)  # of [bands, frames of all clips]
    else:
        clips = features.split(1)  # of [clips, bands, frames]
    rows = [{"input_features": clip} for clip in clips]
    for name in (*MASKS, *LENGTHS):
        if given.get(name) is not None:
            for row, value in zip(rows, given[name].split(1), strict=True):
                # transformers leaves a mask out that hides nothing in the whole batch; here that is told for each clip.
                if name != "attention_mask" or not value.all():
                    row[name] = value
    return rows


def _bytes(value: torch.Tensor) -> np.ndarray:
    import torch

    return value.contiguous().view(torch.uint8).cpu().numpy()


def remember_spectra(processor: Any, kept: int) -> None:
    """Make the feature extractor in `processor`, if it has one of that name, keep the spectrograms of the last `kept` clips."""
    if getattr(processor, "feature_extractor", None) is not None:
        processor.feature_extractor = Spectra(processor.feature_extractor, kept)


class Spectra:
    """A feature extractor that keeps the spectrograms of the last `kept` clips; for everything else it is `extractor`.

    Only where every clip is padded to the model's own window, so that its spectrogram is the same in every batch: 1.5 MB for
    30 s (Qwen2-Audio), 15 MB for the 300 s to which Qwen2.5-Omni pads every clip.
    """

    def __init__(self, extractor: Any, kept: int) -> None:
        self._extractor, self._memo = extractor, Memo("spectra", kept, shared=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._extractor, name)

    def __call__(self, clips: list[np.ndarray], **given: Any) -> Any:
        if given.get("padding") != "max_length" or given.get("return_tensors") != "pt":
            return self._extractor(clips, **given)
        import torch
        from transformers import BatchFeature

        keys = [_digest({repr(sorted(given.items())): clip}) for clip in clips]
        known = dict(zip(keys, clips, strict=True))
        made = self._memo.get(
            keys, lambda missing: [self._extractor([known[key]], **given) for key in missing]
        )
        return BatchFeature({name: torch.cat([one[name] for one in made]) for name in made[0]})


def _digest(parts: Mapping[str, np.ndarray]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name, value in parts.items():
        found.update(f"{name} {value.dtype} {value.shape}".encode())
        found.update(np.ascontiguousarray(value))
    return found.hexdigest()
