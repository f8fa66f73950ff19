"""What a caller may use, at the cost of a look into memory; replicas see a change of the rules within a second."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import structlog

from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.tools.rights.model import Effect, Permitted, Rule, subjects, written
from frontdesk.tools.rights.store import RightsStore

LOOK_SECONDS = 1.0
KEPT = 1000

log = structlog.get_logger("frontdesk.tools.rights")


class Rights:
    """While the database is away, the rules it last gave hold."""

    def __init__(self, database: Database) -> None:
        self._store = RightsStore(database)
        self._rules: Sequence[Rule] | None = None
        self._revision = -1
        self._looked_at = 0.0
        self._looking = anyio.Lock()
        self._permitted: OrderedDict[frozenset[str], Permitted] = OrderedDict()

    async def of(self, caller: Caller) -> Permitted:
        """What the rules say of this caller."""
        await self._look()
        who = subjects(caller)
        found = self._permitted.get(who)
        if found is None:
            found = Permitted(tuple(rule for rule in self._rules or () if rule.subject in who))
            self._permitted[who] = found
            if len(self._permitted) > KEPT:
                self._permitted.popitem(last=False)
        return found

    async def rules(self) -> Sequence[Rule]:
        return await self._store.all()

    async def add(self, subject: str, effect: Effect, pattern: str) -> Rule:
        """Add a rule; a pattern without `::` names a whole server."""
        rule = Rule(secrets.token_hex(6), subject, Effect(effect), written(pattern))
        added = await self._store.add(rule, datetime.now(UTC))
        self._looked_at = 0.0
        return added

    async def remove(self, rule_id: str) -> None:
        await self._store.remove(rule_id)
        self._looked_at = 0.0

    async def _look(self) -> None:
        if self._rules is not None and anyio.current_time() - self._looked_at < LOOK_SECONDS:
            return
        async with self._looking:
            if self._rules is not None and anyio.current_time() - self._looked_at < LOOK_SECONDS:
                return
            try:
                await self._read()
            except Unavailable as error:
                if self._rules is None:
                    raise
                log.warning("rights_not_read", error=str(error))
            self._looked_at = anyio.current_time()

    async def _read(self) -> None:
        revision = await self._store.revision()
        if revision != self._revision:
            self._rules = await self._store.all()
            self._permitted.clear()
            self._revision = revision
