"""A RoBERTa classifier with random weights and a byte-level tokenizer: a real checkpoint folder of 0.2 MB."""

from collections.abc import Sequence
from pathlib import Path

CORPUS = ["The sound of rain falls on a tin roof while a dog barks.", "The answer is B, a car horn."] * 20
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def tiny_roberta(folder: Path, labels: Sequence[str]) -> Path:
    """Write the checkpoint into `folder` and return it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", **names
    )
    config = RobertaConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=514, type_vocab_size=1,
        pad_token_id=1, bos_token_id=0, eos_token_id=2,
        id2label=dict(enumerate(labels)), label2id={label: index for index, label in enumerate(labels)},
    )  # fmt: skip
    torch.manual_seed(0)
    RobertaForSequenceClassification(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
