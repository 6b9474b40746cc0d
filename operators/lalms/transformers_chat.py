"""Audio-language models through `transformers`: the checkpoint's own processor and chat template, batched, left-padded.

    TransformersChat(weights=Weights("Qwen/Qwen2-Audio-7B-Instruct", revision="..."), dtype="bfloat16")

A hub id, a local folder and a pip package are all written the same way (`operators.weights`). Only safetensors are read,
and no code from a checkpoint is run unless `remote_code` repeats the checkpoint's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.loading import quiet_loading, refuse_missing
from operators.fingerprint import execution_field
from operators.lalms.asking import Lalm, Ready, Request, Said
from operators.lalms.decoding_rules import Noise
from operators.lalms.encoding import remember_clips, remember_spectra
from operators.lalms.hearing import KEPT_CLIPS, Hearing
from operators.text import control_tokens, without_control_tokens
from operators.weights import Weights, WeightsError

if TYPE_CHECKING:
    import torch

# Processors that insist on one clip for each text, though all they do is to put as many placeholders in a clip's place as it
# needs, and though their models put what they hear into these in order, however many clips that was. Audio Flamingo 3 was
# trained on several clips too.
ONE_BY_ONE = ("AudioFlamingo3Processor",)
SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class TransformersChat(Lalm):
    """A checkpoint that `transformers` can load, with a processor that has a chat template.

    architecture, processor: the classes of `transformers` to load, None: those that the checkpoint names. Qwen2AudioProcessor
    fits Qwen2.5-Omni too, whose own one also wants the packages for video. chat_template: a
    template in Jinja's language, None: the checkpoint's. remote_code: the checkpoint's own name, where it comes with code
    that must be trusted. In bfloat16 and float16 a row's rounding changes a little with the shape of its batch; in float32
    responses do not depend on batch-mates. `device` (None: the first GPU, else the CPU), `rows_at_once`, `packages`, what
    the checkpoint's classes import beside `transformers`, and `memory_gb`, what it needs at least in 16-bit numbers, say only
    how. The batch comes on top of it, and float32 takes twice as much.

    *Our reading*: a checkpoint's own decoding habits (repetition penalty, top-k) are not used; `temperature` and `top_p` are
    the whole of it.
    """

    # 2: runs of white space that a vocabulary adds are no special tokens; 3: text before clips that are choices
    version: ClassVar[int] = 3

    weights: Weights
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    architecture: str | None = None
    processor: str | None = None
    chat_template: str | None = None
    remote_code: str | None = None
    device: str | None = execution_field(None)
    rows_at_once: int = execution_field(8, ge=1)
    packages: tuple[str, ...] = execution_field(())
    memory_gb: float | None = execution_field(None, gt=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remote_code not in (None, self.weights.source):
            raise ValueError(
                f"remote_code must be {self.weights.source!r}, the checkpoint whose code is trusted"
            )

    def check(self) -> None:
        """Raise WeightsError for packages that are missing, or do not load: that would show after the download, in a worker."""
        from importlib.metadata import version
        from importlib.util import find_spec

        missing = [name for name in self.packages if find_spec(name) is None]
        if missing:
            raise WeightsError(
                f"model: {self.weights.source} needs {' and '.join(missing)}, not installed here: "
                "pip install -c constraints.txt -e .[vision]"
            )
        builds = {
            name: version(name) for name in ("torch", *self.packages) if name in ("torch", "torchvision")
        }
        if (
            len(builds) == 2
            and builds["torch"].endswith("+cpu")
            and not builds["torchvision"].endswith("+cpu")
        ):
            raise WeightsError(
                f"model: torchvision {builds['torchvision']} is built for the GPU and does not load beside torch {builds['torch']}: "
                "take both from https://download.pytorch.org/whl/cpu"
            )

    def load(self) -> tuple[Any, Any]:
        """The checkpoint's processor and model. Raises WeightsError where something is missing."""
        with quiet_loading():
            return _load(self)

    def ready(self) -> Ready:
        """Load processor and model. Raises WeightsError where something is missing."""
        talker = Talker(self, *self.load())
        return Hearing(self.limits, talker.sampling_rate), talker.say


