"""Rules for `transformers`' generation that look at the new tokens only, row by row, so that batch-mates do not matter.

Each is a callable from (token ids so far, scores) to scores, which is all that a logits processor has to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Passage:
    """What the LM wrote: the text without its stop, its tokens, and whether it ended before the limit."""

    text: str
    tokens: int
    ended: bool


@dataclass(frozen=True)
class Limits:
    """A passage ends after `sentences` sentences, at a stop, or after `tokens` tokens; no `ngram` tokens come twice."""

    tokens: int
    sentences: int
    ngram: int


class RepeatFree:
    """No `n` tokens in a row come twice among the new tokens. The prompt may be quoted: it holds the evidence."""

    def __init__(self, prompt_width: int, n: int) -> None:
        from transformers import NoRepeatNGramLogitsProcessor

        self._width, self._rule = prompt_width, NoRepeatNGramLogitsProcessor(n)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores with -inf where a token would repeat an n-gram."""
        return self._rule(input_ids[:, self._width :], scores)


class Noise:
    """Gumbel noise of scale `temperature`, drawn per row from its own seed: the argmax is then a sample from
    softmax(logits / temperature), the same whatever rows share the batch."""

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        self._generators, self._temperature = [np.random.default_rng(seed) for seed in seeds], temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores with noise added."""
        import torch

        drawn = np.stack([generator.gumbel(size=scores.shape[1]) for generator in self._generators])
        return scores + self._temperature * torch.from_numpy(drawn).to(scores.device, scores.dtype)


class Guide:
    """Ends a passage where it must end and writes the next tag in the LM's place; the last rule to be applied.

    `tags` are the token sequences between the passages (the tag before the first is part of the prompt). A stop token
    [V] is never written: where it would be the next one, the passage is over.
    """

    def __init__(
        self,
        rows: int,
        tags: Sequence[Sequence[int]],
        limits: Limits,
        stops: np.ndarray,
        ends: np.ndarray,
        eos: int,
    ) -> None:
        self._rows = [_RowState([*map(list, tags), [eos]], limits) for _ in range(rows)]
        self._stops, self._ends = stops, ends

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores, with one token forced in every row."""
        import torch

        likeliest = scores.argmax(dim=-1).tolist()
        chosen = [
            row.next_token(token, bool(self._stops[token]), bool(self._ends[token]))
            for row, token in zip(self._rows, likeliest, strict=True)
        ]
        forced = torch.full_like(scores, -torch.inf)
        forced[torch.arange(len(chosen)), torch.tensor(chosen)] = 0.0
        return forced

    def passages(self, decode: object) -> list[list[Passage]]:
        """What each row's LM wrote, passage by passage."""
        return [
            [Passage(decode(tokens), len(tokens), ended) for tokens, ended in row.done] for row in self._rows
        ]


class _RowState:
    """Where one row stands: the passage being written, the tag tokens still to be forced, what is done."""

    def __init__(self, between: list[list[int]], limits: Limits) -> None:
        self.done: list[tuple[list[int], bool]] = []
        self._between, self._limits = between, limits
        self._passage: list[int] = []
        self._sentences, self._forced = 0, []

    def next_token(self, likeliest: int, stops: bool, ends_sentence: bool) -> int:
        """The token to write, given the one that the LM would write."""
        if not self._forced and len(self.done) < len(self._between):
            complete = stops or self._sentences >= self._limits.sentences
            if not complete and len(self._passage) < self._limits.tokens:
                self._passage.append(likeliest)
                self._sentences += ends_sentence
                return likeliest
            self._forced = list(self._between[len(self.done)])
            self.done.append((self._passage, complete))
            self._passage, self._sentences = [], 0
        return self._forced.pop(0) if self._forced else self._between[-1][-1]
