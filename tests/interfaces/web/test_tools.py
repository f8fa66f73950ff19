"""Tests the pages about tools in process: search, giving tools to agents, one tool, servers, use and quality."""

import json
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import INSTALLATION_ADMIN
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web.model import tool_path
from frontdesk.interfaces.web.pages.schema_form import FieldShape, schema_fields
from frontdesk.interfaces.web.pages.tool import usage_chart
from frontdesk.interfaces.web.pages.tool_servers import server_address
from frontdesk.settings import Settings
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.servers import ServerSpec, Transport
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of
from tests.support.chat import key
from tests.support.tool_servers import SCHEMA, ToolServer, open_tool_server, tool

ODD = 'files/read?100% "yes"#1'
ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is about."},
        "labels": {"type": "array", "items": {"type": "string"}},
        "weight": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": 3},
        "share": {"type": "number"},
        "urgent": {"type": "boolean"},
        "kind": {"$ref": "#/$defs/Kind"},
    },
    "required": ["title", "kind"],
    "$defs": {"Kind": {"enum": ["bug", "wish"]}},
}
LISTED = [
    tool("create_issue", "File a new issue about a bug in a repository.", ISSUE),
    tool("send_mail", "Send a letter by electronic mail.", SCHEMA),
    tool(ODD, "Read a file.", {"type": "object"}),
]
HOSTILE = '<script>alert("x")</script> <img src=x onerror=alert(1)> \u202eevil\u202c \u05d0\u05d1 ' + "x" * 9000


@pytest.fixture
def shop() -> Iterator[ToolServer]:
    with open_tool_server("shop", LISTED) as server:
        yield server


@pytest.fixture
async def installation(settings: Settings, shop: ToolServer) -> AsyncGenerator[App]:
    """By words alone: these pages do not need the embedding model."""
    async with open_app(settings.model_copy(update={"embeddings": "off"})) as app:
        await app.tools.catalogue.add(ServerSpec("shop", url=shop.url, hold_changes=True))
        yield app


@pytest.fixture
async def web(installation: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(installation)) as opened:
        yield opened


