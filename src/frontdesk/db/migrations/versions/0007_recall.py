"""What is found: words and meaning of what people keep."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.row_security import enable_row_security

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

WALLED = ["recall_docs", "recall_loose", "recall_words", "recall_regions", "recall_cells"]
# Small whole numbers, written anew with each change: to compress them takes longer than to write them.
PLAIN = [("recall_words", "docs"), ("recall_regions", "cells"), ("recall_cells", "vectors")]


def upgrade() -> None:
    op.add_column("people", sa.Column("numbered", sa.Integer, nullable=False, server_default="0"))
    op.add_column("people", sa.Column("model", sa.Integer))
    op.create_index("ix_timeline_items_user_id_start_time", "timeline_items", ["user_id", "start_time"])
    _docs()
    _loose()
    _words()
    _regions()
    _cells()
    if op.get_bind().dialect.name == "postgresql":
        for table, column in PLAIN:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
    enable_row_security(op.get_bind(), WALLED, [])


def downgrade() -> None:
    for table in reversed(WALLED):
        op.drop_table(table)
    op.drop_index("ix_timeline_items_user_id_start_time")
    op.drop_column("people", "model")
    op.drop_column("people", "numbered")


def _docs() -> None:
    op.create_table(
        "recall_docs",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("n", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("item_id", sa.String(36), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("model", sa.Integer, nullable=False),
        sa.Column("cell", sa.Integer),
        sa.Column("vector", sa.LargeBinary),
        sa.ForeignKeyConstraint(
            ["user_id", "item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "n", name="pk_recall_docs"),
    )
    op.create_index("ix_recall_docs_user_id_item_id", "recall_docs", ["user_id", "item_id"], unique=True)
    op.create_index("ix_recall_docs_user_id_model_n", "recall_docs", ["user_id", "model", "n"])


def _loose() -> None:
    op.create_table(
        "recall_loose",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("n", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "n", name="pk_recall_loose"),
    )


def _words() -> None:
    op.create_table(
        "recall_words",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("term", sa.String(60), nullable=False),
        sa.Column("block", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("docs", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "term", "block", name="pk_recall_words"),
        sqlite_with_rowid=False,
    )


def _regions() -> None:
    op.create_table(
        "recall_regions",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("region", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("model", sa.Integer, nullable=False),
        sa.Column("centre", sa.LargeBinary, nullable=False),
        sa.Column("cells", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "region", name="pk_recall_regions"),
    )


def _cells() -> None:
    op.create_table(
        "recall_cells",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cell", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("model", sa.Integer, nullable=False),
        sa.Column("vectors", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cell", name="pk_recall_cells"),
    )
