"""The tools that an agent holds, each with its page where the catalogue has it."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.surfaces.web.model import Asked
from frontdesk.surfaces.web.pages.tools.common import server_at, tool_at
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.selecting import Possession


@dataclass(frozen=True, slots=True)
class Kept:
    """A tool that an agent holds; its page and its server's are empty where there is none, as for the host's own."""

    has: Possession
    page: str = ""
    server: str = ""


async def holdings(asked: Asked, agent_id: str) -> Sequence[Kept]:
    tools = asked.app.tools
    held = await tools.held(asked.caller, agent_id)
    known = await tools.catalogue.many([one.id for one in held if one.id is not None])
    return [_kept(one, known.get(one.id or "")) for one in held]


def _kept(has: Possession, tool: CatalogueTool | None) -> Kept:
    return Kept(has) if tool is None else Kept(has, tool_at(tool.id), server_at(tool.server) if has.tool.server else "")
