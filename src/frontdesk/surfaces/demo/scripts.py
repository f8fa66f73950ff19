"""What is said to the agents of the demo, each with the script that the offline model acts out."""

import json
from collections.abc import Mapping
from typing import Any

from frontdesk.surfaces.demo.place import NAME

Step = Mapping[str, Any]


def said(words: str, *steps: Step) -> str:
    """A message as a person writes it, and behind it what will come of it."""
    return f"{words} @@{json.dumps(list(steps), ensure_ascii=False)}@@"


def does(tool: str, **arguments: object) -> Step:
    return {"tool": tool, "args": arguments}


def uses(tool: str, **arguments: object) -> Step:
    """A tool of the demo's own server, by the name under which an agent holds it."""
    return does(f"{NAME}__{tool}", **arguments)


def speaks(text: str) -> Step:
    return {"text": text}


FINDS_WEATHER = does("find_tools", query="weather forecast for a city")
WITH_ADA = (
    said(
        "Good morning! What should I wear in Lisbon today?",
        {"reasoning": "The weather decides that. I need a tool for it.", **FINDS_WEATHER},
        uses("weather_forecast", city="Lisbon", days=2),
        speaks("It stays mild, with wind from the west: take a light jacket. Tomorrow looks much the same."),
    ),
    said(
        "I am allergic to walnuts, please keep that in mind.",
        does("memory_insert", label="human", new_string="Ann is allergic to walnuts."),
        speaks("I will. Walnuts are off every list from now on."),
    ),
    said(
        "Put the train tickets on my list, for Friday.",
        does("create_task", title="Book the train to Porto", priority="high"),
        does("find_tools", query="convert money into another currency"),
        uses("convert_currency", amount=180, source="EUR", target="GBP"),
        speaks("It is on your list. At today's rate the tickets come to about 151 pounds."),
    ),
)
WITH_BRUNO = (
    said(
        "Anything new about the login trouble?",
        does("find_tools", query="search support tickets"),
        uses("search_tickets", words="login"),
        speaks("Two open tickets. #4211 is the one to look at: the login fails after the update."),
    ),
    said(
        "Find us a room for the whole company at ten, 40 people.",
        does("find_tools", query="book a meeting room"),
        uses("book_meeting_room", people=40, start="10:00"),
        speaks("No room takes 40 people; the largest takes 20. Shall I split the meeting?"),
    ),
)
MORNING = said(
    "Go through my day and tell me what matters.",
    does("get_today_updated_tasks"),
    speaks("Three things today: the offer for Nord, the train tickets, and a call with Marta at four."),
)
TICKETS = said(
    "Look for new tickets about invoices.",
    does("find_tools", query="search support tickets"),
    uses("search_tickets", words="invoice"),
    speaks("One open ticket about an invoice that shows the wrong total. I have put it first in the queue."),
)
SALES = said(
    "Sum up the quarter.",
    does("find_tools", query="sales figures of a quarter"),
    uses("summarize_sales", quarter=3),
    speaks("Q3: revenue 505 k€, 1,470 orders, growth 5 %. Orders grew faster than revenue."),
)
BROKEN = said("Fetch the figures from the old warehouse.", {"error": 503})
