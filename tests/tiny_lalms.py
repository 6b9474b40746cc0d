"""Audio-language checkpoints of under a megabyte with random weights, built and saved as a hub would hold them.

Real classes, processors and chat templates of `transformers`; only the sizes and the weights are toys. Head size 32 is the
least that vLLM's CPU attention takes.
"""

from pathlib import Path

END, START, PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"
CORPUS = [
    "The sound of rain falls on a tin roof while a dog barks.",
    "Question: what is heard? Choices: (A) a car horn (B) a piano (C) speech",
    "[PERCEPTION] Entities: rain, dog. [ANALYSIS] [REASONING] [ANSWER] system user assistant Audio clip Reference",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] in ('audio', 'audio_url', 'input_audio') %}AUDIO{% elif 'text' in c %}{{ c['text'] }}\n{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = {
    "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 8192, "bos_token_id": None,
}  # fmt: skip
ENCODER = {"num_mel_bins": 128, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 64}


def qwen2_audio(folder: Path) -> Path:
    import transformers as t

    tokenizer = _tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
    audio = tokenizer.convert_tokens_to_ids("<|AUDIO|>")
    config = t.Qwen2AudioConfig(
        audio_config={
            "model_type": "qwen2_audio_encoder",
            **ENCODER,
            "d_model": 64,
            "max_source_positions": 1500,
        },
        text_config={"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **TEXT, **_ids(tokenizer)},
        audio_token_index=audio,
        audio_token_id=audio,
    )
    template = TEMPLATE.replace("AUDIO", "<|audio_bos|><|AUDIO|><|audio_eos|>")
    processor = t.Qwen2AudioProcessor(_features(t), tokenizer, chat_template=template)
    return _save(folder, t.Qwen2AudioForConditionalGeneration, config, processor, tokenizer)


def qwen2_5_omni(folder: Path) -> Path:
    """The thinker: audio, images and video in, text out."""
    import transformers as t

    names = {
        "image_token": "<|IMAGE|>", "audio_token": "<|AUDIO|>", "video_token": "<|VIDEO|>",
        "vision_bos_token": "<|vision_bos|>", "vision_eos_token": "<|vision_eos|>",
        "audio_bos_token": "<|audio_bos|>", "audio_eos_token": "<|audio_eos|>",
    }  # fmt: skip
    tokenizer = _tokenizer(*names.values(), **names)
    ids = {name: tokenizer.convert_tokens_to_ids(text) for name, text in names.items()}
    rope = {"type": "default", "rope_type": "default", "mrope_section": [4, 6, 6]}
    config = t.Qwen2_5OmniThinkerConfig(
        audio_config={**ENCODER, "d_model": 64, "max_source_positions": 1500, "output_dim": 128, "n_window": 100},
        vision_config={
            "depth": 1, "hidden_size": 64, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 128,
            "fullatt_block_indexes": [0],
        },
        text_config={**TEXT, **_ids(tokenizer), "rope_scaling": rope, "tie_word_embeddings": False},
        audio_token_index=ids["audio_token"], image_token_index=ids["image_token"],
        video_token_index=ids["video_token"], audio_token_id=ids["audio_token"],
        image_token_id=ids["image_token"], video_token_id=ids["video_token"],
        audio_start_token_id=ids["audio_bos_token"], audio_end_token_id=ids["audio_eos_token"],
        vision_start_token_id=ids["vision_bos_token"], vision_end_token_id=ids["vision_eos_token"],
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    # As the thinker lies on a hub: tokenizer and feature extractor, here without the parts for pictures.
    tokenizer.chat_template = TEMPLATE.replace("AUDIO", "<|audio_bos|><|AUDIO|><|audio_eos|>")
    _features(t).save_pretrained(folder)
    return _save(folder, t.Qwen2_5OmniThinkerForConditionalGeneration, config, tokenizer, tokenizer)


def audio_flamingo3(folder: Path) -> Path:
    import transformers as t

    tokenizer = _tokenizer("<sound>")
    config = t.AudioFlamingo3Config(
        audio_config={
            "num_mel_bins": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
            "hidden_size": 64, "max_source_positions": 1500,
        },
        text_config={"model_type": "qwen2", **TEXT, **_ids(tokenizer)},
        audio_token_id=tokenizer.convert_tokens_to_ids("<sound>"),
    )  # fmt: skip
    processor = t.AudioFlamingo3Processor(
        _features(t), tokenizer, chat_template=TEMPLATE.replace("AUDIO", "<sound>")
    )
    return _save(folder, t.AudioFlamingo3ForConditionalGeneration, config, processor, tokenizer)


def published_omni(folder: Path) -> Path:
    """The thinker of `qwen2_5_omni` as Qwen publishes it: a part of the whole model, with the processor for pictures."""
    import json

    import transformers as t
    from safetensors.numpy import load_file, save_file

    whole = {
        "model_type": "qwen2_5_omni",
        "architectures": ["Qwen2_5OmniModel"],
        "enable_audio_output": False,
    }
    config, sounds = (folder / name for name in ("config.json", "preprocessor_config.json"))
    config.write_text(json.dumps({**whole, "thinker_config": json.loads(config.read_text())}))
    names = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5OmniProcessor"}
    both = {**t.Qwen2VLImageProcessor().to_dict(), **json.loads(sounds.read_text()), **names}
    sounds.write_text(json.dumps(both))
    file = folder / "model.safetensors"
    save_file({f"thinker.{name}": part for name, part in load_file(file).items()}, file, {"format": "pt"})
    return folder


BUILDERS = {"qwen2_audio": qwen2_audio, "qwen2_5_omni": qwen2_5_omni, "audio_flamingo3": audio_flamingo3}


def _tokenizer(*special: str, added: tuple[str, ...] = (), **named: str):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[PAD, START, END, *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS, trainer)
    bpe.add_tokens(list(added))
    more = {"extra_special_tokens": named} if named else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, padding_side="left", **more
    )


def _ids(tokenizer) -> dict:
    return {
        "vocab_size": len(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _features(t):
    return t.WhisperFeatureExtractor(feature_size=128, sampling_rate=16_000)


def _save(folder, architecture, config, processor, tokenizer) -> Path:
    import torch

    torch.manual_seed(0)
    model = architecture(config)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = (
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    _as_on_a_hub(folder / "model.safetensors")
    return folder


def _as_on_a_hub(file: Path) -> None:
    """Names of weights as published checkpoints have them; transformers 5.19 writes "model." twice when it saves."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(file)
    renamed = {
        name.replace("language_model.model.model.", "language_model.model."): t for name, t in tensors.items()
    }
    save_file(renamed, file, {"format": "pt"})
