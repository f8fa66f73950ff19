"""Connects capabilities that do not import each other, by passing functions of one to another."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from frontdesk.agents.host import AgentHost
from frontdesk.agents.memory_blocks import PER_PERSON_LABEL, block_row_user
from frontdesk.db.person_data import EXPORTED_COLUMNS, delete_person_rows, export_rows
from frontdesk.errors import MissingScope, Unavailable
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_WRITE, without_others_scopes
from frontdesk.memory.model import PersonScope
from frontdesk.memory.people import DeletedRecords, OtherPersonData

if TYPE_CHECKING:
    from frontdesk.agents.letta.host import LettaHost
    from frontdesk.app import App

# How many agents are searched for the name of a task's assignee.
MAX_AGENTS_LISTED = 1_000


class TaskWakeups:
    """Has the scheduler prompt an agent when a person's task is due."""

    def __init__(self, app: "App") -> None:
        self._app = app

    async def schedule(self, scope: PersonScope, agent_id: str, prompt: str, at: datetime) -> int:
        """The id of a new schedule, which the agent creates for the person."""
        # The right to write tasks does not include the right to prompt agents. The run gets the rights of the task's
        # writer.
        if scope.scopes is not None and SCHEDULES_WRITE not in scope.scopes:
            raise MissingScope(SCHEDULES_WRITE)
        from frontdesk.schedules.requests import NewSchedule  # noqa: PLC0415 - few commands schedule anything

        new = NewSchedule(prompt, time=at.isoformat())
        own = replace(_caller_of_scope(scope, agent_id), scopes=without_others_scopes(scope.scopes))
        return (await self._app.schedules.add(own, new)).schedule.id

    async def cancel(self, scope: PersonScope, schedule_id: int) -> None:
        await self._app.schedules.cancel(_caller_of_scope(scope, None), schedule_id)


def _caller_of_scope(scope: PersonScope, agent_id: str | None) -> Caller:
    """The person, or an agent that works for them. We identified them ourselves, so the caller is verified."""
    request_id = f"task-{secrets.token_hex(8)}"
    proof = scope.credential_id
    return Caller(request_id, agent_id, scope.user_id, AgentIdSource.CREDENTIAL, verified=True, credential_id=proof)


class AgentNames:
    """Looks up agents of the host by id and by name."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def name_of(self, agent_id: str) -> str | None:
        """The agent's name. None if the host does not know it or does not answer."""
        try:
            found = await self._host.find(agent_id)
        except Unavailable:
            return None
        return None if found is None else found.name

    async def id_of(self, text: str) -> str | None:
        """The id of the agent with this id, or with this name if only one has it."""
        found = await self._host.find(text)
        if found is not None:
            return found.id
        named = [one.id for one in await self._host.list(MAX_AGENTS_LISTED) if one.name.casefold() == text.casefold()]
        return named[0] if len(named) == 1 else None


def person_data_outside_memory(app: "App") -> Sequence[OtherPersonData]:
    """The data of a person outside the memory tables. The services that have it are opened when it is asked for."""

    async def told(user_id: str) -> Sequence[Mapping[str, Any]]:
        return [asdict(entry) for entry in await app.journal.entries_of_person(user_id)]

    async def forget_journal(user_id: str) -> int:
        return await app.journal.delete_person(user_id)

    async def named(user_id: str) -> Sequence[Mapping[str, Any]]:
        theirs = [key for key in await app.keys.list() if key.user_id == user_id]
        return [{"id": key.id, "name": key.name, "created_at": key.created_at} for key in theirs]

    def of_agents(name: str) -> Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]]:
        async def told_by_agents(user_id: str) -> Sequence[Mapping[str, Any]]:
            return await export_rows(app.database, name, user_id, block_row_user(user_id))

        return told_by_agents

    async def forget(user_id: str) -> DeletedRecords:
        # Running turns would write the deleted data again.
        await app.turns.cancel_person(user_id)
        await app.tools.usage.flush()
        await app.tools.learning.flush()
        await app.tools.learning.forget(f"user:{user_id}")
        gone = await delete_person_rows(app.database, user_id, block_row_user(user_id), PER_PERSON_LABEL)
        await app.workspace.mirror.delete_person(user_id, gone.agents)
        return DeletedRecords(gone.count, gone.left)

    return (
        OtherPersonData("journal", told, forget_journal),
        OtherPersonData("api_keys", named),
        *(OtherPersonData(name, of_agents(name)) for name in EXPORTED_COLUMNS),
        OtherPersonData("house", None, forget),
    )


def person_data_on_letta(host: "LettaHost") -> Sequence[OtherPersonData]:
    """A person's own agents on a Letta server. Erased first, because turns still show which shared agents they used."""

    async def forget(user_id: str) -> DeletedRecords:
        return DeletedRecords(*await host.forget_person(user_id))

    return (OtherPersonData("letta_agents", host.agents_of_person, forget),)
