"""Alembic's entry: runs on the connection that `frontdesk.db.migrate` hands over."""

from alembic import context

from frontdesk.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
