"""Stores access rules, and caches for up to a second which tools each caller may use."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import structlog
from sqlalchemy import delete, insert, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_rights
from frontdesk.db.statements import increase_counter, read_counter
from frontdesk.errors import NotFound, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.tools.access import AccessEffect, AccessRule, PermittedTools, full_pattern, rule_subjects

RULES_COUNTER = "tool_rights"


class AccessRuleStore:
    """Stores rules. Each change of the rules has a revision, so that replicas notice it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        # Runs every second while there are calls, so it must be cheap.
        async with self._database.brief_transaction() as connection:
            return await read_counter(connection, RULES_COUNTER)

    async def all(self) -> Sequence[AccessRule]:
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(tool_rights).order_by(tool_rights.c.created_at, tool_rights.c.id))
            return [AccessRule(row.id, row.subject, AccessEffect(row.effect), row.pattern) for row in rows]

    async def add(self, rule: AccessRule, now: datetime) -> AccessRule:
        """Add a rule. An equal rule stays as it is."""
        same = (
            tool_rights.c.subject == rule.subject,
            tool_rights.c.effect == rule.effect,
            tool_rights.c.pattern == rule.pattern,
        )
        row = {"id": rule.id, "subject": rule.subject, "effect": rule.effect, "pattern": rule.pattern}
        async with self._database.transaction() as connection:
            await increase_counter(connection, RULES_COUNTER)
            found = (await connection.execute(select(tool_rights.c.id).where(*same))).scalar_one_or_none()
            if found is None:
                await connection.execute(insert(tool_rights).values(**row, created_at=now))
        return rule if found is None else AccessRule(found, rule.subject, rule.effect, rule.pattern)

    async def remove(self, rule_id: str) -> None:
        async with self._database.transaction() as connection:
            await increase_counter(connection, RULES_COUNTER)
            done = await connection.execute(delete(tool_rights).where(tool_rights.c.id == rule_id))
            if done.rowcount == 0:
                raise NotFound(f"There is no rule '{rule_id}'; list the rules to see their ids")


LOOK_SECONDS = 1.0
PERMITTED_CACHED = 1000

log = structlog.get_logger("frontdesk.tools.rights")


class ToolAccess:
    """The rules for each caller. While the database does not answer, the last known rules apply."""

    def __init__(self, database: Database) -> None:
        self._store = AccessRuleStore(database)
        self._rules: Sequence[AccessRule] | None = None
        self._revision = -1
        self._looked_at = 0.0
        self._looking = anyio.Lock()
        self._permitted: OrderedDict[frozenset[str], PermittedTools] = OrderedDict()

    async def permitted_tools(self, caller: Caller) -> PermittedTools:
        """The tools that this caller may use."""
        await self._refresh()
        who = rule_subjects(caller)
        found = self._permitted.get(who)
        if found is None:
            found = PermittedTools(tuple(rule for rule in self._rules or () if rule.subject in who))
            self._permitted[who] = found
            if len(self._permitted) > PERMITTED_CACHED:
                self._permitted.popitem(last=False)
        return found

    async def rules(self) -> Sequence[AccessRule]:
        return await self._store.all()

    async def add(self, subject: str, effect: AccessEffect, pattern: str) -> AccessRule:
        """Add a rule. A pattern without `::` names a whole server."""
        rule = AccessRule(secrets.token_hex(6), subject, AccessEffect(effect), full_pattern(pattern))
        added = await self._store.add(rule, datetime.now(UTC))
        self._looked_at = 0.0
        return added

    async def remove(self, rule_id: str) -> None:
        await self._store.remove(rule_id)
        self._looked_at = 0.0

    async def _refresh(self) -> None:
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
