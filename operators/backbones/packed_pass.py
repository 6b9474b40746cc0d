"""Many short continuations of one context in one forward pass.

A causal LM asked for log p(answer | context[:cut]) at several cuts would read the shared context again for each. Here a
row is laid out once, context first, then every branch, and the attention mask lets a branch see the context up to its
own cut and itself:

    columns   c0 c1 c2 c3 c4 | a a a | b b b          branch a: cut 2, branch b: cut 5
    positions  0  1  2  3  4 | 2 3 4 | 5 6 7

so each branch computes exactly what it would compute alone. Only the branch columns reach the vocabulary projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from operators.backbones.causal_lm import LoadedCausalLM
from operators.batching import token_batches, token_budget

if TYPE_CHECKING:
    import torch

# A branch token costs a row of the vocabulary in memory, so it weighs this many context tokens in a batch.
BRANCH_WEIGHT = 4
# Nats that rounding alone may move a log-probability when rows are laid out otherwise. A model that ignores the mask is
# off by 0.6 or more. In half precision the same rounding makes a score depend on its batch-mates.
PACKING_TOLERANCE = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.35}


@dataclass(frozen=True)
class Branch:
    """`inputs` follow context[:cut]; wanted are log p(token | everything up to inputs[position]) for each read."""

    cut: int
    inputs: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]  # (position in inputs, token that comes next)


@dataclass(frozen=True)
class Row:
    """One context and its branches (at least one)."""

    context: tuple[int, ...]
    branches: tuple[Branch, ...]

    @property
    def width(self) -> int:
        """The most tokens of one branch."""
        return max(len(branch.inputs) for branch in self.branches)

    def cost(self) -> int:
        """What the row weighs in a token budget."""
        return len(self.context) + BRANCH_WEIGHT * len(self.branches) * self.width


class SharedPrefix:
    """Keys and values of tokens that precede every row, computed once and never copied per row for longer than a layer."""

    def __init__(self, lm: LoadedCausalLM, tokens: Sequence[int]) -> None:
        import torch

        with torch.inference_mode():
            ids = torch.tensor([list(tokens)], device=lm.device)
            self._cache = lm.model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        self.length = len(tokens)

    def for_rows(self, rows: int) -> Any:
        """A cache of `rows` rows that lends the prefix and keeps nothing of what is added."""
        import torch
        from transformers import DynamicCache

        class Lent(DynamicCache):
            def update(
                self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
            ) -> tuple[torch.Tensor, torch.Tensor]:
                layer = self.layers[layer_idx]
                before = [tensor.expand(rows, -1, -1, -1) for tensor in (layer.keys, layer.values)]
                return torch.cat([before[0], keys], dim=-2), torch.cat([before[1], values], dim=-2)

        lent = Lent()
        lent.layers = self._cache.layers
        return lent


def branch_log_probs(
    lm: LoadedCausalLM,
    rows: Sequence[Row],
    tokens_per_batch: int | None = None,
    prefix: SharedPrefix | None = None,
) -> list[list[np.ndarray]]:
    """For each row and branch, the log-probabilities of its reads (float64, nats).

    `prefix`, where given, precedes every context; cuts do not count it. Rows are batched by length under
    `tokens_per_batch` (None: what suits the device); in float32 a row's result does not depend on its batch-mates.
    """
    results: list[list[np.ndarray]] = [[] for _ in rows]
    for batch in token_batches([row.cost() for row in rows], token_budget(tokens_per_batch, lm.device)):
        for index, found in zip(batch, _forward(lm, [rows[i] for i in batch], prefix), strict=True):
            results[index] = found
    return results


def _forward(lm: LoadedCausalLM, rows: list[Row], prefix: SharedPrefix | None) -> list[list[np.ndarray]]:
    import torch

    before = prefix.length if prefix else 0
    ids, positions, mask, starts = layout(rows, before, lm.padding_id)
    with torch.inference_mode():
        logits = lm.model(
            input_ids=torch.from_numpy(ids).to(lm.device),
            position_ids=torch.from_numpy(positions).to(lm.device),
            attention_mask=torch.from_numpy(mask)[:, None].to(lm.device),
            past_key_values=prefix.for_rows(len(rows)) if prefix else None,
            use_cache=prefix is not None,
            logits_to_keep=ids.shape[1] - starts[0],
        ).logits.float()
        wanted = [
            (i, starts[k] - starts[0] + at, token)
            for i, row in enumerate(rows)
            for k, branch in enumerate(row.branches)
            for at, token in branch.reads
        ]
        row_at, column_at, token_at = (
            torch.tensor(part, device=lm.device) for part in zip(*wanted, strict=True)
        )
        chosen = logits[row_at, column_at]
        log_probs = chosen.gather(1, token_at[:, None])[:, 0] - chosen.logsumexp(-1)
    values = iter(log_probs.double().cpu().numpy())
    return [[np.array([next(values) for _ in branch.reads]) for branch in row.branches] for row in rows]


def layout(
    rows: Sequence[Row], before: int, padding_id: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Token ids [B, T], positions [B, T], mask [B, T, before + T] (True: may attend) and the branches' first columns.

    Contexts are padded at the right, so that every row's k-th branch begins in the same column. A padded column
    attends to itself alone: a row of the mask without any True would make NaN, and NaN spreads.
    """
    context = max(len(row.context) for row in rows)
    width, branches = max(row.width for row in rows), max(len(row.branches) for row in rows)
    starts = [context + k * width for k in range(branches)]
    columns = context + branches * width
    ids = np.full((len(rows), columns), padding_id, dtype=np.int64)
    positions = np.zeros((len(rows), columns), dtype=np.int64)
    mask = np.zeros((len(rows), columns, before + columns), dtype=bool)
    mask[:, np.arange(columns), before + np.arange(columns)] = True
    for i, row in enumerate(rows):
        _place(ids[i], positions[i], mask[i], 0, row.context, 0, before)
        for start, branch in zip(starts, row.branches, strict=False):
            _place(ids[i], positions[i], mask[i], start, branch.inputs, branch.cut, before)
    return ids, positions, mask, starts