class Talker:
    """A loaded model that answers requests. `kept`: of so many clips it remembers what it made of them."""

    def __init__(self, spec: TransformersChat, processor: Any, model: Any, kept: int = KEPT_CLIPS) -> None:
        import torch

        self._spec, self._processor, self._model = spec, processor, model
        self._device = torch.device(spec.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._model.to(self._device).eval().requires_grad_(False)
        self.sampling_rate = int(getattr(_ear(processor), "sampling_rate", 16_000))
        if kept:
            remember_spectra(processor, kept)
            remember_clips(model, kept)
        tokenizer = self._processor.tokenizer
        tokenizer.padding_side = "left"
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self._audio_token = _audio_token(self._processor, self._model)
        self._control = control_tokens(tokenizer)
        self._stops = _stop_tokens(self._model, tokenizer)

    def say(self, requests: list[Request]) -> list[Said]:
        """One response per request, `rows_at_once` together."""
        said: list[Said] = []
        for start in range(0, len(requests), self._spec.rows_at_once):
            said += self._say(requests[start : start + self._spec.rows_at_once])
        return said

    def _say(self, requests: Sequence[Request]) -> list[Said]:
        inputs = self.prepared(requests)
        said = [
            self._unfit(ids, mask, one)
            for ids, mask, one in zip(inputs["input_ids"], inputs["attention_mask"], requests, strict=True)
        ]
        if any(said):
            # The rest once more without them: a padded batch cannot lose a row.
            fit = iter(
                self._say([one for one, bad in zip(requests, said, strict=True) if not bad])
                if not all(said)
                else []
            )
            return [bad or next(fit) for bad in said]
        return self._generate(inputs, requests)

    def prepared(self, requests: Sequence[Request]) -> Any:
        """The processor's tensors for a batch: tokens with a span for every clip, and the clips' spectrograms."""
        return self._processor(
            text=[self.prompt(one) for one in requests],
            audio=[clip.samples for one in requests for clip in one.clips] or None,
            text_kwargs={"padding": True},
            # Without this some feature extractors cut clips at 30 s and say nothing; with it a clip that is too long for
            # the encoder is an error of its row.
            audio_kwargs={"sampling_rate": self.sampling_rate, "truncation": False},
            return_tensors="pt",
        )

    def prompt(self, request: Request) -> str:
        """The conversation as the checkpoint's chat template writes it, one audio placeholder per clip."""
        content = [
            {"type": "text", "text": self._plain(part)}
            if isinstance(part, str)
            else {"type": "audio", "audio": part}
            for part in request.parts
        ]
        turns = [{"role": "user", "content": content}]
        if self._spec.system_prompt is not None:
            system = [{"type": "text", "text": self._plain(self._spec.system_prompt)}]
            turns = [{"role": "system", "content": system}, *turns]
        given = {} if self._spec.chat_template is None else {"chat_template": self._spec.chat_template}
        return self._processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False, **given)

    def _plain(self, text: str) -> str:
        return without_control_tokens(text, self._control)

    def _unfit(self, ids: torch.Tensor, mask: torch.Tensor, request: Request) -> Said | None:
        """Why a prepared row cannot be generated: clips that did not become spans, or a prompt beyond the context."""
        row = ids[mask.bool()].tolist()
        spans = audio_spans(row, self._audio_token)
        if spans != len(request.clips):
            return Said(
                reason=f"audio_spans: {len(request.clips)} clips in, {spans} audio spans in the prompt"
            )
        most = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        needed = len(row) + self._spec.max_new_tokens
        if most is not None and needed > most:
            detail = f"{len(row)} tokens and {self._spec.max_new_tokens} new ones, the model takes {most}"
            return Said(reason=f"prompt_too_long: {detail}")
        return None

    def _generate(self, inputs: Any, requests: Sequence[Request]) -> list[Said]:
        import torch

        spec, width = self._spec, inputs["input_ids"].shape[1]
        moved = {
            name: value.to(self._device, self._model.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }
        with torch.inference_mode():
            written = self._model.generate(
                **moved,
                max_new_tokens=spec.max_new_tokens,
                do_sample=False,
                logits_processor=sampling_rules(spec, [one.seed for one in requests]),
                pad_token_id=self._processor.tokenizer.pad_token_id,
                eos_token_id=sorted(self._stops),
            )
        read = inputs["attention_mask"].sum(dim=1).tolist()
        return [
            self._said(tokens, n_read)
            for tokens, n_read in zip(written[:, width:].tolist(), read, strict=True)
        ]

    def _said(self, tokens: list[int], n_read: int) -> Said:
        end = next((place for place, token in enumerate(tokens) if token in self._stops), None)
        text = self._processor.tokenizer.decode(tokens[:end], skip_special_tokens=True).strip()
        n_written = len(tokens) if end is None else end + 1
        usage = {"prompt_tokens": n_read, "completion_tokens": n_written}
        return Said(text, "length" if end is None else "stop", usage)


def audio_spans(token_ids: Sequence[int], audio_token: int) -> int:
    """How many runs of the audio placeholder a prompt holds: one per clip that the model is really given."""
    is_audio = [token == audio_token for token in token_ids]
    return sum(now and not before for before, now in zip([False, *is_audio], is_audio, strict=False))


def sampling_rules(spec: Lalm, seeds: Sequence[int]) -> list[Any]:
    """What is done to the scores before the likeliest token is taken: nothing at temperature 0.

    The argmax of scores / temperature + Gumbel noise is a sample from their softmax; the noise comes from each row's own
    seed, so that a row's response is the same in every batch.
    """
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

    if spec.temperature == 0:
        return LogitsProcessorList([])
    rules = [TemperatureLogitsWarper(spec.temperature)]
    if spec.top_p is not None and spec.top_p < 1:
        rules.append(TopPLogitsWarper(spec.top_p))
    return LogitsProcessorList([*rules, Noise(seeds, 1.0)])


def _load(spec: TransformersChat) -> tuple[Any, Any]:
    import torch
    import transformers

    folder, trusted = spec.weights.folder(), spec.remote_code is not None
    common = {"local_files_only": True, "trust_remote_code": trusted}
    try:
        processor = getattr(transformers, spec.processor or "AutoProcessor").from_pretrained(folder, **common)
        config = transformers.AutoConfig.from_pretrained(folder, **common)
        model, found = _model_class(spec, config, trusted).from_pretrained(
            folder, use_safetensors=True, dtype=getattr(torch, spec.dtype), output_loading_info=True, **common
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise WeightsError(
            f"{folder} is no audio-language model with safetensors and a processor: {first}"
        ) from error
    refuse_missing(found, folder)
    if type(processor).__name__ in ONE_BY_ONE:
        processor.validate_inputs = partial(transformers.ProcessorMixin.validate_inputs, processor)
    if not getattr(processor, "tokenizer", None) or _ear(processor) is None:
        raise WeightsError(
            f"{folder} holds no processor for text and audio (processor_config.json, tokenizer.json)"
        )
    # A tokenizer read from a folder without tokenizer files does not raise: it finds no tokens in any text.
    if not set(processor.tokenizer("The answer is A", add_special_tokens=False).input_ids) - {
        processor.tokenizer.unk_token_id
    }:
        raise WeightsError(f"{folder} holds no tokenizer: add tokenizer.json and tokenizer_config.json")
    special = {name: getattr(model.generation_config, name) for name in SPECIAL_TOKENS}
    model.generation_config = transformers.GenerationConfig(**special)
    return processor, model


def _model_class(spec: TransformersChat, config: Any, trusted: bool) -> Any:
    import transformers

    name = spec.architecture or (getattr(config, "architectures", None) or [None])[0]
    found = getattr(transformers, name, None) if name else None
    if found is None and not trusted:
        raise ValueError(
            f"transformers {transformers.__version__} has no architecture {name!r}; set model.architecture"
        )
    return found or transformers.AutoModelForCausalLM


def _ear(processor: Any) -> Any:
    """The part of a processor that takes sound, whatever it calls it; None: it has none."""
    return getattr(processor, "feature_extractor", None) or getattr(processor, "audio_processor", None)


def _audio_token(processor: Any, model: Any) -> int:
    """The token that stands for audio, whatever the checkpoint calls it."""
    named = [
        getattr(place, name, None)
        for place in (processor, processor.tokenizer, model.config)
        for name in ("audio_token_id", "audio_token_index")
    ]
    text = getattr(processor, "audio_token", None)
    known = [one for one in named if isinstance(one, int)]
    if known:
        return known[0]
    if isinstance(text, str):
        return processor.tokenizer.convert_tokens_to_ids(text)
    raise WeightsError(
        "the checkpoint's processor names no audio token: its clips could not be counted in a prompt"
    )


def _stop_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    ends = model.generation_config.eos_token_id
    listed = ends if isinstance(ends, (list, tuple)) else [ends]
    return frozenset(token for token in [*listed, tokenizer.eos_token_id] if token is not None)
