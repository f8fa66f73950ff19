"""What is said to the agents of the demo, and what comes of each: nobody is told these steps but the model."""

from frontdesk.loop.script import Step
from frontdesk.surfaces.demo.day import Day
from frontdesk.surfaces.demo.place import NAME

CLOTHES = "Good morning! What should I wear in Lisbon today?"
WALNUTS = "I am allergic to walnuts, please keep that in mind."
TRAIN = "Put the train tickets on my list, for Friday. What are 180 euros in pounds?"
LOGIN = "Anything new about the login trouble?"
ROOM = "Find us a room for the whole company at ten, 40 people."
MORNING = "Go through my day and tell me what matters."
TICKETS = "Look for new tickets about invoices."
SALES = "Sum up the third quarter."
BROKEN = "Fetch the figures from the old warehouse."

WITH_ADA = (CLOTHES, WALNUTS, TRAIN)
WITH_BRUNO = (LOGIN, ROOM)


def lines(day: Day) -> dict[str, tuple[Step, ...]]:
    """By what is said, the steps that an agent takes."""
    friday = day.friday("18:00").isoformat(timespec="seconds")
    return {
        CLOTHES: (
            Step(
                reasoning="The weather decides that. I need a tool for it.",
                tool="find_tools",
                args={"query": "weather forecast for a city"},
            ),
            _uses("weather_forecast", city="Lisbon", days=2),
            Step("It is 12 °C and clear: take a light jacket. Tomorrow has a few clouds, and one degree more."),
        ),
        WALNUTS: (
            _does("memory_insert", label="human", new_string="Ann is allergic to walnuts."),
            Step("I will. Walnuts are off every list from now on."),
        ),
        TRAIN: (
            _does("create_task", title="Book the train to Porto", category="Travel", priority="high", due_date=friday),
            _does("find_tools", query="convert money into another currency"),
            _uses("convert_currency", amount=180, source="EUR", target="GBP"),
            Step("They are on your list, for Friday. 180 euros are about 151 pounds today."),
        ),
        LOGIN: (
            _does("find_tools", query="search support tickets"),
            _uses("search_tickets", words="login"),
            Step("One open ticket tells of it: #4211, the login fails after the update. I would look at that first."),
        ),
        ROOM: (
            _does("find_tools", query="book a meeting room"),
            _uses("book_meeting_room", people=40, start="10:00"),
            Step("No room takes 40 people; the largest takes 20. Shall I split the meeting?"),
        ),
        MORNING: (
            _does("get_today_updated_tasks"),
            Step("The offer for Nord comes first, then the contract. The electricity bill is late: pay it today."),
        ),
        TICKETS: (
            _does("find_tools", query="search support tickets"),
            _uses("search_tickets", words="invoice"),
            Step("One open ticket: #4187, an invoice shows the wrong total. I have put it first in the queue."),
        ),
        SALES: (
            _does("find_tools", query="sales figures of a quarter"),
            _uses("summarize_sales", quarter=3),
            Step("Q3: revenue 505 k€ from 1,470 orders, growth 5 %. That is about 344 € an order."),
        ),
        BROKEN: (Step(error=503),),
    }


def _does(tool: str, **arguments: object) -> Step:
    return Step(tool=tool, args=arguments)


def _uses(tool: str, **arguments: object) -> Step:
    """A tool of the demo's own server, by the name under which an agent holds it."""
    return _does(f"{NAME}__{tool}", **arguments)
