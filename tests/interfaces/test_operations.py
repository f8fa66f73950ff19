"""Declared operations: every one of them refuses bad credentials everywhere, and a new one needs one declaration."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from structlog.testing import capture_logs

from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import IDENTITY_READ, METRICS_READ, TASKS_READ
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.login_tools import with_login_tools
from frontdesk.interfaces.mcp.server import url_path
from frontdesk.interfaces.mcp.tools import mcp_tool, tool_name
from frontdesk.interfaces.rest.routing import rest_route
from frontdesk.llm.tools import permitted_tools
from frontdesk.operations import BoundOperation, Operation, Requires
from tests.conftest import settings_with
from tests.support.greeting import GREET
from tests.support.wire import ERAS, Era, call, frames, send

PARAMETER = re.compile(r"\{\w+(:\w+)?\}")
# These are for everybody who may call at all: they tell who one is and how things are, or log one in.
FOR_EVERYBODY = {
    "authenticate",
    "clear_auth",
    "exchange_code_for_token",
    "get_auth_status",
    "get_system_status",
    "get_user_info",
    "refresh_token",
    "set_access_token",
    "show_settings",
}


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    """One installation where every call needs a credential; no test leaves anything in it."""
    data = tmp_path_factory.mktemp("operations") / "data"
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_REQUIRE_AUTH="1")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def asgi(app: App) -> ASGIApp:
    return build_application(app)


@pytest.fixture(scope="module")
async def operations(app: App) -> list[BoundOperation]:
    return [*with_login_tools(app, app.operations())]


@pytest.fixture(scope="module")
async def limited(app: App) -> str:
    """A key of a person and an agent that may do only what no operation needs."""
    return (await app.identity.create_key(name="", agent_id="a-1", user_id="ada", scopes=frozenset({METRICS_READ})))[1]


def of_key(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


async def call_route(asgi: ASGIApp, operation: Operation, key: str | None) -> tuple[int, Any]:
    route = rest_route(operation)
    path = "/api" + PARAMETER.sub("x", route.path)
    answer = await send(asgi, of_key(key), b"", path=path, method=route.method)
    return answer.status, answer.json


async def call_tool(asgi: ASGIApp, operation: Operation, key: str | None, era: Era) -> tuple[int, Any]:
    headers, body = call(era, tool_name(operation))
    answer = await send(asgi, headers | of_key(key), body, path=url_path(mcp_tool(operation).path))
    return answer.status, None if answer.status == 401 else frames(answer)[-1]


async def test_names_and_addresses_are_unique(operations: list[BoundOperation]) -> None:
    every = [one.operation for one in operations]
    names = [one.name for one in every]
    tools = [tool_name(one) for one in every if one.mcp is not None]
    routes = [(one.rest.method, PARAMETER.sub("{}", one.rest.path)) for one in every if one.rest is not None]
    commands = [one.command.words for one in every if one.command is not None]
    for values in (names, tools, routes, commands):
        assert len(set(values)) == len(values)


async def test_every_operation_says_which_right_it_needs(operations: list[BoundOperation]) -> None:
    free = {one.operation.name for one in operations if not one.operation.scopes and one.operation.admin_scope is None}
    assert free == FOR_EVERYBODY


async def test_every_route_demands_a_credential_that_holds(asgi: ASGIApp, operations: list[BoundOperation]) -> None:
    routes = [one.operation for one in operations if one.operation.rest is not None]
    assert routes
    for operation in routes:
        for key in (None, "fd_notakey", "nonsense"):
            status, body = await call_route(asgi, operation, key)
            assert (operation.name, status) == (operation.name, 401), body


async def test_every_route_demands_its_scopes(asgi: ASGIApp, operations: list[BoundOperation], limited: str) -> None:
    for bound in operations:
        operation = bound.operation
        if operation.rest is None:
            continue
        status, body = await call_route(asgi, operation, limited)
        if operation.name in FOR_EVERYBODY:
            assert (operation.name, status) == (operation.name, 200), body
        elif operation.requires is Requires.LOGIN:
            assert (operation.name, status) == (operation.name, 401), body
        else:
            assert (operation.name, status) == (operation.name, 403), body
            needed = {*operation.scopes, *([operation.admin_scope] if operation.admin_scope else [])}
            assert needed
            assert set(body["required_scopes"]) <= needed


@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_demands_a_credential_that_holds(
    asgi: ASGIApp, operations: list[BoundOperation], era: Era
) -> None:
    for bound in operations:
        if bound.operation.mcp is None:
            continue
        for key in (None, "fd_notakey"):
            status, body = await call_tool(asgi, bound.operation, key, era)
            refused = status == 401 or "Authentication" in json.dumps(body) or "credential" in json.dumps(body)
            assert refused, (bound.operation.name, status, body)


@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_demands_its_scopes(
    asgi: ASGIApp, operations: list[BoundOperation], limited: str, era: Era
) -> None:
    for bound in operations:
        operation = bound.operation
        if operation.mcp is None or not operation.scopes:
            continue
        _, body = await call_tool(asgi, operation, limited, era)
        # The error format of PromptYoSelf has no codes, but a right is never reported as a success.
        assert body["error"]["code"] == -32011, (operation.name, body)
        assert body["error"]["data"]["scope"] in operation.scopes


async def test_every_tool_of_the_built_in_agents_demands_its_scopes(
    operations: list[BoundOperation],
) -> None:
    offered = OperationTools()
    offered.open(lambda: operations)
    everything = Caller("r-1", "a-1", "ada", verified=True, credential_id="key:1")
    limited = Caller("r-1", "a-1", "ada", verified=True, credential_id="key:1", scopes=frozenset({METRICS_READ}))
    names = {tool.name for tool in offered.for_caller(everything, None)}
    assert names
    free = {tool.name for tool in permitted_tools(offered.for_caller(limited, None), limited)}
    assert free <= FOR_EVERYBODY
    for tool in offered.for_caller(limited, None):
        if tool.name in free:
            continue
        outcome = await tool.run({})
        assert not outcome.ok
        assert "scope" in outcome.text, (tool.name, outcome)


# A made-up operation: one declaration and one function


@pytest.fixture(scope="module")
async def greeting(app: App) -> ASGIApp:
    return build_application(app, [app.bind(GREET, app)])


@pytest.fixture(scope="module")
async def keys(app: App) -> tuple[str, str]:
    """A key that may greet, and one that may not."""
    may = await app.identity.create_key(name="", agent_id="a-2", user_id="bob", scopes=frozenset({IDENTITY_READ}))
    may_not = await app.identity.create_key(name="", agent_id="a-2", user_id="bob", scopes=frozenset({TASKS_READ}))
    return may[1], may_not[1]


async def test_one_declaration_is_a_tool(greeting: ASGIApp, keys: tuple[str, str]) -> None:
    headers, body = call("2025-06-18", "greet", {"name": "Ann", "times": 2})
    answer = await send(greeting, headers | of_key(keys[0]), body)
    assert answer.structured == {"words": "Hello Ann! Hello Ann!"}
    assert answer.json["result"]["content"][0]["text"] == "Hello Ann! Hello Ann! (to bob)"
    refused = await send(greeting, headers | of_key(keys[1]), body)
    assert refused.error == (-32011, f"This credential lacks the scope '{IDENTITY_READ}'; use one that carries it")


async def test_one_declaration_is_a_route(greeting: ASGIApp, keys: tuple[str, str]) -> None:
    said = {"content-type": "application/json"}
    path = "/api/greetings/Ann"
    answer = await send(greeting, said | of_key(keys[0]), b'{"times": 2}', path=path)
    assert (answer.status, answer.json) == (200, {"words": "Hello Ann! Hello Ann!"})
    wrong = await send(greeting, said | of_key(keys[0]), b'{"times": 4, "loud": true}', path=path)
    assert wrong.status == 400
    assert [one["field"] for one in wrong.json["details"]] == ["body"]
    refused = await send(greeting, said | of_key(keys[1]), b'{"times": 2}', path=path)
    assert (refused.status, refused.json["required_scopes"]) == (403, [IDENTITY_READ])
    described = await send(greeting, of_key(keys[0]), b"", path="/api/openapi.json", method="GET")
    told = described.json["paths"]["/greetings/{name}"]["post"]
    assert told["security"] == [{"HTTPBearer": [IDENTITY_READ]}]
    assert told["parameters"][0]["name"] == "name"


async def test_one_declaration_is_a_tool_of_the_built_in_agents(app: App) -> None:
    offered = OperationTools()
    offered.open(lambda: [app.bind(GREET, app)])
    (tool,) = offered.for_caller(Caller("r-1", "a-1", "cleo"), None)
    assert tool.reads_only is True
    assert (await tool.run({"name": "Ann"})).text == "Hello Ann! (to cleo)"
    assert not (await tool.run({"times": 9})).ok


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_failure(
    greeting: ASGIApp, keys: tuple[str, str]
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in of_key(keys[0]).items()]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/api/greetings/Ann",
        "raw_path": b"/api/greetings/Ann",
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "headers": [*headers, (b"host", b"127.0.0.1:3020"), (b"content-type", b"application/json")],
        "server": ("127.0.0.1", 3020),
        "client": ("127.0.0.1", 1),
    }
    arriving = iter([{"type": "http.request", "body": b'{"ti', "more_body": True}, {"type": "http.disconnect"}])
    answered: list[Any] = []

    async def receive() -> Any:
        return next(arriving)

    async def send_on(message: Any) -> None:
        answered.append(message)

    with capture_logs() as logs:
        await greeting(scope, receive, send_on)
    assert answered[0]["status"] == 400
    assert not [one for one in logs if one["event"] == "call_failed"]
