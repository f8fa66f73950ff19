"""Tests embedders, the shipped one and remote ones, and the training of the model."""

import gzip
import json
import math
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, TypedDict

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.responses import RedirectResponse, Response
from training import Missing
from training.evaluate import judge, lost
from training.pairs import Pair, batches, in_part, own_pairs, read_pairs, taken_apart
from training.sets import RetrievalSet, read_set
from training.weights import average, mix, read_weights, write_weights

from frontdesk.embedding import Vectors, open_embedder
from frontdesk.embedding.builtin import (
    CHUNK_SIZE,
    MODEL_FOLDER,
    MODEL_NAME,
    WORDS_REMEMBERED,
    BuiltinEmbedder,
    WordPieceTokenizer,
)
from frontdesk.embedding.remote import BATCH_SIZE, RemoteEmbedder
from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.tools.model import space_words, tool_text
from tests.support.embeddings_server import WIDTH, EmbeddingsServer, Spoil, open_embeddings_server, vector

# The shipped model: the properties of its vectors, and that no text makes it fail


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


# The tokenizer gives the reference's results, and no text makes it fail


START, END, UNKNOWN = 101, 102, 100


class Golden(TypedDict):
    """The result of the `tokenizers` package for a text with the same vocabulary."""

    text: str
    limit: int
    ids: list[int]


GOLDEN: list[Golden] = json.loads(Path(__file__).with_name("wordpiece_golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wordpiece() -> WordPieceTokenizer:
    return WordPieceTokenizer.read(MODEL_FOLDER / "vocab.txt")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: ascii(golden["text"][:20]))
def test_ids_are_those_of_the_reference(golden: Golden, wordpiece: WordPieceTokenizer) -> None:
    assert wordpiece.ids(golden["text"], golden["limit"]) == golden["ids"]


def test_a_special_token_in_a_text_is_plain_text(wordpiece: WordPieceTokenizer) -> None:
    ids = wordpiece.ids("[SEP] [CLS] [MASK] [PAD]", 128)
    assert ids[0] == START
    assert ids[-1] == END
    assert not {0, START, END, 103} & set(ids[1:-1])


def test_a_word_met_again_has_the_same_pieces_when_the_memory_was_full_in_between(
    wordpiece: WordPieceTokenizer,
) -> None:
    before = wordpiece.ids("unaffordable", 128)
    for number in range(WORDS_REMEMBERED + 1):
        wordpiece.ids(f"w{number}", 128)
    assert wordpiece.ids("unaffordable", 128) == before


def test_a_megabyte_is_cut_before_it_costs_anything(wordpiece: WordPieceTokenizer) -> None:
    assert wordpiece.ids("word " * 200_000, 128) == wordpiece.ids("word " * 200, 128)
    assert wordpiece.ids("x" * 1_000_000, 128) == [START, UNKNOWN, END]


@given(st.text(alphabet=st.characters(max_codepoint=sys.maxunicode, exclude_categories=()), max_size=200))
def test_any_text_has_ids_within_the_limit(text: str) -> None:
    ids = _SHARED.ids(text, 32)
    assert ids[0] == START
    assert ids[-1] == END
    assert 2 <= len(ids) <= 32


_SHARED = WordPieceTokenizer.read(MODEL_FOLDER / "vocab.txt")


# A tool becomes text in the form of the model's training data


def test_a_tool_with_everything_is_one_line_of_server_name_description_and_inputs() -> None:
    made = tool_text(
        "Space Exploration/Astrobiology", "getPlanetInfo", "Tells about a planet.", ["planet_name", "inDetail"]
    )
    assert (
        made
        == "Space Exploration Astrobiology | get Planet Info: Tells about a planet. (inputs: planet name, in Detail)"
    )


def test_what_is_empty_is_left_out() -> None:
    assert tool_text("", "WebRewind", "Shows an old page.", []) == "Web Rewind: Shows an old page."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_current_weather", "get current weather"),
        ("getHTTPStatus", "get HTTP Status"),
        ("perform-EDA.now", "perform EDA now"),
        ("Buses_3_FindBus", "Buses 3 Find Bus"),
        ("VO2Max", "VO2 Max"),
        ("airquality", "airquality"),
        ("PDF&URLTool", "PDF&URL Tool"),
        ("Search engine optimization (SEO)", "Search engine optimization (SEO)"),
        ("a::b//c__d", "a b c d"),
        ("__", ""),
        ("", ""),
    ],
)
def test_names_fall_into_the_words_they_are_made_of(name: str, words: str) -> None:
    assert space_words(name) == words


# The settings decide which embedder is used


