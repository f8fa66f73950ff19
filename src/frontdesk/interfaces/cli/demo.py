"""Implements `frontdesk demo`: fill an empty installation with sample data."""

from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from frontdesk.app import App, base_url
from frontdesk.interfaces.app_runner import configure_quiet_logs, local_caller, record_change, run_with_app
from frontdesk.interfaces.cli.output import printable_line
from frontdesk.interfaces.demo.sample_data import DEMO_PERSON, SampleData, create_sample_data
from frontdesk.settings import Settings


def drop_log_event(expected: str) -> None:
    """From here on, events of this name are not logged; everything else is, as before."""

    def without(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event.get("event") == expected:
            raise structlog.DropEvent
        return event

    structlog.configure(processors=[without, *structlog.get_config()["processors"]])


# One prompt of the day is given up, which is there to be looked at.
EXPECTED_EVENT = "prompt_dead"
PAGES_TO_OPEN = (
    ("/", "is all well?"),
    ("/agents", "Ada, Bruno and Cleo: who they are, what they hold and remember"),
    ("/tools", "search them: weather, invoice, meeting"),
    ("/schedule", "what has run, what waits, and one that was given up"),
    (f"/people/{DEMO_PERSON}", "Ann's tasks, memories and time"),
    ("/turns", "what was said, and with which tools"),
    ("/access", "keys, and calls that were turned away"),
)


def fill(*, data: Path | None = None) -> None:
    """Fill an empty installation with a day of agents at work, by running Frontdesk itself; no model is needed.

    Parameters
    ----------
    data
        The folder of a separate installation, on SQLite whatever else is set; FRONTDESK_DATA's when left out.
    """
    settings = configure_quiet_logs(Settings.read(), "error")
    if settings.log_level != "debug":
        drop_log_event(EXPECTED_EVENT)
    if data is not None:
        settings = settings.model_copy(update={"data": data.expanduser().absolute(), "database_url": None})

    async def live(app: App) -> SampleData:
        with record_change(app, "demo"):
            return await create_sample_data(app, local_caller(), datetime.now(UTC))

    found = run_with_app(live, settings, fast=True)
    print("A day has passed: " + ", ".join(f"{number} {name}" for name, number in found.counts.items()) + ".")
    if data is None:
        print("Look at it, with frontdesk up:")
    else:
        # An installation that is set up here may be running meanwhile, and has its own port.
        settings = settings.with_values(port=settings.port ^ 1)
        print(
            f"Look at it, with FRONTDESK_DATA={printable_line(str(settings.data))} frontdesk up --port {settings.port}:"
        )
    for path, words in PAGES_TO_OPEN:
        print(f"  {base_url(settings)}{path}  {words}")
