"""Which tool a name means to a caller: an id, the name that models see, or a tool's own where no other has it."""

from collections.abc import Iterable, Sequence

from frontdesk.errors import Denied, Invalid, NotFound
from frontdesk.loop.text import closest
from frontdesk.tools.model import HOST_SERVER, CatalogueTool, split_id
from frontdesk.tools.rights.model import Permitted

NAMED = 8
SHOWN = 200


def near_id(ids: Iterable[str], permitted: Permitted, name: str) -> str | None:
    """The id of the tool that the caller is permitted and whose id or own name is nearest to a name, if one is near."""
    # What goes by this very name is one that was listed a moment ago: it is not there any more.
    others = [one for one in ids if name not in (one, split_id(one)[1])]
    usable = [one for one in others if split_id(one)[0] != HOST_SERVER and permitted.allows(one)]
    named = {split_id(one)[1]: one for one in reversed(usable)} | {one: one for one in usable}
    meant = closest(name, named)
    return None if meant is None else named[meant]


def the_one(known: Sequence[CatalogueTool], permitted: Permitted, name: str, near: str | None = None) -> CatalogueTool:
    """Of the tools that go by a name, the one that the caller is permitted; where there is none, `near` is named."""
    said = name[:SHOWN]
    usable = [tool for tool in known if permitted.allows(tool.id)]
    if known and not usable:
        raise Denied(f"You may not use the tool '{said}'; ask whoever runs Frontdesk")
    if not usable:
        advice = f"did you mean '{near}'?" if near else "search for it by what it should do"
        raise NotFound(f"There is no tool '{said}'; {advice}")
    if len(usable) > 1:
        ids = ", ".join(tool.id for tool in usable[:NAMED])
        raise Invalid(f"Several tools are called '{said}'; say which: {ids}")
    return usable[0]
