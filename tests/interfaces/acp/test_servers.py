"""Tests an editor's MCP servers: real programs and real addresses, some of which hang, die or do not exist."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil
import pytest
import structlog
from acp.schema import AcpMcpServer, EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import OperationKind, PermissionDecision, PermissionRequest
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed
from frontdesk.interfaces.acp.mcp_servers import EditorServers, hide_secrets
from frontdesk.llm.tools import Tool, ToolOutcome, run_tool
from frontdesk.mcp_client.model import McpServer
from tests.requirements import shows
from tests.support.tool_servers import open_tool_server, tool
from tests.support.upstreams import open_upstream
from tests.support.waiting import until

pytestmark = shows("ACP-SERVERS")
PROGRAM = str(Path(__file__).parents[2] / "support" / "stdio_server.py")
SECONDS = 20
SOON = 0.5
SECRET = "secret-value"
DIES = "import sys; sys.stderr.write('no secret-value\\n'); sys.exit(3)"
# Answers the handshake, and then nothing more.
SHY = """
import json, sys
asked = json.loads(sys.stdin.readline())
about = {"capabilities": {}, "serverInfo": {"name": "shy", "version": "1"}}
result = {"protocolVersion": asked["params"]["protocolVersion"], **about}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
for line in sys.stdin:
    pass
