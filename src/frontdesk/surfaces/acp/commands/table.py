"""Every slash command that an editor is offered."""

from collections.abc import Mapping
from functools import wraps

from frontdesk.errors import FrontdeskError
from frontdesk.surfaces.acp.commands import conversing, remembering, scheduling, tasks, tools
from frontdesk.surfaces.acp.commands.markdown import code, table, words
from frontdesk.surfaces.acp.commands.model import Command, Desk, Reply, Run


def _forgiving(run: Run) -> Run:
    """What cannot be done is what the command says, and no failure of the turn."""

    @wraps(run)
    async def told(desk: Desk, said: str) -> Reply:
        try:
            return await run(desk, said)
        except FrontdeskError as error:
            return Reply(words(error.public))

    return told


async def _help(_desk: Desk, _said: str) -> Reply:
    rows = [(code(f"/{one.name} {one.hint}".rstrip()), words(one.description)) for one in COMMANDS.values()]
    return Reply(table(("command", "what it does"), rows))


_ALL = (
    Command("help", "List these commands", _help),
    Command("memory", "Show what the agent remembers", remembering.memory, "[label]"),
    Command("remember", "Add a line to the agent's memory", remembering.remember, "[label:] text"),
    Command("forget", "Remove the lines that hold these words from its memory", remembering.forget, "[label:] words"),
    Command("tools", "Show the tools that the agent holds, or find others", tools.tools, "[words]"),
    Command(
        *("schedule", "Show, make or cancel prompts that come later", scheduling.schedule),
        "[list, cancel NUMBER, or when: prompt]",
    ),
    Command("tasks", "Show, add or complete your tasks", tasks.tasks, "[words, add TITLE, or done ID]"),
    Command("compact", "Sum up what was said, to make room", conversing.compact),
    Command("model", "Show the models, or choose one for this session", conversing.model, "[name]"),
    Command("rewind", "Forget the newest turns of this session", conversing.rewind, "[number]"),
)
COMMANDS: Mapping[str, Command] = {
    one.name: Command(one.name, one.description, _forgiving(one.run), one.hint) for one in _ALL
}
