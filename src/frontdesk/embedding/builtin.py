"""Embeds texts with the MiniLM model in the package, in threads, with its own tokenizer."""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from frontdesk.embedding import Vectors
from frontdesk.errors import Unavailable

# Far more than the longest input of the model; the rest of a text is not read.
MAX_TEXT_LENGTH = 8192
MAX_WORD_LENGTH = 100
# The number of words whose pieces are cached. A catalogue has some thousands of different words.
WORDS_REMEMBERED = 20_000

_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_CONTROLS = dict.fromkeys((*range(32), 127)) | {ord(blank): " " for blank in "\t\n\r"}
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieceTokenizer:
    """A tokenizer with a vocabulary of one token per line. Special tokens in a text are treated as plain text."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._unknown = (self._ids["[UNK]"],)
        self._start, self._end = self._ids["[CLS]"], self._ids["[SEP]"]
        self._pieces_of: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> "WordPieceTokenizer":
        return cls(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def ids(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, including the start and end marks."""
        found = [self._start]
        for word in split_words(text[:MAX_TEXT_LENGTH]):
            found += self._pieces(word)
            if len(found) >= limit:
                break
        del found[limit - 1 :]
        return [*found, self._end]

    def _pieces(self, word: str) -> tuple[int, ...]:
        known = self._pieces_of.get(word)
        if known is None:
            if len(self._pieces_of) >= WORDS_REMEMBERED:
                self._pieces_of.clear()
            known = self._pieces_of[word] = self._split(word)
        return known

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > MAX_WORD_LENGTH:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            pieces.append(piece)
            start = end
        return tuple(pieces)


def split_words(text: str) -> Iterator[str]:
    """Lower-case words without accents; each punctuation mark and each CJK character is a separate word."""
    if text.isascii():
        lowered = text.lower() if text.isprintable() else text.translate(_ASCII_CONTROLS).lower()
        return (match.group() for match in _ASCII_WORD.finditer(lowered))
    cleaned = "".join(map(_clean_character, text))
    return iter("".join(map(_fold_character, unicodedata.normalize("NFD", cleaned))).split())


@lru_cache(maxsize=4096)
def _clean_character(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character).startswith("Z"):
        return " "
    # A lone surrogate is not a character, and the vocabulary has no private characters.
    if character == "\ufffd" or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    return f" {character} " if any(first <= ord(character) <= last for first, last in _CJK) else character


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    # Some ASCII characters that Unicode calls symbols count as punctuation here.
    mark = category.startswith("P") or (_ASCII_WORD.fullmatch(character) and not character.isalnum())
    return f" {character} " if mark else character.lower()


DIMENSIONS = 384
# Longer texts are cut. Of the 10,600 tools of six public sets, five in ten thousand are longer.
MAX_TOKENS = 128


class _OnnxSession(Protocol):
    def run(self, outputs: Sequence[str], inputs: Mapping[str, NDArray[np.int64]]) -> Sequence[Vectors]: ...


class MiniLmModel:
    """The model; many threads may use it, as a run stores nothing and uses only its caller's thread."""

    def __init__(self, folder: Path) -> None:
        self._words = WordPieceTokenizer.read(folder / "vocab.txt")
        self._session = _open_session(folder / "model.onnx")

    def vectors(self, texts: Sequence[str]) -> Vectors:
        # Texts are run one by one. The model rounds its numbers by the largest of them, so a text in a batch would get
        # another vector, and a batch saves almost no time.
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = np.array([self._words.ids(text, MAX_TOKENS)], dtype=np.int64)
            found[row] = self._session.run(["vectors"], {"ids": ids})[0][0]
        return found


def _open_session(path: Path) -> _OnnxSession:
    # It costs memory, which only installations with search should pay.
    import onnxruntime  # noqa: PLC0415

    # Half of its names have no types.
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Both keep a few megabytes for the next run; turning them off costs no time.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


# A new model needs a new name: vectors of two models must not be compared.
MODEL_NAME = "frontdesk-minilm-1"
MODEL_FOLDER = Path(__file__).with_name("model")
# The texts of one call to a thread; few, so that a cancelled call ends soon. No question has as many clauses.
CHUNK_SIZE = 16
# Parallel questions, and parallel parts of a catalogue: a question never waits for a catalogue.
QUESTION_THREADS = 8
CATALOGUE_THREADS = min(4, os.cpu_count() or 1)


class BuiltinEmbedder:
    """MiniLM, tuned for tools, in threads beside the event loop."""

    name = MODEL_NAME

    def __init__(self, folder: Path = MODEL_FOLDER) -> None:
        self._folder = folder
        self._lock = Lock()
        self._model: MiniLmModel | None = None
        self._questions = anyio.CapacityLimiter(QUESTION_THREADS)
        self._pieces = anyio.CapacityLimiter(CATALOGUE_THREADS)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) <= CHUNK_SIZE:
            return await anyio.to_thread.run_sync(self._vectors, texts, limiter=self._questions)
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        await anyio.to_thread.run_sync(self._loaded, limiter=self._pieces)
        async with anyio.create_task_group() as group:
            for start in range(0, len(texts), CHUNK_SIZE):
                group.start_soon(self._fill, found[start : start + CHUNK_SIZE], texts[start : start + CHUNK_SIZE])
        return found

    async def close(self) -> None:
        self._model = None

    async def _fill(self, rows: Vectors, texts: Sequence[str]) -> None:
        rows[:] = await anyio.to_thread.run_sync(self._vectors, texts, limiter=self._pieces)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        return self._loaded().vectors(texts)

    def _loaded(self) -> MiniLmModel:
        with self._lock:
            if self._model is None:
                self._model = _load_model(self._folder)
            return self._model


def _load_model(folder: Path) -> MiniLmModel:
    try:
        return MiniLmModel(folder)
    except (ImportError, OSError) as error:
        raise Unavailable(
            f"The embedding model cannot be loaded ({error}); install Frontdesk again, "
            "or set FRONTDESK_EMBEDDINGS to off to search by words alone"
        ) from error