"""


@dataclass(slots=True)
class Editor:
    """The messages and questions to an editor's person, and the person's answers."""

    before: set[int] = field(default_factory=lambda: {child.pid for child in psutil.Process().children()})
    told: list[str] = field(default_factory=list[str])
    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])
    refusal: str | None = None
    servers: EditorServers = field(init=False)

    async def complain(self, text: str) -> None:
        self.told.append(text)

    async def leave(self, permission_request: PermissionRequest) -> PermissionDecision:
        self.asked.append(permission_request)
        return PermissionDecision(self.refusal is None, self.refusal or "")

    def tool(self, name: str) -> Tool:
        return next(one for one in self.servers.tools(self.leave) if one.name == name)

    async def call(self, name: str, **arguments: object) -> ToolOutcome:
        return await run_tool(self.tool(name), arguments, "call-1")

    def children(self) -> list[psutil.Process]:
        """The programs that were started for it, also those that have ended unnoticed."""
        return [child for child in psutil.Process().children() if child.pid not in self.before]


@asynccontextmanager
async def an_editor(cwd: Path, *, local: bool = True, seconds: float = SECONDS) -> AsyncGenerator[Editor]:
    """An editor whose servers have all ended afterwards."""
    editor = Editor()
    editor.servers = EditorServers(cwd, PathGuard(WorkspaceRoots.from_folders(cwd), local=local), seconds=seconds)
    try:
        yield editor
    finally:
        with anyio.fail_after(SECONDS):
            await editor.servers.aclose()
        assert editor.children() == []
        assert list(editor.servers.tools(editor.leave)) == []


def stdio(name: str = "child", *manners: str, **env: str) -> McpServerStdio:
    given = [EnvVariable(name=key, value=value) for key, value in env.items()]
    return McpServerStdio(name=name, command=sys.executable, args=["-S", "-E", PROGRAM, *manners], env=given)


def program(name: str, text: str, **env: str) -> McpServerStdio:
    given = [EnvVariable(name=key, value=value) for key, value in env.items()]
    return McpServerStdio(name=name, command=sys.executable, args=["-S", "-E", "-c", text], env=given)


def names(tools: Sequence[Tool]) -> list[str]:
    return [one.name for one in tools]


async def test_a_program_of_the_editors_is_started_in_the_folder_with_what_the_editor_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_SECRET", SECRET)
    garden = tmp_path / "garden"
    garden.mkdir()
    async with an_editor(garden) as editor:
        await editor.servers.run([stdio("child", KEY="given")], editor.complain)
        (child,) = editor.children()
        assert Path(child.cwd()) == garden
        about = json.loads((await editor.call("child__about")).text)
        assert about["pid"] == child.pid
        assert about["env"].items() >= {"KEY": "given", "PATH": os.environ["PATH"]}.items()
        assert SECRET not in str(about["env"])
        assert await editor.call("child__echo", a=[1]) == ToolOutcome('{"a": [1]}')
        assert editor.told == []


async def test_servers_with_an_address_get_their_headers_whichever_way_they_speak(tmp_path: Path) -> None:
    with open_upstream() as upstream:
        headers = [HttpHeader(name="X-Key", value=SECRET)]
        wanted = [
            HttpMcpServer(name="plain", url=f"{upstream.url}/mcp", headers=headers),
            SseMcpServer(name="stream", url=f"{upstream.url}/sse", headers=headers),
        ]
        async with an_editor(tmp_path) as editor:
            await editor.servers.run(wanted, editor.complain)
            assert editor.told == []
            for name in ("plain", "stream"):
                said = json.loads((await editor.call(f"{name}__headers")).text)
                assert said["x-key"] == SECRET
            assert (await editor.call("plain__fails")).ok is False


async def test_each_call_waits_for_leave_and_says_what_it_would_do(tmp_path: Path) -> None:
    looks = {**tool("look"), "annotations": {"readOnlyHint": True}}
    with open_tool_server(
        "shed", [looks, tool("burn"), {**tool("lie"), "annotations": {"readOnlyHint": "yes"}}]
    ) as shed:
        async with an_editor(tmp_path) as editor:
            await editor.servers.run([HttpMcpServer(name="shed", url=shed.url, headers=[])], editor.complain)
            assert not any(one.needs_approval for one in editor.servers.tools(editor.leave))
            assert await editor.call("shed__look", text="x") == ToolOutcome("shed: look")
            editor.refusal = "not in plan mode"
            assert await editor.call("shed__burn", text="x") == ToolOutcome("not in plan mode", ok=False)
            await editor.call("shed__lie", text="x")
        assert shed.called == ["look"], "what was refused did not reach the server"
    look, burn, lie = editor.asked
    assert (look.call_id, look.tool, look.kind, look.harmless) == ("call-1", "shed__look", OperationKind.OTHER, True)
    assert (burn.scope, burn.scope_text, burn.harmless) == ("mcp shed__burn", "'burn' of the MCP server 'shed'", False)
    assert not lie.harmless


@shows("KEPT-04")
async def test_a_call_that_gives_the_path_of_a_protected_file_is_asked_about_each_time(tmp_path: Path) -> None:
    looks = {**tool("look"), "annotations": {"readOnlyHint": True}}
    with open_tool_server("shed", [looks, tool("burn")]) as shed:
        async with an_editor(tmp_path) as editor:
            await editor.servers.run([HttpMcpServer(name="shed", url=shed.url, headers=[])], editor.complain)
            for text in (".envrc", str(tmp_path / ".git" / "config"), f"file://{tmp_path}/.vscode/tasks.json"):
                await editor.call("shed__burn", text=text)
            await editor.call("shed__burn", text="src/app.py")
            await editor.call("shed__burn", text="say what .envrc is for")
            await editor.call("shed__look", text=".envrc")
    assert [one.only_once for one in editor.asked] == [True] * 3 + [False] * 3
    assert all("asked each time" in one.reason for one in editor.asked[:3])


async def test_servers_that_hang_die_or_are_not_there_keep_no_other_from_its_work(tmp_path: Path) -> None:
    with open_tool_server("slow", [tool("never")]) as slow:
        slow.hangs = True
        hanging = [stdio("mute", "mute"), HttpMcpServer(name="slow", url=slow.url, headers=[])]
        failing = [
            program("dying", DIES, KEY=SECRET),
            McpServerStdio(name="bad", command="/nowhere/at-all", args=[f"--key={SECRET}"], env=[]),
            HttpMcpServer(name="away", url=f"http://127.0.0.1:1/{SECRET}?key={SECRET}", headers=[]),
            HttpMcpServer(name="odd", url=f"http://user:{SECRET}@127.0.0.1:1/", headers=[]),
            AcpMcpServer(name="within", server_id="1"),
        ]
        async with an_editor(tmp_path) as editor, anyio.create_task_group() as tasks:
            tasks.start_soon(editor.servers.run, [*hanging, *failing, stdio("well")], editor.complain)
            await until(lambda: bool(editor.servers.tools(editor.leave)) and len(editor.told) == len(failing))
            assert await editor.call("well__echo") == ToolOutcome("{}")
            await editor.servers.aclose()
    told = {said.split("'")[1]: said for said in editor.told}
    assert told.keys() == {"dying", "bad", "away", "odd", "within"}
    assert "exit status 3" in told["dying"]
    assert "cannot be started" in told["bad"]
    assert "does not answer" in told["away"]
    assert SECRET not in str(told)


async def test_a_server_that_hangs_is_left_out_in_the_end(tmp_path: Path) -> None:
    with open_tool_server("slow", [tool("never")]) as slow:
        slow.hangs = True
        async with an_editor(tmp_path, seconds=SOON) as editor:
            await editor.servers.run([HttpMcpServer(name="slow", url=slow.url, headers=[])], editor.complain)
            assert slow.asked.is_set()
            assert list(editor.servers.tools(editor.leave)) == []
    assert editor.told == ["The MCP server 'slow' did not answer in 0.5 s; it is left out"]


async def test_a_server_that_is_left_out_is_no_longer_run(tmp_path: Path) -> None:
    async with an_editor(tmp_path, seconds=SOON) as editor:
        await editor.servers.run([stdio("mute", "mute", "stubborn"), program("shy", SHY)], editor.complain)
        assert len(editor.told) == 2
        await until(lambda: not editor.children())


async def test_a_failure_is_in_the_log_without_its_secrets(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        async with an_editor(tmp_path) as editor:
            await editor.servers.run([program("dying", DIES, KEY=SECRET)], editor.complain)
    failed = [entry for entry in logs if entry["event"] == "editor_server_failed"]
    assert failed == [
        {"event": "editor_server_failed", "log_level": "info", "server": "dying", "error": "McpServerUnavailable"}
    ]
    assert SECRET not in str([entry for entry in logs if entry["log_level"] != "debug"])


async def test_a_server_that_dies_in_a_call_fails_that_call_and_is_there_for_the_next(tmp_path: Path) -> None:
    async with an_editor(tmp_path) as editor:
        await editor.servers.run([stdio("child", KEY=SECRET)], editor.complain)
        died = await editor.call("child__die")
        assert not died.ok
        assert died.text == "Error calling die: The MCP server 'child' ended (exit status 3)"
        assert await editor.call("child__echo") == ToolOutcome("{}")


async def test_no_program_is_started_for_an_editor_on_another_machine(tmp_path: Path) -> None:
    with open_tool_server("shed", [tool("look")]) as shed:
        wanted = [stdio("child"), HttpMcpServer(name="shed", url=shed.url, headers=[])]
        async with an_editor(tmp_path, local=False) as editor:
            await editor.servers.run(wanted, editor.complain)
            assert names(editor.servers.tools(editor.leave)) == ["shed__look"]
            assert "another machine" in editor.told[0]


async def test_tools_come_in_the_editors_order_and_no_two_have_one_name(tmp_path: Path) -> None:
    with open_tool_server("a", [tool("look")]) as first, open_tool_server("b", [tool("look"), tool("act")]) as second:
        named = (("my shed!", first), ("twin", first), ("twin", second))
        wanted = [HttpMcpServer(name=name, url=one.url, headers=[]) for name, one in named]
        async with an_editor(tmp_path) as editor:
            await editor.servers.run(wanted, editor.complain)
            found = names(editor.servers.tools(editor.leave))
            assert len(set(found)) == 4
            assert found[0].startswith("my_shed___look_")
            assert [name.split("_")[0] for name in found] == ["my", "twin", "twin", "twin"]
            said = [(await editor.call(name, text="x")).text for name in found]
            assert said == ["a: look", "a: look", "b: look", "b: act"]
            assert len({permission_request.scope for permission_request in editor.asked}) == 3, (
                "a lasting word hangs on no order"
            )


async def test_children_are_gone_though_closing_comes_while_they_are_met_and_is_itself_cut_off(tmp_path: Path) -> None:
    async with an_editor(tmp_path) as editor:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(editor.servers.run, [stdio("mute", "mute"), stdio("well", "stubborn")], editor.complain)
            await until(lambda: len(editor.children()) == 2 and bool(editor.servers.tools(editor.leave)))
            with anyio.CancelScope() as scope:
                scope.cancel()
                await editor.servers.aclose()
            assert editor.children() == []
        assert editor.told == []


async def test_servers_that_were_closed_before_they_were_met_are_never_started(tmp_path: Path) -> None:
    async with an_editor(tmp_path) as editor:
        await editor.servers.aclose()
        await editor.servers.run([stdio()], editor.complain)
        await editor.servers.wait_until_listed(SECONDS)
        assert list(editor.servers.tools(editor.leave)) == []


async def test_an_editor_that_has_left_need_not_hear_what_went_wrong(tmp_path: Path) -> None:
    async def gone(_text: str) -> None:
        raise ConnectionClosed

    async with an_editor(tmp_path) as editor:
        await editor.servers.run([AcpMcpServer(name="within", server_id="1")], gone)
        await editor.servers.wait_until_listed(SECONDS)
        assert list(editor.servers.tools(editor.leave)) == []


async def test_what_is_known_is_known_though_the_editor_is_slow_to_hear_of_a_failure(tmp_path: Path) -> None:
    async with an_editor(tmp_path) as editor, anyio.create_task_group() as tasks:

        async def never(_text: str) -> None:
            await anyio.sleep_forever()

        tasks.start_soon(editor.servers.run, [AcpMcpServer(name="within", server_id="1")], never)
        with anyio.fail_after(SECONDS):
            await editor.servers.wait_until_listed(2 * SECONDS)
        assert list(editor.servers.tools(editor.leave)) == []
        tasks.cancel_scope.cancel()


SECRETS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=40)


@given(SECRETS, st.sampled_from(["env", "header", "bearer", "path", "query", "argument", "option"]))
def test_whatever_a_server_says_of_its_secrets_is_not_repeated(secret: str, where: str) -> None:
    making: dict[str, Callable[[], McpServer]] = {
        "env": lambda: McpServer("s", transport="stdio", command=("x",), env={"K": secret}),
        "header": lambda: McpServer("s", "http://h/mcp", {"k": secret}),
        "bearer": lambda: McpServer("s", "http://h/mcp", {"authorization": f"Bearer {secret}"}),
        "path": lambda: McpServer("s", f"http://h/{secret}/mcp"),
        "query": lambda: McpServer("s", f"http://h/mcp?key={secret}"),
        "argument": lambda: McpServer("s", transport="stdio", command=("x", secret)),
        "option": lambda: McpServer("s", transport="stdio", command=("x", f"--key={secret}")),
    }
    server = making[where]()
    said = hide_secrets(f"{server} does not take\n{secret}, check {server.url}", server)
    assert secret not in said.replace("[secret]", "")
    assert said.startswith("The MCP server 's' does not take [secret], check")


def test_a_server_keeps_its_name_though_its_command_has_it_too() -> None:
    server = McpServer("filesystem", transport="stdio", command=("npx", "filesystem"))
    assert (
        hide_secrets(f"{server} ended (exit status 1)", server) == "The MCP server 'filesystem' ended (exit status 1)"
    )
