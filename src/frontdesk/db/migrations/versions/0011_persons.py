"""What an agent knows of a person, and what they said to it, is that person's alone."""

from collections import defaultdict
from uuid import NAMESPACE_OID, uuid4, uuid5

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
# The person at this machine, who is known by that name in some places and by none in others.
LOCAL = "local"
SHARED = (
    " Filled by several people before each had one of their own, and so shared by them still: take out what is "
    "nobody else's business, then make it `--per-person`."
)
# A turn is of the person whose conversation it was taken in. Of a deleted conversation the journal still tells.
TALKERS = """
SELECT turns.agent_id, COALESCE(conversations.user_id, turns.user_id, '') AS user_id
FROM turns LEFT JOIN conversations ON conversations.id = turns.conversation_id
UNION SELECT agent_id, user_id FROM journal
WHERE kind IN ('turn', 'delivery') AND outcome IN ('ok', 'failed') AND agent_id IS NOT NULL AND user_id IS NOT NULL
"""
KEEP_BLOCK = """
INSERT INTO person_blocks (agent_id, label, user_id, value, updated_at)
SELECT agent_id, label, :user_id, value, updated_at FROM blocks WHERE agent_id = :agent_id AND label = 'human'
"""
SPEAKERS = """
SELECT DISTINCT conversations.id, conversations.agent_id, turns.user_id
FROM conversations JOIN turns ON turns.conversation_id = conversations.id
WHERE conversations.user_id IS NULL
"""
COPY = """
INSERT INTO conversations (id, agent_id, user_id, title, created_at, summary_until)
SELECT :new, agent_id, :user_id, title, created_at, 0 FROM conversations WHERE id = :old
"""
MOVE = (
    """
    UPDATE messages SET conversation_id = :new WHERE conversation_id = :old AND turn_id IN
    (SELECT id FROM turns WHERE lane = :left AND user_id = :user_id)
    """,
    "UPDATE turns SET conversation_id = :new, lane = :lane WHERE lane = :left AND user_id = :user_id",
    "UPDATE schedules SET conversation_id = :new WHERE conversation_id = :old AND user_id = :user_id",
    "UPDATE chat_sessions SET conversation_id = :new WHERE conversation_id = :old AND user_id = :user_id",
    "UPDATE editor_sessions SET conversation_id = :new WHERE conversation_id = :old AND user_id = :user_id",
)


def upgrade() -> None:
    op.add_column("agents", sa.Column("owner", sa.String(200)))
    for name in ("per_person", "people_write"):
        op.add_column("blocks", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    for name in ("user_id", "written_by"):
        op.add_column("block_versions", sa.Column(name, sa.String(200)))
        op.create_index(f"ix_block_versions_{name}", "block_versions", [name])
    op.create_table(
        "person_blocks",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "label", "user_id", name="pk_person_blocks"),
    )
    op.create_index("ix_person_blocks_user_id", "person_blocks", ["user_id"])
    _give_blocks()
    _part_conversations()


def _give_blocks() -> None:
    """`human` goes to whoever alone has talked with the agent; where several have, it stays theirs together."""
    connection = op.get_bind()
    talkers: dict[str, set[str]] = defaultdict(set)
    for agent_id, user_id in connection.execute(sa.text(TALKERS)):
        talkers[agent_id].add("" if user_id == LOCAL else user_id)
    found = sa.text("SELECT agent_id, read_only FROM blocks WHERE label = 'human'")
    for agent_id, read_only in connection.execute(found).all():
        people = talkers[agent_id]
        this = {"agent_id": agent_id}
        if len(people) > 1 and not read_only:
            marked = "UPDATE blocks SET description = description || :more"
            connection.execute(
                sa.text(f"{marked} WHERE agent_id = :agent_id AND label = 'human'"), this | {"more": SHARED}
            )
            continue
        if people and not read_only:
            mine = this | {"user_id": next(iter(people))}
            connection.execute(sa.text(KEEP_BLOCK), mine)
            given = "UPDATE block_versions SET user_id = :user_id WHERE agent_id = :agent_id AND label = 'human'"
            connection.execute(sa.text(given), mine)
            emptied = "UPDATE blocks SET value = '' WHERE agent_id = :agent_id AND label = 'human'"
            connection.execute(sa.text(emptied), this)
        connection.execute(
            sa.text("UPDATE blocks SET per_person = :yes WHERE agent_id = :agent_id AND label = 'human'"),
            this | {"yes": True},
        )


def _part_conversations() -> None:
    """What people said in a conversation of nobody's goes, turn by turn, to one of their own."""
    connection = op.get_bind()
    speakers: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for conversation_id, agent_id, user_id in connection.execute(sa.text(SPEAKERS)):
        speakers[conversation_id, agent_id].add(user_id)
    nobodys = sa.text("SELECT DISTINCT conversation_id FROM schedules WHERE user_id IS NULL")
    planned = set(connection.execute(nobodys).scalars())
    for (old, agent_id), people in speakers.items():
        named = sorted(one for one in people if one is not None)
        first = old == f"conv-{agent_id.removeprefix('agent-')}"[:64]
        if not named:
            continue
        if len(people) == 1 and not first and old not in planned:
            own = sa.text("UPDATE conversations SET user_id = :user_id WHERE id = :old")
            connection.execute(own, {"user_id": named[0], "old": old})
            continue
        for user_id in named:
            new = f"conv-{uuid5(NAMESPACE_OID, f'{agent_id} {user_id}')}" if first else f"conv-{uuid4()}"
            lanes = {"lane": f"conversation:{new}", "left": f"conversation:{old}"}
            given = {"old": old, "new": new, "user_id": user_id, **lanes}
            for statement in (COPY, *MOVE):
                wanted = sa.text(statement)
                connection.execute(wanted, {name: given[name] for name in wanted.compile().params})
        # It told of all of them; what it stood for is there still.
        forget = sa.text("UPDATE conversations SET summary = NULL, summary_until = 0 WHERE id = :old")
        connection.execute(forget, {"old": old})


def downgrade() -> None:
    op.drop_table("person_blocks")
    for name in ("user_id", "written_by"):
        op.drop_index(f"ix_block_versions_{name}", "block_versions")
    for table, names in (
        ("agents", ("owner",)),
        ("blocks", ("per_person", "people_write")),
        ("block_versions", ("user_id", "written_by")),
    ):
        with op.batch_alter_table(table) as altered:
            for name in names:
                altered.drop_column(name)
