"""`frontdesk letta`: make Frontdesk and a Letta server known to each other."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App, base_url
from frontdesk.errors import ConfigurationError
from frontdesk.journal.record import Record
from frontdesk.surfaces.cli.options import Flag
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import with_change

if TYPE_CHECKING:
    from frontdesk.agents.letta.connect import Connected

command = Command(name="letta")
EVERY = 10_000


@command.command(usage="Usage: frontdesk letta connect [OPTIONS] [AGENT …]")
def connect(
    *agents: str,
    url: str | None = None,
    name: str = "frontdesk",
    every: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False,
    rotate: Flag = False,
) -> None:
    """Register Frontdesk's MCP address with Letta, and give agents its tools and a key that proves who they are.

    It can be repeated: what is so already stays as it is.

    Parameters
    ----------
    agents
        The agents to connect, by id or name; none only registers the address.
    url
        Where Letta reaches Frontdesk's MCP door, instead of /mcp below FRONTDESK_PUBLIC_URL or the local address.
    name
        What the MCP server is called on the Letta server.
    every
        Connect every agent of the Letta server.
    rotate
        Give out new keys, and end the old ones.
    """

    async def use(app: App, record: Record) -> "Connected":
        # Letta's client and the MCP library are slow to import, and the other commands do without.
        from frontdesk.agents.letta.connect import Connector, Wanted  # noqa: PLC0415
        from frontdesk.agents.letta.host import LettaHost  # noqa: PLC0415
        from frontdesk.surfaces.mcp.server import SPECS  # noqa: PLC0415

        if not isinstance(app.host, LettaHost):
            raise ConfigurationError("No Letta server is set; say where it is in LETTA_BASE_URL")
        chosen = [agent.id for agent in await app.host.list(EVERY)] if every else agents
        address, names = url or f"{base_url(app.settings)}/mcp", [spec.name for spec in SPECS]
        handed = frozenset(spec.name for spec in SPECS if spec.handed)
        wanted = Wanted(address, name, names, tuple(chosen), rotate, handed)
        connected = await Connector(app.host, app.identity, app.keys).connect(wanted)
        record.action += "".join(f" {agent.id}" for agent in connected.agents)
        return connected

    _tell(with_change("letta connect", use), name)


def _tell(connected: "Connected", name: str) -> None:
    did = "is registered with Letta now" if connected.created else "is registered with Letta"
    print(f"'{line(name)}' {did}: {line(', '.join(connected.tools))}")
    for agent in connected.agents:
        key = "new key" if agent.new_key else "key kept"
        tools = f"got {line(', '.join(agent.attached))}" if agent.attached else "had all tools"
        print(f"{line(agent.id)} ({line(agent.name)}): {key}, {tools}")
    if not connected.agents:
        print("No agent was connected. Name some: frontdesk letta connect AGENT …, or --all")
