"""Defines the demo's script, the times of its day, and its MCP server, whose answers are made up."""

import sys
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from frontdesk import __version__
from frontdesk.llm.script import ScriptStep
from frontdesk.tools.servers import ServerSpec, Transport

DEMO_SERVER = "demo-desk"
DEMO_SERVER_MODULE = "frontdesk.interfaces.demo_server"
DEMO_SERVER_DESCRIPTION = "Tools for trying things out: their answers are made up, and they do nothing."


def demo_server_spec(name: str = DEMO_SERVER) -> ServerSpec:
    """The demo server for the catalogue: a child process of Frontdesk."""
    return ServerSpec(
        name,
        Transport.STDIO,
        command=sys.executable,
        args=("-m", DEMO_SERVER_MODULE),
        description=DEMO_SERVER_DESCRIPTION,
    )


ONE_DAY = timedelta(days=1)
FRIDAY = 4


@dataclass(frozen=True, slots=True)
class DemoDay:
    """Times of the demo's day. Hours are written `07:00`."""

    now: datetime
    zone: ZoneInfo

    def past(self, hour: str, minutes: int = 0, days: int = 0) -> datetime:
        """The latest time at this hour that was at least `minutes` ago; or `days` before it."""
        today = self._at(0, hour)
        over = today + timedelta(minutes=minutes) <= self.now
        return self._at(-days if over else -days - 1, hour)

    def due(self, hour: str, days: int = 0) -> datetime:
        """This hour, `days` from today."""
        return self._at(days, hour)

    def friday(self, hour: str) -> datetime:
        """This hour on the next Friday that is not today."""
        weekday = self.now.astimezone(self.zone).weekday()
        return self._at((FRIDAY - weekday - 1) % 7 + 1, hour)

    def _at(self, days: int, hour: str) -> datetime:
        date = self.now.astimezone(self.zone).date() + days * ONE_DAY
        return datetime.combine(date, time.fromisoformat(hour), self.zone)


CLOTHES = "Good morning! What should I wear in Lisbon today?"
WALNUTS = "I am allergic to walnuts, please keep that in mind."
TRAIN = "Put the train tickets on my list, for Friday. What are 180 euros in pounds?"
LOGIN = "Anything new about the login trouble?"
MEETING_ROOM = "Find us a room for the whole company at ten, 40 people."
MORNING = "Go through my day and tell me what matters."
TICKETS = "Look for new tickets about invoices."
SALES = "Sum up the third quarter."
BROKEN = "Fetch the figures from the old warehouse."

WITH_ADA = (CLOTHES, WALNUTS, TRAIN)
WITH_BRUNO = (LOGIN, MEETING_ROOM)


def scripted_turns(day: DemoDay) -> dict[str, tuple[ScriptStep, ...]]:
    """The scripted steps of an agent, by message."""
    friday = day.friday("18:00").isoformat(timespec="seconds")
    return {
        CLOTHES: (
            ScriptStep(
                reasoning="The weather decides that. I need a tool for it.",
                tool="find_tools",
                args={"query": "weather forecast for a city"},
            ),
            _server_tool_step("weather_forecast", city="Lisbon", days=2),
            ScriptStep("It is 12 °C and clear: take a light jacket. Tomorrow has a few clouds, and one degree more."),
        ),
        WALNUTS: (
            _tool_step("memory_insert", label="human", new_string="Ann is allergic to walnuts."),
            ScriptStep("I will. Walnuts are off every list from now on."),
        ),
        TRAIN: (
            _tool_step(
                "create_task", title="Book the train to Porto", category="Travel", priority="high", due_date=friday
            ),
            _tool_step("find_tools", query="convert money into another currency"),
            _server_tool_step("convert_currency", amount=180, source="EUR", target="GBP"),
            ScriptStep("They are on your list, for Friday. 180 euros are about 151 pounds today."),
        ),
        LOGIN: (
            _tool_step("find_tools", query="search support tickets"),
            _server_tool_step("search_tickets", words="login"),
            ScriptStep(
                "One open ticket tells of it: #4211, the login fails after the update. I would look at that first."
            ),
        ),
        MEETING_ROOM: (
            _tool_step("find_tools", query="book a meeting room"),
            _server_tool_step("book_meeting_room", people=40, start="10:00"),
            ScriptStep("No room takes 40 people; the largest takes 20. Shall I split the meeting?"),
        ),
        MORNING: (
            _tool_step("get_today_updated_tasks"),
            ScriptStep(
                "The offer for Nord comes first, then the contract. The electricity bill is late: pay it today."
            ),
        ),
        TICKETS: (
            _tool_step("find_tools", query="search support tickets"),
            _server_tool_step("search_tickets", words="invoice"),
            ScriptStep("One open ticket: #4187, an invoice shows the wrong total. I have put it first in the queue."),
        ),
        SALES: (
            _tool_step("find_tools", query="sales figures of a quarter"),
            _server_tool_step("summarize_sales", quarter=3),
            ScriptStep("Q3: revenue 505 k€ from 1,470 orders, growth 5 %. That is about 344 € an order."),
        ),
        BROKEN: (ScriptStep(error=503),),
    }


