"""Natural language inference: the probability that a premise entails a hypothesis.

Two kinds with one interface. `SequenceClassifier` takes any MNLI checkpoint (RoBERTa-large, Liu et al.,
2019). `MiniLMAdapter` is a small cross-encoder of this project that needs no model hub: all-MiniLM-L6-v2 plus
a 4-bit difference and a head. Rank with it; its 0.5 is no threshold, and it is blind to word order and
quantifiers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.loading import quiet_loading, refuse_missing
from operators.batching import distinct, token_batches, token_budget
from operators.fingerprint import execution_field
from operators.text import encodable, is_absent
from operators.weights import Weights

if TYPE_CHECKING:
    import torch

BUILT_IN_ADAPTER = str(Path(__file__).parents[1] / "data" / "nli_minilm")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SequenceClassifier:
    """A sequence classification checkpoint; one of its labels in `id2label` is "entailment", at any place."""

    version: ClassVar[int] = 1

    weights: Weights
    max_tokens: int = 512
    tokens_per_batch: int | None = execution_field(None, ge=1)
    device: str | None = execution_field(None)

    def load(self) -> PairScorer:
        """Read the weights (safetensors, float32). Raises ValueError where no label is called entailment."""
        import torch
        from transformers import AutoModelForSequenceClassification

        folder, device = self.weights.folder(), _device(self.device)
        with quiet_loading():
            model, found = AutoModelForSequenceClassification.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
        refuse_missing(found, folder)
        model.to(device).eval()
        entailment = entailment_index(model.config.id2label, self.weights.source)

        def probability(encoded: dict[str, Any]) -> torch.Tensor:
            return model(**encoded).logits.softmax(-1)[:, entailment]

        budget = token_budget(self.tokens_per_batch, device)
        return PairScorer(_tokenizer(folder), probability, self.max_tokens, budget, device)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class MiniLMAdapter:
    """all-MiniLM-L6-v2 (`base`) made an entailment classifier by the quantised difference in `adapter`."""

    version: ClassVar[int] = 1

    base: Weights
    adapter: Weights = Weights(BUILT_IN_ADAPTER)
    max_tokens: int = 512
    tokens_per_batch: int | None = execution_field(None, ge=1)
    device: str | None = execution_field(None)

    def load(self) -> PairScorer:
        """Read both weights and add them up."""
        import torch
        from safetensors.torch import load_file
        from transformers import BertModel

        folder, device = self.adapter.folder(), _device(self.device)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        change = load_file(folder / "adapter.safetensors")
        base = self.base.folder()
        with quiet_loading():
            encoder, found = BertModel.from_pretrained(
                base,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        refuse_missing(found, base)
        encoder.load_state_dict(_changed(encoder.state_dict(), change, config["bits"]))
        encoder.to(device).eval()
        head = {name: tensor.float().to(device) for name, tensor in change.items() if name.startswith("head")}
        entailment = entailment_index(dict(enumerate(config["labels"])), self.adapter.source)

        def probability(encoded: dict[str, Any]) -> torch.Tensor:
            states = encoder(**encoded).last_hidden_state
            logits = _head(states, encoded["attention_mask"], encoded["token_type_ids"], head)
            return (logits / config["temperature"]).softmax(-1)[:, entailment]

        budget = token_budget(self.tokens_per_batch, device)
        return PairScorer(_tokenizer(base), probability, self.max_tokens, budget, device)


class PairScorer:
    """The working classifier: `entailment` is a pure function of its pairs, whatever the batches."""

    def __init__(
        self,
        tokenizer: Any,
        probability: Callable[[dict[str, Any]], torch.Tensor],
        max_tokens: int,
        tokens_per_batch: int,
        device: str,
    ) -> None:
        self._tokenizer = tokenizer
        self._probability = probability
        self._max_tokens = max_tokens
        self._tokens_per_batch = tokens_per_batch
        self._device = device

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """P(entailment) [N] float64 in [0, 1], and per pair whether it was cut at `max_tokens` ([N] bool).

        The longer side is cut first. Raises ValueError for a blank text, on which such models answer at
        random, and for sides of unequal number. Lone surrogates are read as U+FFFD.
        """
        import torch

        if any(is_absent(text) for text in (*premises, *hypotheses)):
            raise ValueError("a blank premise or hypothesis has no entailment: leave the pair out")
        pairs = [(encodable(p), encodable(h)) for p, h in zip(premises, hypotheses, strict=True)]
        lengths = self._lengths(pairs)
        scores = np.zeros(len(pairs))
        for batch in token_batches(np.minimum(lengths, self._max_tokens), self._tokens_per_batch):
            encoded = self._tokenizer(
                [pairs[index][0] for index in batch],
                [pairs[index][1] for index in batch],
                truncation="longest_first",
                max_length=self._max_tokens,
                padding=True,
                return_tensors="pt",
            ).to(self._device)
            with torch.inference_mode():
                scores[batch] = self._probability(dict(encoded)).double().cpu().numpy()
        return scores, lengths > self._max_tokens

    def _lengths(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        """Tokens of each pair before any cut, special tokens included; each distinct text is counted once."""
        texts, inverse = distinct(text for pair in pairs for text in pair)
        if not texts:
            return np.zeros(0, dtype=np.int64)
        encoded = self._tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)
        counts = np.asarray([len(row) for row in encoded["input_ids"]], dtype=np.int64)
        return counts[inverse].reshape(-1, 2).sum(1) + self._tokenizer.num_special_tokens_to_add(pair=True)


def entailment_index(id2label: dict[int, str], source: str) -> int:
    """The index of the label "entailment", in any case. Raises ValueError unless there is exactly one."""
    found = [int(index) for index, label in id2label.items() if str(label).strip().lower() == "entailment"]
    if len(found) != 1:
        raise ValueError(f"{source}: needs exactly one label called entailment, has {dict(id2label)}")
    return found[0]


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ValueError(f"{folder}: the tokenizer is empty; its files are missing")
    return tokenizer


def _device(wanted: str | None) -> str:
    import torch

    return wanted or ("cuda" if torch.cuda.is_available() else "cpu")


def _changed(base: dict[str, Any], change: dict[str, Any], bits: int) -> dict[str, Any]:
    """`base` plus the quantised differences ("<name>.q" packed codes, "<name>.s" scales); others replace."""
    import torch

    result = dict(base)
    for name, tensor in change.items():
        weight, kind = name.rsplit(".", 1)
        if kind == "q":
            shifts = range(0, 8, bits)
            codes = torch.stack([(tensor >> shift) & (2**bits - 1) for shift in shifts], -1).flatten(1)
            centred = codes.float() - (2**bits - 1) / 2
            result[weight] = base[weight] + centred * change[f"{weight}.s"].float()[:, None]
        elif kind != "s" and not name.startswith("head"):
            result[name] = tensor.float()
    return result


def _head(states: Any, attention: Any, segment: Any, head: dict[str, Any]) -> Any:
    """Logits [B, 3] from (cls, mean premise u, mean hypothesis v, |u - v|, u * v) of `states` [B, T, D]."""
    import torch
    from torch.nn import functional

    u, v = (_mean(states, attention * side) for side in (1 - segment, segment))
    features = torch.cat([states[:, 0], u, v, (u - v).abs(), u * v], -1)
    hidden = functional.gelu(functional.linear(features, head["head1.weight"], head["head1.bias"]))
    return functional.linear(hidden, head["head2.weight"], head["head2.bias"])


def _mean(states: Any, mask: Any) -> Any:
    weights = mask.unsqueeze(-1).float()
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
