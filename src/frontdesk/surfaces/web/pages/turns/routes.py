"""The pages at `/turns`."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.turns import acting, living, looking

TURNS: tuple[Page | Act | Live, ...] = (
    Page("/turns", looking.every),
    Page("/turns/{turn_id}", looking.one),
    Act("/turns/{turn_id}/cancel", acting.cancel),
    Act("/turns/{turn_id}/answer", acting.answer),
    Live("/live/turns", living.tell_every),
    Live("/live/turns/{turn_id}", living.tell_one),
)
