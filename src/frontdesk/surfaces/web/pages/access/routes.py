"""The page at `/access`."""

from frontdesk.surfaces.web.model import Act, Live, Page
from frontdesk.surfaces.web.pages.access.doing import make, revoke, rotate
from frontdesk.surfaces.web.pages.access.looking import access, denied

ACCESS: tuple[Page | Act | Live, ...] = (
    Page("/access", access),
    Page("/access/denied", denied),
    Act("/access/keys", make),
    Act("/access/keys/{id}/rotate", rotate),
    Act("/access/keys/{id}/revoke", revoke),
)
