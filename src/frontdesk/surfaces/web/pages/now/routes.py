"""The page at `/`, and what is told to it while it is open."""

from frontdesk.surfaces.web.model import Act, Asked, Live, Page, Shown
from frontdesk.surfaces.web.pages.now.parts import contexts
from frontdesk.surfaces.web.pages.now.pulse import pulse_of, tell


async def now(asked: Asked) -> Shown:
    facts = await pulse_of(asked.app).facts(asked)
    parts = contexts(facts)
    context = {name: value for part in parts.values() for name, value in part.items()}
    return Shown("now/now.html", "Now", context, 503 if facts.database_trouble else 200)


NOW: tuple[Page | Act | Live, ...] = (Page("/", now), Live("/live/now", tell))
