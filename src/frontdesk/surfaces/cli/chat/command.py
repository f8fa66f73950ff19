"""`frontdesk chat`: talk with an agent in the terminal, or have a script say one thing."""

import sys

from anyio.from_thread import start_blocking_portal

from frontdesk.app import App, open_app
from frontdesk.errors import Invalid
from frontdesk.settings import Settings
from frontdesk.surfaces.cli.agents import named
from frontdesk.surfaces.cli.chat import once
from frontdesk.surfaces.cli.chat.input import in_colour, prepare
from frontdesk.surfaces.cli.chat.session import Session
from frontdesk.surfaces.cli.chat.turns import Thread, begin
from frontdesk.surfaces.cli.options import Flag, Json, Text
from frontdesk.surfaces.cli.running import quiet, with_app


def talk(
    agent: str,
    /,
    *,
    conversation: str | None = None,
    new: Flag = False,
    message: Text | None = None,
    as_json: Json = False,
    user: str | None = None,
) -> None:
    """Talk with an agent.

    Parameters
    ----------
    agent
        Its id, or its name where no other agent has the same.
    conversation
        The conversation to go on with; the agent's first when left out.
    new
        Begin a new conversation.
    message
        Say this, print the answer and end. Standard input is the message when it is not a terminal.
    as_json
        Print each event of that one turn as a line of JSON.
    user
        The person you speak as; nobody in particular when left out.
    """
    if conversation and new:
        raise Invalid("Give --conversation or --new, not both")
    prepare()
    settings = quiet(Settings.read())
    text = _message(message, as_json=as_json)

    async def enter(app: App) -> Thread:
        # A built-in agent finds tools in what the database knows of them.
        await app.tools.catalogue.load()
        found = await named(app.host, agent)
        if (mine := await app.host.serving(found.id, user)) != found.id:
            found = await named(app.host, mine)
        thread = Thread(found, conversation, user)
        return await begin(app.host, thread) if new else thread

    if text is None:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_app(settings)) as app:
            Session(portal, app, portal.call(enter, app), colour=in_colour()).run()
        return

    async def say(app: App) -> bool:
        return await once.take(app, await enter(app), text, as_json=as_json)

    if not with_app(say, settings):
        sys.exit(1)


def _message(given: str | None, *, as_json: bool) -> str | None:
    """What to say in the only turn there will be; None to ask the person turn by turn."""
    if given is None and sys.stdin.isatty():
        if as_json:
            raise Invalid("--json is for one turn: give --message, or the message on standard input")
        return None
    # What the shell passes on need not be text; a lone surrogate could not be stored.
    text = (sys.stdin.read() if given is None else given).strip().encode(errors="replace").decode()
    if not text:
        raise Invalid("There is no message; give --message, or the message on standard input")
    return text
