"""Tests Frontdesk as a library: mounted in other people's apps, opened in a program, and called by its own client."""

import inspect
import re
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from generate.__main__ import main as generate
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.testclient import TestClient

import frontdesk
from frontdesk.errors import (
    ConfigurationError,
    Conflict,
    Denied,
    FrontdeskError,
    Invalid,
    InvalidArguments,
    MissingAgentId,
    MissingScope,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from frontdesk.identity import rights
from frontdesk.interfaces.library.client import Client
from frontdesk.interfaces.library.exposure import library_methods
from frontdesk.interfaces.library.methods import DeskMethods
from frontdesk.interfaces.library.mounted import EmbeddedApp
from frontdesk.settings import Settings
from frontdesk.tools.model import ToolKind
from tests.conftest import settings_with
from tests.support.postgres import Ready
from tests.support.serving import address_of, listen, serve

PREFIX = "/desk"
CALLBACK = "http://127.0.0.1:9/callback"
LINK = re.compile(r'(?:href|src|action|hx-get|data-live)="(/[^"]*)"')


@dataclass(frozen=True, slots=True)
class Host:
    """A running app of somebody else's, with Frontdesk under a prefix: its address, the settings, and keys."""

    url: str
    settings: Settings
    ann: str
    bob: str
    admin: str
    reader: str
    backend: str

    @property
    def desk(self) -> str:
        return f"{self.url}{PREFIX}"

    def open(self, key: str, **options: Any) -> Client:
        return Client(self.desk, key=key, **options)


async def make_keys(settings: Settings) -> dict[str, str]:
    async with frontdesk.open(settings, background=False) as desk:

        async def key(user: str | None = None, agent: str | None = None, *scopes: str) -> str:
            limits = frozenset(scopes) if scopes else None
            return (await desk.app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits))[1]

        return {
            "ann": await key("ann"),
            "bob": await key("bob"),
            "admin": await key("boss", None, rights.INSTALLATION_ADMIN),
            "reader": await key("ann", None, rights.TASKS_READ),
            "backend": await key(None, "*"),
        }


def in_fastapi(desk: EmbeddedApp) -> Any:
    """A FastAPI app with a lifespan and a route of its own, which uses the same services."""
    opened: list[str] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with desk.lifespan(app):
            opened.append("own lifespan")
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/titles/{user}")
    async def titles(user: str) -> list[str]:
        found = await desk.desk.as_person(user).tasks.search_tasks()
        return [*opened, *(task.title for task in found.tasks)]

    app.mount(PREFIX, desk)
    app.mount("/.well-known", desk.well_known)
    return app


def in_starlette(desk: EmbeddedApp) -> Any:
    app = Starlette(lifespan=desk.lifespan)
    app.mount(PREFIX, desk)
    app.mount("/.well-known", desk.well_known)
    return app


@contextmanager
def running(data: Path, build: Callable[[EmbeddedApp], Any]) -> Generator[Host]:
    listener = listen()
    url = address_of(listener)
    clients = [{"client_id": "app", "redirect_uris": [CALLBACK]}]
    settings = settings_with(FRONTDESK_DATA=data, FRONTDESK_PUBLIC_URL=f"{url}{PREFIX}", OAUTH_CLIENTS=clients)
    keys = anyio.run(make_keys, settings)
    with serve(build(frontdesk.create_app(settings)), listener):
        yield Host(url, settings, **keys)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Generator[Host]:
    with running(ready.in_folder(tmp_path_factory.mktemp("fastapi") / "data"), in_fastapi) as found:
        yield found


