"""The model that ships with the package: what its vectors are like, and that nothing upsets it."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import anyio
import numpy as np
import pytest

from frontdesk.embedding.builtin import CHUNK_SIZE, MODEL_FOLDER, MODEL_NAME, BuiltinEmbedder
from frontdesk.embedding.embedder import Vectors
from frontdesk.errors import Unavailable
from frontdesk.tools.model import tool_text

pytestmark = pytest.mark.anyio

TOOLS = [
    tool_text("weather", "get_forecast", "Tells the weather of the next days.", ["city", "days"]),
    tool_text("calendar", "createEvent", "Puts an appointment into the calendar.", ["title", "start_time"]),
    tool_text("bank", "transfer_money", "Sends an amount to another account.", ["amount", "iban"]),
    tool_text("music", "play_song", "Plays a song by its name.", ["name"]),
    tool_text("mail", "send_email", "Sends a message to somebody.", ["to", "subject", "body"]),
]
QUESTIONS = [
    "will it rain in Paris tomorrow?",
    "book a meeting with Ann on Friday at ten",
    "pay the plumber 200 euros",
    "play Yesterday by the Beatles",
    "write to Bob that I am late",
]


@pytest.fixture(scope="module")
async def embedder() -> AsyncGenerator[BuiltinEmbedder]:
    made = BuiltinEmbedder()
    yield made
    await made.close()


def alike(one: Vectors, other: Vectors) -> bool:
    return np.array_equal(one, other)


async def test_vectors_have_length_one(embedder: BuiltinEmbedder) -> None:
    found = await embedder.embed(TOOLS)
    assert found.shape == (5, 384)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


async def test_each_question_is_nearest_to_the_tool_that_answers_it(embedder: BuiltinEmbedder) -> None:
    near = await embedder.embed(QUESTIONS) @ (await embedder.embed(TOOLS)).T
    assert near.argmax(axis=1).tolist() == [0, 1, 2, 3, 4]


async def test_a_text_has_the_same_vector_alone_in_any_order_and_from_another_copy_of_the_model(
    embedder: BuiltinEmbedder,
) -> None:
    texts = [*TOOLS, *QUESTIONS] * 4
    assert len(texts) > 2 * CHUNK_SIZE
    together = await embedder.embed(texts)
    assert alike(together[::-1], await embedder.embed(texts[::-1]))
    assert alike(together[2:3], await embedder.embed([texts[2]]))
    assert alike(together[:5], await BuiltinEmbedder().embed(TOOLS))


async def test_many_tasks_at_once_get_their_own_vectors() -> None:
    embedder = BuiltinEmbedder()
    alone = [await BuiltinEmbedder().embed([text]) for text in QUESTIONS]
    found: dict[int, Vectors] = {}

    async def ask(number: int) -> None:
        texts = [QUESTIONS[number % 5]] * (1 + CHUNK_SIZE * (number % 2))
        found[number] = await embedder.embed(texts)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(ask, number)
    assert all(alike(row, alone[number % 5][0]) for number, rows in found.items() for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00\x01",
        "\ud800",
        "[SEP][CLS]",
        "🙂" * 500,
        "a" * 1_000_000,
        "word " * 100_000,
        "日本" * 1000,
        "\u202e\u200b",
    ],
    ids=ascii,
)
async def test_any_text_has_a_vector(embedder: BuiltinEmbedder, text: str) -> None:
    found = await embedder.embed([text])
    assert np.isfinite(found).all()
    assert np.allclose(np.linalg.norm(found), 1, atol=1e-5)


async def test_no_texts_have_no_vectors(embedder: BuiltinEmbedder) -> None:
    assert (await embedder.embed([])).shape == (0, 384)


async def test_a_question_does_not_wait_for_a_catalogue(embedder: BuiltinEmbedder) -> None:
    order: list[str] = []

    async def catalogue() -> None:
        await embedder.embed(TOOLS * 20)
        order.append("catalogue")

    async with anyio.create_task_group() as group:
        group.start_soon(catalogue)
        await anyio.lowlevel.checkpoint()
        await embedder.embed(QUESTIONS[:1])
        order.append("question")
    assert order == ["question", "catalogue"]


async def test_a_model_that_is_not_there_is_reported(tmp_path: Path) -> None:
    for texts in (["one"], ["many"] * (CHUNK_SIZE + 1)):
        with pytest.raises(Unavailable, match="FRONTDESK_EMBEDDINGS to off"):
            await BuiltinEmbedder(tmp_path).embed(texts)


def test_the_runtime_is_not_loaded_before_the_first_text() -> None:
    script = (
        "import sys; from frontdesk.embedding.builtin import BuiltinEmbedder; BuiltinEmbedder();"
        "sys.exit('onnxruntime' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_another_model_has_another_name() -> None:
    digest = sha256((MODEL_FOLDER / "model.onnx").read_bytes()).hexdigest()
    known = {"frontdesk-minilm-1": "4763970d123f67b88903306f452d377fac234fd6be2873b32721fa23b105eb17"}
    assert known.get(MODEL_NAME) == digest, "vectors are kept by the model's name: give a new model a new one"
