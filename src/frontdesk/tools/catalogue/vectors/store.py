"""Vectors in the database, by model and by the digest of the text: no text is embedded twice, by no replica."""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, select

from frontdesk.db.engine import Database
from frontdesk.db.lists import sliced
from frontdesk.db.schema import tool_vectors, tools
from frontdesk.db.upsert import per_dialect

PUT = per_dialect(lambda insert: insert(tool_vectors).on_conflict_do_nothing())


class VectorStore:
    """What is kept are packed vectors; `tools/packing.py` has how."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, model: str, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Those of these vectors that there are."""
        found: dict[str, bytes] = {}
        async with self._database.reading() as connection:
            for some in sliced(digests):
                these = tool_vectors.c.digest.in_(some)
                rows = await connection.execute(select(tool_vectors).where(tool_vectors.c.model == model, these))
                found |= {row.digest: row.vector for row in rows}
        return found

    async def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        rows = [{"model": model, "digest": digest, "vector": vector} for digest, vector in vectors.items()]
        async with self._database.transaction() as connection:
            for some in sliced(rows):
                await connection.execute(PUT[connection.dialect.name], some)

    async def prune(self) -> int:
        """Forget the vectors of texts that no tool has any more; how many went."""
        unused = tool_vectors.c.digest.not_in(select(tools.c.digest))
        async with self._database.transaction() as connection:
            return (await connection.execute(delete(tool_vectors).where(unused))).rowcount