def _tool_step(tool: str, **arguments: object) -> ScriptStep:
    return ScriptStep(tool=tool, args=arguments)


def _server_tool_step(tool: str, **arguments: object) -> ScriptStep:
    """A call of a tool of the demo server, by its name on the agent."""
    return _tool_step(f"{DEMO_SERVER}__{tool}", **arguments)


SKIES = ("clear", "a few clouds", "rain after noon", "wind from the west")
RATES = {"EUR": 1.0, "USD": 1.09, "GBP": 0.84, "JPY": 163.0}
MEETING_ROOMS = ("Aster", "Birch", "Cedar")

City = Annotated[str, Field(min_length=1, max_length=100, description="The city's name.")]
Amount = Annotated[float, Field(ge=0, description="How much.")]
Currency = Literal["EUR", "USD", "GBP", "JPY"]


def weather_forecast(city: City, days: Annotated[int, Field(ge=1, le=7, description="For how many days.")] = 1) -> str:
    """Tell the weather forecast of a city for the next days: temperature and sky."""
    first = sum(map(ord, city))
    told = [
        f"day {day}: {8 + (first + day) % 17} °C, {SKIES[(first + day) % len(SKIES)]}" for day in range(1, days + 1)
    ]
    return f"{city}: " + "; ".join(told)


def convert_currency(amount: Amount, source: Currency, target: Currency) -> str:
    """Convert an amount of money from one currency into another, at a made-up rate of today."""
    return f"{amount:.2f} {source} are {amount / RATES[source] * RATES[target]:.2f} {target}"


def book_meeting_room(
    people: Annotated[int, Field(ge=1, le=500, description="How many people meet.")],
    start: Annotated[str, Field(description="When the meeting begins, as HH:MM.")],
) -> str:
    """Book a meeting room in the office for a number of people."""
    if people > 20:
        raise ToolError(f"There is no room for {people} people; the largest takes 20")
    return f"Room {MEETING_ROOMS[people % len(MEETING_ROOMS)]} is booked at {start} for {people}"


def search_tickets(
    words: Annotated[str, Field(min_length=1, description="What the tickets are about.")],
    state: Annotated[Literal["open", "closed"], Field(description="Which ones.")] = "open",
) -> str:
    """Search the support tickets of customers by words, open or closed ones."""
    return f"2 {state} tickets about {words}: #4211 'Login fails after update', #4187 'Invoice shows the wrong total'"


def send_email(
    to: Annotated[str, Field(min_length=3, description="The address.")],
    subject: Annotated[str, Field(min_length=1, description="What it is about.")],
    body: Annotated[str, Field(description="What it says.")] = "",
) -> str:
    """Send an email to somebody."""
    if "@" not in to:
        raise ToolError(f"'{to}' is not an address")
    return f"Sent '{subject}' to {to}, {len(body)} characters"


def summarize_sales(quarter: Annotated[int, Field(ge=1, le=4, description="Of this year.")]) -> str:
    """Sum up the sales figures of a quarter: revenue, orders, and how they grew."""
    return f"Q{quarter}: revenue {400 + 35 * quarter} k€, {1200 + 90 * quarter} orders, growth {2 + quarter} %"


def main() -> None:
    """Serve the tools on standard input and output."""
    server = MCPServer(DEMO_SERVER, version=__version__, instructions=DEMO_SERVER_DESCRIPTION)
    for tool in (weather_forecast, convert_currency, book_meeting_room, search_tickets, send_email, summarize_sales):
        server.add_tool(tool)
    server.run("stdio")


if __name__ == "__main__":
    main()