def _place(
    ids: np.ndarray,
    positions: np.ndarray,
    mask: np.ndarray,
    start: int,
    tokens: tuple[int, ...],
    cut: int,
    before: int,
) -> None:
    """Write `tokens` at column `start` of one row; they see the prefix, context[:cut] and one another causally."""
    end = start + len(tokens)
    ids[start:end] = tokens
    positions[start:end] = before + cut + np.arange(len(tokens))
    mask[start:end, : before + cut] = True
    mask[start:end, before + start : before + end] = np.tri(len(tokens), dtype=bool)


def plain_log_probs(lm: LoadedCausalLM, row: Row, prefix: Sequence[int] = ()) -> list[np.ndarray]:
    """What `branch_log_probs` must equal: every branch of a row read alone, from its first token."""
    import torch

    found = []
    for branch in row.branches:
        tokens = [*prefix, *row.context[: branch.cut], *branch.inputs]
        with torch.inference_mode():
            logits = lm.model(input_ids=torch.tensor([tokens], device=lm.device), use_cache=False).logits
        log_probs = logits[0, len(tokens) - len(branch.inputs) :].float().log_softmax(-1)
        found.append(np.array([float(log_probs[at, token]) for at, token in branch.reads]))
    return found


def check_packing(lm: LoadedCausalLM, tokens: int) -> None:
    """Raise ValueError where the model cannot score packed rows of `tokens` tokens.

    A model with sliding windows or recurrent layers ignores a mask of our own, and its scores would be wrong silently:
    a short row is scored packed and plain, and windows are read from the config.
    """
    config = lm.model.config.get_text_config()
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if tokens > min(lm.context_length, window or tokens):
        raise ValueError(
            f"{type(lm.model).__name__} attends to {min(lm.context_length, window or tokens)} tokens, the scorer may "
            f"need {tokens}: lower the scorer's limits on slot tokens or choose another backbone"
        )
    context = tuple(token % len(lm.tokenizer) for token in range(7, 31))
    row = Row(
        context, (Branch(24, context[:2], ((1, context[5]),)), Branch(3, context[1:3], ((0, 1), (1, 2))))
    )
    packed, plain = branch_log_probs(lm, [row], 1)[0], plain_log_probs(lm, row)
    gap = max(float(np.abs(a - b).max()) for a, b in zip(packed, plain, strict=True))
    if not gap <= PACKING_TOLERANCE[str(lm.model.dtype).removeprefix("torch.")]:
        raise ValueError(
            f"{type(lm.model).__name__} gives other log-probabilities for packed branches (by {gap:.3g} nats): it does "
            "not honour a custom attention mask. Choose a Llama- or Qwen2-like backbone"
        )
