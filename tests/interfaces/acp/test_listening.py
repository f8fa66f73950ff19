"""Tests remote editors on a real WebSocket: who may connect, what each sees, and their access to this machine."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from frontdesk.app import open_app
from frontdesk.identity import keys as keys_of_own
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import AgentIdSource, ClaimedIds
from frontdesk.identity.rights import SCOPES
from frontdesk.interfaces.acp.websocket import ACP_PATH
from frontdesk.journal.model import JournalEntry
from tests.conftest import settings_with
from tests.interfaces.acp.conftest import QUICKLY, calling, folder
from tests.requirements import shows
from tests.support.acp import schema
from tests.support.acp.process import FRONTDESK, Agent, left_behind, started
from tests.support.acp.schema import Json, Refused, prompt, script
from tests.support.desk import START_SECONDS, frontdesk, frontdesk_here
from tests.support.postgres import Ready
from tests.support.waiting import POLL_SECONDS, until

pytestmark = shows("ACP-LISTEN")
AUTH_REQUIRED, NOT_FOUND, INVALID_PARAMS = -32000, -32002, -32602
OPEN = re.compile(r"is open to editors: (ws://\S+)")
ALLOWED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


@dataclass(frozen=True, slots=True)
class Installation:
    """A data folder, the address of the process that serves it, and the keys of two people and an agent."""

    address: str
    data: Path
    root: Path
    ann: str
    ben: str
    clerk: str


@dataclass(slots=True)
class Editor:
    """One socket; its person allows everything."""

    socket: ClientConnection
    updates: list[Json] = field(default_factory=list[Json])
    asked: list[str] = field(default_factory=list[str])
    _next: int = 0

    async def ask(self, method: str, params: Json) -> Json:
        await self.begin(method, params)
        async with asyncio.timeout(START_SECONDS):
            while True:
                frame = json.loads(await self.socket.recv())
                if "method" in frame:
                    await self._take(frame)
                else:
                    assert frame["id"] == self._next
                    return _result(method, frame)

    async def open_session(self, cwd: Path) -> str:
        return (await self.ask("session/new", {"cwd": str(cwd), "mcpServers": []}))["sessionId"]

    async def prompt(self, session: str, text: str) -> Json:
        return await self.ask("session/prompt", prompt(session, text))

    async def begin(self, method: str, params: Json) -> int:
        """Send a request without waiting for the answer; gives its number."""
        self._next += 1
        await self._say({"id": self._next, "method": method, "params": params})
        return self._next

    async def frame(self, wanted: Callable[[Json], bool]) -> Json:
        """The next frame of a kind, unchanged; this side does not answer it."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                frame = json.loads(await self.socket.recv())
                if wanted(frame):
                    return frame

    def told(self) -> str:
        return json.dumps(self.updates)

    async def _take(self, frame: Json) -> None:
        schema.check_sent(frame)
        if "id" in frame:
            self.asked.append(frame["method"])
            assert frame["method"] == "session/request_permission"
            await self._say({"id": frame["id"], "result": ALLOWED})
        else:
            self.updates.append(frame["params"]["update"])

    async def _say(self, message: Json) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))


def _result(method: str, frame: Json) -> Json:
    schema.check_answer(method, frame)
    if "error" in frame:
        raise Refused(frame["error"]["code"], frame["error"]["message"])
    return frame["result"]


@asynccontextmanager
async def serving(data: Path, *more: str) -> AsyncGenerator[tuple[Agent, str]]:
    command = (*FRONTDESK, "--listen", "127.0.0.1:0", *more)
    async with started(data, command, **QUICKLY) as agent:
        await until(lambda: OPEN.search(agent.told()) is not None, START_SECONDS)
        found = OPEN.search(agent.told())
        assert found is not None
        yield agent, found[1]
        known = agent.descendants()
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.ended() == 0, agent.told()
        assert await asyncio.to_thread(left_behind, agent.mark, known) == []


async def keys(data: Path) -> dict[str, str]:
    people = {name: (await made(data, user=name))[1] for name in ("ann", "ben")}
    return {**people, "clerk": (await made(data, agent="Clerk"))[1]}


async def made(
    data: Path, *, user: str | None = None, agent: str | None = None, scopes: frozenset[str] | None = None
) -> tuple[str, str]:
    """The id of a new key, and the key."""
    async with open_app(settings_with(FRONTDESK_DATA=data)) as app:
        key, text = await app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=scopes)
        return key.id, text


