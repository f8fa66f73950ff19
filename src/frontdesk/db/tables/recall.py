"""What people's items are found by: their words, and what they mean.

All of it is made from the items and walled off like them. `n` numbers a person's items in the order in which they were
first kept; a person's change waits for the one before it, so that numbers, words and cells are always of one piece.
"""

from typing import Any

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, LargeBinary, String, Table, Text

from frontdesk.db.tables.shared import metadata

TERM_LENGTH = 60


def _whose() -> Column[Any]:
    return Column("user_id", String(200), primary_key=True)


def _number(name: str) -> Column[Any]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


# `model` is the number of the embedder that read the text, 0 until one has: then there is a vector, and a cell with it.
recall_docs = Table(
    "recall_docs",
    metadata,
    _whose(),
    _number("n"),
    Column("item_id", String(36), nullable=False),
    Column("text", Text, nullable=False),
    Column("model", Integer, nullable=False),
    Column("cell", Integer),
    Column("vector", LargeBinary),
    ForeignKeyConstraint(["user_id", "item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
    Index(None, "user_id", "item_id", unique=True),
    Index(None, "user_id", "model", "n"),
)

# The terms of the newest items and their weights, until they are folded into `recall_words` with those of others.
recall_loose = Table(
    "recall_loose",
    metadata,
    _whose(),
    _number("n"),
    Column("words", Text, nullable=False),
)

# Which items hold a term: `docs` has the places of those that do within a block of numbers, and what it weighs there.
recall_words = Table(
    "recall_words",
    metadata,
    _whose(),
    Column("term", String(TERM_LENGTH), primary_key=True),
    _number("block"),
    Column("docs", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Vectors of like meaning lie together in cells, and like cells in regions: a search reads the likeliest of both.
recall_regions = Table(
    "recall_regions",
    metadata,
    _whose(),
    _number("region"),
    Column("model", Integer, nullable=False),
    Column("centre", LargeBinary, nullable=False),
    Column("cells", LargeBinary, nullable=False),
)

recall_cells = Table(
    "recall_cells",
    metadata,
    _whose(),
    _number("cell"),
    Column("model", Integer, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
)