@pytest.fixture(scope="module")
def starlette_host(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Generator[Host]:
    with running(ready.in_folder(tmp_path_factory.mktemp("starlette") / "data"), in_starlette) as found:
        yield found


@pytest.fixture(params=["host", "starlette_host"], ids=["fastapi", "starlette"])
def mounted(request: pytest.FixtureRequest) -> Host:
    """Frontdesk mounted in each kind of app."""
    return request.getfixturevalue(request.param)


def get(url: str, key: str | None = None, **headers: str) -> httpx2.Response:
    credential = {"authorization": f"Bearer {key}"} if key else {}
    return httpx2.get(url, headers={**credential, **headers})


# Mounted in another app


async def test_somebody_elses_mcp_client_calls_a_tool_under_the_prefix(mounted: Host) -> None:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {mounted.ann}"}) as http:
        transport = streamable_http_client(f"{mounted.desk}/mcp/memory", http_client=http)
        async with McpClient(transport) as client:
            await client.call_tool("create_task", {"title": "By somebody else's client"})
            found = await client.call_tool("search_tasks", {"keyword": "somebody"})
    assert found.structured_content is not None
    assert found.structured_content["tasks"][0]["title"] == "By somebody else's client"


def test_the_http_api_answers_under_the_prefix_and_the_apps_own_paths_stay_its_own(mounted: Host) -> None:
    answer = get(f"{mounted.desk}/api/v1/tools/servers", mounted.ann)
    assert (answer.status_code, answer.json()["servers"]) == (200, [])
    assert get(f"{mounted.desk}/api/health").json()["status"] == "ok"
    assert get(f"{mounted.url}/api/health").status_code == 404


def test_every_link_of_a_page_leads_back_under_the_prefix(mounted: Host) -> None:
    page = get(f"{mounted.desk}/", mounted.admin)
    assert page.status_code == 200
    links = set(LINK.findall(page.text))
    assert {f"{PREFIX}/agents", f"{PREFIX}/tools"} <= links
    assert all(link.startswith(f"{PREFIX}/") for link in links)
    for link in links:
        if "/live/" not in link and not link.endswith("/sign-out"):
            assert get(f"{mounted.url}{link}", mounted.admin).status_code == 200, link


def test_a_person_signs_in_with_a_key_and_out_again(mounted: Host) -> None:
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(f"{mounted.desk}/agents?q=x")
        assert page.url.path == f"{PREFIX}/sign-in"
        token = re.search(r'name="form_token" value="([^"]+)"', page.text)
        back = re.search(r'name="next" value="([^"]+)"', page.text)
        assert token is not None
        assert back is not None
        form = {"form_token": token[1], "credential": mounted.admin, "next": back[1].replace("&amp;", "&")}
        own = {"origin": mounted.url}
        shown = browser.post(f"{mounted.desk}/sign-in", data=form, headers=own)
        assert (shown.status_code, shown.url.path, shown.url.query) == (200, f"{PREFIX}/agents", b"q=x")

        forged = browser.post(f"{mounted.desk}/sign-out", data={"form_token": "forged"}, headers=own)
        assert forged.status_code == 403
        elsewhere = browser.post(f"{mounted.desk}/sign-out", headers={"origin": "https://evil.example"})
        assert elsewhere.status_code == 403

        token = re.search(r'name="form_token" value="([^"]+)"', shown.text)
        assert token is not None
        left = browser.post(f"{mounted.desk}/sign-out", data={"form_token": token[1]}, headers=own)
        assert left.url.path == f"{PREFIX}/sign-in"
        assert browser.get(f"{mounted.desk}/").url.path == f"{PREFIX}/sign-in"


def test_a_part_of_a_page_leads_back_to_the_page_it_is_on(mounted: Host) -> None:
    part = get(f"{mounted.desk}/agents", **{"hx-request": "true", "hx-current-url": f"{mounted.desk}/agents?q=a"})
    assert part.headers["hx-redirect"] == f"{PREFIX}/sign-in?next=%2Fagents%3Fq%3Da"


def test_a_live_stream_has_the_prefix_in_its_links(mounted: Host) -> None:
    headers = {"authorization": f"Bearer {mounted.admin}"}
    with httpx2.stream("GET", f"{mounted.desk}/live/now", headers=headers, timeout=20) as stream:
        event = next(line for line in stream.iter_lines() if line.startswith("data: "))
    assert 'href=\\"/' in event
    assert f'href=\\"{PREFIX}/' in event
    assert not re.search(rf'href=\\"/(?!{PREFIX[1:]}/)', event)


def test_the_old_sse_transport_names_its_address_with_the_prefix(mounted: Host) -> None:
    headers = {"authorization": f"Bearer {mounted.ann}"}
    with httpx2.stream("GET", f"{mounted.desk}/sse", headers=headers, timeout=20) as stream:
        event = next(line for line in stream.iter_lines() if line.startswith("data: "))
    assert event.startswith(f"data: {PREFIX}/messages/?session_id=")


def test_documents_for_clients_name_addresses_with_the_prefix(mounted: Host) -> None:
    refused = get(f"{mounted.desk}/api/v1/tools")
    assert refused.status_code == 401
    named = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
    assert named is not None
    assert get(named[1]).json()["resource"] == f"{mounted.desk}/mcp"
    card = get(f"{mounted.desk}/mcp/memory/server-card").json()
    assert card["remotes"][0]["url"] == f"{mounted.desk}/mcp/memory"
    # Clients look for the metadata of an issuer with a path at the root of the mounted.
    login = get(f"{mounted.url}/.well-known/oauth-authorization-server{PREFIX}").json()
    assert login["token_endpoint"] == f"{mounted.desk}/oauth/token"
    resource = get(f"{mounted.url}/.well-known/oauth-protected-resource{PREFIX}/mcp/memory").json()
    assert resource["resource"] == f"{mounted.desk}/mcp/memory"


def test_the_form_of_a_login_leads_back_under_the_prefix(mounted: Host) -> None:
    query = {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": CALLBACK,
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }
    page = httpx2.get(f"{mounted.desk}/oauth/authorize", params=query)
    assert f'action="{PREFIX}/oauth/authorize/issue"' in page.text
    assert f"Path={PREFIX}/oauth" in page.headers["set-cookie"]


def test_the_apps_own_route_uses_the_same_services(tmp_path: Path) -> None:
    with running(tmp_path / "data", in_fastapi) as found:
        anyio.run(_make_task, found.open(found.ann), "Seen by the route")
        assert get(f"{found.url}/titles/ann").json() == ["own lifespan", "Seen by the route"]
        assert get(f"{found.url}/titles/bob").json() == ["own lifespan"]


async def _make_task(client: Client, title: str) -> None:
    async with client as desk:
        await desk.tasks.create_task(title=title)


# Who may call a mounted app


def test_a_mounted_app_wants_a_credential_of_callers_on_this_machine_too(host: Host) -> None:
    for path in ("/api/v1/tools", "/mcp", "/metrics"):
        assert get(f"{host.desk}{path}").status_code == 401, path


@pytest.mark.parametrize(("peer", "status"), [("127.0.0.1", 200), ("192.0.2.7", 401)])
async def test_without_required_credentials_only_this_machine_is_let_in(tmp_path: Path, peer: str, status: int) -> None:
    desk = frontdesk.create_app(settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_REQUIRE_AUTH=False))
    async with desk.lifespan():
        transport = httpx2.ASGITransport(desk, client=(peer, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            assert (await http.get("/api/v1/tools/servers")).status_code == status


def test_a_public_address_needs_somebody_who_can_authenticate(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_PUBLIC_URL="https://example.com/desk")
    app = Starlette(lifespan=frontdesk.create_app(settings).lifespan)
    with pytest.raises(ConfigurationError, match="nobody could authenticate"), TestClient(app):
        pass


def test_a_host_that_the_settings_do_not_name_is_not_answered(host: Host) -> None:
    assert get(f"{host.desk}/api/health", host="evil.example").status_code == 421


# The lifespan


def test_a_request_before_the_lifespan_says_what_to_do(tmp_path: Path) -> None:
    desk = frontdesk.create_app(settings_with(FRONTDESK_DATA=tmp_path / "data"))
    app = FastAPI()
    app.mount(PREFIX, desk)
    with pytest.raises(ConfigurationError, match=re.escape("FastAPI(lifespan=mounted.lifespan)")):
        TestClient(app).get(f"{PREFIX}/api/health")
    with pytest.raises(ConfigurationError, match="not open yet"):
        _ = desk.desk


def test_it_serves_itself_and_opens_again_after_it_was_closed(tmp_path: Path) -> None:
    desk = frontdesk.create_app(settings_with(FRONTDESK_DATA=tmp_path / "data"))
    for _ in range(2):
        with serve(desk) as url:
            assert get(f"{url}/api/health").json()["status"] == "ok"


async def test_one_database_has_one_server(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data")
    desk = frontdesk.create_app(settings)
    async with desk.lifespan():
        with pytest.raises(Conflict, match="open already"):
            async with desk.lifespan():
                pass
        with pytest.raises(Conflict, match="Another server"):
            async with frontdesk.create_app(settings).lifespan():
                pass


# The same methods in the program and over HTTP


@asynccontextmanager
async def both(host: Host, key: str, person: str | None) -> AsyncGenerator[Sequence[DeskMethods]]:
    async with frontdesk.open(host.settings, background=False) as desk, host.open(key) as client:
        yield desk.as_person(person) if person else desk, client


async def test_both_give_the_same_answers(host: Host) -> None:
    async with both(host, host.ann, "ann") as desks:
        titles = [f"Task {number} of {type(desk).__name__}" for number, desk in enumerate(desks)]
        made = [
            await desk.tasks.create_task(title=title, due_date="2030-01-02", tags=["library"])
            for desk, title in zip(desks, titles, strict=True)
        ]
        found = [await desk.tasks.search_tasks(tags=["library"], sort_by="title", sort_order="asc") for desk in desks]
        assert to_json(found[0]) == to_json(found[1])
        assert [task.id for task in found[0].tasks if task.title in titles] == [
            one.task.id for one in sorted(made, key=lambda one: one.task.title)
        ]
        for call in CALLS:
            one, other = [await call(desk) for desk in desks]
            assert to_json(one) == to_json(other)
        who = [(await desk.whoami()).model_dump(exclude={"request_id"}) for desk in desks]
        assert who[0] == who[1]
        assert who[0]["user_id"] == "ann"


CALLS: Sequence[Callable[[DeskMethods], Any]] = (
    lambda desk: desk.tools.list_servers(),
    lambda desk: desk.tools.list_tools(kind="mcp", limit=5),
    lambda desk: desk.tools.search_tools(query="send mail"),
    lambda desk: desk.tools.tool_usage(days=1),
    lambda desk: desk.schedules.preview_rule(every="2h", start_at="2040-01-01T00:00:00Z"),
    lambda desk: desk.categories.get_categories(),
    lambda desk: desk.timeline.get_timeline_items(type="task"),
    lambda desk: desk.person.show_settings(),
    lambda desk: desk.tasks.list_relations(),
    lambda desk: desk.time.get_running_timer(),
    lambda desk: desk.health(),
)


async def test_a_value_is_removed_by_none_and_kept_when_it_is_left_out(host: Host) -> None:
    async with both(host, host.ann, "ann") as desks:
        for desk in desks:
            item = (await desk.timeline.create_timeline_item(type="task", title="Item", description="Text")).item
            kept = await desk.timeline.update_item(item_id=item.id, title="Other")
            assert (kept.item.title, kept.item.description) == ("Other", "Text")
            removed = await desk.timeline.update_item(item_id=item.id, description=None)
            assert (removed.item.title, removed.item.description) == ("Other", "")


async def test_two_persons_do_not_see_each_others_tasks(host: Host) -> None:
    async with host.open(host.ann) as ann, host.open(host.bob) as bob:
        task = (await ann.tasks.create_task(title="Of Ann alone")).task
        assert await bob.tasks.search_tasks(keyword="alone") == await bob.tasks.search_tasks(keyword="nothing")
        with pytest.raises(NotFound):
            await bob.tasks.get_task(id=task.id)
    async with frontdesk.open(host.settings, background=False) as desk:
        assert (await desk.as_person("ann").tasks.get_task(id=task.id)).task.title == "Of Ann alone"
        with pytest.raises(NotFound):
            await desk.as_person("bob").tasks.get_task(id=task.id)


async def test_errors_have_the_same_classes(host: Host) -> None:
    async with both(host, host.ann, "ann") as desks:
        for desk in desks:
            with pytest.raises(NotFound):
                await desk.tasks.get_task(id="0199")
            with pytest.raises(NotFound):
                await desk.tools.show_tool(tool_id="no::such/tool")
            with pytest.raises(InvalidArguments):
                await desk.tasks.create_task(title="")
            with pytest.raises(InvalidArguments):
                await desk.tools.list_tools(limit=-1)
            with pytest.raises(Invalid):
                await desk.tasks.search_tasks(due_before="never")
            with pytest.raises(MissingScope) as missing:
                await desk.tools.list_rights()
            assert missing.value.scope == rights.TOOLS_ADMIN
            with pytest.raises(MissingAgentId):
                await desk.tools.find_tools(query="anything")
            entry = (await desk.tasks.create_task(title="Timed")).task
            other = (await desk.tasks.create_task(title="Timed too")).task
            await desk.time.start_task_timer(task_id=entry.id)
            with pytest.raises(Conflict):
                await desk.time.start_task_timer(task_id=other.id)
            await desk.time.stop_task_timer(task_id=entry.id)


async def test_the_operator_of_a_program_names_the_person_for_a_persons_records(host: Host) -> None:
    async with frontdesk.open(host.settings, background=False) as desk:
        with pytest.raises(Unauthenticated, match="as_person"):
            await desk.tasks.search_tasks()
        assert (await desk.tools.list_rights()).rules == []
        with pytest.raises(Invalid, match="user id"):
            desk.as_person("")


async def test_the_client_says_why_it_was_refused(host: Host) -> None:
    async with Client(host.desk) as nobody:
        with pytest.raises(Unauthenticated, match="Authentication required"):
            await nobody.tools.list_servers()
        with pytest.raises(Unauthenticated):
            await nobody.tasks.search_tasks()
    async with host.open(host.reader) as reader:
        with pytest.raises(MissingScope) as missing:
            await reader.tasks.create_task(title="Not allowed")
        assert missing.value.scope == rights.TASKS_WRITE
    async with host.open(host.ann, agent_id="agent-1") as other:
        with pytest.raises(Denied):
            await other.whoami()


async def test_a_client_calls_as_an_agent_and_for_a_person(host: Host) -> None:
    async with host.open(host.backend) as backend:
        assert (await backend.as_agent("agent-7").whoami()).agent_id == "agent-7"
    async with host.open(host.backend, agent_id="agent-7", user_token=host.bob) as backend:
        who = await backend.whoami()
        assert (who.agent_id, who.user_id) == ("agent-7", "bob")


async def test_a_desk_calls_as_an_agent_for_a_person(host: Host) -> None:
    async with frontdesk.open(host.settings, background=False) as desk:
        who = await desk.as_person("bob").as_agent("agent-7").whoami()
        assert (who.agent_id, who.user_id, who.verified) == ("agent-7", "bob", True)


async def test_an_address_without_a_server_is_unavailable(host: Host) -> None:
    async with Client("http://127.0.0.1:9", key=host.ann) as nowhere:
        with pytest.raises(Unavailable, match="does not answer"):
            await nowhere.whoami()
    async with Client(host.url, key=host.ann) as elsewhere:
        with pytest.raises(FrontdeskError):
            await elsewhere.whoami()


async def test_the_journal_has_the_calls_of_the_library(tmp_path: Path) -> None:
    async with frontdesk.open(settings_with(FRONTDESK_DATA=tmp_path / "data"), background=False) as desk:
        await desk.as_person("ann").tasks.search_tasks()
        await desk.app.journal.flush()
        entries = [entry for _, entry in await desk.app.journal.latest(10, 100)]
        assert [(one.surface, one.action, one.user_id, one.outcome) for one in entries] == [
            ("library", "search_tasks", "ann", "ok")
        ]


async def test_an_agent_answers_a_program(tmp_path: Path) -> None:
    async with frontdesk.open(settings_with(FRONTDESK_DATA=tmp_path / "data")) as desk:
        agent = await desk.agents.create("Ada", description="Helps")
        assert [one.name for one in await desk.agents.list()] == ["Ada"]
        answer = await desk.as_person("ann").agents.prompt(agent.id, '@@[{"text": "Good morning"}]@@')
        assert (answer.text, answer.trouble) == ("Good morning", None)


# The methods themselves


def test_every_method_describes_its_parameters_and_its_answer() -> None:
    for name, method in library_methods().items():
        owner = getattr(DeskMethods(Untried()), method.group) if method.group else DeskMethods(Untried())
        function = getattr(owner, name)
        docstring = inspect.getdoc(function) or ""
        parameters = inspect.signature(function).parameters
        assert list(parameters) == [*sorted(method.parameters, key=lambda one: not method.parameters[one].required)]
        assert "Returns:" in docstring, name
        for parameter in parameters.values():
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert re.search(rf"^    {parameter.name}: \S", docstring, re.MULTILINE), (name, parameter.name)


class Untried:
    """A transport that nothing is sent with."""

    async def call(self, name: str, arguments: object) -> Any:
        raise AssertionError(name, arguments)


def test_the_written_methods_are_those_of_the_declarations() -> None:
    assert generate(["--check"]) == 0


async def test_members_of_enumerations_are_taken_too(host: Host) -> None:
    async with both(host, host.ann, "ann") as desks:
        for desk in desks:
            listed = await desk.tools.list_tools(kind=ToolKind.MCP)  # pyright: ignore[reportArgumentType] - by its value
            assert listed.tools == []
