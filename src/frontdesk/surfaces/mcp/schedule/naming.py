"""The tools about which agent a call is for when it names none."""

from collections.abc import Iterator, Mapping
from typing import cast

from frontdesk.app import App
from frontdesk.identity.inbound import metadata_agent
from frontdesk.identity.model import Caller, Source
from frontdesk.schedule.asked import ScopedDefault
from frontdesk.surfaces.mcp.core import NoArguments
from frontdesk.surfaces.mcp.line import Line
from frontdesk.surfaces.mcp.schedule.asked import DefaultAgent, OfScope, ScopedAgent, text
from frontdesk.surfaces.mcp.schedule.told import Default, Diagnostics
from frontdesk.surfaces.mcp.tool import Result

# What the protocol itself puts there says nothing about the caller.
PROTOCOL = "io.modelcontextprotocol/"
SHOWN_KEYS = 50
ENVIRONMENT = "env"


async def diagnose(app: App, caller: Caller, _given: NoArguments, line: Line) -> Result:
    found = await app.schedules.defaults.infer(caller)
    debug = {"source": ENVIRONMENT if found.source == Source.ENVIRONMENT else found.source}
    key = found.key
    if found.source == Source.METADATA:
        named = metadata_agent(line.metadata)
        key = named[0] if named else None
    return Diagnostics(
        ctx_present=True,
        ctx_metadata_keys=list(keys_of(line.metadata))[:SHOWN_KEYS],
        env=dict(found.environment),
        single_agent_fallback_enabled=found.single_agent_fallback,
        inferred_agent_id=found.agent_id,
        inference_debug=debug
        | ({"key": key} if key else {})
        | ({"error": wrong} if (wrong := line.passed_over) else {}),
    ).result()


def keys_of(metadata: Mapping[str, object]) -> Iterator[str]:
    """The names under which a client says something besides, without those of the protocol."""
    for name, value in metadata.items():
        if name == "metadata" and isinstance(value, Mapping):
            yield from (str(key) for key in cast("Mapping[object, object]", value))
        elif name != "progressToken" and not name.startswith(PROTOCOL):
            yield name


async def set_default(app: App, caller: Caller, given: DefaultAgent) -> Result:
    return told(await app.schedules.defaults.set_for_everybody(caller, text(given.agent_id))).result()


async def set_scoped(app: App, caller: Caller, given: ScopedAgent) -> Result:
    return told(await app.schedules.defaults.set(caller, text(given.agent_id), text(given.scope))).result()


async def get_scoped(app: App, caller: Caller, given: OfScope) -> Result:
    return told(await app.schedules.defaults.get(caller, text(given.scope))).result()


def told(found: ScopedDefault) -> Default:
    whose = f"the scope '{found.scope}'" if found.scope else "everybody"
    message = f"Default agent of {whose}: {found.agent_id or 'none'}"
    return Default(scope=found.scope, agent_id=found.agent_id, message=message)
