"""The steps of the training program: tune a model, convert it to the shipped form, judge it."""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

import numpy as np

from frontdesk.embedding import Vectors
from frontdesk.embedding.builtin import MAX_TOKENS, MiniLmModel, WordPieceTokenizer
from training import Missing
from training.evaluate import Embed, lost, read_sets, table
from training.evaluate import judge as judged
from training.pairs import read_pairs
from training.weights import Weights, average, mix, read_weights, write_weights

VOCABULARY = "vocab.txt"
MODEL = "model.onnx"
# The share of the tuned model in the shipped one; the rest is the base.
TUNED = 0.9
# The NDCG points that integers in place of fractions may cost.
ALLOWED = 0.2


def tune(data: Path, base: Path, out: Path, seeds: Sequence[int], keep: Path | None) -> int:
    """0 if the shipped model finds as well as the trained one."""
    from training.encoder import Encoder, embed  # noqa: PLC0415 - nothing else needs torch
    from training.tune import Recipe, Tuning  # noqa: PLC0415

    start, words, pairs, sets = read_weights(base), _vocabulary(base), read_pairs(data), read_sets(data)
    runs: list[Weights] = []
    for seed in seeds:
        print(f"seed {seed}, {Recipe()}", flush=True)
        runs.append(Tuning(start, words, Recipe(longest=MAX_TOKENS), seed).run(pairs, _say))
    made = mix(average(runs), start, TUNED)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        write_weights(keep, made)
    _export(made, base, data, out)

    def trained(weights: Weights) -> Embed:
        model = Encoder(weights, 0)
        return lambda texts: embed(model, [words.ids(text, MAX_TOKENS) for text in texts])

    found = {"untuned": trained(start), "tuned": trained(made), "shipped": _shipped(out)}
    columns = {name: judged(embedder, sets) for name, embedder in found.items()}
    cost = lost(columns["tuned"], columns["shipped"])
    print(f"{table(columns)}\n\nwhole numbers cost {cost:.2f} points; {ALLOWED} are allowed")
    return 0 if cost <= ALLOWED else 1


def export(data: Path, base: Path, weights: Path, out: Path) -> int:
    """Writes existing weights in the shipped form."""
    _export(read_weights(weights), base, data, out)
    return 0


def judge(data: Path, models: Sequence[Path], questions: int | None) -> int:
    """Prints the results of each model."""
    sets = read_sets(data, questions)
    print(table({folder.name: judged(_shipped(folder), sets) for folder in models}))
    return 0


def _export(weights: Weights, base: Path, data: Path, out: Path) -> None:
    from training.quantise import quantised  # noqa: PLC0415 - nothing else needs onnx

    out.mkdir(parents=True, exist_ok=True)
    (out / MODEL).write_bytes(quantised(weights, _vocabulary(base), read_pairs(data), MAX_TOKENS))
    if base.resolve() != out.resolve():
        shutil.copyfile(base / VOCABULARY, out / VOCABULARY)
    print(f"{out / MODEL}: {(out / MODEL).stat().st_size:,} bytes", flush=True)


def _shipped(folder: Path) -> Embed:
    if not (folder / MODEL).is_file():
        raise Missing(folder / MODEL, "`python -m training export`, or name it")
    model, pool = MiniLmModel(folder), ThreadPoolExecutor(cpu_count())

    def one(text: str) -> Vectors:
        return model.vectors([text])

    return lambda texts: np.concatenate(list(pool.map(one, texts)))


def _vocabulary(base: Path) -> WordPieceTokenizer:
    if not (base / VOCABULARY).is_file():
        raise Missing(base / VOCABULARY, "--base")
    return WordPieceTokenizer.read(base / VOCABULARY)


def _say(step: int, steps: int, loss: float) -> None:
    if step % 50 == 0 or step == steps:
        print(f"  step {step} of {steps}, loss {loss:.3f}", flush=True)
