"""Tests servers on stdio: real child processes that answer out of order, send nonsense, die, or refuse to end."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.client import McpClient
from frontdesk.mcp_client.model import McpServer, McpServerUnavailable, OAuthConfig, UnsupportedRequest
from frontdesk.mcp_client.pool import MAX_PROCESSES, McpClientPool
from frontdesk.mcp_client.stdio import LONGEST_RESTART_DELAY, STABLE_SECONDS, RestartBackoff
from frontdesk.text import LineBuffer, OverlongLine
from tests.support.waiting import until
from tests.support.wire import call_upstream

PROGRAM = str(Path(__file__).parents[1] / "support" / "stdio_server.py")
SECONDS = 10
SECRET = "secret-value"


def server(*manners: str, **options: Any) -> McpServer:
    # -S -E: skips site packages and the environment, which halves the start.
    return McpServer("child", transport="stdio", command=(sys.executable, "-S", "-E", PROGRAM, *manners), **options)


@pytest.fixture
async def clients() -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool()
    yield pool
    await pool.close()


async def told(client: McpClient, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
    outcome = await call_upstream(client, tool, arguments or {})
    assert outcome.ok, outcome.text
    return json.loads(outcome.text)


async def until_cancelled(client: McpClient) -> None:
    with anyio.fail_after(SECONDS):
        while "notifications/cancelled" not in [frame["method"] for frame in await told(client, "seen")]:
            pass


def is_gone(pid: int) -> bool:
    """Not running, and not a zombie either."""
    return not psutil.pid_exists(pid)


async def test_a_child_is_started_once_and_answers_all_users(clients: McpClientPool) -> None:
    pids: set[int] = set()

    async def ask(user: str) -> None:
        pids.add((await told(clients.client(server(), user, None), "about"))["pid"])

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(ask, f"user-{number}")
    assert len(pids) == 1
    assert "echo" in {tool.name for tool in await clients.client(server(), None, None).tools()}


async def test_a_child_that_acts_for_the_user_is_the_users_own(clients: McpClientPool) -> None:
    mine = server(user_token=True)
    for user in ("ada", "ben"):
        outcome = await call_upstream(clients.client(mine, user, f"token-of-{user}"), "token", {})
        assert outcome == ToolOutcome(f"token-of-{user}")


async def test_answers_find_their_requests_in_any_order(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    outcomes: list[ToolOutcome] = []

    async def hold() -> None:
        outcomes.append(await call_upstream(client, "hold", {}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        assert await told(client, "echo", {"n": 1}) == {"n": 1}
        assert outcomes == []
        assert (await call_upstream(client, "release", {})).text == "released"
    assert outcomes == [ToolOutcome("held")]


async def test_a_child_sees_little_of_our_environment_and_who_a_call_is_for(
    clients: McpClientPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_SECRET", SECRET)
    client = clients.client(server(env={"KEY": "given"}), None, None)
    said = {
        "x-agent-id": "agent-1",
        "x-request-id": "req-1",
        "authorization": "Bearer no",
        "traceparent": "00-ab-cd-01",
    }
    about = json.loads((await call_upstream(client, "about", {}, said)).text)
    assert about["env"].items() >= {"KEY": "given", "PATH": os.environ["PATH"]}.items()
    assert SECRET not in str(about["env"])
    assert about["meta"] == {
        "dev.frontdesk/agentId": "agent-1",
        "dev.frontdesk/requestId": "req-1",
        "traceparent": "00-ab-cd-01",
    }


async def test_a_child_of_the_revision_without_handshake_is_asked_in_its_way(clients: McpClientPool) -> None:
    about = await told(clients.client(server("modern"), None, None), "about")
    assert about["meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


async def test_nonsense_on_stdout_is_passed_over_and_questions_are_answered(clients: McpClientPool) -> None:
    client = clients.client(server("chatty"), None, None)
    assert await told(client, "echo", {"a": "ü"}) == {"a": "ü"}
    assert {"jsonrpc": "2.0", "id": "ping-1", "result": {}} in await told(client, "seen")


async def test_a_child_that_dies_in_a_call_says_why_and_is_started_again(clients: McpClientPool) -> None:
    client = clients.client(server(env={"KEY": SECRET}), None, None)
    first = (await told(client, "about"))["pid"]
    with structlog.testing.capture_logs() as logged, pytest.raises(McpServerUnavailable) as raised:
        await client.call_tool("die", {})
    # Its last output may be about another caller's call: it is for the operator.
    assert str(raised.value).endswith("ended (exit status 3); it last said: cannot go on with [secret]")
    assert raised.value.public_message.endswith("ended (exit status 3)")
    assert all(entry["log_level"] == "debug" for entry in logged if "line" in entry)
    await until(lambda: is_gone(first))
    assert (await told(client, "about"))["pid"] != first


async def test_a_child_killed_from_outside_in_a_call_is_told_of_at_once(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    pid = (await told(client, "about"))["pid"]
    outcomes: list[ToolOutcome] = []

    async def hold() -> None:
        outcomes.append(await call_upstream(client, "hold", {}))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await told(client, "seen")
            psutil.Process(pid).kill()
    assert "ended (signal 9)" in outcomes[0].text


async def test_a_child_that_keeps_dying_is_not_started_at_once_each_time(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    texts = [(await call_upstream(client, "die", {})).text for _ in range(3)]
    assert ["exit status 3" in text for text in texts] == [True, True, False]
    assert "ended 2 times in a row; try again in 0." in texts[2]


async def test_what_a_child_started_goes_with_it_however_it_ends(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    orphans = [int((await call_upstream(client, "adopt", {})).text) for _ in range(2)]
    assert not any(is_gone(pid) for pid in orphans)
    await call_upstream(client, "die", {})
    await until(lambda: all(is_gone(pid) or psutil.Process(pid).status() == "zombie" for pid in orphans))


@pytest.mark.parametrize("manners", [(), ("stubborn",)])
async def test_closing_ends_a_child_and_all_it_started(manners: tuple[str, ...]) -> None:
    pool = McpClientPool()
    client = pool.client(server(*manners), None, None)
    pids = [(await told(client, "about"))["pid"], int((await call_upstream(client, "adopt", {})).text)]
    with anyio.fail_after(SECONDS):
        await pool.close()
    assert is_gone(pids[0])
    await until(lambda: is_gone(pids[1]) or psutil.Process(pids[1]).status() == "zombie")
    with pytest.raises(Unavailable, match="shutting down"):
        pool.client(server(), None, None)


async def test_a_server_that_leaves_the_register_takes_its_child_along(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    pid = (await told(client, "about"))["pid"]
    clients.retire(server())
    await until(lambda: is_gone(pid))
    assert len(clients) == 0


async def test_progress_is_handed_on(clients: McpClientPool) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    result = await clients.client(server(), None, None).call_tool("steps", {}, progress=progress)
    assert result.value["content"][0]["text"] == "done"
    assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_call_that_nobody_waits_for_is_cancelled_there(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    await told(client, "seen")
    with anyio.move_on_after(0.05):
        await client.call_tool("hold", {})
    await until_cancelled(client)


async def test_a_call_that_takes_too_long_is_given_up(clients: McpClientPool) -> None:
    client = clients.client(server(timeout=1), None, None)
    with pytest.raises(McpServerUnavailable, match="longer than 1 s"):
        await client.call_tool("hold", {})
    await until_cancelled(client)


async def test_an_answer_beyond_the_limit_fails_its_call_alone(clients: McpClientPool) -> None:
    client = clients.client(server(), None, None)
    outcomes: list[ToolOutcome] = []

    async def hold() -> None:
        outcomes.append(await call_upstream(client, "hold", {}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await told(client, "seen")
        with pytest.raises(UnsupportedRequest, match="more than 16 MiB"):
            await client.call_tool("huge", {})
        await call_upstream(client, "release", {})
    assert outcomes == [ToolOutcome("held")]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/no/such/program", SECRET), "cannot be started (FileNotFoundError)"),
        ((sys.executable, "-c", "import sys; sys.exit('no config')"), "exit status 1); it last said: no config"),
        ((sys.executable, "-S", "-E", PROGRAM, "mute"), "longer than 0.5 s"),
    ],
)
async def test_a_program_that_is_no_server_is_told_of(
    clients: McpClientPool, command: tuple[str, ...], reason: str
) -> None:
    timeout = 0.5 if "mute" in command else 30
    client = clients.client(McpServer("wrong", transport="stdio", command=command, timeout=timeout), None, None)
    with pytest.raises(McpServerUnavailable) as raised:
        await client.call_tool("echo", {})
    assert reason in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"command": ("",)},
        {"command": ("a\0b",)},
        {"command": ("a",), "env": {"A=B": "c"}},
        {"command": ("a",), "oauth": OAuthConfig("https://issuer/token", "id")},
        {"command": ("a",), "timeout": 0},
    ],
)
def test_a_server_on_stdio_that_cannot_be_run_is_refused(options: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="MCP server 'child'"):
        McpServer("child", transport="stdio", **options)


async def test_the_children_of_users_are_few(clients: McpClientPool) -> None:
    for number in range(MAX_PROCESSES + 5):
        clients.client(server(user_token=True), f"user-{number}", "token")
    assert len(clients) == MAX_PROCESSES


@given(st.lists(st.binary(max_size=9)), st.lists(st.integers(1, 7), min_size=1))
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], sizes: list[int]) -> None:
    lines, found, rest = LineBuffer(1000), list[bytes | OverlongLine](), b"\n".join([*parts, b""])
    whole = [line.strip() for line in rest.split(b"\n")[:-1] if line.strip()]
    while rest:
        for size in sizes:
            found += lines.feed(rest[:size])
            rest = rest[size:]
    assert found == whole


def test_a_line_beyond_the_limit_is_known_by_its_ends_alone() -> None:
    lines = LineBuffer(10)
    assert lines.feed(b'{"id": 1, ' + b"x" * 5000) == []
    (found,) = lines.feed(b'yyy"id": 2}\n')
    assert isinstance(found, OverlongLine)
    assert (found.head[:8], found.tail[-8:], len(found.head), len(found.tail)) == (b'{"id": 1', b'"id": 2}', 512, 512)
    assert lines.feed(b"short\n") == [b"short"]


def test_a_program_is_started_again_at_once_then_ever_later_until_it_ran_for_a_while() -> None:
    restarts, waits = RestartBackoff(), list[float]()
    for _ in range(12):
        restarts = restarts.after_crash(100.0, 101.0)
        waits.append(restarts.remaining_delay(101.0))
    assert waits[:4] == [0, 0.5, 1, 2]
    assert waits[-1] == LONGEST_RESTART_DELAY
    assert restarts.remaining_delay(101.0 + LONGEST_RESTART_DELAY) == 0
    assert restarts.after_crash(0, STABLE_SECONDS).remaining_delay(STABLE_SECONDS) == 0


async def test_a_server_that_leaves_the_register_while_it_starts_leaves_no_child_behind(clients: McpClientPool) -> None:
    def children() -> set[int]:
        return {child.pid for child in psutil.Process().children()}

    client, others = clients.client(server("mute"), None, None), children()

    async def ask() -> None:
        with pytest.raises(McpServerUnavailable), anyio.fail_after(SECONDS):
            await client.tools()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(lambda: bool(children() - others))
        clients.retire(server("mute"))
    await until(lambda: not children() - others)
