"""`/tools`: what the agent holds, and what it could."""

from dataclasses import replace

from frontdesk.agents.host import HeldTool
from frontdesk.identity import rights
from frontdesk.surfaces.acp.commands.markdown import code, table, words
from frontdesk.surfaces.acp.commands.model import Desk, Reply
from frontdesk.tools.finding import Finding, Search

NONE = "It holds none besides its own. `/tools WORDS` finds some; the agent attaches what it needs when it is asked to."
FOUND = 10
SHOWN = 100


async def tools(desk: Desk, said: str) -> Reply:
    return await _found(desk, said) if said.strip() else await _held(desk)


async def _held(desk: Desk) -> Reply:
    rights.require(desk.caller, rights.TOOLS_READ)
    held = await desk.app.host.tools(desk.session.agent_id)
    if not held:
        return Reply(NONE)
    rows = [(code(tool.name), words(tool.description, SHOWN), _notes(tool)) for tool in held]
    return Reply(table(("tool", "what it does", ""), rows))


async def _found(desk: Desk, said: str) -> Reply:
    """Among what this agent may use, and with what it used before."""
    caller = replace(desk.caller, agent_id=desk.session.agent_id)
    found = await desk.app.tools.search(caller, Search(said, FOUND))
    if not found.findings:
        return Reply(f"Nothing fits among {found.searched:,} tools.")
    held = {tool.name for tool in await desk.app.host.tools(desk.session.agent_id)}
    rows = [_row(finding, held=finding.tool.api_name in held) for finding in found.findings]
    return Reply(table(("score", "tool", "what it does", "why", ""), rows))


def _row(finding: Finding, *, held: bool) -> tuple[str, ...]:
    tool = finding.tool
    what, why = words(tool.description, SHOWN), words(finding.reason, SHOWN)
    return f"{finding.score:.0f}", code(tool.id), what, why, "attached" if held else ""


def _notes(tool: HeldTool) -> str:
    return ", ".join(note for note in (words(tool.server or ""), "asks first" if tool.needs_approval else "") if note)
