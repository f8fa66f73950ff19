"""Which agent of a Letta server serves whom: a person's own, a shared one, or one that is made from a template."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from secrets import token_hex

import anyio
import structlog

from frontdesk.agents.letta.people import copying
from frontdesk.agents.letta.people.store import Claim, Kind, Serving, ServingStore, bound
from frontdesk.agents.letta.server import Server
from frontdesk.background import pauses
from frontdesk.db.engine import Transaction
from frontdesk.errors import Busy, Conflict, Denied, FrontdeskError, NotFound
from frontdesk.identity.store import KeyStore

WAIT_SECONDS = 30
LOOKS = (0.05, 0.1, 0.2, 0.5)
UNDO_SECONDS = 5
OF_SOMEBODY_ELSE = (
    "Agent '{0}' serves somebody else: what a Letta agent learns of one person, it knows when it talks with the next. "
    "Whoever runs Frontdesk can make it a template, from which everybody gets an agent of their own "
    "(frontdesk letta template {0}), or say that several people may share it (frontdesk letta share {0})"
)

# How an agent is deleted with all that Letta keeps of it.
Deletes = Callable[[str], Awaitable[None]]

log = structlog.get_logger("frontdesk.letta")


class LettaPeople:
    """Every turn for a named person asks here first. Turns for nobody are of whoever runs the installation."""

    def __init__(self, store: ServingStore, keys: KeyStore) -> None:
        self.store = store
        self._keys = keys

    async def serving(self, server: Server, agent_id: str, user_id: str | None) -> str:
        """The agent that serves a person who names this one."""
        found = None if user_id is None else await self.store.find(agent_id)
        if found is None or user_id is None or found.kind is Kind.SHARED:
            return agent_id
        if found.kind is Kind.TEMPLATE:
            return await self._own(server, agent_id, user_id)
        _check(found, agent_id, user_id)
        return agent_id

    async def bind(self, connection: Transaction, agent_id: str, user_id: str) -> None:
        """In the transaction in which a person's turn begins: from the first one on, the agent is theirs."""
        found = await bound(connection, agent_id, user_id)
        if found.kind is Kind.TEMPLATE:
            raise Conflict(f"Agent '{agent_id}' has just become a template; send it again")
        if found.kind is Kind.PERSON:
            _check(found, agent_id, user_id)

    async def others(self, user_id: str) -> Collection[str]:
        """The agents that are other people's alone."""
        listed = await self.store.listed()
        return {one.agent_id or "" for one in listed if one.kind is Kind.PERSON and one.user_id != user_id}

    async def words(self, ids: Collection[str]) -> Mapping[str, str]:
        """Whom these agents serve, in words, as far as that is known."""
        return {agent_id: known.words for agent_id, known in (await self.store.known(ids)).items()}

    async def make_template(self, agent_id: str, *, as_it_is: bool) -> None:
        """Have each person who names this agent get one of their own, made from it."""
        known = await self.store.find(agent_id)
        if known is not None and known.kind is Kind.TEMPLATE:
            return
        if (people := await self._served(agent_id, known)) and not as_it_is:
            raise Conflict(
                f"Agent '{agent_id}' has talked with {', '.join(people)}, and what it has learned stands in its memory "
                f"blocks, which everybody's agent would begin with. Make a new one for this (frontdesk agents create "
                f"NAME), or clear what is theirs (frontdesk agents block {agent_id} LABEL '') and say --as-it-is"
            )
        await self.store.mark(agent_id, Kind.TEMPLATE)

    async def share(self, agent_id: str) -> None:
        """Let several people talk with this very agent, which knows of each what it learned of all."""
        await self.store.mark(agent_id, Kind.SHARED)

    async def keep_apart(self, agent_id: str, user_id: str | None) -> Serving | None:
        """Neither shared nor a template any longer: it is this person's, or of the one who alone has talked with it.

        None where nobody has yet: then it will be of whoever does first.
        """
        known = await self.store.find(agent_id)
        people = [user_id] if user_id is not None else await self._served(agent_id, known)
        if len(people) > 1:
            raise Conflict(
                f"Several people have talked with agent '{agent_id}': {', '.join(people)}. Say whose it is to be "
                "(--user); it knows of them all"
            )
        if not people:
            await self.store.unmark(agent_id)
            return None
        if known is None or known.user_id != people[0]:
            await self.store.mark(agent_id, Kind.PERSON, people[0])
        return await self.store.find(agent_id)

    async def forget(self, server: Server, delete: Deletes, user_id: str) -> tuple[int, Sequence[str]]:
        """Delete a person's agents; how many rows went, and in words what is left of the person on the server."""
        left = [
            f"agent '{agent_id}' is shared by several people, and may know of this one: look through its memory "
            f"blocks and conversations (frontdesk agents show {agent_id})"
            for agent_id in await self.store.shared_with(user_id)
        ]
        gone = 0
        for one in await self.store.of_person(user_id):
            try:
                ids = [one.agent_id] if one.agent_id else await self._unnoted(server, one.template_id or "", user_id)
                for agent_id in ids:
                    await self._delete(delete, agent_id)
                    gone += await self.store.forget(agent_id)
            except FrontdeskError as error:
                which = f"agent '{one.agent_id}'" if one.agent_id else f"an agent made from '{one.template_id}'"
                left.append(f"{which} was not deleted: {error.public}; erase once more when Letta answers")
            else:
                if one.agent_id is None:
                    await self.store.forget_unmade(user_id)
        return gone, left

    async def _delete(self, delete: Deletes, agent_id: str) -> None:
        for key in await self._keys.of_agent(agent_id, datetime.now(UTC)):
            await self._keys.revoke(key.id, datetime.now(UTC))
        with suppress(NotFound):
            await delete(agent_id)

    async def _unnoted(self, server: Server, template_id: str, user_id: str) -> Sequence[str]:
        """What Letta has of an agent whose making was cut off; not those of which something else is known by now."""
        found = await copying.like_it(server, template_id, user_id)
        known = await self.store.known(found)
        return [agent_id for agent_id in found if agent_id not in known]

    async def _served(self, agent_id: str, known: Serving | None) -> Sequence[str]:
        bound = {known.user_id} if known is not None and known.user_id is not None else set[str]()
        return sorted(bound | set(await self.store.speakers(agent_id)))

    async def _own(self, server: Server, template_id: str, user_id: str) -> str:
        """A person's agent, made from the template where there is none yet: once, whoever asks at the same moment."""
        if (known := await self.store.made_from(template_id, user_id)) is not None:
            return known
        claim, waits = Claim(template_id, user_id, token_hex(16)), pauses(*LOOKS)
        with anyio.move_on_after(WAIT_SECONDS):
            while True:
                answer = await self.store.claim(claim)
                if isinstance(answer, str):
                    return answer
                if answer:
                    return await self._make(server, claim)
                await anyio.sleep(next(waits))
        raise Busy("This person's agent is still being made; try again in a moment")

    async def _make(self, server: Server, claim: Claim) -> str:
        try:
            unnoted = next(iter(await self._unnoted(server, claim.template_id, claim.user_id)), None)
            agent_id = await copying.made(server, self._keys, claim.template_id, claim.user_id, unnoted)
            if not await self.store.made(claim, agent_id):
                raise Busy("This person's agent took too long to be made; try again in a moment")
        except BaseException:
            # What was made by then bears a tag, and is found by whoever tries next.
            with anyio.move_on_after(UNDO_SECONDS, shield=True), suppress(FrontdeskError):
                await self.store.give_up(claim)
            raise
        log.info("letta_agent_made", agent_id=agent_id, template_id=claim.template_id)
        return agent_id


def _check(found: Serving, agent_id: str, user_id: str) -> None:
    if found.user_id != user_id:
        raise Denied(OF_SOMEBODY_ELSE.format(agent_id))
