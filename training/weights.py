"""Reads, writes and averages a model's weights by name."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training import Missing

Weights = dict[str, NDArray[np.float32]]

FILE = "model.safetensors"
_KINDS = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


def read_weights(folder: Path) -> Weights:
    """The weights of a folder, rounded to half precision, so that a copy of half the size gives the same model."""
    path = folder / FILE
    if not path.is_file():
        raise Missing(path, "--base")
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return {
        name: _array(content[8 + size :], entry)
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] in _KINDS
    }


def write_weights(folder: Path, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """In half precision; `read_weights` gives back the same."""
    header: dict[str, object] = {}
    parts: list[bytes] = []
    offset = 0
    for name, array in weights.items():
        part = array.astype("<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [offset, offset + len(part)]}
        parts.append(part)
        offset += len(part)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / FILE).write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))


def average(models: Sequence[Weights]) -> Weights:
    return {name: np.stack([model[name] for model in models]).mean(axis=0) for name in models[0]}


def mix(tuned: Weights, base: Weights, share: float) -> Weights:
    """`share` of the tuned model, and the rest of the base, so that the base's knowledge stays."""
    return {name: _rounded(share * tuned[name] + (1 - share) * base[name]) for name in tuned}


def _array(content: bytes, entry: Mapping[str, Any]) -> NDArray[np.float32]:
    start, end = entry["data_offsets"]
    stored = np.frombuffer(content[start:end], dtype=_KINDS[entry["dtype"]])
    return _rounded(stored.reshape(entry["shape"]))


def _rounded(array: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    return array.astype(np.float16).astype(np.float32)