@pytest.fixture
async def ada(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id


@shows("WEB-TOOLS")
async def test_a_search_shows_scores_and_reasons_whole_or_as_a_part(web: Browser, ada: str) -> None:
    whole = await web.get("/tools", q="file an issue about a bug", agent=ada)
    assert "shop::create_issue" in text_of(whole)
    assert "words: " in text_of(whole)
    assert f'value="{ada}" selected' in whole
    part = await web.get("/tools", q="file an issue about a bug", part=True)
    assert "shop::create_issue" in part
    assert "<html" not in part
    assert "Nothing fits among 3 tools" in text_of(await web.get("/tools", q="xyzzy", part=True))
    assert "3 tools are searched as you type" in text_of(await web.get("/tools"))


async def test_a_search_for_an_agent_finds_what_that_agent_may_use(installation: App, web: Browser, ada: str) -> None:
    await installation.tools.administration.add_rule(
        Caller("t", local=True), f"agent:{ada}", AccessEffect.DENY, "shop::create_issue"
    )
    query = "file an issue about a bug"
    assert "shop::create_issue" in await web.get("/tools", q=query, part=True)
    assert "shop::create_issue" not in await web.get("/tools", q=query, agent=ada, part=True)


async def test_an_installation_without_tools_says_how_to_get_some(app: App) -> None:
    async with browsing(build_application(app)) as web:
        for path in ("/tools", "/tools/all", "/tools/servers"):
            assert "frontdesk tools add NAME URL" in text_of(await web.get(path)), path
        assert "No tool was called in the last 24 hours" in text_of(await web.get("/tools/use"))
        assert "No changed tool waits" in text_of(await web.get("/tools/all", changed="yes"))
        assert "Choose an agent" in text_of(await web.get("/tools/plan"))


@shows("WEB-TOOLS")
async def test_what_an_agent_would_get_is_shown_before_it_is_done(installation: App, web: Browser, ada: str) -> None:
    asked: dict[str, Any] = {"agent": ada, "q": "a new issue about a bug in a repository"}
    planned = text_of(await web.get("/tools/plan", **asked))
    assert "This is a dry run" in planned
    assert "shop::create_issue scored" in planned
    assert await installation.host.tools(ada) == []
    done = text_of(await web.post("/tools/plan", asked))
    assert "Attached: shop__create_issue." in done
    assert "Nothing would be changed" in done
    assert [held.name for held in await installation.host.tools(ada)] == ["shop__create_issue"]


async def test_what_fits_least_is_shown_before_it_is_taken(installation: App, web: Browser, ada: str) -> None:
    with open_tool_server("lab", [tool(name) for name in "abcdefghi"]) as lab:
        await installation.tools.catalogue.add(ServerSpec("lab", url=lab.url))
    for name in "abcdefghi":
        held = HeldTool(f"lab__{name}", "", server="lab", remote_name=name, parameters=SCHEMA)
        await installation.host.attach(ada, held)
    asked: dict[str, Any] = {"agent": ada, "q": "file an issue", "what": "take", "keep": "lab__a"}
    planned = text_of(await web.get("/tools/plan", **asked))
    assert "lab::b fits least" in planned
    assert len(await installation.host.tools(ada)) == 9
    assert "Detached: lab__b, lab__c." in text_of(await web.post("/tools/plan", asked))
    assert len(await installation.host.tools(ada)) == 7


async def test_an_agent_that_is_not_there_is_told_of(web: Browser) -> None:
    said = text_of(await web.get("/tools/plan", agent="agent-none", q="file an issue about a bug"))
    assert "is not one of the agent host's" in said


async def test_tools_are_gone_through_by_name(installation: App, web: Browser) -> None:
    with open_tool_server("many", [tool(f"t{number:03}") for number in range(120)]) as many:
        await installation.tools.catalogue.add(ServerSpec("many", url=many.url))
    first = await web.get("/tools/all", server="many")
    assert "many::t049" in first
    assert "many::t050" not in first
    assert "By name, 50 at a time." in text_of(first)
    assert "By name." in text_of(await web.get("/tools/all", server="shop"))
    second = await web.get("/tools/all", server="many", after="many::t049")
    assert "many::t050" in second
    assert "Next" not in text_of(await web.get("/tools/all", server="many", after="many::t099"))


@shows("WEB-TOOLS")
async def test_a_tool_is_tried_with_a_form_made_from_its_schema(shop: ToolServer, web: Browser, ada: str) -> None:
    at = tool_path("shop::create_issue")
    page = await web.get(at)
    assert 'name="arg.labels"' in page
    assert '<option value="&#34;wish&#34;">wish</option>' in page
    assert "title *" in text_of(page)
    assert "What it is about." in text_of(page)
    form = {"arg.title": "one\r\ntwo", "arg.kind": '"wish"', "arg.labels": '["a"]', "arg.weight": "2", "agent": ada}
    tried = await web.post(at, form)
    assert "It answered" in text_of(tried)
    assert "shop: create_issue" in text_of(tried)
    assert shop.called == ["create_issue"]
    assert '<option value="&#34;wish&#34;" selected>wish</option>' in tried


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"arg.labels": "[oops"}, "'labels' must be JSON"),
        ({"arg.weight": "2.5"}, "'weight' must be a whole number"),
        ({"arg.share": "NaN"}, "'share' must be a number"),
        ({"arg.urgent": "3"}, "'urgent' must be yes or no"),
        ({"arg.kind": '"other"'}, "kind"),
    ],
)
async def test_what_does_not_fit_is_said_and_the_form_stays(web: Browser, form: dict[str, str], said: str) -> None:
    filled = {"arg.title": "kept as it was", "arg.kind": '"bug"', **form}
    page = await web.post(tool_path("shop::create_issue"), filled, 400)
    assert said in text_of(page)
    assert "kept as it was" in page


async def test_a_tool_of_any_name_has_an_address_and_takes_json(shop: ToolServer, web: Browser) -> None:
    at = tool_path(f"shop::{ODD}")
    assert ODD in text_of(await web.get(at))
    assert "must be a JSON object" in text_of(await web.post(at, {"arguments": "[1]"}, 400))
    assert "It answered" in text_of(await web.post(at, {"arguments": '{"a": 1}'}))
    assert shop.called == [ODD]
    assert "There is no tool" in text_of(await web.get("/tools/tool/shop::nothing", 404))


