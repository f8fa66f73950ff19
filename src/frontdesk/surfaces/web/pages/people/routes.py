"""The pages at `/people`."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.people import doing, handing
from frontdesk.surfaces.web.pages.people.everybody import everybody
from frontdesk.surfaces.web.pages.people.person import person

# Whose it is stands in the form: an id may hold whatever can be printed, also what would end an address.
PEOPLE: tuple[Page | Act | Live, ...] = (
    Page("/people", everybody),
    Page("/people/{user_id:path}", person),
    Act("/people/complete", doing.complete),
    Act("/people/reopen", doing.reopen),
    Act("/people/stop", doing.stop),
    Act("/people/approve", doing.approve),
    Act("/people/export", handing.export),
    Act("/people/erase", handing.erase),
)
