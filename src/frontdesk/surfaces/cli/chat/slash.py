"""What the slash commands of a chat show."""

from collections.abc import Awaitable, Callable, Mapping

from frontdesk.agents.host import AgentHost
from frontdesk.surfaces.cli.chat.terminal import Ink, Pen, closing, drawn, painted
from frontdesk.surfaces.cli.chat.turns import Thread
from frontdesk.surfaces.cli.plain import line, plain

HELP = """\
/help     this list
/new      begin a new conversation; the agent keeps its memory
/memory   the agent's memory blocks
/tools    the tools it holds
/history  what was said in this conversation
/quit     leave, as does Ctrl-D
Anything else goes to the agent; write // for a message that begins with a slash.
"""
DESCRIPTION = 100


async def memory(host: AgentHost, thread: Thread, pen: Pen) -> str:
    shown = ""
    for block in await host.blocks(thread.agent.id, thread.user_id, runs=thread.user_id is None):
        only = ", read-only" if block.read_only else ""
        head = f"{line(block.label)} ({len(block.value)} of {block.limit} characters{only})"
        shown += f"{painted(head, Ink.CYAN, pen)}\n" + (f"{plain(block.value)}\n" if block.value else "")
    return shown or "It has no memory blocks.\n"


async def tools(host: AgentHost, thread: Thread, pen: Pen) -> str:
    shown = ""
    for tool in await host.tools(thread.agent.id):
        asks = " (asks first)" if tool.needs_approval else ""
        shown += f"{painted(line(tool.name), Ink.CYAN, pen)}{asks}  {line(tool.description, DESCRIPTION)}\n"
    return shown or f"None besides its own. Give it one: frontdesk agents attach {thread.agent.id} SERVER TOOL\n"


async def history(host: AgentHost, thread: Thread, pen: Pen) -> str:
    shown = ""
    for said in await host.history(thread.agent.id, thread.conversation_id, user_id=thread.whose):
        text, pen = drawn(said.event, pen)
        shown += text
    return shown + closing(pen) or "Nothing was said yet.\n"


LOOKS: Mapping[str, Callable[[AgentHost, Thread, Pen], Awaitable[str]]] = {
    "/memory": memory,
    "/tools": tools,
    "/history": history,
}
