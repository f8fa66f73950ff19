"""The tools at every door: `health` and `whoami`."""

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.surfaces.mcp.tool import Answer, Arguments, ToolSpec


class NoArguments(Arguments):
    """Nothing to say."""


class Health(Answer):
    """The state of the desk and what it is set to."""

    status: str
    letta_base_url: str
    db: str
    auth_set: bool


class Who(Answer):
    """The caller as Frontdesk sees it."""

    agent_id: str | None
    user_id: str | None
    source: str
    verified: bool
    scopes: list[str] | None
    name: str | None
    capabilities: list[str]
    request_id: str


async def health(app: App, caller: Caller, _arguments: NoArguments) -> Health:
    return Health.model_validate(await app.health(caller))


async def whoami(app: App, caller: Caller, _arguments: NoArguments) -> Who:
    known = app.identity.whoami(caller)
    return Who(
        agent_id=known.agent_id,
        user_id=known.user_id,
        source=known.source,
        verified=known.verified,
        scopes=None if known.scopes is None else sorted(known.scopes),
        name=known.name,
        capabilities=list(known.capabilities),
        request_id=known.request_id,
    )


CORE: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="health",
        title="Health",
        description="Whether Frontdesk can serve, and which agent server and database it is set to.",
        arguments=NoArguments,
        answer=Health,
        run=health,
        for_agent=False,
        any_id=True,
    ),
    ToolSpec(
        name="whoami",
        title="Who am I",
        description=(
            "Who Frontdesk takes you for: agent, person, where the agent id came from, and whether it is proven."
        ),
        arguments=NoArguments,
        answer=Who,
        run=whoami,
    ),
)
