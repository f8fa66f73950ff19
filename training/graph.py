"""Builds the model for use: an ONNX graph of few, fused steps, in fractions or with its weights as small integers.

Its input is the token ids of texts of one length, its output their vectors. There is no mask: nothing is padded.
"""

# onnx is missing where types are checked, so none of its names has a type.
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from training.weights import Weights

FUSED = "com.microsoft"
HEADS = 12
LAYERS = 6
EPSILON = 1e-12
TABLE_STEPS = 127
# Seven bits and not eight: on a processor without VNNI, sums of two products would not fit their sixteen bits.
STEPS = 64
# If one column of numbers is far larger than the others, the others would be rounded away. It is scaled down and its
# weights up, by this share of what would make all columns equal (Xiao et al., SmoothQuant, 2022).
EVENED = 0.8

Largest = Mapping[str, NDArray[np.float32]]


@dataclass(slots=True)
class _Graph:
    weights: Weights
    largest: Largest | None
    watched: dict[str, str] = field(default_factory=dict[str, str])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(self.weights[name])

    def step(self, kind: str, inputs: Sequence[str], domain: str = "", **options: object) -> str:
        found = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [found], domain=domain, **options))
        return found


def build(weights: Weights, longest: int, largest: Largest | None = None) -> bytes:
    """The ONNX file. `longest` is the largest number of tokens of a text: later positions are not shipped.

    With `largest`, the largest inputs of each matrix, matrices are integers. Without it, they are as trained and the
    input of each is an output of that name.
    """
    graph = _Graph(weights, largest)
    one = graph.constant(np.array([1], dtype=np.int64))
    states = _embeddings(graph, longest, one)
    for number in range(LAYERS):
        states = _layer(graph, states, f"encoder.layer.{number}")
    mean = graph.step("ReduceMean", [states, one], keepdims=0)
    graph.nodes.append(helper.make_node("LpNormalization", [mean], ["vectors"], axis=1, p=2))
    outputs = ["vectors"]
    if largest is None:
        graph.nodes += [helper.make_node("Identity", [states], [name]) for name, states in graph.watched.items()]
        outputs += graph.watched
    made = helper.make_graph(
        graph.nodes,
        "embedder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "length"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=9, producer_name="frontdesk")
    return model.SerializeToString()


def _embeddings(graph: _Graph, longest: int, one: str) -> str:
    steps, scales = _in_steps(graph.weights["embeddings.word_embeddings.weight"], TABLE_STEPS)
    rows = graph.step("Cast", [graph.step("Gather", [graph.constant(steps), "ids"])], to=TensorProto.FLOAT)
    words = graph.step("Mul", [rows, graph.step("Gather", [graph.constant(scales[:, None]), "ids"])])
    # Every text is a first text, so its segment vector is added to its position.
    places = graph.weights["embeddings.position_embeddings.weight"][:longest]
    places = places + graph.weights["embeddings.token_type_embeddings.weight"][0]
    zero, two = (graph.constant(np.array([number], dtype=np.int64)) for number in (0, 2))
    length = graph.step("Slice", [graph.step("Shape", ["ids"]), one, two])
    states = graph.step("Add", [words, graph.step("Slice", [graph.constant(places), zero, length])])
    norm = [graph.weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    return graph.step("LayerNormalization", [states, *norm], axis=-1, epsilon=EPSILON)


def _layer(graph: _Graph, states: str, name: str) -> str:
    parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    together = np.concatenate([graph.weights[f"{part}.weight"] for part in parts])
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    projected = graph.step("Add", [_product(graph, states, f"{name}.attention.self", together), graph.constant(bias)])
    split = [f"{projected}_{part}" for part in ("query", "key", "value")]
    graph.nodes.append(helper.make_node("Split", [projected], split, axis=-1, num_outputs=3))
    attended = graph.step("MultiHeadAttention", split, FUSED, num_heads=HEADS)
    states = _added(graph, attended, states, f"{name}.attention.output")
    inner = _product(graph, states, f"{name}.intermediate", graph.weights[f"{name}.intermediate.dense.weight"])
    bent = graph.step("BiasGelu", [inner, graph.weight(f"{name}.intermediate.dense.bias")], FUSED)
    return _added(graph, bent, states, f"{name}.output")


def _added(graph: _Graph, new: str, states: str, name: str) -> str:
    """A matrix, its bias, the residual, and the norm of all that."""
    product = _product(graph, new, name, graph.weights[f"{name}.dense.weight"])
    parts = (f"{name}.LayerNorm.weight", f"{name}.LayerNorm.bias", f"{name}.dense.bias")
    inputs = [product, states, *(graph.weight(part) for part in parts)]
    return graph.step("SkipLayerNormalization", inputs, FUSED, epsilon=EPSILON)


def _product(graph: _Graph, states: str, name: str, matrix: NDArray[np.float32]) -> str:
    graph.watched[name] = states
    if graph.largest is None:
        return graph.step("MatMul", [states, graph.constant(matrix.T)])
    evened = _evened(graph.largest[name], matrix)
    steps, scales = _in_steps(matrix * evened, STEPS)
    smaller = graph.step("Mul", [states, graph.constant(1 / evened)])
    zeros = np.zeros(len(scales), dtype=np.int8)
    inputs = [smaller, *(graph.constant(part) for part in (steps.T, scales, zeros))]
    return graph.step("DynamicQuantizeMatMul", inputs, FUSED)


def _evened(largest: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """The divisor of each column, in eighths of an octave, so that another processor makes the same model."""
    octaves = EVENED * np.log2(largest) - (1 - EVENED) * np.log2(np.abs(matrix).max(axis=0))
    return np.exp2(np.rint(8 * octaves.astype(np.float64)) / 8).astype(np.float32)


def _in_steps(matrix: NDArray[np.float32], steps: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers between -`steps` and `steps`, and for each row the size of a step."""
    scales = (np.abs(matrix).max(axis=1) / steps).astype(np.float32)
    scales[scales == 0] = 1
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales
