"""The pages below `/tools`."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.tools.handing import hand_out, plan
from frontdesk.surfaces.web.pages.tools.measuring import measured, quality
from frontdesk.surfaces.web.pages.tools.one import one, review, try_it
from frontdesk.surfaces.web.pages.tools.searching import everything, search
from frontdesk.surfaces.web.pages.tools.servers import add, new, refresh, remove, server, servers
from frontdesk.surfaces.web.pages.tools.using import use

TOOLS: tuple[Page | Act | Live, ...] = (
    Page("/tools", search),
    Page("/tools/all", everything),
    Page("/tools/plan", plan),
    Act("/tools/plan", hand_out),
    Page("/tools/servers", servers),
    Act("/tools/servers/remove", remove),
    Act("/tools/servers/refresh", refresh),
    Page("/tools/server/{name}", server),
    Page("/tools/add", new),
    Act("/tools/add", add),
    Page("/tools/use", use),
    Page("/tools/quality", quality),
    Act("/tools/quality", measured),
    Act("/tools/review", review),
    # A tool's id may read like any path, so these come last.
    Page("/tools/tool/{id:path}", one),
    Act("/tools/tool/{id:path}", try_it),
)
