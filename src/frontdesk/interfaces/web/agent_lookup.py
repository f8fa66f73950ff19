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
    """The names of these agents, without agents that the host does not know or does not return in time."""
    wanted = {agent_id for agent_id in ids if agent_id}
    try:
        return await host_answer_in_time(app.host.names(wanted)) if wanted else {}
    except Unavailable:
        return {}


async def find_agent(request: PageRequest) -> Agent | None:
    agent_id = request.path_params["agent_id"]
    return await host_answer_in_time(request.app.host.find(agent_id)) if AGENT_ID_PATTERN.fullmatch(agent_id) else None


async def require_agent(request: PageRequest) -> Agent:
    found = await find_agent(request)
    if found is None:
        raise agent_not_found(request)
    return found


def agent_not_found(request: PageRequest) -> NotFound:
    return NotFound(f"There is no agent '{request.path_params['agent_id'][:128]}'; the list shows all agents")


def agent_path(request: PageRequest, *parts: str) -> str:
    """The address of an agent's page, or of a page below it."""
    return "/".join(["/agents", quote(request.path_params["agent_id"], safe=""), *parts])


# A longer list is of no use in a form; other agents are named by their ids.
MOST_LISTED = 200
NAME_LENGTH = 60
UNKNOWN_ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class AgentChoices:
    """The agents to choose from, or the problem if the host does not answer."""

    agents: Sequence[Agent] = ()
    wrong: str = ""

    def name_of(self, agent_id: str) -> str:
        return next(
            (shorten(one.name, NAME_LENGTH) for one in self.agents if one.id == agent_id),
            shorten(agent_id, UNKNOWN_ID_LENGTH),
        )

    def choices(self, chosen: str | None, first: str) -> list[tuple[str, str]]:
        """(id, label) of each agent for a select field, with the chosen agent even if the host does not know it."""
        known = [(one.id, f"{shorten(one.name, NAME_LENGTH)} ({shorten(one.id, 14)})") for one in self.agents]
        gone = [] if not chosen or any(one.id == chosen for one in self.agents) else [(chosen, chosen)]
        return [("", first), *known, *gone]


async def list_agent_choices(request: PageRequest) -> AgentChoices:
    """The options, or the problem: schedules can be viewed while the agent host is unavailable."""
    try:
        return AgentChoices(await host_answer_in_time(request.app.host.list(MOST_LISTED)))
    except Unavailable as error:
        return AgentChoices(wrong=error.full_message)


async def single_agent_choice(request: PageRequest, agent_id: str) -> AgentChoices:
    """The name of one agent."""
    try:
        found = await host_answer_in_time(request.app.host.find(agent_id))
    except Unavailable as error:
        return AgentChoices(wrong=error.full_message)
    return AgentChoices((found,) if found is not None else ())


NO_AGENT_OPTION = ("", "nobody in particular")
MOST_AGENTS = 200


def caller_for_agent(request: PageRequest, agent_id: str) -> Caller:
    """The caller of the page, acting as the chosen agent if one was chosen."""
    if not agent_id:
        return request.caller
    return replace(request.caller, agent_id=agent_id, user_id=None, source=AgentIdSource.PARAMETER)


async def list_agent_options(request: PageRequest, chosen: str) -> Sequence[tuple[str, str]]:
    """The agents to choose from with their names. Empty if the host does not answer."""
    try:
        found = [
            (one.id, _option_label(one.name, one.id))
            for one in await host_answer_in_time(request.app.host.list(MOST_AGENTS))
        ]
    except Unavailable:
        found = []
    if chosen and chosen not in dict(found):
        found.append((chosen, one_line(chosen, NAME_LENGTH)))
    return [NO_AGENT_OPTION, *found]


def _option_label(name: str, agent_id: str) -> str:
    return f"{one_line(name, NAME_LENGTH)} ({one_line(agent_id, NAME_LENGTH)})"
