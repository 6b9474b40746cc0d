"""Audio-language models through vLLM, the engine inside the worker: continuous batching, tensor parallel over its GPUs.

    VllmChat(weights=Weights("mistralai/Voxtral-Mini-3B-2507", revision="..."), limits=AudioLimits(max_clips=6))

Why not `ray.data.llm`: it wants to own the stage. Its engine lives behind its own preprocessing, batching and retries, a row
that breaks it takes the job down or disappears, and it needs Ray to run at all. Here the engine is a Spec like any other: a
row's failure is its own reason, finished rows are in the store, and five rows in a notebook run the same code. What it would
add, overlap of loading and generating across many nodes, the pools of `pipelines.execution` already give.

vLLM pins torch and transformers, so it has an environment of its own (`make test-vllm` shows it: requirements-vllm.txt).
"""

from __future__ import annotations

import base64
import dataclasses
import io
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.chat_faults import BROKEN_OFF
from operators.fingerprint import execution_field
from operators.lalms.asking import Lalm, Ready, Request, Said
from operators.lalms.engine_life import Restarting, watched
from operators.lalms.hearing import AudioLimits, Hearing
from operators.lalms.vllm_limits import lift
from operators.text import control_tokens, without_control_tokens
from operators.weights import Weights, WeightsError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class VllmChat(Lalm):
    """A checkpoint that vLLM can load. `limits.max_clips` (None: 1, so that a row with more clips is one too many) bounds its
    `limit_mm_per_prompt`, for which it sets memory aside; `clips_per_prompt`, which a run takes from its items, makes it less.

    chat_template: a template in Jinja's language, None: the checkpoint's. remote_code: the checkpoint's own name, where it
    comes with code that must be trusted. How, not what: `context_length` (tokens of prompt and response; None: what the
    checkpoint allows), `tensor_parallel` (None: all GPUs that the cluster config gives this worker), `gpu_memory` (share of
    each GPU), `rows_in_flight`, `restarts` (so many rows lost one after the other to dying engines end it),
    `patience_seconds` (an engine that finishes no request for so long counts as dead), `memory_gb` (what it needs at least in
    16-bit numbers; the cache comes on top of it, and float32 takes twice as much), `engine` (further arguments of vLLM's
    engine, by its names).

    Greedy decoding takes the likeliest token, as `transformers` does, but vLLM's kernels round differently and it batches as
    it sees fit: where two tokens are closer than that rounding, the two backends may part. Sampled responses have the row's
    seed and repeat on the same version of vLLM; they are other draws than those of `transformers`.
    """

    # 2: special tokens in questions and choices are plain text; 3: text before clips that are choices
    version: ClassVar[int] = 3

    weights: Weights
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    chat_template: str | None = None
    remote_code: str | None = None
    context_length: int | None = execution_field(None, ge=1)
    tensor_parallel: int | None = execution_field(None, ge=1)
    gpu_memory: float = execution_field(0.9, gt=0, le=1)
    rows_in_flight: int = execution_field(64, ge=1)
    restarts: int = execution_field(8, ge=0)
    patience_seconds: float = execution_field(1800, gt=0)
    memory_gb: float | None = execution_field(None, gt=0)
    clips_per_prompt: int | None = execution_field(None, ge=1)
    engine: dict[str, Any] = Field(default_factory=dict, json_schema_extra={"identity": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remote_code not in (None, self.weights.source):
            raise ValueError(
                f"remote_code must be {self.weights.source!r}, the checkpoint whose code is trusted"
            )

    @property
    def known_limits(self) -> AudioLimits:
        return dataclasses.replace(self.limits, max_clips=self.limits.max_clips or 1)

    @property
    def clips_at_once(self) -> int:
        """The most clips that a prompt may hold."""
        most = self.known_limits.max_clips or 1
        return min(most, self.clips_per_prompt or most)

    def usable_cards(self, gpus: float) -> float:
        """How much of `gpus` cards the engine uses: its share of each that it spreads over."""
        return min(gpus, self.gpu_memory * (self.tensor_parallel or max(1, int(gpus))))

    def check(self) -> None:
        """Raise WeightsError where vLLM is not installed."""
        from importlib.util import find_spec

        if find_spec("vllm") is None:
            raise WeightsError(
                "model: vLLM is not installed here; it needs an environment of its own: make .venv-vllm/.ready (CPU), or "
                "pip install vllm -e . in a new environment (GPU)"
            )

    def ready(self) -> Ready:
        """Start the engine. Raises WeightsError where it or the checkpoint is missing."""
        self.check()
        return ready_on(self, Restarting(lambda: start(self), self.restarts))


def ready_on(spec: VllmChat, running: Restarting) -> Ready:
    """What `spec` makes ready, on an engine that runs already."""

    def ask(requests: list[Request]) -> list[Said]:
        return running.answers(requests, lambda some: generate(spec, running.engine, some))

    return Hearing(spec.known_limits, None), ask


def start(spec: VllmChat) -> Any:
    """A running engine for `spec`."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    import torch
    from vllm import LLM

    folder = spec.weights.folder()
    lift(folder, spec.clips_at_once)
    given = {
        "model": str(folder),
        "dtype": spec.dtype,
        "max_model_len": spec.context_length,
        "tensor_parallel_size": spec.tensor_parallel or max(1, torch.cuda.device_count()),
        "gpu_memory_utilization": spec.gpu_memory,
        "max_num_seqs": spec.rows_in_flight,
        # What sees as well as hears loads no eyes, and sets no memory aside for pictures.
        "limit_mm_per_prompt": {"audio": spec.clips_at_once, "image": 0, "video": 0},
        "trust_remote_code": spec.remote_code is not None,
        "seed": 0,
        # The checkpoint's own decoding habits are not ours (as in transformers_chat).
        "generation_config": "vllm",
        "disable_log_stats": True,
    }
    return LLM(**{**given, **spec.engine})


def generate(spec: VllmChat, engine: Any, requests: Sequence[Request]) -> list[Said]:
    """One response per request; vLLM batches them as they fit."""
    from vllm import SamplingParams

    sampling = [
        SamplingParams(
            max_tokens=spec.max_new_tokens,
            temperature=spec.temperature,
            top_p=1.0 if spec.top_p is None else spec.top_p,
            seed=one.seed % 2**31,
        )
        for one in requests
    ]
    token, tokenizer = audio_token(engine), engine.get_tokenizer()
    control = control_tokens(tokenizer)
    with watched(engine, spec.patience_seconds):
        outputs = engine.chat(
            [conversation(spec, one, control) for one in requests],
            sampling,
            use_tqdm=False,
            chat_template=spec.chat_template,
            chat_template_content_format="openai",
        )
    return [said(output, one, token, tokenizer) for output, one in zip(outputs, requests, strict=True)]


def conversation(spec: VllmChat, request: Request, control: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The turns as vLLM takes them: clips as lossless WAV between the texts, in which no `control` token is left."""
    content = [
        {"type": "text", "text": without_control_tokens(part, control)}
        if isinstance(part, str)
        else _audio(request.clips[part])
        for part in request.parts
    ]
    turns = [{"role": "user", "content": content}]
    if spec.system_prompt is not None:
        turns = [{"role": "system", "content": without_control_tokens(spec.system_prompt, control)}, *turns]
    return turns


def _audio(clip: Clip) -> dict[str, Any]:
    import soundfile

    wav = io.BytesIO()
    soundfile.write(wav, clip.samples, clip.sample_rate, format="WAV", subtype="FLOAT")
    data = base64.b64encode(wav.getvalue()).decode("ascii")
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def audio_token(engine: Any) -> int:
    """The token that stands for audio in prompts: the checkpoint's config names it, or Mistral's tokenizer (Voxtral).

    Raises WeightsError where neither does: clips that cannot be counted in a prompt may be missing from it.
    """
    config = engine.llm_engine.model_config.hf_config
    ear = getattr(getattr(engine.get_tokenizer(), "instruct", None), "audio_encoder", None)
    named = [
        getattr(place, name, None)
        for place in (config, getattr(config, "thinker_config", None))
        for name in ("audio_token_id", "audio_token_index")
    ]
    known = [
        one
        for one in (*named, getattr(getattr(ear, "special_ids", None), "audio", None))
        if isinstance(one, int)
    ]
    if known:
        return known[0]
    raise WeightsError(
        "neither the checkpoint's config nor its tokenizer names an audio token: its clips could not be counted in a prompt"
    )


def said(output: Any, request: Request, token: int, tokenizer: Any) -> Said:
    """One output of vLLM, after counting that every clip became a span of the prompt.

    The text is decoded from all tokens at once, as `transformers` does: vLLM decodes as it goes and drops what is left of a
    character at the end.
    """
    from operators.lalms.transformers_chat import audio_spans

    read = list(output.prompt_token_ids or ())
    spans = audio_spans(read, token)
    if spans != len(request.clips):
        return Said(reason=f"audio_spans: {len(request.clips)} clips in, {spans} audio spans in the prompt")
    best = output.outputs[0]
    if best.finish_reason in BROKEN_OFF:
        return Said(reason=f"generation_failed: the engine broke its answer off ({best.finish_reason})")
    usage = {"prompt_tokens": len(read), "completion_tokens": len(best.token_ids)}
    text = tokenizer.decode(list(best.token_ids), skip_special_tokens=True)
    return Said(text.strip(), best.finish_reason, usage)
