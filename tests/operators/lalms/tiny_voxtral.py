"""A Voxtral of a few hundred kilobytes with random weights, in Mistral's own format: what `config_format: mistral` reads."""

import base64
import json
from pathlib import Path

SPECIAL = [
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
    "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]",
    "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]",
]  # fmt: skip
VOCABULARY = len(SPECIAL) + 256
PARAMS = {
    "dim": 128, "n_layers": 2, "head_dim": 32, "hidden_dim": 128, "n_heads": 4, "n_kv_heads": 2, "rope_theta": 1e4,
    "norm_eps": 1e-5, "vocab_size": VOCABULARY, "max_position_embeddings": 8192, "max_seq_len": 8192,
}  # fmt: skip
ENCODER = {
    "dim": 64, "n_layers": 1, "head_dim": 32, "hidden_dim": 64, "n_heads": 2, "vocab_size": 64,
    "max_source_positions": 1500,
    "audio_encoding_args": {"sampling_rate": 16000, "num_mel_bins": 128, "hop_length": 160, "window_size": 400},
}  # fmt: skip


def voxtral(folder: Path) -> Path:
    folder.mkdir()
    multimodal = {
        "whisper_model_args": {"encoder_args": ENCODER, "downsample_args": {"downsample_factor": 4}}
    }
    (folder / "params.json").write_text(json.dumps({**PARAMS, "multimodal": multimodal}))
    (folder / "tekken.json").write_text(json.dumps(_tokenizer()))
    _weights(folder / "consolidated.safetensors")
    return folder


def _tokenizer() -> dict:
    """One token for each byte, and for each control token of Mistral's eleventh version."""
    pieces = [{"rank": n, "token_bytes": base64.b64encode(bytes([n])).decode()} for n in range(256)]
    return {
        "config": {
            "pattern": r"[^\s]+|\s+", "num_vocab_tokens": 256, "default_vocab_size": VOCABULARY,
            "default_num_special_tokens": len(SPECIAL), "version": "v11",
        },
        "vocab": [{**piece, "token_str": None} for piece in pieces],
        "special_tokens": [{"rank": n, "token_str": text, "is_control": True} for n, text in enumerate(SPECIAL)],
        "audio": {
            "sampling_rate": 16000, "frame_rate": 12.5, "chunk_length_s": 30.0,
            "audio_encoding_config": {"num_mel_bins": 128, "hop_length": 160, "window_size": 400},
        },
    }  # fmt: skip


def _weights(file: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    dim, inner, heads = PARAMS["dim"], PARAMS["hidden_dim"], PARAMS["head_dim"]
    shapes = {"norm.weight": (dim,), "output.weight": (VOCABULARY, dim)}
    for n in range(PARAMS["n_layers"]):
        at = f"layers.{n}."
        shapes |= {f"{at}{name}.weight": (dim,) for name in ("attention_norm", "ffn_norm")}
        queries, keys = PARAMS["n_heads"] * heads, PARAMS["n_kv_heads"] * heads
        shapes |= {f"{at}attention.wq.weight": (queries, dim), f"{at}attention.wo.weight": (dim, queries)}
        shapes |= {f"{at}attention.w{one}.weight": (keys, dim) for one in "kv"}
        shapes |= {f"{at}feed_forward.w{one}.weight": (inner, dim) for one in "13"}
        shapes |= {f"{at}feed_forward.w2.weight": (dim, inner)}
    shapes |= _ear(dim)
    draw = np.random.default_rng(0)
    tensors = {name: draw.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}
    for name, tensor in tensors.items():
        if "norm" in name and name.endswith("weight"):
            tensor[:] = 1
    save_file(tensors, file)


def _ear(dim: int) -> dict:
    """Mistral's names of a Whisper encoder and of what carries its output into the language model."""
    size, inner = ENCODER["dim"], ENCODER["hidden_dim"]
    at = "mm_whisper_embeddings.whisper_encoder."
    shapes = {
        f"{at}conv_layers.0.weight": (size, 128, 3), f"{at}conv_layers.0.bias": (size,),
        f"{at}conv_layers.1.weight": (size, size, 3), f"{at}conv_layers.1.bias": (size,),
        f"{at}transformer.norm.weight": (size,), f"{at}transformer.norm.bias": (size,),
    }  # fmt: skip
    layer = f"{at}transformer.layers.0."
    for name in ("attention_norm", "ffn_norm"):
        shapes |= {f"{layer}{name}.weight": (size,), f"{layer}{name}.bias": (size,)}
    for name in ("wq", "wk", "wv", "wo"):
        shapes |= {f"{layer}attention.{name}.weight": (size, size)}
    shapes |= {f"{layer}attention.{name}.bias": (size,) for name in ("wq", "wv", "wo")}
    shapes |= {f"{layer}feed_forward.w1.weight": (inner, size), f"{layer}feed_forward.w1.bias": (inner,)}
    shapes |= {f"{layer}feed_forward.w2.weight": (size, inner), f"{layer}feed_forward.w2.bias": (size,)}
    over = "mm_whisper_embeddings.audio_language_projection."
    shapes |= {f"{over}0.weight": (dim, 4 * size), f"{over}2.weight": (dim, dim)}
    return {**shapes, "mm_whisper_embeddings.tok_embeddings.weight": (VOCABULARY, dim)}