async def test_a_page_says_why_a_search_finds_its_tool(web: Browser) -> None:
    said = text_of(await web.get(tool_path("shop::send_mail"), q="send a letter"))
    assert "Verdict found" in said
    said = text_of(await web.get(tool_path("shop::send_mail"), q="xyzzy"))
    assert "shares no word with the query" in said


@shows("WEB-TOOLS")
@pytest.mark.parametrize(("verdict", "left"), [("accept", "Send a parcel"), ("refuse", "Send a letter")])
async def test_a_change_that_is_held_is_shown_and_decided(
    installation: App, shop: ToolServer, web: Browser, verdict: str, left: str
) -> None:
    shop.tools[1] = tool("send_mail", "Send a parcel by electronic mail.", SCHEMA)
    await web.post("/tools/servers/refresh", {"name": "shop"})
    assert "shop::send_mail" in await web.get("/tools/all", changed="yes")
    page = await web.get(tool_path("shop::send_mail"))
    assert "<del>letter </del><ins>parcel </ins>" in page
    assert "It is held back" in text_of(page)
    assert "held back until somebody has looked" in text_of(
        await web.post(tool_path("shop::send_mail"), {"arg.text": "x"}, 403)
    )
    done = text_of(await web.post("/tools/review", {"tool": "shop::send_mail", "verdict": verdict}))
    assert f"The change is {verdict}{'ed' if verdict == 'accept' else 'd'}." in done
    assert left in done
    found = await installation.tools.catalogue.get("shop::send_mail")
    assert found is not None
    assert found.description.startswith(left)
    assert "nothing to review" in text_of(await web.post("/tools/review", {"tool": "shop::send_mail"}, 400))


@shows("WEB-TOOLS")
async def test_a_server_is_added_looked_at_asked_again_and_removed(installation: App, web: Browser) -> None:
    with open_tool_server("lab", [tool("brew")]) as lab:
        form = {"name": "lab", "kind": "http", "where": lab.url, "headers": "X-Key: s3cret\r\n", "description": "Lab"}
        page = await web.post("/tools/add", form)
        assert "Added lab: 1 tools" in text_of(page)
        assert "X-Key" in page
        assert "s3cret" not in page
        lab.tools.append(tool("bake"))
        assert "2 tools; 1 new (bake)" in text_of(await web.post("/tools/servers/refresh", {"name": "lab"}))
        assert "2 servers were asked: 2 answered." in text_of(await web.post("/tools/servers/refresh"))
        listed = text_of(await web.get("/tools/servers"))
        assert "lab ok 2" in listed
        assert "2 in all" in listed
    assert "1 failed (lab)" in text_of(await web.post("/tools/servers/refresh"))
    assert "It does not answer" in text_of(await web.get("/tools/server/lab"))
    gone = await web.post("/tools/servers/remove", {"name": "lab"})
    assert "Removed lab" in text_of(gone)
    assert [state.name for state in installation.tools.catalogue.servers()] == ["shop"]
    await web.get("/tools/server/lab", 404)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "no good", "where": "http://127.0.0.1:9/"}, "cannot be a tool server's name"),
        ({"name": "lab", "where": "ftp://x"}, "must be http(s)://host/path"),
        ({"name": "lab", "where": "http://127.0.0.1:9/mcp"}, "was not added"),
        ({"name": "lab", "where": "http://127.0.0.1:9/mcp", "headers": "s3cret"}, "Line 1 is not of the form"),
        ({"name": "lab", "kind": "command", "where": "run 'it"}, "a quote in it is not closed"),
        ({"name": "lab", "kind": "command", "where": " "}, "needs a command"),
        ({"name": "shop", "where": "http://127.0.0.1:9/mcp"}, "is already at"),
    ],
)
async def test_a_server_that_cannot_be_added_leaves_the_form_without_its_secrets(
    installation: App, web: Browser, form: dict[str, str], said: str
) -> None:
    page = await web.post("/tools/add", form, 400)
    assert said in text_of(page)
    assert f'value="{form["name"]}"' in page
    assert "s3cret" not in page
    assert [state.name for state in installation.tools.catalogue.servers()] == ["shop"]


