"""The reference pages name every tool and route of the memory room, with what each takes."""

import re

import pytest

from frontdesk.app import App
from frontdesk.surfaces.http import build
from frontdesk.surfaces.mcp.memory.specs import MEMORY
from frontdesk.surfaces.mcp.tool import ToolSpec
from tests.requirements import shows
from tests.support.desk import ROOT
from tests.support.wire import send

pytestmark = pytest.mark.anyio
TOOLS = (ROOT / "docs/reference/mcp.md").read_text()
ROUTES = (ROOT / "docs/reference/rest.md").read_text()
# Of other rooms; the keys have a section whose addresses are shorter.
ELSEWHERE = ("/agents", "/v1", "/user/api-keys")
PAGE = {"limit", "offset"}


def row_of(tool: str) -> str:
    """What the page says of a tool, and of those that it says this one is like."""
    found = re.search(rf"^\| `{tool}` \|.*$", TOOLS, re.MULTILINE)
    assert found, f"docs/reference/mcp.md does not name {tool}"
    like = re.search(r"as `(\w+)`", found[0])
    return found[0] + (row_of(like[1]) if like else "")


def unsaid(spec: ToolSpec) -> list[str]:
    """The arguments of a tool that its row does not name."""
    row = row_of(spec.name)
    given = {field.alias or name for name, field in spec.arguments.model_fields.items()}
    return [name for name in sorted(given - (PAGE if ", page" in row else set())) if f"`{name}`" not in row]


@shows("DOCS-MEMORY")
def test_every_tool_is_there_with_its_arguments() -> None:
    assert {spec.name: unsaid(spec) for spec in MEMORY} == {spec.name: [] for spec in MEMORY}


@shows("DOCS-MEMORY")
async def test_every_route_is_there(app: App) -> None:
    described = await send(build(app), {}, b"", path="/api/openapi.json", method="GET")
    paths: dict[str, dict[str, object]] = described.json["paths"]
    ours = [
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        if not path.startswith(ELSEWHERE)
        for method in methods
    ]
    assert len(ours) > 60
    assert [route for route in ours if not is_told(route)] == []


def is_told(route: str) -> bool:
    """The page calls the first id of an address so, whatever it is the id of."""
    short = re.sub(r"\{\w+\}", "{id}", route, count=1)
    return f"`{short}`" in ROUTES or f"`{short.replace(' /', ' /api/')}`" in ROUTES
