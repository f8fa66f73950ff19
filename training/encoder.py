"""The model for training: BERT with six layers, the mean of its last states, normalized to length one."""

# torch is missing where types are checked, so none of its names has a type.
# pyright: basic, reportMissingImports=false

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from training.weights import Weights

HEADS = 12
LAYERS = 6
EPSILON = 1e-12


class Encoder(nn.Module):
    """Parameters have the names of the base weights, with `/` for `.`, since torch reserves the dot."""

    def __init__(self, weights: Weights, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.held = nn.ParameterDict(
            {
                name.replace(".", "/"): nn.Parameter(torch.from_numpy(array.copy()))
                for name, array in weights.items()
                if name.startswith(("embeddings.", "encoder."))
            }
        )

    def weights(self) -> Weights:
        return {name.replace("/", "."): held.detach().cpu().numpy().copy() for name, held in self.held.items()}

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        here = torch.arange(ids.shape[1], device=ids.device)
        present = here[None, :] < lengths[:, None]
        states = functional.embedding(ids, self._of("embeddings.word_embeddings.weight"))
        states = states + self._of("embeddings.position_embeddings.weight")[: ids.shape[1]]
        states = states + self._of("embeddings.token_type_embeddings.weight")[0]
        states = self._drop(self._normed(states, "embeddings.LayerNorm"))
        hidden = torch.where(present, 0.0, -1e9)[:, None, None, :]
        for number in range(LAYERS):
            states = self._layer(states, hidden, f"encoder.layer.{number}")
        summed = (states * present[:, :, None]).sum(dim=1)
        return functional.normalize(summed / lengths[:, None], dim=1)

    def _layer(self, states: Tensor, hidden: Tensor, name: str) -> Tensor:
        query, key, value = (
            self._heads(self._linear(states, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        # By hand: the fused kernels do not give reproducible gradients.
        attention = torch.softmax(query @ key.transpose(2, 3) / query.shape[3] ** 0.5 + hidden, dim=3)
        mixed = (self._drop(attention) @ value).transpose(1, 2).flatten(2)
        mixed = self._drop(self._linear(mixed, f"{name}.attention.output.dense"))
        states = self._normed(states + mixed, f"{name}.attention.output.LayerNorm")
        inner = functional.gelu(self._linear(states, f"{name}.intermediate.dense"))
        outer = self._drop(self._linear(inner, f"{name}.output.dense"))
        return self._normed(states + outer, f"{name}.output.LayerNorm")

    def _heads(self, states: Tensor) -> Tensor:
        return states.unflatten(2, (HEADS, -1)).transpose(1, 2)

    def _linear(self, states: Tensor, name: str) -> Tensor:
        return functional.linear(states, self._of(f"{name}.weight"), self._of(f"{name}.bias"))

    def _normed(self, states: Tensor, name: str) -> Tensor:
        gain = self._of(f"{name}.weight")
        return functional.layer_norm(states, gain.shape, gain, self._of(f"{name}.bias"), EPSILON)

    def _drop(self, states: Tensor) -> Tensor:
        return functional.dropout(states, self.dropout, self.training)

    def _of(self, name: str) -> Tensor:
        return self.held[name.replace(".", "/")]


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids as one rectangle, and the used length of each row."""
    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device)


@torch.no_grad()
def embed(model: Encoder, rows: Sequence[Sequence[int]], at_once: int = 512) -> NDArray[np.float32]:
    """Vectors of tokenised texts, in their order."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device).eval()
    order = np.argsort([len(row) for row in rows], kind="stable")
    found = np.empty((len(rows), model.held["embeddings/LayerNorm/weight"].shape[0]), dtype=np.float32)
    for start in range(0, len(rows), at_once):
        some = order[start : start + at_once]
        found[some] = model(*padded([rows[number] for number in some], device)).cpu().numpy()
    return found
