"""What a person sets in a session, and what comes with a prompt, with the model that is there without a key."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused, script
from tests.support.desk import frontdesk
from tests.support.ready import Ready
from tests.surfaces.acp.showing import Desk, folder, introduced, said_in, set_option, values

pytestmark = shows("ACP-CONFIG-002")
INVALID_PARAMS = -32602
PICTURE, SOUND = b64encode(b"a picture").decode(), b64encode(b"a sound").decode()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Path:
    return ready.in_folder(tmp_path_factory.mktemp("options") / "data")


@pytest.fixture(scope="module")
def grace(data: Path) -> str:
    """An agent that was made elsewhere."""
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


async def test_a_model_that_does_not_think_has_no_effort(client: Client, tmp_path: Path) -> None:
    opened = await client.new_session(folder(tmp_path))
    assert set(values(opened)) == {"mode", "model", "agent", "memory"}
    assert values(opened)["model"] == "offline"
    with pytest.raises(Refused, match="no option 'effort'") as refused:
        await set_option(client, opened["sessionId"], "effort", "high")
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize(("option", "value"), [("model", "none"), ("mode", "all"), ("agent", "nobody"), ("", "")])
async def test_what_is_not_offered_cannot_be_chosen(client: Client, tmp_path: Path, option: str, value: str) -> None:
    opened = await client.new_session(folder(tmp_path))
    since = len(client.frames)
    with pytest.raises(Refused) as refused:
        await set_option(client, opened["sessionId"], option, value)
    assert refused.value.code == INVALID_PARAMS
    await client.heard()
    assert client.updates("config_option_update", since=since) == []


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
    # The folder's own agent is at home there as before.
    assert values(await client.new_session(work))["agent"] == first


async def test_agents_are_offered_by_their_names(client: Client, grace: str, tmp_path: Path) -> None:
    opened = await client.new_session(folder(tmp_path, "workshop"))
    agents = next(one for one in opened["configOptions"] if one["id"] == "agent")["options"]
    assert {one["name"] for one in agents if one["value"] in (grace, values(opened)["agent"])} == {"Grace", "workshop"}


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
    # As the editor sent it, what is in a file that came along is no part of what the person typed.
    assert "all of its lines" not in shown["text"]["text"]
    assert (shown["image"]["data"], shown["image"]["mimeType"]) == (PICTURE, "image/png")
    assert (shown["audio"]["data"], shown["audio"]["mimeType"]) == (SOUND, "audio/wav")
