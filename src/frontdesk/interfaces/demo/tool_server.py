"""Runs the demo's MCP server on standard input and output; its answers are made up."""

from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from frontdesk import __version__
from frontdesk.interfaces.demo.content import DEMO_SERVER, DEMO_SERVER_DESCRIPTION

SKIES = ("clear", "a few clouds", "rain after noon", "wind from the west")
RATES = {"EUR": 1.0, "USD": 1.09, "GBP": 0.84, "JPY": 163.0}
MEETING_ROOMS = ("Aster", "Birch", "Cedar")

server = MCPServer(DEMO_SERVER, version=__version__, instructions=DEMO_SERVER_DESCRIPTION)

City = Annotated[str, Field(min_length=1, max_length=100, description="The city's name.")]
Amount = Annotated[float, Field(ge=0, description="How much.")]
Currency = Literal["EUR", "USD", "GBP", "JPY"]


@server.tool()
def weather_forecast(city: City, days: Annotated[int, Field(ge=1, le=7, description="For how many days.")] = 1) -> str:
    """Tell the weather forecast of a city for the next days: temperature and sky."""
    first = sum(map(ord, city))
    told = [
        f"day {day}: {8 + (first + day) % 17} °C, {SKIES[(first + day) % len(SKIES)]}" for day in range(1, days + 1)
    ]
    return f"{city}: " + "; ".join(told)


@server.tool()
def convert_currency(amount: Amount, source: Currency, target: Currency) -> str:
    """Convert an amount of money from one currency into another, at a made-up rate of today."""
    return f"{amount:.2f} {source} are {amount / RATES[source] * RATES[target]:.2f} {target}"


@server.tool()
def book_meeting_room(
    people: Annotated[int, Field(ge=1, le=500, description="How many people meet.")],
    start: Annotated[str, Field(description="When the meeting begins, as HH:MM.")],
) -> str:
    """Book a meeting room in the office for a number of people."""
    if people > 20:
        raise ToolError(f"There is no room for {people} people; the largest takes 20")
    return f"Room {MEETING_ROOMS[people % len(MEETING_ROOMS)]} is booked at {start} for {people}"


@server.tool()
def search_tickets(
    words: Annotated[str, Field(min_length=1, description="What the tickets are about.")],
    state: Annotated[Literal["open", "closed"], Field(description="Which ones.")] = "open",
) -> str:
    """Search the support tickets of customers by words, open or closed ones."""
    return f"2 {state} tickets about {words}: #4211 'Login fails after update', #4187 'Invoice shows the wrong total'"


@server.tool()
def send_email(
    to: Annotated[str, Field(min_length=3, description="The address.")],
    subject: Annotated[str, Field(min_length=1, description="What it is about.")],
    body: Annotated[str, Field(description="What it says.")] = "",
) -> str:
    """Send an email to somebody."""
    if "@" not in to:
        raise ToolError(f"'{to}' is not an address")
    return f"Sent '{subject}' to {to}, {len(body)} characters"


@server.tool()
def summarize_sales(quarter: Annotated[int, Field(ge=1, le=4, description="Of this year.")]) -> str:
    """Sum up the sales figures of a quarter: revenue, orders, and how they grew."""
    return f"Q{quarter}: revenue {400 + 35 * quarter} k€, {1200 + 90 * quarter} orders, growth {2 + quarter} %"


def main() -> None:
    server.run("stdio")


if __name__ == "__main__":
    main()
