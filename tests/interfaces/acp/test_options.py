"""Tests what a person sets in a session: models, and the attachments of a prompt."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.interfaces.acp.conftest import Desk, calls, folder, introduced, said_in, set_option, values
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json, Refused, script
from tests.support.desk import frontdesk
from tests.support.models import open_models
from tests.support.models.application import ModelServer
from tests.support.postgres import Ready
from tests.support.serving import serve

# Options of a session and attachments of a prompt, with the model that needs no key


INVALID_PARAMS = -32602
PICTURE, SOUND = b64encode(b"a picture").decode(), b64encode(b"a sound").decode()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Path:
    return ready.in_folder(tmp_path_factory.mktemp("options") / "data")


@pytest.fixture(scope="module")
def grace(data: Path) -> str:
    """An agent that was created elsewhere."""
    made = frontdesk("agents", "create", "Grace", "--block", "human=Likes ships", data=data)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
async def desk(data: Path, grace: str) -> AsyncGenerator[Desk]:
    assert grace
    async with introduced(data) as opened:
        yield opened


@pytest.fixture
def client(desk: Desk) -> Client:
    return desk.client


def where(session: str, cwd: Path) -> Json:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


@shows("ACP-CONFIG-002")
async def test_a_model_that_does_not_think_has_no_effort(client: Client, tmp_path: Path) -> None:
    opened = await client.new_session(folder(tmp_path))
    assert set(values(opened)) == {"mode", "model", "agent", "memory"}
    assert values(opened)["model"] == "offline"
    with pytest.raises(Refused, match="no option 'effort'") as refused:
        await set_option(client, opened["sessionId"], "effort", "high")
    assert refused.value.code == INVALID_PARAMS


@shows("ACP-CONFIG-002")
@pytest.mark.parametrize(("option", "value"), [("model", "none"), ("mode", "all"), ("agent", "nobody"), ("", "")])
async def test_what_is_not_offered_cannot_be_chosen(client: Client, tmp_path: Path, option: str, value: str) -> None:
    opened = await client.new_session(folder(tmp_path))
    since = len(client.frames)
    with pytest.raises(Refused) as refused:
        await set_option(client, opened["sessionId"], option, value)
    assert refused.value.code == INVALID_PARAMS
    await client.heard()
    assert client.updates("config_option_update", since=since) == []


@shows("ACP-CONFIG-002")
async def test_every_change_is_told_with_all_options(client: Client, tmp_path: Path) -> None:
    opened = await client.new_session(folder(tmp_path))
    session, since = opened["sessionId"], len(client.frames)
    await client.request("session/set_mode", {"sessionId": session, "modeId": "auto"})
    await set_option(client, session, "memory", "ask")
    [first, second] = client.updates("config_option_update", session_id=session, since=since)
    assert values(first) == {**values(opened), "mode": "auto"}
    assert values(second) == {**values(opened), "mode": "auto", "memory": "ask"}
    [mode] = client.updates("current_mode_update", session_id=session, since=since)
    assert mode["currentModeId"] == "auto"


@shows("ACP-CONFIG-002")
async def test_what_was_set_is_kept_with_the_session(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await client.open_session(work)
    await set_option(client, session, "mode", "plan")
    await set_option(client, session, "memory", "ask")
    await client.request("session/close", {"sessionId": session})
    again = await client.request("session/load", where(session, work))
    assert (values(again)["mode"], values(again)["memory"]) == ("plan", "ask")
    assert again["modes"]["currentModeId"] == "plan"
    fork = await client.request("session/fork", where(session, work))
    assert (values(fork)["mode"], values(fork)["memory"]) == ("plan", "ask")
    assert values(await client.new_session(work))["mode"] == "ask"


@shows("ACP-CONFIG-002")
async def test_a_session_goes_on_with_another_agent(client: Client, grace: str, tmp_path: Path) -> None:
    work = folder(tmp_path)
    opened = await client.new_session(work)
    session, first = opened["sessionId"], values(opened)["agent"]
    await client.prompt(session, script({"text": "from the first"}))
    told = await set_option(client, session, "agent", grace)
    assert values(told)["agent"] == grace
    since = len(client.frames)
    await client.prompt(session, "/memory human")
    assert "Likes ships" in client.said(since=since)
    await client.prompt(session, script({"text": "from Grace"}))
    since = len(client.frames)
    again = await client.request("session/load", where(session, work))
    assert values(again)["agent"] == grace
    assert list(said_in(client, session, since=since).values())[-1] == "from Grace"
    # A new session in the folder still gets the folder's own agent.
    assert values(await client.new_session(work))["agent"] == first


@shows("ACP-CONFIG-002")
async def test_agents_are_offered_by_their_names(client: Client, grace: str, tmp_path: Path) -> None:
    opened = await client.new_session(folder(tmp_path, "workshop"))
    agents = next(one for one in opened["configOptions"] if one["id"] == "agent")["options"]
    assert {one["name"] for one in agents if one["value"] in (grace, values(opened)["agent"])} == {"Grace", "workshop"}


@shows("ACP-CONFIG-002")
@shows("ACP-PROMPTCAP-003")
async def test_what_came_with_a_prompt_is_there_when_it_is_loaded(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await client.open_session(work)
    blocks: list[Json] = [
        {"type": "text", "text": script({"text": "seen and heard"})},
        {"type": "resource_link", "uri": (work / "linked.txt").as_uri(), "name": "linked.txt"},
        {"type": "resource", "resource": {"uri": (work / "whole.txt").as_uri(), "text": "all of its lines"}},
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        {"type": "audio", "data": SOUND, "mimeType": "audio/wav"},
    ]
    await client.prompt(session, blocks)
    since = len(client.frames)
    await client.request("session/load", where(session, work))
    told = client.updates("user_message_chunk", session_id=session, since=since)
    assert len({chunk["messageId"] for chunk in told}) == 1
    shown = {chunk["content"]["type"]: chunk["content"] for chunk in told}
    assert f"[@linked.txt]({work / 'linked.txt'})" in shown["text"]["text"]
    assert "[@whole.txt]" in shown["text"]["text"]
    # As the editor sent it, an attached file's text is not part of what the person typed.
    assert "all of its lines" not in shown["text"]["text"]
    assert (shown["image"]["data"], shown["image"]["mimeType"]) == (PICTURE, "image/png")
    assert (shown["audio"]["data"], shown["audio"]["mimeType"]) == (SOUND, "audio/wav")


# Sessions with models behind their APIs: what they receive, how they are chosen, and what their failures cause


AUTH_REQUIRED, NOT_FOUND, RATE_LIMITED, TOO_LONG, UNAVAILABLE = -32000, -32002, -32003, -32004, -32005
# A model with a known price and context size.
MODEL = "openai:gpt-5.1"
KEY = "sk-a-secret-of-the-house"
MODEL_PICTURE = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


async def too_long(_request: Request) -> JSONResponse:
    error = {"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens > 200000 maximum"}
    return JSONResponse({"type": "error", "error": error}, 400)


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with open_models(KEY) as server:
        yield server


@pytest.fixture(scope="module")
def crowded() -> Iterator[str]:
    """The address of an API whose models refuse every prompt as too long."""
    with serve(Starlette(routes=[Route("/v1/messages", too_long, methods=["POST"])])) as address:
        yield address


@pytest.fixture(scope="module")
async def model_client(
    tmp_path_factory: pytest.TempPathFactory, ready: Ready, models: ModelServer, crowded: str
) -> AsyncGenerator[Client]:
    data = ready.in_folder(tmp_path_factory.mktemp("models") / "data")
    async with introduced(
        data,
        FRONTDESK_MODEL=MODEL,
        OPENAI_API_KEY=KEY,
        OPENAI_BASE_URL=models.openai_url,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_BASE_URL=crowded,
    ) as desk:
        yield desk.client
        assert KEY not in desk.client.agent.told()
        assert KEY not in str(desk.client.frames)


def choosable(session: Json, option: str) -> list[str]:
    found = next((one for one in session["configOptions"] if one["id"] == option), None)
    return [] if found is None else [one["value"] for one in found["options"]]


def last_heard(models: ModelServer) -> str:
    return str(models.seen[-1].body["messages"])


@shows("ACP-ERROR-001")
@pytest.mark.parametrize(
    ("status", "code"), [(401, AUTH_REQUIRED), (404, NOT_FOUND), (429, RATE_LIMITED), (503, UNAVAILABLE)]
)
async def test_each_trouble_with_a_model_has_a_code_of_its_own(
    model_client: Client, tmp_path: Path, status: int, code: int
) -> None:
    session = await model_client.open_session(folder(tmp_path))
    with pytest.raises(Refused) as refused:
        await model_client.prompt(session, script({"text": "so far", "tool": "list_files"}, {"error": status}))
    assert refused.value.code == code
    assert "\n" not in refused.value.message
    assert "gpt-5.1" in refused.value.message
    assert {call["status"] for call in calls(model_client, session).values()} == {"completed"}
    assert await model_client.prompt(session, script({"text": "again"})) == {"stopReason": "end_turn"}


@shows("ACP-ERROR-001")
async def test_a_conversation_that_no_longer_fits_is_told_as_that(model_client: Client, tmp_path: Path) -> None:
    opened = await model_client.new_session(folder(tmp_path))
    crowded = next(name for name in choosable(opened, "model") if name.startswith("anthropic:"))
    await set_option(model_client, opened["sessionId"], "model", crowded)
    with pytest.raises(Refused, match="no longer fits") as refused:
        await model_client.prompt(opened["sessionId"], "hello")
    assert refused.value.code == TOO_LONG


async def test_another_model_is_chosen_and_how_hard_it_thinks(
    model_client: Client, models: ModelServer, tmp_path: Path
) -> None:
    work = folder(tmp_path)
    opened = await model_client.new_session(work)
    session = opened["sessionId"]
    assert (values(opened)["model"], values(opened)["effort"]) == (MODEL, "default")
    await model_client.prompt(session, script({"text": "as ever"}))
    assert "reasoning_effort" not in models.seen[-1].body
    assert values(await set_option(model_client, session, "effort", "high"))["effort"] == "high"
    await model_client.prompt(session, script({"text": "well thought out"}))
    assert models.seen[-1].body["reasoning_effort"] == "high"
    other = next(name for name in choosable(opened, "model") if name.startswith("anthropic:"))
    assert values(await set_option(model_client, session, "model", other))["model"] == other
    again = await model_client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
    assert (values(again)["model"], values(again)["effort"]) == (other, "high")


async def test_pictures_files_and_links_reach_the_model(
    model_client: Client, models: ModelServer, tmp_path: Path
) -> None:
    work = folder(tmp_path)
    session = await model_client.open_session(work)
    link = {"type": "resource_link", "uri": (work / "linked.txt").as_uri(), "name": "linked.txt"}
    whole = {"type": "resource", "resource": {"uri": (work / "whole.txt").as_uri(), "text": "all of its lines"}}
    picture = {"type": "image", "data": MODEL_PICTURE, "mimeType": "image/png"}
    await model_client.prompt(session, [{"type": "text", "text": script({"text": "seen"})}, link, whole, picture])
    heard = last_heard(models)
    assert f"[@linked.txt]({work / 'linked.txt'})" in heard
    assert "all of its lines" in heard
    assert f"data:image/png;base64,{MODEL_PICTURE}" in heard


async def test_a_model_that_hears_nothing_is_sent_no_sounds(
    model_client: Client, models: ModelServer, tmp_path: Path
) -> None:
    session = await model_client.open_session(folder(tmp_path))
    asked = len(models.seen)
    sound = {"type": "audio", "data": MODEL_PICTURE, "mimeType": "audio/wav"}
    with pytest.raises(Refused, match="takes no audio") as refused:
        await model_client.prompt(session, [{"type": "text", "text": "listen"}, sound])
    assert refused.value.code == INVALID_PARAMS
    assert len(models.seen) == asked


async def test_the_model_knows_where_it_works_and_in_which_mode(
    model_client: Client, models: ModelServer, tmp_path: Path
) -> None:
    work, further = folder(tmp_path), folder(tmp_path, "further")
    session = await model_client.open_session(work, additionalDirectories=[str(further)])
    await model_client.prompt(session, script({"text": "here"}))
    assert f"working in the folder {work}." in last_heard(models)
    assert str(further) in last_heard(models)
    assert "plan mode" not in last_heard(models)
    await model_client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    await model_client.prompt(session, script({"text": "planning"}))
    assert "plan mode" in last_heard(models)


async def test_how_full_the_context_is_and_what_a_session_has_cost_is_told(
    model_client: Client, tmp_path: Path
) -> None:
    work = folder(tmp_path)
    session, since = await model_client.open_session(work), len(model_client.frames)
    await model_client.prompt(session, script({"text": "counted"}))
    await model_client.heard()
    await model_client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
    await model_client.prompt(session, script({"text": "and counted"}))
    first, *_, last = model_client.updates("usage_update", session_id=session, since=since)
    assert 0 < first["used"] < first["size"]
    # The cost before the session was loaded counts.
    assert last["cost"]["amount"] > first["cost"]["amount"] > 0
    assert last["cost"]["currency"] == "USD"


@shows("KEPT-11")
async def test_a_summary_that_failed_is_not_told_as_one(ready: Ready, models: ModelServer, tmp_path: Path) -> None:
    data, work = ready.in_folder(tmp_path / "data"), folder(tmp_path)
    reach: dict[str, Any] = {"FRONTDESK_MODEL": MODEL, "OPENAI_API_KEY": KEY}
    async with introduced(data, **reach, OPENAI_BASE_URL=models.openai_url) as desk:
        session = await desk.client.open_session(work)
        for number in range(3):
            await desk.client.prompt(session, f"Fact {number}. {script({'text': 'noted'})}")
    async with introduced(data, **reach, OPENAI_BASE_URL="http://127.0.0.1:9/v1") as desk:
        await desk.client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        since = len(desk.client.frames)
        await desk.client.prompt(session, "/compact")
        assert desk.client.said(since=since).startswith("Nothing was summed up, and nothing has changed. ")


@shows("KEPT-11")
@pytest.mark.parametrize("known", [False, True])
async def test_a_model_of_unknown_abilities_is_not_offered_images(
    ready: Ready, models: ModelServer, tmp_path: Path, known: bool
) -> None:
    data, name = ready.in_folder(tmp_path / "data"), "openai:my-model"
    reach: dict[str, Any] = {"FRONTDESK_MODEL": name, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": models.openai_url}
    reach |= {"FRONTDESK_IMAGE_MODELS": f"openai:other, {name}"} if known else {}
    async with introduced(data, **reach) as desk:
        [greeting] = [frame for frame in desk.client.received() if "agentCapabilities" in frame.json.get("result", {})]
        assert greeting.json["result"]["agentCapabilities"]["promptCapabilities"]["image"] is known
        session = await desk.client.open_session(folder(tmp_path))
        picture = {"type": "image", "data": MODEL_PICTURE, "mimeType": "image/png"}
        prompt = [{"type": "text", "text": script({"text": "seen"})}, picture]
        if known:
            assert await desk.client.prompt(session, prompt) == {"stopReason": "end_turn"}
            assert MODEL_PICTURE in last_heard(models)
        else:
            with pytest.raises(Refused, match="name it in FRONTDESK_IMAGE_MODELS"):
                await desk.client.prompt(session, prompt)


@shows("KEPT-11")
async def test_an_editor_is_not_told_that_a_broken_answer_ended(model_client: Client, tmp_path: Path) -> None:
    session = await model_client.open_session(folder(tmp_path))
    with pytest.raises(Refused, match="broke its answer off") as refused:
        await model_client.prompt(session, script({"text": "so far", "cut": True}))
    assert refused.value.code == UNAVAILABLE
    assert await model_client.prompt(session, script({"text": "again"})) == {"stopReason": "end_turn"}