@pytest.mark.parametrize(
    "form",
    [
        {"name": "lab", "kind": "command", "where": "touch here"},
        {"name": "lab", "where": "http://127.0.0.1:9/mcp", "headers": "X-Key: ${HOME}"},
        {"name": "lab", "where": "${HOME}"},
    ],
)
async def test_whoever_is_elsewhere_runs_no_command_here_and_reads_no_variable(
    installation: App, form: dict[str, str]
) -> None:
    shown = await key(installation, "ops", INSTALLATION_ADMIN)
    async with browsing(build_application(installation), authorization=f"Bearer {shown}") as web:
        said = text_of(await web.post("/tools/add", form, 403))
    assert "only from that machine" in said
    assert [state.name for state in installation.tools.catalogue.servers()] == ["shop"]


async def test_a_command_is_added_only_from_this_machine(installation: App, web: Browser) -> None:
    server = Path(__file__).parents[2] / "support" / "stdio_server.py"
    form = {"name": "own", "kind": "command", "where": f"python3 '{server}'", "env": "COLOUR=red"}
    assert "Added own: " in text_of(await web.post("/tools/add", form))


async def test_use_is_shown_over_time_and_by_agent(installation: App, web: Browser, ada: str) -> None:
    for form in ({"arg.title": "x", "arg.kind": '"bug"', "agent": ada}, {"arg.title": "y", "arg.kind": '"bug"'}):
        await web.post(tool_path("shop::create_issue"), form)
    await installation.journal.flush()
    for over in ("day", "week", "month", "nonsense"):
        assert "2 calls in the last" in text_of(await web.get("/tools/use", over=over))
    page = await web.get("/tools/use")
    assert f'<a href="/agents/{ada}" title="{ada}"><bdi>Ada</bdi></a>' in page
    assert "no agent 1 0" in text_of(page)
    assert "2 calls in the last 7 days" in text_of(await web.get(tool_path("shop::create_issue")))


def test_the_time_below_the_bars_is_that_of_the_bar_it_stands_at() -> None:
    now = datetime(2026, 11, 18, 14, 31, tzinfo=UTC)
    day, week, month = (usage_chart([], over, now).ticks for over in ("day", "week", "month"))
    assert [(tick.words, tick.at) for tick in day] == [
        ("12:00", 87.5),
        ("06:00", 62.5),
        ("18 Nov", 37.5),
        ("18:00", 12.5),
    ]
    assert [tick.ends for tick in day] == [True, False, False, False]
    assert [tick.words for tick in week] == [f"{number} Nov" for number in range(18, 11, -1)]
    assert [tick.words for tick in month] == ["16 Nov", "9 Nov", "2 Nov", "26 Oct"]


async def test_search_is_measured_with_ones_own_queries(web: Browser) -> None:
    cases = "send a letter => shop::send_mail\nfile an issue => create_issue\nfly => nowhere::fly"
    said = text_of(await web.post("/tools/quality", {"cases": cases}))
    assert "2 queries over 3 tools; 100 is the best. 1 left out" in said
    assert "Words only 100.0" in said
    assert "Write between 1 and 100 lines" in text_of(await web.post("/tools/quality", {"cases": " "}, 400))
    assert "Line 1 has no query" in text_of(await web.post("/tools/quality", {"cases": "=> x"}, 400))
    assert "None of the right tools" in text_of(await web.post("/tools/quality", {"cases": "a => b::c"}, 400))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("npx -y @scope/server@1.2 /home/ann", "npx -y @scope/server@1.2 /home/ann"),
        ("python3 -m mail_server", "python3 -m mail_server"),
        ("uvx mcp-server-time --api-key hunter", "uvx mcp-server-time --api-key …"),
        ("uvx mail root hunter", "uvx mail … …"),
        ("mysql-server -p hunter -phunter -k /sEcret", "mysql-server -p … … -k …"),
        ("docker run -e TOKEN=abc -i image", "docker run -e … -i …"),
        ("serve.py postgresql://me:pw@db/x sk-live-1 --key=abc", "serve.py … … …"),
    ],
)
def test_of_a_command_all_is_shown_that_is_hardly_a_secret(line: str, shown: str) -> None:
    command, *arguments = line.split()
    assert server_address(ServerSpec("own", Transport.STDIO, command=command, args=tuple(arguments))) == shown


