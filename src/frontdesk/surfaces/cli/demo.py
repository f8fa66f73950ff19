"""`frontdesk demo`: a believable day in a house that nobody lives in yet."""

from datetime import UTC, datetime
from pathlib import Path

from frontdesk.app import App, base_url
from frontdesk.settings import Settings
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import changing, operator, quiet, with_app
from frontdesk.surfaces.demo.filling import PERSON, Filled
from frontdesk.surfaces.demo.filling import fill as filled_with
from frontdesk.surfaces.demo.hush import hush

# One prompt of the day is given up, which is there to be looked at.
EXPECTED = "prompt_dead"
LOOK = (
    ("/", "is all well?"),
    ("/agents", "Ada, Bruno and Cleo: who they are, what they hold and remember"),
    ("/tools", "search them: weather, invoice, meeting"),
    ("/schedule", "what has run, what waits, and one that was given up"),
    (f"/people/{PERSON}", "Ann's tasks, memories and time"),
    ("/turns", "what was said, and with which tools"),
    ("/access", "keys, and calls that were turned away"),
)


def fill(*, data: Path | None = None) -> None:
    """Fill an empty house with a day of agents at work, made by running Frontdesk itself; no model is needed.

    Parameters
    ----------
    data
        The folder of a house of its own, on SQLite whatever else is set; FRONTDESK_DATA's when left out.
    """
    settings = quiet(Settings.read(), "error")
    if settings.log_level != "debug":
        hush(EXPECTED)
    if data is not None:
        settings = settings.model_copy(update={"data": data.expanduser().absolute(), "database_url": None})

    async def live(app: App) -> Filled:
        with changing(app, "demo"):
            return await filled_with(app, operator(), datetime.now(UTC))

    found = with_app(live, settings, fast=True)
    print("A day has passed: " + ", ".join(f"{number} {name}" for name, number in found.counts.items()) + ".")
    if data is None:
        print("Look at it, with frontdesk up:")
    else:
        # The house that somebody set up here may be open meanwhile, and has its own port.
        settings = settings.replaced(port=settings.port ^ 1)
        print(f"Look at it, with FRONTDESK_DATA={line(str(settings.data))} frontdesk up --port {settings.port}:")
    for path, words in LOOK:
        print(f"  {base_url(settings)}{path}  {words}")
