"""Whom each agent of a Letta server serves; those in use go on as they were used."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Of one person alone: theirs. Of several: shared, as it has been, with a remark for whoever runs the installation.
ADOPT = """
INSERT INTO letta_agents (agent_id, kind, user_id, remark, noted_at)
SELECT agent_id, 'person', min(user_id), '', CURRENT_TIMESTAMP FROM turns
WHERE lane LIKE 'letta:%' AND user_id IS NOT NULL
GROUP BY agent_id HAVING count(DISTINCT user_id) = 1
"""
SHARE = """
INSERT INTO letta_agents (agent_id, kind, remark, noted_at)
SELECT agent_id, 'shared', 'Several people had talked with it before agents were kept apart', CURRENT_TIMESTAMP
FROM turns WHERE lane LIKE 'letta:%' AND user_id IS NOT NULL
GROUP BY agent_id HAVING count(DISTINCT user_id) > 1
"""


def upgrade() -> None:
    op.create_table(
        "letta_agents",
        sa.Column("id", number, nullable=False, autoincrement=True),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("template_id", sa.String(128)),
        sa.Column("claim", sa.String(32)),
        sa.Column("claimed_until", moment),
        sa.Column("remark", sa.Text, nullable=False),
        sa.Column("noted_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_letta_agents"),
    )
    op.create_index("uq_letta_agents_agent_id", "letta_agents", ["agent_id"], unique=True)
    op.create_index("uq_letta_agents_template_id_user_id", "letta_agents", ["template_id", "user_id"], unique=True)
    op.create_index("ix_letta_agents_user_id", "letta_agents", ["user_id"])
    op.execute(ADOPT)
    op.execute(SHARE)


def downgrade() -> None:
    op.drop_table("letta_agents")
