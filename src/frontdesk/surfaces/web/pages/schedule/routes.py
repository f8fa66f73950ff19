"""The pages below `/schedule`."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.schedule import deeds, listing, live, making, showing

SCHEDULE: tuple[Page | Act | Live, ...] = (
    Page("/schedule", listing.listing),
    Page("/schedule/new", making.form),
    Act("/schedule/new", making.make),
    Act("/schedule/new/preview", making.look),
    Page("/schedule/runs/{id}", showing.run),
    Act("/schedule/runs/{id}/redrive", deeds.redrive),
    Page("/schedule/{id}", showing.schedule),
    Act("/schedule/{id}/pause", deeds.pause),
    Act("/schedule/{id}/resume", deeds.resume),
    Act("/schedule/{id}/run", deeds.run_now),
    Act("/schedule/{id}/cancel", deeds.cancel),
    Live("/live/schedule", live.all_of_them),
    Live("/live/schedule/{id}", live.one),
)
