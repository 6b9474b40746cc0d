"""Tiny random checkpoints of models that see as well as hear, and what they make of clips, as JSON.

    python -m tests.operators.lalms.seeing FOLDER        in an environment that finds the packages for images (vision.py)

A process of its own, since importing torchvision changes what `transformers` loads for everything else.
"""

import json
import sys
from pathlib import Path

from operators.base import apply
from operators.lalms.adapted_chat import AdaptedChat
from operators.lalms.transformers_chat import TransformersChat
from operators.weights import Weights, WeightsError
from pipelines.config import build
from tests.operators.lalms.clips import batch, tone
from tests.pipelines.cli import composed
from tests.tiny_lalms import TEMPLATE, TEXT, _ids, _save, _tokenizer

OPTIONS = [f"Audio {n}" for n in range(1, 6)]


def gemma3n(folder: Path) -> Path:
    """Google's layout of the vocabulary: text, with a token for each run of line ends, then images, then sounds."""
    import transformers as t

    names = {
        "boi_token": "<start_of_image>", "boa_token": "<start_of_audio>", "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>", "eoa_token": "<end_of_audio>", "audio_token": "<audio_soft_token>",
    }  # fmt: skip
    lines = tuple("\n" * n for n in range(1, 5))
    tokenizer = _tokenizer("<start_of_image>", "<start_of_audio>", added=lines, **names)
    ids = {f"{name}_id": tokenizer.convert_tokens_to_ids(text) for name, text in names.items()}
    images = ids["eoi_token_id"]
    config = t.Gemma3nConfig(
        text_config={
            **TEXT, **_ids(tokenizer), "head_dim": 32, "vocab_size_per_layer_input": images,
            "hidden_size_per_layer_input": 32, "num_kv_shared_layers": 0, "laurel_rank": 8, "altup_num_inputs": 2,
        },
        vision_config={
            "architecture": "test_efficientnet", "hidden_size": 64, "vocab_size": 2, "vocab_offset": images,
            "num_labels": 2,
        },
        audio_config={
            "hidden_size": 64, "conf_num_attention_heads": 2, "conf_num_hidden_layers": 1,
            "sscp_conv_channel_size": [8, 4], "vocab_size": 2, "vocab_offset": images + 2,
        },
        **ids, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    template = TEMPLATE.replace("AUDIO", "<audio_soft_token>")
    parts = t.Gemma3nAudioFeatureExtractor(), t.SiglipImageProcessor(), tokenizer
    processor = t.Gemma3nProcessor(*parts, chat_template=template)
    return _save(folder, t.Gemma3nForConditionalGeneration, config, processor, tokenizer)


def phi4_multimodal(folder: Path) -> Path:
    """With the adapter through which it hears, and no chat template."""
    import transformers as t
    from peft import LoraConfig, get_peft_model

    names = {"image_token": "<|image|>", "audio_token": "<|audio|>"}
    tokenizer = _tokenizer(*names.values(), "<|user|>", "<|end|>", "<|assistant|>", **names)
    ids = {f"{name}_id": tokenizer.convert_tokens_to_ids(text) for name, text in names.items()}
    config = t.Phi4MultimodalConfig(
        **{**TEXT, **_ids(tokenizer), "bos_token_id": tokenizer.eos_token_id},
        vision_config={
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 28, "crop_size": 28, "feature_layer": -1, "image_token_id": ids["image_token_id"],
        },
        audio_config={
            "hidden_size": 32, "intermediate_size": 32, "num_blocks": 1, "num_attention_heads": 2,
            "ext_pw_out_channel": 32, "depthwise_separable_out_channel": 32, "nemo_conv_channels": 8,
            "audio_token_id": ids["audio_token_id"],
        },
    )  # fmt: skip
    parts = t.Phi4MultimodalImageProcessor(), t.Phi4MultimodalFeatureExtractor(), tokenizer
    _save(folder, t.Phi4MultimodalForCausalLM, config, t.Phi4MultimodalProcessor(*parts), tokenizer)
    lora = LoraConfig(r=4, lora_alpha=64, target_modules=["qkv_proj", "o_proj"], init_lora_weights=False)
    base = t.Phi4MultimodalForCausalLM.from_pretrained(folder)
    get_peft_model(base, lora).save_pretrained(folder / "speech-lora")
    return folder


def asked(spec, rows):
    done = apply(spec, spec.build(), batch(rows))
    return {
        "response": list(done["response"]),
        "error": list(done["response_error"]),
        "usage": [json.loads(text) for text in done["usage"]],
    }


def main(folder: Path) -> None:
    """Rows of one clip, of six and of none together, then each alone; the prompt of the second row."""
    folder.mkdir(exist_ok=True)
    clips = [tone(folder, f"c{n}", 1 + n / 4, pitch=200 + 100 * n) for n in range(6)]
    rows = [("Which?", ["a", "b"], clips[:1], 0), ("Which?", OPTIONS, clips, 0), ("Which reply?", [], [], 0)]
    fixed = {"dtype": "float32", "max_new_tokens": 12, "prompt": None, "temperature": 1.0}
    template = build(composed("model=phi_4_multimodal").model, "model").chat_template
    phi = {"weights": Weights(str(phi4_multimodal(folder / "phi"))), "chat_template": template}
    specs = {
        "gemma3n": TransformersChat(weights=Weights(str(gemma3n(folder / "gemma"))), **fixed),
        "phi4_multimodal": AdaptedChat(adapter="speech-lora", **phi, **fixed),
        "unadapted": TransformersChat(**phi, **fixed),
    }
    told = {name: asked(spec, rows) for name, spec in specs.items()}
    for name, spec in specs.items():
        told[name]["alone"] = [asked(spec, [row])["response"][0] for row in rows]
    try:
        AdaptedChat(adapter="vision-lora", **phi, **fixed).build()
    except WeightsError as error:
        told["no adapter"] = str(error)
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
