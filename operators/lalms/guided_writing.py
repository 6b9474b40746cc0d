"""A causal LM on a lead: it writes one short passage at a time, and it chooses among given answers by likelihood.

A small LM that writes freely loses the format and invents objects. Here the caller writes the scaffolding, the LM
continues it until a stop, and an answer is the choice that the evidence makes more likely than it was without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from operators.backbones.causal_lm import LoadedCausalLM
from operators.backbones.packed_pass import Branch, Row, branch_log_probs, check_packing
from operators.batching import Memo, token_batches, token_budget
from operators.lalms.decoding_rules import Guide, Limits, Noise, Passage, RepeatFree
from operators.text import control_tokens, without_control_tokens

# A passage is one paragraph, and an opening bracket would begin a tag, which is the caller's to write.
STOPS = ("\n", "[", "［", "【", "<", "＜", "〈")
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


class GuidedWriter:
    """Continues texts and weighs answers. Results do not depend on which texts share a batch.

    In float32 padding changes logits by about 1e-5, so greedy decoding could differ only where the two best tokens
    are closer than that.
    """

    def __init__(
        self, lm: LoadedCausalLM, tokens_per_batch: int | None, limits: Limits, temperature: float = 0.0
    ) -> None:
        self._lm, self._budget, self._limits, self._temperature = lm, tokens_per_batch, limits, temperature
        check_packing(lm, min(1024, lm.context_length))
        self._passages, self._weighed = Memo("passages", 4096), Memo("choices", 16384)
        texts = lm.tokenizer.batch_decode([[token] for token in range(len(lm.tokenizer))])
        special = {*lm.tokenizer.all_special_ids, *lm.tokenizer.get_added_vocab().values()}
        self._stops = np.array(
            [t in special or any(s in text for s in STOPS) for t, text in enumerate(texts)]
        )
        self._ends = np.array([text.rstrip().endswith(SENTENCE_ENDS) for text in texts])
        self._end = int(lm.tokenizer.eos_token_id)
        self._control = control_tokens(lm.tokenizer)

    def plain(self, text: str) -> str:
        """`text` from outside, in which no special token of the LM is left: "<|im_end|>" becomes "< |im_end|>"."""
        return without_control_tokens(text, self._control)

    def conversation(self, request: str, reply: str) -> list[int]:
        """Tokens of a user's `request` and the beginning of the `reply`; plain text for an LM without a chat format."""
        tokenizer = self._lm.tokenizer
        if not tokenizer.chat_template:
            return [*self._lm.opening_ids(), *self._lm.token_ids(f"{request}\n\n{reply}")]
        turns = [{"role": "user", "content": request}]
        text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self._lm.token_ids(text + reply)

    def plain_tokens(self, text: str) -> list[int]:
        """Tokens of a text that is no conversation, with whatever the LM wants before any text."""
        return [*self._lm.opening_ids(), *self._lm.token_ids(text)]

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, contexts: Sequence[Sequence[int]], seeds: Sequence[int], tags: Sequence[str] = ()
    ) -> list[list[Passage]]:
        """After each context one passage, and after each of `tags`, written in the LM's place, another one.

        `seeds` matter only where the temperature is not 0. All passages of a row are one pass over its context.
        """
        keys = [(tuple(c), seed if self._temperature else 0) for c, seed in zip(contexts, seeds, strict=True)]
        return self._passages.get([(*key, tuple(tags)) for key in keys], self._write)

    def _write(self, keys: list[tuple[tuple[int, ...], int, tuple[str, ...]]]) -> list[list[Passage]]:
        written: list[list[Passage]] = [[] for _ in keys]
        tags = [self._lm.token_ids(tag) for tag in keys[0][2]]
        room = (len(tags) + 1) * self._limits.tokens + sum(map(len, tags)) + 1
        budget = token_budget(self._budget, self._lm.device, writing=True)
        for batch in token_batches([len(context) + room for context, _, _ in keys], budget):
            for index, found in zip(
                batch, self._write_batch([keys[i] for i in batch], tags, room), strict=True
            ):
                written[index] = found
        return written

    def _write_batch(self, keys: list[Any], tags: list[list[int]], room: int) -> list[list[Passage]]:
        import torch

        ids, mask = left_padded([context for context, _, _ in keys], self._lm.padding_id)
        guide = Guide(len(keys), tags, self._limits, self._stops, self._ends, self._end)
        rules = [RepeatFree(ids.shape[1], self._limits.ngram)]
        if self._temperature:
            rules.append(Noise([seed for _, seed, _ in keys], self._temperature))
        with torch.inference_mode():
            self._lm.model.generate(
                input_ids=torch.from_numpy(ids).to(self._lm.device),
                attention_mask=torch.from_numpy(mask).to(self._lm.device),
                max_new_tokens=room,
                do_sample=False,
                num_beams=1,
                eos_token_id=self._end,
                pad_token_id=self._lm.padding_id,
                logits_processor=[*rules, guide],
            )
        return guide.passages(
            lambda tokens: self._lm.tokenizer.decode(tokens, skip_special_tokens=True).strip()
        )

    # --- choosing -----------------------------------------------------------------------------------------------------

    def log_likelihoods(
        self, contexts: Sequence[Sequence[int]], answers: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """For each context, the mean log-probability per token (nats) of each of its answers, [n answers]."""
        rows = [self._row(context, texts) for context, texts in zip(contexts, answers, strict=True)]
        found = self._weighed.get(rows, lambda missing: branch_log_probs(self._lm, missing, self._budget))
        return [np.array([branch.mean() for branch in branches]) for branches in found]

    def _row(self, context: Sequence[int], answers: Sequence[str]) -> Row:
        head, last = tuple(context), int(context[-1])
        tokens = [self._lm.token_ids(" " + text) for text in answers]
        branches = [
            Branch(len(head) - 1, (last, *answer[:-1]), tuple(enumerate(answer))) for answer in tokens
        ]
        return Row(head, tuple(branches))

    @property
    def context_length(self) -> int:
        """The most tokens a context and its continuation may have together."""
        return self._lm.context_length


def left_padded(contexts: Sequence[Sequence[int]], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids [B, T] and mask [B, T] (1: a token, 0: padding), every context flush right."""
    width = max(map(len, contexts))
    ids = np.full((len(contexts), width), padding, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, context in enumerate(contexts):
        ids[row, width - len(context) :] = context
        mask[row, width - len(context) :] = 1
    return ids, mask
