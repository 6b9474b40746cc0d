"""Clips in = audio spans in a prompt, by token ids alone: what vLLM's prompts look like for checkpoints of either kind."""

from types import SimpleNamespace as Toy

import numpy as np
import pytest

from operators.audio import Clip
from operators.lalms.asking import Request
from operators.lalms.vllm_chat import audio_token, said
from operators.weights import WeightsError

CLIP = Clip(np.zeros(160, dtype=np.float32), 16_000)
AUDIO, BEGIN, TEXT = 24, 25, 40  # [AUDIO] and [BEGIN_AUDIO] of Mistral's tokenizer


def engine(config, tokenizer=None):
    return Toy(llm_engine=Toy(model_config=Toy(hf_config=config)), get_tokenizer=lambda: tokenizer)


def answer(prompt, n_clips, finish="stop"):
    output = Toy(prompt_token_ids=prompt, outputs=[Toy(token_ids=[TEXT], finish_reason=finish)])
    request = Request([*range(n_clips), "Which?"], [CLIP] * n_clips, 0, {})
    return said(output, request, AUDIO, Toy(decode=lambda ids, **_: "dog"))


def test_the_config_names_the_token_or_mistrals_tokenizer_does():
    mistral = Toy(instruct=Toy(audio_encoder=Toy(special_ids=Toy(audio=AUDIO, begin_audio=BEGIN))))
    assert audio_token(engine(Toy(audio_token_id=7))) == 7
    assert audio_token(engine(Toy(thinker_config=Toy(audio_token_index=8)))) == 8
    assert audio_token(engine(Toy(model_type="voxtral"), mistral)) == AUDIO
    for tokenizer in (Toy(), Toy(instruct=Toy(audio_encoder=None))):
        with pytest.raises(WeightsError, match="could not be counted"):
            audio_token(engine(Toy(), tokenizer))


def test_neighbouring_clips_of_voxtral_are_parted_by_the_sign_that_opens_each():
    two = [1, 3, BEGIN, AUDIO, AUDIO, BEGIN, AUDIO, AUDIO, AUDIO, TEXT, 4]
    assert answer(two, 2).reason is None and answer(two, 2).usage["prompt_tokens"] == 11
    assert answer(two, 3).reason == "audio_spans: 3 clips in, 2 audio spans in the prompt"
    assert answer([1, 3, TEXT, 4], 1).reason == "audio_spans: 1 clips in, 0 audio spans in the prompt"
    assert answer([1, 3, TEXT, 4], 0).text == "dog"


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_an_answer_that_the_engine_broke_off_is_no_response(finish):
    broken = answer([1, TEXT], 0, finish)
    assert (
        broken.text is None
        and broken.reason == f"generation_failed: the engine broke its answer off ({finish})"
    )
    assert answer([1, TEXT], 0, "length").finish_reason == "length", "cut at its limit, it is one"