async def revoke(data: Path, key_id: str) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=data)) as app:
        await app.identity.revoke_key(key_id)


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Installation]:
    """Editors have access to no folder of this machine."""
    place = tmp_path_factory.mktemp("listening")
    data = ready.in_folder(place / "data")
    known = await keys(data)
    async with serving(data) as (agent, address):
        yield Installation(address, data, place, **known)
        for key in known.values():
            assert key not in agent.told()


@pytest.fixture(scope="module")
async def workshop(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Installation]:
    """Editors have access to one folder of this machine."""
    place = tmp_path_factory.mktemp("workshop")
    data, root = ready.in_folder(place / "data"), folder(place, "root")
    known = await keys(data)
    async with serving(data, "--root", str(root)) as (_, address):
        yield Installation(address, data, root, **known)


@asynccontextmanager
async def editor(installation: Installation, key: str | None, **headers: str) -> AsyncGenerator[Editor]:
    given: dict[str, str] = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with connect(
        installation.address, additional_headers={**given, **headers}, proxy=None, max_size=None
    ) as socket:
        yield Editor(socket)


@asynccontextmanager
async def introduced(installation: Installation, key: str, **can: Any) -> AsyncGenerator[Editor]:
    async with editor(installation, key) as opened:
        await opened.ask("initialize", {"protocolVersion": 1, "clientCapabilities": can})
        yield opened


