"""Looks up agents for pages: by address, by id, and as a list to choose from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from frontdesk.agents.host import Agent, host_answer_in_time
from frontdesk.app import App
from frontdesk.errors import NotFound, Unavailable
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.web.model import PageRequest
from frontdesk.interfaces.web.rendering import shorten
from frontdesk.settings.model import AGENT_ID_PATTERN
from frontdesk.text import one_line


async def agent_names(app: App, ids: Collection[str | None]) -> Mapping[str, str]:
    """The names of these agents; without those that the host does not tell of, or not in time."""
    wanted = {agent_id for agent_id in ids if agent_id}
    try:
        return await host_answer_in_time(app.host.names(wanted)) if wanted else {}
    except Unavailable:
        return {}


async def find_agent(asked: PageRequest) -> Agent | None:
    agent_id = asked.path_params["agent_id"]
    return await host_answer_in_time(asked.app.host.find(agent_id)) if AGENT_ID_PATTERN.fullmatch(agent_id) else None


async def require_agent(asked: PageRequest) -> Agent:
    found = await find_agent(asked)
    if found is None:
        raise agent_not_found(asked)
    return found


def agent_not_found(asked: PageRequest) -> NotFound:
    return NotFound(f"There is no agent '{asked.path_params['agent_id'][:128]}'; the list shows those that there are")


def agent_path(asked: PageRequest, *parts: str) -> str:
    """The address of an agent's page, or of one below it."""
    return "/".join(["/agents", quote(asked.path_params["agent_id"], safe=""), *parts])


# A list to choose from is no use when it is longer; every other agent goes by its id.
MOST_LISTED = 200
NAME_LENGTH = 60
UNKNOWN_ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class AgentChoices:
    """Who can be chosen, and what is wrong where the host does not say."""

    agents: Sequence[Agent] = ()
    wrong: str = ""

    def name_of(self, agent_id: str) -> str:
        return next(
            (shorten(one.name, NAME_LENGTH) for one in self.agents if one.id == agent_id),
            shorten(agent_id, UNKNOWN_ID_LENGTH),
        )

    def choices(self, chosen: str | None, first: str) -> list[tuple[str, str]]:
        """For a list to choose from: with whoever is chosen, though the host may not know them any more."""
        known = [(one.id, f"{shorten(one.name, NAME_LENGTH)} ({shorten(one.id, 14)})") for one in self.agents]
        gone = [] if not chosen or any(one.id == chosen for one in self.agents) else [(chosen, chosen)]
        return [("", first), *known, *gone]


async def list_agent_choices(asked: PageRequest) -> AgentChoices:
    """Schedules can be looked at while the agents' host is away."""
    try:
        return AgentChoices(await host_answer_in_time(asked.app.host.list(MOST_LISTED)))
    except Unavailable as error:
        return AgentChoices(wrong=error.full_message)


async def single_agent_choice(asked: PageRequest, agent_id: str) -> AgentChoices:
    """One agent alone."""
    try:
        found = await host_answer_in_time(asked.app.host.find(agent_id))
    except Unavailable as error:
        return AgentChoices(wrong=error.full_message)
    return AgentChoices((found,) if found is not None else ())


NO_AGENT_OPTION = ("", "nobody in particular")
MOST_AGENTS = 200


def caller_for_agent(asked: PageRequest, agent_id: str) -> Caller:
    """The reader, in the name of the chosen agent, if one was chosen."""
    if not agent_id:
        return asked.caller
    return replace(asked.caller, agent_id=agent_id, user_id=None, source=AgentIdSource.PARAMETER)


async def list_agent_options(asked: PageRequest, chosen: str) -> Sequence[tuple[str, str]]:
    """The agents to choose from, each with its name; without those of a host that does not answer."""
    try:
        found = [
            (one.id, _option_label(one.name, one.id))
            for one in await host_answer_in_time(asked.app.host.list(MOST_AGENTS))
        ]
    except Unavailable:
        found = []
    if chosen and chosen not in dict(found):
        found.append((chosen, one_line(chosen, NAME_LENGTH)))
    return [NO_AGENT_OPTION, *found]


def _option_label(name: str, agent_id: str) -> str:
    return f"{one_line(name, NAME_LENGTH)} ({one_line(agent_id, NAME_LENGTH)})"