def test_hints_are_sentences() -> None:
    parts = {
        "both": {"type": "integer", "description": "How much.", "minimum": 0, "maximum": 9},
        "title": {"type": "integer", "title": "Weight", "default": 3},
        "limits": {"type": "number", "minimum": 1},
        "words": {"type": "string", "description": "What it is about."},
    }
    found = schema_fields({"properties": parts}, {})
    assert found is not None
    assert [field.hint for field in found] == [
        "How much. At least 0, at most 9.",
        "Weight. 3 by default.",
        "at least 1",
        "What it is about.",
    ]


async def test_whatever_a_server_says_is_inert(installation: App, shop: ToolServer, web: Browser) -> None:
    schema = {
        "type": "object",
        "title": HOSTILE,
        "properties": {
            HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE},
            "choice": {"enum": [HOSTILE, {"a": HOSTILE}], "description": HOSTILE},
        },
        "required": [HOSTILE],
    }
    name = '<b>"mail"</b>'
    with open_tool_server("bad", [tool(name, HOSTILE, schema)]) as bad:
        await installation.tools.catalogue.add(ServerSpec("bad", url=bad.url, description=HOSTILE, hold_changes=True))
        bad.name = HOSTILE
        at = tool_path(f"bad::{name}")
        found = await installation.tools.catalogue.get(f"bad::{name}")
        assert found is not None
        [odd] = found.parameters["required"]
        choice = json.dumps(found.parameters["properties"]["choice"]["enum"][0], ensure_ascii=False)
        answered = await web.post(at, {f"arg.{odd}": HOSTILE, "arg.choice": choice})
        bad.tools[0] = tool(name, f"New: {HOSTILE}", schema)
        await web.post("/tools/servers/refresh", {"name": "bad"})
    await installation.journal.flush()
    pages = [
        answered,
        await web.get(at, q=HOSTILE),
        await web.get("/tools", q=f"mail {HOSTILE}"),
        await web.get("/tools", q="bad mail", agent=HOSTILE),
        await web.get("/tools/all", server="bad"),
        await web.get("/tools/all", server=HOSTILE),
        await web.get("/tools/plan", q=HOSTILE, agent=HOSTILE, keep=HOSTILE),
        await web.get("/tools/server/bad"),
        await web.get("/tools/servers"),
        await web.get("/tools/use"),
        await web.get("/tools/add", name=HOSTILE, where=HOSTILE),
    ]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>" not in page
    assert HOSTILE[:20] in text_of(answered)


async def test_a_megabyte_of_an_answer_is_cut(installation: App, shop: ToolServer, web: Browser) -> None:
    shop.name = "x" * 1_000_000
    page = await web.post(tool_path("shop::send_mail"), {"arg.text": "x"})
    assert len(page) < 400_000
    assert "all 1," in text_of(page)


async def test_tools_are_shown_while_the_agent_host_is_away(tmp_path: Path, shop: ToolServer) -> None:
    away = settings_with(
        FRONTDESK_DATA=tmp_path / "data", FRONTDESK_EMBEDDINGS="off", LETTA_BASE_URL="http://127.0.0.1:9"
    )
    async with open_app(away) as app, browsing(build_application(app)) as web:
        await app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
        assert "shop::send_mail" in await web.get("/tools", q="send a letter", agent="agent-7")
        await web.post(tool_path("shop::send_mail"), {"arg.text": "x", "agent": "agent-7"})
        await app.journal.flush()
        assert "<bdi>agent-7</bdi>" in await web.get("/tools/use"), "by its id, as its name is not known"


def test_a_deep_or_endless_schema_makes_a_form_all_the_same() -> None:
    endless = {"properties": {"a": {"$ref": "#/properties/a"}, "b": 7, "c": {"type": ["string", "integer"]}}}
    found = schema_fields(endless, {})
    assert found is not None
    assert {field.shape for field in found} == {FieldShape.JSON}
    assert schema_fields({"properties": {str(number): {} for number in range(100)}}, {}) is None
