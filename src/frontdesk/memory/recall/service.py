"""Search among a person's records, by words and by meaning together."""

from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import structlog

from frontdesk.embedding.port import Embedder
from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.memory.model import ItemType
from frontdesk.memory.recall import finding
from frontdesk.memory.recall.around.store import around
from frontdesk.memory.recall.model import MOST, Hit, Near, Query, Way
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Records

QUERY_CHARACTERS = 2000
EMBED_SECONDS = 5
# Who may see one kind of items may search it; the timeline is all of them.
RIGHTS = {
    frozenset({ItemType.MEMORY}): rights.MEMORIES_READ,
    frozenset({ItemType.TASK}): rights.TASKS_READ,
    frozenset({ItemType.ACTIVITY}): rights.ACTIVITIES_READ,
}

log = structlog.get_logger("frontdesk.memory")


class Recall:
    """Finds what a person has kept; without an embedder, by words alone."""

    def __init__(self, records: Records, embedder: Embedder | None) -> None:
        self._records = records
        self._embedder = embedder

    async def search(self, scope: Scope, query: Query) -> list[Hit]:
        """The best first, at most `query.limit` of them."""
        scope.require(RIGHTS.get(query.types or frozenset(), rights.TIMELINE_READ))
        text = query.text.strip()[:QUERY_CHARACTERS]
        if not text:
            raise Invalid("Say what to look for: the query is empty")
        if not 1 <= query.limit <= MOST:
            raise Invalid(f"limit must be from 1 to {MOST}")
        asked = finding.Asked.of(query, text, await self._meaning(text, query.how))
        return await self._records.read(scope, partial(finding.find, asked=asked))

    async def around(self, scope: Scope, item_ids: Sequence[str], depth: int) -> Mapping[str, Sequence[Near]]:
        """What lies around each of these items, so many steps before and after it and as many that are tied to it."""
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(around, item_ids=item_ids, depth=depth))

    async def _meaning(self, text: str, how: Way) -> finding.Meaning | None:
        """The text as a vector; without it search goes by words."""
        if how is Way.FULL_TEXT or self._embedder is None:
            return None
        try:
            with anyio.fail_after(EMBED_SECONDS):
                vectors = await self._embedder.embed([text])
        except (Unavailable, TimeoutError) as error:
            log.warning("recall_without_meaning", error=str(error) or f"no answer in {EMBED_SECONDS} s")
            return None
        return finding.Meaning.of(self._embedder.name, vectors[0])