@pytest.mark.parametrize("key", [None, "", "wrong", "fd_1234567890abcdef_wrong"])
async def test_nobody_without_a_key_is_let_in(installation: Installation, key: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with editor(installation, key):
            raise AssertionError("let in")
    response = refused.value.response
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_key_that_speaks_for_no_person_is_refused(installation: Installation) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with editor(installation, installation.clerk):
            raise AssertionError("let in")
    assert refused.value.response.status_code == 403
    assert b"--user" in refused.value.response.body


@pytest.mark.parametrize(
    ("header", "status"), [({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 421)]
)
async def test_a_page_of_another_origin_is_refused(
    installation: Installation, header: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with editor(installation, installation.ann, **header):
            raise AssertionError("let in")
    assert refused.value.response.status_code == status


async def test_there_is_nothing_else_at_the_address(installation: Installation) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(installation.address.replace(ACP_PATH, "/other"), proxy=None):
            raise AssertionError("let in")
    assert refused.value.response.status_code in (403, 404)


async def test_a_person_talks_with_the_agent_of_their_folder(installation: Installation) -> None:
    far = Path("/far/away/project")
    async with introduced(installation, installation.ann) as ann:
        session = await ann.open_session(far)
        assert await ann.prompt(session, script({"text": "from afar"})) == {"stopReason": "end_turn"}
        assert "from" in ann.told()
    async with introduced(installation, installation.ann) as again:
        await again.ask("session/load", {"sessionId": session, "cwd": str(far), "mcpServers": []})
        assert "from afar" in again.told()


async def test_what_is_another_persons_is_not_found(installation: Installation) -> None:
    far = Path("/far/away/secret")
    async with introduced(installation, installation.ann) as ann, introduced(installation, installation.ben) as ben:
        session = await ann.open_session(far)
        await ann.prompt(session, script({"text": "for Ann alone"}))
        where: Json = {"sessionId": session, "cwd": str(far), "mcpServers": []}
        for method in ("session/load", "session/resume", "session/fork", "session/close"):
            with pytest.raises(Refused) as refused:
                await ben.ask(method, where)
            assert refused.value.code == NOT_FOUND
        with pytest.raises(Refused) as refused:
            await ben.prompt(session, "hello")
        assert refused.value.code == NOT_FOUND
        # It does no harm, either.
        await ben.ask("session/delete", {"sessionId": session})
        assert (await ben.ask("session/list", {}))["sessions"] == []
        assert session in [one["sessionId"] for one in (await ann.ask("session/list", {}))["sessions"]]
        assert "for Ann alone" not in ben.told()


async def test_a_key_that_may_only_read_changes_nothing_and_says_nothing(installation: Installation) -> None:
    far = Path("/far/away/read")
    where: Json = {"cwd": str(far), "mcpServers": []}
    _, reader = await made(installation.data, user="ann", scopes=frozenset({"agents:read"}))
    async with introduced(installation, installation.ann) as ann:
        session = await ann.open_session(far)
    async with introduced(installation, reader) as looking:
        await looking.ask("session/resume", {"sessionId": session, **where})
        mine: Json = {"sessionId": session}
        for method, more in (
            ("session/new", where),
            ("session/fork", {**mine, **where}),
            ("session/prompt", {**mine, "prompt": [{"type": "text", "text": "hello"}]}),
            ("session/set_mode", {**mine, "modeId": "auto"}),
            ("session/set_title", {**mine, "title": "Mine"}),
            ("session/delete", mine),
        ):
            with pytest.raises(Refused, match="agents:chat"):
                await looking.ask(method, more)
        assert session in [one["sessionId"] for one in (await looking.ask("session/list", {}))["sessions"]]


async def test_a_key_that_was_revoked_is_refused_though_its_socket_is_open(installation: Installation) -> None:
    key_id, text = await made(installation.data, user="carl")
    async with introduced(installation, text) as carl:
        session = await carl.open_session(Path("/far/away"))
        await revoke(installation.data, key_id)
        assert await refusal(carl) == AUTH_REQUIRED
        with pytest.raises(Refused) as refused:
            await carl.prompt(session, "hello")
        assert refused.value.code == AUTH_REQUIRED
    with pytest.raises(InvalidStatus):
        async with editor(installation, text):
            raise AssertionError("let in")


@shows("KEPT-03")
async def test_what_a_revoked_key_left_waiting_is_given_up_when_its_person_goes_on(installation: Installation) -> None:
    key_id, text = await made(installation.data, user="dora")
    far = Path("/far/away/left")
    noting = script({"tool": "memory_insert", "args": {"label": "human", "new_string": "likes tea"}}, {"text": "."})
    async with introduced(installation, text) as before:
        session = await before.open_session(far)
        await before.ask("session/set_config_option", {"sessionId": session, "configId": "memory", "value": "ask"})
        await before.begin("session/prompt", prompt(session, noting))
        await before.frame(lambda frame: frame.get("method") == "session/request_permission")
    await revoke(installation.data, key_id)
    async with introduced(installation, (await made(installation.data, user="dora"))[1]) as after:
        await after.ask("session/load", {"sessionId": session, "cwd": str(far), "mcpServers": []})
        assert await after.prompt(session, script({"text": "here again"})) == {"stopReason": "end_turn"}
        assert "here again" in after.told()
        await after.prompt(session, "/memory human")
        assert "likes tea" not in after.told().partition("here again")[2]


@shows("KEPT-03")
async def test_who_may_do_less_by_now_says_nothing_into_a_turn_that_may_do_more(workshop: Installation) -> None:
    key, text = keys_of_own.with_new_secret(
        ApiKey("", b"", "own", None, "ann", frozenset(SCOPES), datetime.now(UTC), own=True)
    )
    work = folder(workshop.root, "steered")
    slowly = calling("run_command", command="until [ -e go ]; do sleep 0.02; done")
    said: Json = {"prompt": [{"type": "text", "text": "and this"}]}
    async with open_app(settings_with(FRONTDESK_DATA=workshop.data)) as app:
        await app.keys.add(key)
        async with introduced(workshop, text) as ann:
            session = await ann.open_session(work)
            await ann.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
            number = await ann.begin("session/prompt", prompt(session, slowly))
            await ann.frame(lambda frame: "tool_call" in str(frame.get("params")))
            steered = await ann.ask("_session/steering", {"sessionId": session, **said})
            assert steered == {"outcome": "injected"}
            await app.keys.change(key.id, "ann", {"scopes": frozenset({"agents:chat"})})
            async with asyncio.timeout(START_SECONDS):
                while steered["outcome"] != "promptRequired":
                    steered = await ann.ask("_session/steering", {"sessionId": session, **said})
                    await asyncio.sleep(POLL_SECONDS)
            work.joinpath("go").touch()
            assert (await ann.frame(lambda frame: frame.get("id") == number))["result"] == {"stopReason": "end_turn"}


@shows("KEPT-06")
async def test_what_an_editor_may_not_do_is_in_the_journal_with_its_key(installation: Installation) -> None:
    key_id, reader = await made(installation.data, user="eve", scopes=frozenset({"agents:read"}))
    async with introduced(installation, reader) as looking:
        with pytest.raises(Refused, match="agents:chat"):
            await looking.ask("session/new", {"cwd": "/far/away", "mcpServers": []})
    [row] = await denials_of(installation.data, "eve")
    assert (row.action, row.reason, row.source) == ("session/new", "MissingScope", AgentIdSource.CREDENTIAL)
    assert row.claimed == ClaimedIds(credential=f"key:{key_id}")


async def denials_of(data: Path, user: str) -> list[JournalEntry]:
    """The journal's rows of calls that a person was refused, once it has some."""
    async with open_app(settings_with(FRONTDESK_DATA=data)) as app, asyncio.timeout(START_SECONDS):
        while True:
            found = [row for _, row in await app.journal.denials(None, 100) if row.user_id == user]
            if found:
                return found
            await asyncio.sleep(POLL_SECONDS)


async def refusal(asking: Editor) -> int:
    """The close code for an editor, once its key is checked again: that happens every other second."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                await asking.ask("session/list", {})
            except Refused as refused:
                return refused.code
            await asyncio.sleep(POLL_SECONDS)


def names_in(place: Path) -> list[str]:
    return [one.name for one in place.iterdir()]


async def test_without_a_root_nothing_of_this_machine_is_touched(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("of this machine")
    actions = {
        "read_file": {"path": "here.txt"},
        "list_files": {},
        "search_files": {"query": "machine"},
        "write_file": {"path": "made.txt", "content": "x"},
        "delete_file": {"path": "here.txt"},
        "run_command": {"command": "touch made.txt"},
    }
    async with introduced(installation, installation.ann) as ann:
        session = await ann.open_session(tmp_path)
        await ann.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
        for tool, args in actions.items():
            ann.updates.clear()
            assert await ann.prompt(session, calling(tool, **args)) == {"stopReason": "end_turn"}
            ended = [one["status"] for one in ann.updates if "status" in one]
            assert (tool, ended[-1]) == (tool, "failed")
            assert "of this machine" not in ann.told()
    assert names_in(tmp_path) == ["here.txt"]


async def test_without_a_root_no_server_is_started_on_this_machine(installation: Installation, tmp_path: Path) -> None:
    server = {"name": "mine", "command": "/bin/sh", "args": ["-c", f"touch {tmp_path / 'made'}"], "env": []}
    async with introduced(installation, installation.ann) as ann:
        told = await ann.ask("session/new", {"cwd": str(tmp_path), "mcpServers": [server]})
        await ann.prompt(told["sessionId"], script({"text": "hello"}))
    assert not (tmp_path / "made").exists()


async def test_with_a_root_editors_work_in_it(workshop: Installation) -> None:
    work = folder(workshop.root, "project")
    async with introduced(workshop, workshop.ann) as ann:
        session = await ann.open_session(work)
        await ann.prompt(session, calling("write_file", path="note.txt", content="written here"))
        await ann.prompt(session, calling("run_command", command="cat note.txt"))
        assert (work / "note.txt").read_text() == "written here"
        assert ann.asked == ["session/request_permission"] * 2


async def test_a_folder_outside_of_the_root_is_refused(workshop: Installation, tmp_path: Path) -> None:
    (workshop.root / "way-out").symlink_to(tmp_path)
    async with introduced(workshop, workshop.ann) as ann:
        session = await ann.open_session(workshop.root)
        for cwd in (tmp_path, workshop.root / "..", workshop.root / "way-out", Path("/")):
            for method, more in (("session/new", {}), ("session/load", {"sessionId": session})):
                with pytest.raises(Refused, match="outside") as refused:
                    await ann.ask(method, {"cwd": str(cwd), "mcpServers": [], **more})
                assert refused.value.code == INVALID_PARAMS
        asked: Json = {"cwd": str(workshop.root), "mcpServers": [], "additionalDirectories": [str(tmp_path)]}
        with pytest.raises(Refused, match="outside"):
            await ann.ask("session/new", asked)


async def test_an_editor_that_hangs_up_takes_its_commands_with_it(workshop: Installation) -> None:
    work = folder(workshop.root, "left")
    async with introduced(workshop, workshop.ann) as ann:
        session = await ann.open_session(work)
        await ann.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
        running = calling("run_command", command="echo $$ > begun; exec sleep 600")
        asked = {"jsonrpc": "2.0", "id": "last", "method": "session/prompt", "params": prompt(session, running)}
        await ann.socket.send(json.dumps(asked))
        await until(lambda: (work / "begun").exists() and bool((work / "begun").read_text().strip()))
        number = int((work / "begun").read_text())
        assert psutil.pid_exists(number)
    await until(lambda: not psutil.pid_exists(number))
    async with introduced(workshop, workshop.ann) as again:
        assert (await again.ask("session/list", {"cwd": str(work)}))["sessions"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "here"), "--listen takes HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "--listen takes HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--root", "/does/not/exist"), "--root needs an existing folder"),
        (("--root", "/tmp"), "--root needs --listen"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(
    tmp_path: Path, ready: Ready, arguments: tuple[str, ...], words: str
) -> None:
    done = frontdesk_here("acp", *arguments, data=ready.in_folder(tmp_path / "data"))
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_beyond_this_machine_nobody_is_served_without_a_key(tmp_path: Path, ready: Ready) -> None:
    done = frontdesk("acp", "--listen", "0.0.0.0:0", data=ready.in_folder(tmp_path / "data"))
    assert done.returncode == 2
    assert "nobody could authenticate" in done.stderr
    assert "open to editors" not in done.stderr
