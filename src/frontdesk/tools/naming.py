"""Which tool a name means to a caller: an id, the name that models see, or a tool's own where no other has it."""

from collections.abc import Sequence

from frontdesk.errors import Denied, Invalid, NotFound
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.rights.model import Permitted

NAMED = 8
SHOWN = 200


def the_one(known: Sequence[CatalogueTool], permitted: Permitted, name: str) -> CatalogueTool:
    """Of the tools that go by a name, the one that the caller is permitted."""
    said = name[:SHOWN]
    usable = [tool for tool in known if permitted.allows(tool.id)]
    if known and not usable:
        raise Denied(f"You may not use the tool '{said}'; ask whoever runs Frontdesk")
    if not usable:
        raise NotFound(f"There is no tool '{said}'; search for it by what it should do")
    if len(usable) > 1:
        ids = ", ".join(tool.id for tool in usable[:NAMED])
        raise Invalid(f"Several tools are called '{said}'; say which: {ids}")
    return usable[0]