def test_the_builtin_one_an_address_or_none_can_be_chosen() -> None:
    assert isinstance(open_embedder("builtin", None, None), BuiltinEmbedder)
    assert isinstance(open_embedder("http://127.0.0.1:11434", "some-model", SecretStr("key")), RemoteEmbedder)
    assert open_embedder("off", None, None) is None


# Remote embedders: two kinds of API, and any answer


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


# The parts of the training program that need neither torch nor the data


TEXT = tool_text("Law/Family", "getDivorce", "Tells how to part. In steps.", ["where", "at_once"])
TRAINING_TOOLS: list[dict[str, object]] = [
    {"id": "w", "server": "", "name": "get_weather", "description": "Tells the weather.", "parameters": {"city": ""}},
    {"id": "m", "server": "", "name": "send_mail", "description": "Sends a letter.", "parameters": {}},
    *(
        {"id": f"x{number}", "server": "", "name": f"other{number}", "description": "Something.", "parameters": {}}
        for number in range(20)
    ),
]


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def small(tmp_path: Path) -> RetrievalSet:
    questions = [
        {"id": "1", "query": "weather in Rome", "gold": ["w"], "split": "test"},
        {"id": "2", "query": "mail Bob", "gold": ["m", "w"], "split": "test"},
        {"id": "3", "query": "trained on", "gold": ["m"], "split": "train"},
    ]
    write_lines(tmp_path / "small" / "tools.jsonl.gz", TRAINING_TOOLS)
    write_lines(tmp_path / "small" / "queries.jsonl.gz", questions)
    return read_set(tmp_path, "small")


def test_a_tools_text_is_taken_apart_into_what_it_was_made_of() -> None:
    parts = taken_apart(TEXT)
    assert (parts.server, parts.name) == ("Law Family", "get Divorce")
    assert (parts.description, parts.inputs) == ("Tells how to part. In steps.", "where, at once")


def test_pairs_are_made_from_a_tools_own_text() -> None:
    made = own_pairs([Pair("law", "how do I part?", TEXT, "mail: Sends a letter.")])
    assert {(pair.question, pair.right) for pair in made} == {
        ("Tells how to part.", "Law Family | get Divorce (inputs: where, at once)"),
        ("get Divorce", "Tells how to part. In steps."),
        ("mail", "Sends a letter."),
    }
    assert not any(pair.labelled for pair in made)


def test_a_tool_in_part_says_nothing_that_the_whole_does_not() -> None:
    random = Random(1)
    shown = {in_part(TEXT, random) for _ in range(50)}
    assert len(shown) > 4
    assert all(
        set(text.replace(":", "").split()) <= set(TEXT.replace(":", "").split()) | {"(inputs", "where)"}
        for text in shown
    )


def test_a_batch_is_of_one_source_and_the_same_seed_gives_the_same_batches() -> None:
    pairs = [Pair(f"source {number % 3}", str(number), "tool", "near") for number in range(90)]
    once, twice = (list(batches(pairs, 10, Random(7))) for _ in range(2))
    assert once == twice
    assert sum(map(len, once)) == 90
    assert all(len({pair.source for pair in batch}) == 1 for batch in once)


def test_weights_come_back_in_steps_of_half_precision(tmp_path: Path) -> None:
    held = {"one": np.array([[1.0, 0.1]], dtype=np.float32), "two": np.array([3.0], dtype=np.float32)}
    write_weights(tmp_path, held)
    read = read_weights(tmp_path)
    assert read["one"].tolist() == [[1.0, float(np.float16(0.1))]]
    assert mix(average([read, read]), read, 0.5)["two"].tolist() == [3.0]


def test_only_the_test_split_is_judged_and_a_perfect_model_is_perfect(small: RetrievalSet) -> None:
    def perfect(texts: Sequence[str]) -> Vectors:
        wanted = {"get weather": [1, 0], "weather in": [1, 0], "send mail": [0, 1], "mail Bob": [0.6, 0.8]}
        rows = [next((row for start, row in wanted.items() if text.startswith(start)), [-1, -1]) for text in texts]
        return np.array(rows, dtype=np.float32)

    def contrary(texts: Sequence[str]) -> Vectors:
        return perfect(texts) * (1 if len(texts) == len(small.questions) else -1)

    assert len(small.questions) == 2
    found = judge(perfect, [small])
    assert found["small"].meaning == pytest.approx(100)
    assert lost(found, judge(contrary, [small])) > 0


def test_data_that_is_not_there_is_named_with_the_option_that_says_where(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"train_pairs.* is not there; give its folder with --data"):
        read_pairs(tmp_path)
    with pytest.raises(Missing, match="--base"):
        read_weights(tmp_path)
