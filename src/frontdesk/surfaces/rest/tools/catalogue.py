"""The catalogue over HTTP: tools, the servers they come from, and changes that wait for a review."""

from typing import Annotated

from fastapi import APIRouter, Query

from frontdesk.app import App
from frontdesk.surfaces.rest.calls import Who
from frontdesk.surfaces.rest.shapes import REFUSED, Done
from frontdesk.surfaces.rest.tools.asked import RefreshAsked, ReviewAsked, ServerAsked
from frontdesk.surfaces.rest.tools.told import (
    Asking,
    Refreshed,
    ServerList,
    ServerShape,
    Tools,
    WholeTool,
)
from frontdesk.tools.catalogue.store import Filter
from frontdesk.tools.looking import listed, servers, shown
from frontdesk.tools.model import Kind, Standing

MOST = 500


def add_servers(router: APIRouter, app: App) -> None:
    """The routes about where tools come from."""
    tools, house = app.tools, app.tools.house

    @router.get("/servers", responses=REFUSED, summary="Where tools come from, and how each server is")
    async def list_servers(caller: Who) -> ServerList:
        shapes = [ServerShape.of(state) for state in await servers(tools, caller)]
        progress = tools.catalogue.progress()
        return ServerList(servers=shapes, tools=progress.tools, read=progress.embedded)

    @router.post("/servers", responses=REFUSED, summary="Add a server, and ask it for its tools")
    async def add_server(asked: ServerAsked, caller: Who) -> Asking:
        return Asking.of(await house.add_server(caller, asked.spec, force=asked.force))

    @router.delete("/servers/{name}", responses=REFUSED, summary="Take off a server that was added")
    async def remove_server(name: str, caller: Who) -> Done:
        await house.remove_server(caller, name)
        return Done()

    @router.post("/refresh", responses=REFUSED, summary="Ask servers for their tools now")
    async def refresh_tools(caller: Who, asked: RefreshAsked | None = None) -> Refreshed:
        steps = await house.refresh(caller, asked.servers if asked else None)
        return Refreshed(servers=[Asking.of(step) for step in steps])


def add_tools(router: APIRouter, app: App) -> None:
    """The routes about tools; they come last, since a tool's id may read like any path."""
    tools = app.tools

    @router.get("/", include_in_schema=False)
    @router.get("", responses=REFUSED, summary="The tools that the caller may use, in the order of their ids")
    async def list_tools(
        caller: Who,
        server: str | None = None,
        kind: Kind | None = None,
        standing: Standing | None = None,
        *,
        changed: Annotated[bool, Query(description="Only those that changed since they were approved.")] = False,
        after: Annotated[str, Query(max_length=300, description="`next` of the page before.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> Tools:
        wanted = Filter(server, kind, standing, changed=changed, after=after, limit=limit)
        return Tools.of(await listed(tools, caller, wanted))

    @router.post("/{tool_id:path}/review", responses=REFUSED, summary="Accept or refuse how a tool changed")
    async def review_tool(tool_id: str, asked: ReviewAsked, caller: Who) -> WholeTool:
        tool = await tools.house.review(caller, tool_id, accept=asked.accept)
        return WholeTool.whole(tool, await tools.catalogue.other_version(tool.id))

    @router.get("/{tool_id:path}", responses=REFUSED, summary="A tool with its schema, and the change to review")
    async def show_tool(tool_id: str, caller: Who) -> WholeTool:
        tool = await shown(tools, caller, tool_id)
        return WholeTool.whole(tool, await tools.catalogue.other_version(tool.id))
