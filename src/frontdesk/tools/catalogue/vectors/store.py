"""Vectors in the database, by model and by the digest of the text: no text is embedded twice, by no replica."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_vectors, tools

CHUNK = 500


class VectorStore:
    """Half precision is kept: it halves the space, and the order of results does not show it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = postgresql.insert if database.shared else sqlite.insert

    async def get(self, model: str, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Those of these vectors that there are."""
        found: dict[str, bytes] = {}
        async with self._database.reading() as connection:
            for at in range(0, len(digests), CHUNK):
                these = tool_vectors.c.digest.in_(digests[at : at + CHUNK])
                rows = await connection.execute(select(tool_vectors).where(tool_vectors.c.model == model, these))
                found |= {row.digest: row.vector for row in rows}
        return found

    async def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        rows = [{"model": model, "digest": digest, "vector": vector} for digest, vector in vectors.items()]
        async with self._database.transaction() as connection:
            for at in range(0, len(rows), CHUNK):
                await connection.execute(self._insert(tool_vectors).on_conflict_do_nothing(), rows[at : at + CHUNK])

    async def prune(self) -> int:
        """Forget the vectors of texts that no tool has any more; how many went."""
        unused = tool_vectors.c.digest.not_in(select(tools.c.digest))
        async with self._database.transaction() as connection:
            return (await connection.execute(delete(tool_vectors).where(unused))).rowcount


def packed(matrix: NDArray[np.float32]) -> list[bytes]:
    """A row of numbers each."""
    return [row.tobytes() for row in matrix.astype(np.float16)]


def unpacked(rows: Sequence[bytes]) -> NDArray[np.float32]:
    """The matrix that rows of one length make."""
    return np.frombuffer(b"".join(rows), dtype=np.float16).astype(np.float32).reshape(len(rows), -1)
