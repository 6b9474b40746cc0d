"""A CLAP checkpoint of random weights, a megabyte on disk, in the format of the real one."""

from pathlib import Path

CORPUS = ["the sound of rain on a tin roof", "a dog barks far away", "speech music applause thunder"] * 20


def tokenizer():
    """A byte-level tokenizer with the special tokens and the template of RoBERTa's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(CORPUS, trainer)
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_max_length=512,
    )


def save_tiny_clap(folder: Path, fusion: bool = False, seed: int = 0) -> Path:
    """Write the checkpoint into `folder` and return it."""
    import torch
    from transformers import ClapConfig, ClapFeatureExtractor, ClapModel, ClapProcessor

    tokens = tokenizer()
    text = {
        "vocab_size": len(tokens),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "projection_dim": 32,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    audio = {
        "window_size": 8,
        "spec_size": 256,
        "num_mel_bins": 64,
        "patch_size": 4,
        "patch_stride": [4, 4],
        "hidden_size": 64,
        "patch_embeds_hidden_size": 8,
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 1, 2, 2],
        "num_hidden_layers": 4,
        "projection_dim": 32,
        "enable_fusion": fusion,
    }
    torch.manual_seed(seed)
    ClapModel(ClapConfig(text_config=text, audio_config=audio, projection_dim=32)).save_pretrained(folder)
    extractor = ClapFeatureExtractor(
        truncation="fusion" if fusion else "rand_trunc", padding="repeatpad", frequency_min=50
    )
    ClapProcessor(feature_extractor=extractor, tokenizer=tokens).save_pretrained(folder)
    return folder
