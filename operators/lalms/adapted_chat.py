"""A checkpoint whose ears are an adapter: Phi-4-multimodal hears through a LoRA that lies beside its weights.

AdaptedChat(weights=Weights(FOLDER), architecture="Phi4MultimodalForCausalLM", adapter="speech-lora")
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.loading import quiet_loading
from operators.lalms.transformers_chat import TransformersChat
from operators.weights import WeightsError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class AdaptedChat(TransformersChat):
    """A `TransformersChat` with the adapter that lies in the folder `adapter` of its weights, as `peft` writes them."""

    version: ClassVar[int] = 1

    adapter: str

    def load(self) -> tuple[Any, Any]:
        """Processor and adapted model. Raises WeightsError for an adapter that is missing or of another model."""
        processor, model = super().load()
        folder = self.weights.folder() / self.adapter
        try:
            with quiet_loading():
                found = model.load_adapter(str(folder), adapter_kwargs={"local_files_only": True})
        except (OSError, ValueError, KeyError, ImportError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise WeightsError(f"{folder} is no adapter that this model can load: {first}") from error
        if wrong := sorted({*found.missing_keys, *found.unexpected_keys}):
            raise WeightsError(
                f"{folder} is the adapter of another model: {len(wrong)} weights, as {wrong[0]!r}"
            )
        return processor, model
