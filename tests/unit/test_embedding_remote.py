"""The embedder elsewhere: two kinds of API, and whatever they may answer."""

import math
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr
from starlette.responses import RedirectResponse, Response

from frontdesk.embedding.remote import BATCH_SIZE, RemoteEmbedder
from frontdesk.errors import ConfigurationError, Unavailable
from tests.support.embeddings_server import WIDTH, EmbeddingsServer, Spoil, open_embeddings_server, vector

pytestmark = pytest.mark.anyio

SECRET = "sk-very-secret"
TEXTS = ["one", "two", "three"]


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with open_embeddings_server() as running:
        yield running


@asynccontextmanager
async def remote(server: EmbeddingsServer, path: str = "/v1", key: str | None = None) -> AsyncGenerator[RemoteEmbedder]:
    embedder = RemoteEmbedder(f"{server.url}{path}", "some-model", SecretStr(key) if key else None, pauses=(0, 0))
    try:
        yield embedder
    finally:
        await embedder.close()


def unit(text: str) -> np.ndarray[Any, Any]:
    made = np.array(vector(text))
    return made / np.linalg.norm(made)


@pytest.mark.parametrize(("path", "asked"), [("/v1", "/v1/embeddings"), ("/v1/", "/v1/embeddings"), ("", "/api/embed")])
async def test_both_kinds_of_api_give_rows_of_length_one_in_the_order_of_the_texts(
    server: EmbeddingsServer, path: str, asked: str
) -> None:
    async with remote(server, path) as embedder:
        found = await embedder.embed(TEXTS)
    assert found.dtype == np.float32
    assert np.allclose(found, [unit(text) for text in TEXTS], atol=1e-6)
    assert server.asked[0].path == asked
    assert server.asked[0].body["model"] == "some-model"


async def test_many_texts_are_asked_for_in_batches(server: EmbeddingsServer) -> None:
    texts = [f"text {number}" for number in range(2 * BATCH_SIZE + 1)]
    async with remote(server) as embedder:
        found = await embedder.embed(texts)
    assert np.allclose(found, [unit(text) for text in texts], atol=1e-6)
    assert [len(asked.body["input"]) for asked in server.asked] == [BATCH_SIZE, BATCH_SIZE, 1]


async def test_no_texts_need_no_request(server: EmbeddingsServer) -> None:
    async with remote(server) as embedder:
        assert len(await embedder.embed([])) == 0
    assert server.asked == []


async def test_an_empty_text_is_sent_as_a_blank_and_a_long_one_is_cut(server: EmbeddingsServer) -> None:
    async with remote(server) as embedder:
        await embedder.embed(["", "x" * 100_000])
    sent = server.asked[0].body["input"]
    assert sent[0] == " "
    assert len(sent[1]) < 10_000


async def test_the_key_is_sent_as_a_bearer_token() -> None:
    with open_embeddings_server(key=SECRET) as server:
        async with remote(server, key=SECRET) as embedder:
            assert (await embedder.embed(TEXTS)).shape == (3, WIDTH)


