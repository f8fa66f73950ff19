"""Every page and everything that can be done on them."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.access.routes import ACCESS
from frontdesk.surfaces.web.pages.agents.routes import AGENTS
from frontdesk.surfaces.web.pages.now.routes import NOW
from frontdesk.surfaces.web.pages.people.routes import PEOPLE
from frontdesk.surfaces.web.pages.schedule.routes import SCHEDULE
from frontdesk.surfaces.web.pages.start.routes import START
from frontdesk.surfaces.web.pages.tools.routes import TOOLS
from frontdesk.surfaces.web.pages.turns.routes import TURNS

EVERY: tuple[Page | Act | Live, ...] = (*START, *NOW, *ACCESS, *AGENTS, *SCHEDULE, *TURNS, *PEOPLE, *TOOLS)
