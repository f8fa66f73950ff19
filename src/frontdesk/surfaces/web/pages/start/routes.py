"""The page at `/start`, and what can be done on it."""

from frontdesk.surfaces.web.model import Act, Asked, Live, Page, Shown
from frontdesk.surfaces.web.pages.start import acting
from frontdesk.surfaces.web.pages.start.looking import look
from frontdesk.surfaces.web.pages.start.saying import words_for


async def start(asked: Asked) -> Shown:
    found = await look(asked)
    return Shown("start/start.html", "Start", {"found": found, "words": words_for(asked.app.settings, found)})


START: tuple[Page | Act | Live, ...] = (
    Page("/start", start),
    Act("/start/agent", acting.make_agent),
    Act("/start/server", acting.add_server),
    Act("/start/demo-tools", acting.add_demo_tools),
    Act("/start/schedule", acting.schedule),
    Act("/start/run", acting.run),
)
