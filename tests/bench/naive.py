"""The plain loop that one writes first: row after row, one call of a model per text, clip, pair or word.

Same models, same definitions, no sharing between rows and nothing batched. `PLAIN[metric](spec)` loads the
models and returns the function from a row to its score. The bench takes its time, and a test holds the
metrics to its scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from operators.audio import decode
from operators.backbones.loading import quiet_loading
from operators.base import Spec
from operators.metrics.audio_lexical_density import lemma, word_list
from operators.metrics.chain_coverage import SLOT_MARK, VALUES, turns
from operators.text import is_absent, sentences, words

Row = dict[str, Any]
Score = Callable[[Row], float]


def acoustic_grounding(spec: Spec) -> Score:
    """M1: decode and tag the row's clips, encode its entities one by one."""
    listener = spec.backbone.load()

    def score(row: Row) -> float:
        if not row["entities"]:
            return 0.0
        clips = [listener.encode_clips([decode(uri)])[0] for uri in row["audio_uris"]]
        heard = []
        for entity in row["entities"]:
            code = listener.encode_entities([entity])[0][0]
            heard.append(max(float(listener.similarity(clip[None], code[None])[0, 0]) for clip in clips))
        return sum(max(0.0, value) for value in heard) / len(heard)

    return score


def inter_step_coherence(spec: Spec) -> Score:
    """M2: three texts through `SentenceTransformer.encode`, one at a time."""
    from sentence_transformers import SentenceTransformer

    folder = str(spec.backbone.weights.folder())
    with quiet_loading():
        model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    model.max_seq_length = spec.backbone.max_tokens

    def score(row: Row) -> float:
        texts = [row[slot] for slot in ("perception", "analysis", "reasoning")]
        if any(is_absent(text) for text in texts):
            return 0.0
        p, a, r = (model.encode(text, normalize_embeddings=True, show_progress_bar=False) for text in texts)
        return (max(0.0, float(p @ a)) + max(0.0, float(a @ r))) / 2

    return score


def reasoning_progress(spec: Spec) -> Score:
    """M5: each pair of sentences of neighbouring slots alone through the classifier."""
    scorer = spec.backbone.load()

    def entails(premise: str, hypothesis: str) -> float:
        return float(scorer.entailment([premise], [hypothesis])[0][0])

    def pieces(text: str) -> list[str]:
        if is_absent(text):
            return []
        return [text] if spec.granularity == "whole" else sentences(text)

    def score(row: Row) -> float:
        slots = [pieces(row[slot]) for slot in ("perception", "analysis", "reasoning", "answer")]
        total = 0.0
        for premises, hypotheses in pairwise(slots):
            if premises and hypotheses:
                total += min(max(entails(p, h) for p in premises) for h in hypotheses)
        return total / 3

    return score


def audio_lexical_density(spec: Spec) -> Score:
    """M6: each word's lemma, its vector, and its cosines to the audio words, one word after the other."""
    import pyarrow.parquet as pq

    folder = spec.backbone.weights.folder()
    matrix = np.load(next(folder.glob("*.npy")), mmap_mode="r")
    names = pq.read_table(next(folder.glob("*.parquet"))).column(0).to_pylist()
    places = {name: place for place, name in enumerate(names)}
    stop_words = {*word_list(spec.stop_words), *word_list(spec.extra_stop_words)}

    def unit(word: str) -> np.ndarray:
        vector = np.asarray(matrix[places[word]], dtype=np.float64)
        return vector / np.linalg.norm(vector)

    audio = np.stack([unit(word) for word in word_list(spec.audio_words) if word in places])

    def score(row: Row) -> float:
        values = []
        for word in words("\n".join(row[slot] for slot in ("perception", "analysis", "reasoning", "answer"))):
            if word in stop_words or len(word) < spec.min_length:
                continue
            base = lemma.__wrapped__(word)
            if base in places:
                values.append(max(0.0, float((audio @ unit(base)).max())))
        return sum(values) / len(values) if values else 0.0

    return score


def chain_coverage(spec: Spec) -> Score:
    """M3 by expectation: per slot, the whole prompt again with each of the eleven replies behind it."""
    import torch

    lm = spec.backbone.load()
    chat = lm.tokenizer.apply_chat_template(turns(spec.prompt), tokenize=False, add_generation_prompt=True)
    head, tail = (lm.template_ids(part) for part in chat.split(SLOT_MARK))

    def log_probability(prompt: list[int], reply: list[int]) -> float:
        ids = torch.tensor([prompt + reply])
        with torch.inference_mode():
            logits = lm.model(input_ids=ids, use_cache=False, logits_to_keep=len(reply) + 1).logits[0]
        ahead = logits[:-1].double().log_softmax(-1)
        return sum(float(ahead[place, token]) for place, token in enumerate(reply))

    def substance(text: str) -> float:
        room = spec.max_input_tokens - len(head) - len(tail)
        prompt = head + lm.token_ids(text.strip())[:room] + tail
        weights = [math.exp(log_probability(prompt, lm.token_ids(value))) for value in VALUES]
        return sum(w * float(value) for w, value in zip(weights, VALUES, strict=True)) / sum(weights)

    def score(row: Row) -> float:
        slots = [row[slot] for slot in ("perception", "analysis", "reasoning")]
        values = [substance(text) for text in slots if not is_absent(text)]
        return (sum(values) + (not is_absent(row["answer"]))) / 4

    return score


def step_causality(spec: Spec) -> Score:
    """M4: three separate passes over P, P+A and P+A+R, each followed by the gold answer."""
    import torch

    lm = spec.backbone.load()

    def perplexity(texts: list[str], answer: str) -> float:
        context = list(lm.opening_ids())
        for text in texts:
            context += lm.token_ids(text.strip()) + lm.token_ids("\n")
        cue, target = lm.continuation_ids(spec.cue, answer.strip())
        ids = torch.tensor([context + cue + target])
        labels = ids.clone()
        labels[:, : -len(target)] = -100
        with torch.inference_mode():
            return math.exp(float(lm.model(input_ids=ids, labels=labels, use_cache=False).loss))

    def term(now: float, before: float) -> float:
        info = now - before if spec.form == "difference" else math.log(now / before)
        return 1 / (1 + math.exp(min(info, 700)))

    def score(row: Row) -> float:
        seen: list[str] = []
        before, terms = None, []
        for slot in ("perception", "analysis", "reasoning"):
            now = None
            if not is_absent(row[slot]):
                seen.append(row[slot])
                now = perplexity(seen, row["gold_answer"])
            if slot != "perception":
                terms.append(0.5 if now is None or before is None else term(now, before))
            before = now if now is not None else before
        return sum(terms) / 2

    return score


PLAIN: dict[str, Callable[[Spec], Score]] = {
    "m1": acoustic_grounding,
    "m2": inter_step_coherence,
    "m3": chain_coverage,
    "m4": step_causality,
    "m5": reasoning_progress,
    "m6": audio_lexical_density,
}
