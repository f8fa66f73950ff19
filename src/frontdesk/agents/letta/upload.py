"""Puts a tool made of Python source onto a Letta server."""

from letta_client import omit

from frontdesk.agents.letta.server import Server


async def upload(server: Server, source_code: str, description: str | None) -> tuple[str, str | None]:
    """The tool's id and the name of its function; a tool of that name is replaced."""
    with server.asking("this tool"):
        made = await server.client.tools.upsert(source_code=source_code, description=description or omit)
    return made.id, made.name