@pytest.mark.parametrize("path", ["/v1", ""])
async def test_a_refused_key_is_reported_without_the_key(path: str) -> None:
    with open_embeddings_server(key="another") as server:
        async with remote(server, path, key=SECRET) as embedder:
            with pytest.raises(Unavailable, match="FRONTDESK_EMBEDDINGS_KEY") as caught:
                await embedder.embed(TEXTS)
        assert len(server.asked) == 1
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigurationError, match="FRONTDESK_EMBEDDINGS_KEY") as caught:
        RemoteEmbedder("http://127.0.0.1:1/v1", "some-model", SecretStr(f"{SECRET}\nx: y"))
    assert SECRET not in str(caught.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(ConfigurationError, match="FRONTDESK_EMBEDDINGS_MODEL"):
        RemoteEmbedder("http://127.0.0.1:1/v1", None)


def test_two_models_and_two_addresses_have_different_names() -> None:
    given = [("http://a/v1", "m"), ("http://a/v1", "n"), ("http://b/v1", "m")]
    assert len({RemoteEmbedder(address, model).name for address, model in given}) == 3


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_again(server: EmbeddingsServer, status: int) -> None:
    server.statuses = [status, status]
    async with remote(server) as embedder:
        assert (await embedder.embed(TEXTS)).shape == (3, WIDTH)
    assert len(server.asked) == 3


async def test_what_does_not_pass_is_given_up(server: EmbeddingsServer) -> None:
    server.statuses = [503] * 9
    async with remote(server) as embedder:
        with pytest.raises(Unavailable, match="status 503; try again shortly"):
            await embedder.embed(TEXTS)
    assert len(server.asked) == 3


@pytest.mark.parametrize(("status", "advice"), [(400, "MODEL"), (404, "FRONTDESK_EMBEDDINGS and"), (413, "MODEL")])
async def test_what_will_not_pass_is_not_tried_again(server: EmbeddingsServer, status: int, advice: str) -> None:
    server.statuses = [status] * 3
    async with remote(server) as embedder:
        with pytest.raises(Unavailable, match=advice):
            await embedder.embed(TEXTS)
    assert len(server.asked) == 1


async def test_nobody_listening_is_reported() -> None:
    with open_embeddings_server() as server:
        pass
    async with remote(server, key=SECRET) as embedder:
        with pytest.raises(Unavailable, match="does not answer") as caught:
            await embedder.embed(TEXTS)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


async def test_a_redirect_is_not_followed_with_the_key(server: EmbeddingsServer) -> None:
    server.spoil = lambda _: RedirectResponse(f"{server.url}/api/embed")
    async with remote(server, key=SECRET) as embedder:
        with pytest.raises(Unavailable, match="status 307"):
            await embedder.embed(TEXTS)
    assert len(server.asked) == 1


def entry(**changes: object) -> Spoil:
    """Changes one entry of an OpenAI answer."""
    return lambda answer: answer | {"data": [answer["data"][0] | changes, *answer["data"][1:]]}


def entries(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Spoil:
    return lambda answer: answer | {"data": change(answer["data"])}


def instead(told: object) -> Spoil:
    return lambda _: told


USELESS: dict[str, Spoil] = {
    "a page": instead(Response("<html>hello</html>")),
    "no text": instead(Response(b"\xff\xfe")),
    "an empty object": instead({}),
    "a list": instead([]),
    "one too few": entries(lambda rows: rows[1:]),
    "the last missing": entries(lambda rows: rows[:2]),
    "all twice": entries(lambda rows: rows * 2),
    "none": entries(lambda _: []),
    "an index too high": entry(index=7),
    "an index twice": entry(index=1),
    "one shorter": entry(embedding=[1.0, 2.0]),
    "base64": entry(embedding="AAAA"),
    "no number": entry(embedding=[math.nan] * WIDTH),
    "without end": entry(embedding=[math.inf] * WIDTH),
    "too large": entry(embedding=[1e300] * WIDTH),
    "nothing but zeros": entry(embedding=[0.0] * WIDTH),
    "of no width": entries(lambda rows: [one | {"embedding": []} for one in rows]),
}


@pytest.mark.parametrize("spoil", USELESS.values(), ids=USELESS.keys())
async def test_an_answer_that_is_no_vectors_for_the_texts_is_refused(server: EmbeddingsServer, spoil: Spoil) -> None:
    server.spoil = spoil
    async with remote(server) as embedder:
        with pytest.raises(Unavailable, match="was asked for vectors and gave"):
            await embedder.embed(TEXTS)


async def test_an_ollama_answer_of_the_wrong_count_is_refused(server: EmbeddingsServer) -> None:
    server.spoil = lambda answer: answer | {"embeddings": answer["embeddings"][1:]}
    async with remote(server, "") as embedder:
        with pytest.raises(Unavailable, match="2 for 3 texts"):
            await embedder.embed(TEXTS)


async def test_an_answer_without_end_is_cut_off(server: EmbeddingsServer) -> None:
    server.spoil = lambda _: Response(b" " * 17_000_000)
    async with remote(server) as embedder:
        with pytest.raises(Unavailable, match="does not end"):
            await embedder.embed(TEXTS)


async def test_a_model_that_changes_its_width_is_refused(server: EmbeddingsServer) -> None:
    async with remote(server) as embedder:
        await embedder.embed(TEXTS)
        server.spoil = lambda answer: (
            answer | {"data": [one | {"embedding": [*one["embedding"], 1.0]} for one in answer["data"]]}
        )
        with pytest.raises(Unavailable, match="7 numbers each, and 6 before"):
            await embedder.embed(TEXTS)
