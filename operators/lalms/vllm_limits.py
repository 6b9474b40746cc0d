"""A limit that vLLM sets and the model does not have: Voxtral's five clips in a prompt.

vLLM 0.32 refuses a sixth because answers "tend to degrade" beyond five (a remark in its code; `transformers` has no such limit).
The context of 32k tokens holds some eighty clips of 30 s. MUGEN, which asked Voxtral through vLLM, has items with six:
whoever asks them wants to see how good the answers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

VLLM_TAKES = 5


def lift(folder: Path, clips: int) -> None:
    """Where `folder` holds a checkpoint in Mistral's format, let vLLM take as many as `clips` in a prompt; before it starts.

    Only the process that takes the requests counts clips against this limit; the engine's own plans for its memory by
    tokens. What memory there is for `clips` stays the business of `limit_mm_per_prompt`.
    """
    if clips <= VLLM_TAKES or not (folder / "tekken.json").is_file():
        return
    from vllm.model_executor.models import voxtral
    from vllm.multimodal import MULTIMODAL_REGISTRY

    class AsManyAsAsked(voxtral.VoxtralProcessingInfo):
        def get_supported_mm_limits(self) -> Mapping[str, int | None]:
            return {"audio": None}

    MULTIMODAL_REGISTRY.register_processor(
        voxtral.VoxtralMultiModalProcessor,
        info=AsManyAsAsked,
        dummy_inputs=voxtral.VoxtralDummyInputsBuilder,
    )(voxtral.VoxtralForConditionalGeneration)
