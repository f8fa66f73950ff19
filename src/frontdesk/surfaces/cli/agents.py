"""`frontdesk agents`: the agents of the host."""

from cyclopts import App as Command

from frontdesk.agents.embedded import EmbeddedHost
from frontdesk.agents.host import Agent
from frontdesk.app import App
from frontdesk.errors import ConfigurationError
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.words import table

command = Command(name="agents", help="The agents of the host: built in, or Letta's.")
SHOWN = 1000


@command.command
def add(name: str, *, description: str = "") -> None:
    """Make an agent on the built-in host and print its id."""

    async def make(app: App) -> Agent:
        if not isinstance(app.host, EmbeddedHost):
            raise ConfigurationError("LETTA_BASE_URL is set, so agents are made on that Letta server, not here")
        return await app.host.create(name, description)

    print(with_app(make).id)


@command.command(name="list")
def show() -> None:
    """List the agents."""
    agents = with_app(lambda app: app.host.list(SHOWN))
    if not agents:
        print("No agents yet. Make one: frontdesk agents add NAME")
        return
    print(table(("id", "name", "description"), [(agent.id, agent.name, agent.description) for agent in agents]))
