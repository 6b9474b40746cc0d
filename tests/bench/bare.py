"""The models alone: forward passes over inputs that were tokenised, made distinct and sorted beforehand.

`BARE[metric](spec, batch)` gives, per batch size, the calls that cover the rows once; the bench times the
calls only and keeps the best size. What a metric does beside them (decoding, tokenising, arithmetic, JSON)
is what it loses against this figure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from operators.audio import decode, resample
from operators.backbones.causal_lm import LoadedCausalLM
from operators.backbones.packed_pass import Row, SharedPrefix, layout
from operators.backbones.sentence_encoder import LoadedSentenceEncoder
from operators.backbones.yamnet import SAMPLE_RATE, YamnetModel, log_mel_patches
from operators.base import Batch, Spec
from operators.batching import token_batches
from operators.metrics.audio_lexical_density import content_words, lemma, word_list
from operators.metrics.chain_coverage import SLOTS, ByExpectation
from operators.text import is_absent, words
from tests.bench.rows import by_row

Calls = list[Callable[[], object]]
Passes = dict[str, Calls]
BUDGETS = (512, 1024, 2048, 4096, 8192, 16384)


def acoustic_grounding(spec: Spec, batch: Batch) -> Passes:
    """M1: the tagger over the patches of each distinct clip, the text encoder over each distinct entity."""
    listener = spec.backbone.load()
    heard = [row for row in by_row(batch) if row["entities"]]
    places = {}
    for row in heard:
        places.update(zip(row["audio_hashes"], row["audio_uris"], strict=True))
    patches = [call for uri in places.values() for call in _patch_calls(listener._tagger, uri)]
    entities = list(dict.fromkeys(entity for row in heard for entity in row["entities"]))
    texts = _encoder_passes(listener._encoder, entities)
    return {label: patches + calls for label, calls in texts.items()}


def _patch_calls(tagger: YamnetModel, uri: str) -> Calls:
    patches = log_mel_patches(resample(decode(uri), SAMPLE_RATE).samples, tagger._mel)
    quantised = np.clip(np.round(patches / tagger._scale_in + tagger._zero_in), 0, 255).astype(np.uint8)
    return [partial(tagger._session.run, None, {"audio": patch[None, None]}) for patch in quantised]


def inter_step_coherence(spec: Spec, batch: Batch) -> Passes:
    """M2: the sentence encoder over each distinct slot."""
    slots = [text for name in ("perception", "analysis", "reasoning") for text in batch[name]]
    present = list(dict.fromkeys(text for text in slots if not is_absent(text)))
    return _encoder_passes(spec.backbone.load(), present)


def _encoder_passes(encoder: LoadedSentenceEncoder, texts: list[str]) -> Passes:
    model, lengths = encoder._model, encoder._lengths(texts)

    def call(indices: np.ndarray) -> Callable[[], object]:
        chosen = [texts[index] for index in indices]
        inputs = model.tokenizer(
            chosen, padding=True, truncation=True, max_length=encoder._max_tokens, return_tensors="pt"
        )
        return _inference(model, dict(inputs))

    return _by_budget(lengths, call)


def reasoning_progress(spec: Spec, batch: Batch) -> Passes:
    """M5: the classifier over each distinct pair."""
    scorer, pairs = spec.backbone.load(), {}
    for row in by_row(batch):
        slots = [spec._pieces(row[slot])[0] for slot in ("perception", "analysis", "reasoning", "answer")]
        for premises, hypotheses in pairwise(slots):
            pairs.update(dict.fromkeys((p, h) for p in premises for h in hypotheses))
    pairs = list(pairs)

    def call(indices: np.ndarray) -> Callable[[], object]:
        sides = [list(side) for side in zip(*(pairs[index] for index in indices), strict=True)]
        cut = {"truncation": "longest_first", "max_length": scorer._max_tokens}
        inputs = scorer._tokenizer(*sides, **cut, padding=True, return_tensors="pt")
        return _inference(scorer._probability, dict(inputs))

    return _by_budget(scorer._lengths(pairs), call)


def chain_coverage(spec: Spec, batch: Batch) -> Passes:
    """M3 by expectation: the LM over each distinct slot and its replies, behind the prompt's keys and values."""
    lm = spec.backbone.load()
    scorer = ByExpectation(spec, lm)
    present = (text.strip() for slot in SLOTS for text in batch[slot] if not is_absent(text))
    rows = [scorer.row(scorer.cut(text)[0]) for text in dict.fromkeys(present)]
    return _packed_passes(lm, rows, scorer.prefix)


