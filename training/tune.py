"""Trains the model to put a question near the tools that answer it, without losing what the base model knows."""

# torch is missing where types are checked, so none of its names has a type.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from frontdesk.embedding.builtin import WordPieceTokenizer
from training.encoder import Encoder, padded
from training.pairs import Pair, batches, in_part, own_pairs
from training.weights import Weights

NEVER = -1e4
# Texts of similar length run together, this many at a time.
TOGETHER = 256


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the result, besides the data and the seed."""

    epochs: int = 4
    batch: int = 256
    rate: float = 2e-4
    warm_up: float = 0.1
    decay: float = 0.01
    dropout: float = 0.1
    temperature: float = 0.05
    # The weight of finding the question for a tool, against finding the tool for a question.
    backwards: float = 0.5
    # The cost of moving a text away from its place in the base model.
    anchor: float = 0.2
    # How often a part of a tool's text is left out.
    in_part: float = 0.3
    longest: int = 128


class Tuning:
    """One run from one seed."""

    def __init__(self, base: Weights, words: WordPieceTokenizer, recipe: Recipe, seed: int) -> None:
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        torch.set_float32_matmul_precision("high")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._recipe = recipe
        self._random = Random(seed)
        self._base = Encoder(base, 0).to(device).eval()
        self._model = Encoder(base, recipe.dropout).to(device).train()
        self._device = device
        self._ids = lru_cache(maxsize=100_000)(lambda text: tuple(words.ids(text, recipe.longest)))

    def run(self, pairs: Sequence[Pair], progress: Callable[[int, int, float], None]) -> Weights:
        """The tuned weights; `progress` gets the number of each step, the number of steps, and the loss."""
        everything = [*pairs, *own_pairs(pairs)]
        plan = [
            batch for _ in range(self._recipe.epochs) for batch in batches(everything, self._recipe.batch, self._random)
        ]
        optimizer = torch.optim.AdamW(self._groups(), lr=self._recipe.rate, fused=self._device.type == "cuda")
        warm = max(1, int(self._recipe.warm_up * len(plan)))
        rates = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (len(plan) - step) / max(1, len(plan) - warm))
        )
        for number, batch in enumerate(plan, 1):
            loss = self._loss(batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            optimizer.step()
            rates.step()
            progress(number, len(plan), loss.item())
        return self._model.weights()

    def _groups(self) -> list[dict[str, object]]:
        held = list(self._model.parameters())
        return [
            {"params": [one for one in held if one.ndim > 1], "weight_decay": self._recipe.decay},
            {"params": [one for one in held if one.ndim == 1], "weight_decay": 0.0},
        ]

    def _loss(self, batch: Sequence[Pair]) -> Tensor:
        tools = list(dict.fromkeys([pair.right for pair in batch] + [pair.near for pair in batch if pair.near]))
        questions = [pair.question for pair in batch]
        shown = [self._shown(tool) if batch[0].labelled else tool for tool in tools]
        after = self._embedded(self._model, [*questions, *shown])
        with torch.no_grad():
            before = self._embedded(self._base, [*questions, *shown])
        asked, answering = after[: len(batch)], after[len(batch) :]
        row_of = {tool: row for row, tool in enumerate(tools)}
        right = torch.tensor([row_of[pair.right] for pair in batch], device=self._device)
        scores = asked @ answering.T / self._recipe.temperature
        scores = scores.masked_fill(torch.from_numpy(_undecided(batch, row_of)).to(self._device), NEVER)
        moved = (1 - (after * before).sum(dim=1)).mean() * 2
        return (
            functional.cross_entropy(scores, right)
            + self._recipe.backwards * _backwards(scores, right)
            + self._recipe.anchor * moved
        )

    def _shown(self, tool: str) -> str:
        return in_part(tool, self._random) if self._random.random() < self._recipe.in_part else tool

    def _embedded(self, model: Encoder, texts: Sequence[str]) -> Tensor:
        rows = [self._ids(text) for text in texts]
        order = np.argsort([len(row) for row in rows], kind="stable")
        found = [
            model(*padded([rows[number] for number in order[start : start + TOGETHER]], self._device))
            for start in range(0, len(rows), TOGETHER)
        ]
        return torch.cat(found)[torch.from_numpy(np.argsort(order)).to(self._device)]


def _undecided(batch: Sequence[Pair], row_of: dict[str, int]) -> NDArray[np.bool_]:
    """Tools that answer a question as well as the one it is paired with: they are not negatives."""
    found = np.zeros((len(batch), len(row_of)), dtype=np.bool_)
    for number, pair in enumerate(batch):
        for tool in pair.also_right - {pair.right}:
            if tool in row_of:
                found[number, row_of[tool]] = True
    return found


def _backwards(scores: Tensor, right: Tensor) -> Tensor:
    """The loss of finding the right questions for each tool that answers something."""
    tools = right.unique()
    asking = right[None, :] == tools[:, None]
    theirs = scores[:, tools].T
    return (theirs.logsumexp(dim=1) - theirs.masked_fill(~asking, NEVER).logsumexp(dim=1)).mean()
