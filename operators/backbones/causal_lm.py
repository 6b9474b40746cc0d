"""Small causal language models as scorers: the backbone of M3, of M4 and of the cascade's writer.

One config names the weights (a pip package, a local folder, a hub repository at a pinned revision); `load()` gives the
tokenizer and the model in evaluation mode. Everything in a process that asks for the same weights shares one copy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones import gguf_conversion
from operators.backbones.loading import quiet_loading, refuse_missing
from operators.fingerprint import execution_field
from operators.text import encodable
from operators.weights import Weights, WeightsError

if TYPE_CHECKING:
    import torch

Dtype = Literal["float32", "bfloat16", "float16"]
SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CausalLM:
    """Any causal LM that `transformers` reads from safetensors, or from one GGUF file inside the weights' folder.

    `dtype` bears on the scores and is identity; so does the way a GGUF file is converted. In bfloat16 and float16 the
    rounding of a row changes with the shape of its batch: scores then depend a little on batch-mates (M3: up to 0.06
    was seen), in float32 they do not. `device` (None: the first GPU, else the CPU), `tokens_per_batch`, the padded
    tokens of one forward pass (None: what suits the device), and `memory_gb`, what the model needs at least in 16-bit
    numbers (float32 takes twice as much), say only how the work is done.
    """

    version: ClassVar[int] = 1

    weights: Weights
    gguf_file: str | None = None
    dtype: Dtype = "float32"
    device: str | None = execution_field(None)
    tokens_per_batch: int | None = execution_field(None, ge=1)
    memory_gb: float | None = execution_field(None, gt=0)
    conversion: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.gguf_file is not None:
            object.__setattr__(self, "conversion", gguf_conversion.CONVERSION)

    def load(self) -> LoadedCausalLM:
        """The shared tokenizer and model. Raises WeightsError when they are missing, unreadable or empty."""
        return _load(self.weights, self.gguf_file, self.dtype, self.device)


@plain_dataclass(frozen=True, eq=False)
class LoadedCausalLM:
    """A tokenizer, its model in evaluation mode, and the device the model lies on."""

    tokenizer: Any
    model: Any
    device: torch.device

    def token_ids(self, text: str) -> list[int]:
        """The tokens of untrusted text: no special token is added, and one spelled out in the text is plain text."""
        return self.tokenizer(encodable(text), add_special_tokens=False, split_special_tokens=True).input_ids

    def template_ids(self, text: str) -> list[int]:
        """The tokens of our own text, in which special tokens such as `<|im_start|>` mean what they say."""
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def opening_ids(self) -> list[int]:
        """What the tokenizer puts before any text: one beginning-of-sequence token, or nothing."""
        body, whole = self.template_ids("a"), self.tokenizer("a").input_ids
        for start in range(len(whole) - len(body) + 1):
            if whole[start : start + len(body)] == body:
                return whole[:start]
        return []

    def continuation_ids(self, lead: str, text: str) -> tuple[list[int], list[int]]:
        """The tokens of `lead` and of `text` after it and one space, cut where `text` begins."""
        start, whole = self.token_ids(lead), self.token_ids(f"{lead} {text}")
        if whole[: len(start)] == start:
            return start, whole[len(start) :]
        # A tokenizer that merges across the space: the two pieces are then encoded apart.
        return start, self.token_ids(f" {text}")

    @property
    def padding_id(self) -> int:
        """A token for masked positions; which one does not matter, but it must exist."""
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0

    @property
    def context_length(self) -> int:
        """The most positions that the model was made for."""
        return int(getattr(self.model.config.get_text_config(), "max_position_embeddings", 2048))


@functools.lru_cache(maxsize=4)
def _load(weights: Weights, gguf_file: str | None, dtype: Dtype, device: str | None) -> LoadedCausalLM:
    import torch

    folder = weights.folder()
    if gguf_file is not None:
        folder = gguf_conversion.converted_folder(weights, gguf_file)
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with quiet_loading():
        tokenizer, model = _read(folder, getattr(torch, dtype))
    return LoadedCausalLM(tokenizer, model.to(place).eval().requires_grad_(False), place)


def _read(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, found = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=dtype, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise WeightsError(f"{folder} is not a causal LM with safetensors weights: {first}") from error
    # A tokenizer read from a folder without tokenizer files does not raise: it finds no tokens in any text.
    if set(tokenizer("The answer is 0.5", add_special_tokens=False).input_ids) <= {tokenizer.unk_token_id}:
        raise WeightsError(f"{folder} holds no tokenizer: add tokenizer.json and tokenizer_config.json")
    refuse_missing(found, folder)
    # A checkpoint's own habits of writing (a repetition penalty, top-k) would bear on our replies without being asked.
    special = {name: getattr(model.generation_config, name) for name in SPECIAL_TOKENS}
    model.generation_config = GenerationConfig(**special)
    return tokenizer, model
