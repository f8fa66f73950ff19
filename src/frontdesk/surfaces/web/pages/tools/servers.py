"""Where tools come from: how each server is, adding one, removing it, asking it again."""

from collections.abc import Mapping, Sequence

import anyio

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.loop.text import some_of
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.tools.adding import KINDS, spec_of
from frontdesk.surfaces.web.pages.tools.common import server_at
from frontdesk.surfaces.web.pages.tools.where import where
from frontdesk.tools.catalogue.crawl import Stage, Step
from frontdesk.tools.looking import servers as states_of

LISTED = 50
# Whoever asked is told after so long what came of it so far.
REFRESH_SECONDS = 20
NAMED = 5
# What is put back into a form that did not go through; headers and variables may be secrets.
KEPT = ("name", "where", "kind", "description")


async def servers(asked: Asked) -> Shown:
    """Servers by name, some at a time."""
    states = sorted(await states_of(asked.app.tools, asked.caller), key=lambda state: state.name)
    after = asked.query.get("after", "")
    left = [state for state in states if state.name > after]
    context = {
        "states": left[:LISTED],
        "count": len(states),
        "after": after,
        "next": left[LISTED - 1].name if len(left) > LISTED else "",
        "progress": asked.app.tools.catalogue.progress(),
        "server_at": server_at,
        "where": where,
    }
    return Shown("tools/servers.html", "Tool servers", context)


async def server(asked: Asked) -> Shown:
    name = asked.at["name"]
    state = next((one for one in await states_of(asked.app.tools, asked.caller) if one.name == name), None)
    if state is None:
        raise NotFound(f"There is no tool server '{name[:60]}'; the list of servers shows those there are")
    return Shown("tools/server.html", state.name, {"state": state, "where": where(state.spec)})


async def new(asked: Asked) -> Shown:
    return _form({**asked.query}, "")


async def add(asked: Asked) -> Done | Shown:
    """Add a server and ask it for its tools; one that does not answer is not kept, unless that is wanted."""
    try:
        spec = spec_of(asked.form, asked.caller)
        force = asked.form.get("force") == "on"
        end = await asked.app.tools.house.add_server(asked.caller, spec, force=force)
    except (Invalid, Conflict) as error:
        return _form(asked.form, str(error), 400)
    return Done(server_at(spec.name), f"{spec.name} is added: {_told(end)}.")


async def remove(asked: Asked) -> Done:
    name = asked.form.get("name", "")
    await asked.app.tools.house.remove_server(asked.caller, name)
    return Done("/tools/servers", f"{name} is removed, and its tools with it.")


async def refresh(asked: Asked) -> Done:
    """Ask one server for its tools, or all of them, for as long as somebody waits."""
    name, ends = asked.form.get("name", ""), list[Step]()

    def note(step: Step) -> None:
        if step.stage is not Stage.STARTED:
            ends.append(step)

    with anyio.move_on_after(REFRESH_SECONDS) as limit:
        await asked.app.tools.house.refresh(asked.caller, [name] if name else None, note)
    late = " The others did not answer in time; they are asked again by themselves." if limit.cancelled_caught else ""
    return Done(server_at(name) if name else "/tools/servers", _summary(ends) + late)


def _form(said: Mapping[str, str], wrong: str, status: int = 200) -> Shown:
    kept = {field: said.get(field, "") for field in KEPT}
    return Shown("tools/add.html", "Add a tool server", {"form": kept, "kinds": KINDS, "wrong": wrong}, status)


def _summary(ends: Sequence[Step]) -> str:
    if len(ends) == 1:
        return f"{ends[0].server}: {_told(ends[0])}."
    failed = [step.server for step in ends if step.stage is Stage.FAILED]
    words = f"{len(ends)} servers were asked: {len(ends) - len(failed)} answered"
    return f"{words}, {len(failed)} failed ({some_of(failed, NAMED)})." if failed else f"{words}."


def _told(step: Step) -> str:
    if step.stage is Stage.FAILED:
        return f"it failed: {step.told}"
    if step.stage is Stage.LISTED:
        return f"{step.tools} tools" + (f"; {step.told}" if step.told else "")
    return step.told or "it is being asked elsewhere"