def step_causality(spec: Spec, batch: Batch) -> Passes:
    """M4: the LM over each distinct row, its three answers packed behind the longest context."""
    lm = spec.backbone.load()
    reads = ("perception", "analysis", "reasoning", "gold_answer")
    keys = dict.fromkeys(zip(*(batch[name] for name in reads), strict=True))
    plans = [spec.plan(lm, *key) for key in keys]
    return _packed_passes(lm, [plan.row for plan in plans if plan and plan.row.branches])


def _packed_passes(lm: LoadedCausalLM, rows: list[Row], prefix: SharedPrefix | None = None) -> Passes:
    import torch

    def call(indices: np.ndarray) -> Callable[[], object]:
        chosen = [rows[index] for index in indices]
        ids, positions, mask, starts = layout(chosen, prefix.length if prefix else 0, lm.padding_id)
        return _inference(
            lm.model,
            input_ids=torch.from_numpy(ids),
            position_ids=torch.from_numpy(positions),
            attention_mask=torch.from_numpy(mask)[:, None],
            past_key_values=prefix.for_rows(len(chosen)) if prefix else None,
            use_cache=prefix is not None,
            logits_to_keep=ids.shape[1] - starts[0],
        )

    return _by_budget([row.cost() for row in rows], call)


def audio_lexical_density(spec: Spec, batch: Batch) -> Passes:
    """M6 has no network: each distinct word's lemma and vector, and one product with the audio words."""
    vectors = spec.backbone.load()
    stop_words = frozenset({*word_list(spec.stop_words), *word_list(spec.extra_stop_words)})
    text = "\n".join(slot for name in spec.reads for slot in batch[name])
    met = {word for word in words(text) if word not in stop_words and len(word) >= spec.min_length}
    bases = list(dict.fromkeys(content_words(text, stop_words, spec.min_length)[0]))
    positions = np.array([place for place in vectors._positions(bases) if place is not None])
    audio, known = vectors.vectors(word_list(spec.audio_words))

    def compare() -> np.ndarray:
        found = np.asarray(vectors._matrix[positions], dtype=np.float32)
        return (found @ audio[known].T).max(axis=1) / np.linalg.norm(found, axis=1)

    return {"all words": [*(partial(lemma.__wrapped__, word) for word in met), compare]}


def _by_budget(lengths: Any, call: Callable[[np.ndarray], Callable[[], object]]) -> Passes:
    """The calls for each token budget; budgets that cut the inputs alike count once."""
    passes: dict[tuple[int, ...], tuple[str, Calls]] = {}
    for budget in BUDGETS:
        batches = token_batches(lengths, budget)
        cuts = tuple(len(indices) for indices in batches)
        if cuts not in passes:
            passes[cuts] = (f"{budget} tokens", [call(indices) for indices in batches])
    return dict(passes.values())


def _inference(model: Callable[..., Any], *inputs: Any, **named: Any) -> Callable[[], object]:
    import torch

    def run() -> object:
        with torch.inference_mode():
            return model(*inputs, **named)

    return run


BARE: dict[str, Callable[[Spec, Batch], Passes]] = {
    "m1": acoustic_grounding,
    "m2": inter_step_coherence,
    "m3": chain_coverage,
    "m4": step_causality,
    "m5": reasoning_progress,
    "m6": audio_lexical_density,
}
