"""Row-level security on PostgreSQL: within a transaction that names a person, nobody else's rows are there.

The doors ask only for what is the caller's; this stands behind them, for the day on which one of them does not.
"""

from sqlalchemy import Connection, text

# Owns nothing and cannot log in: whoever runs Frontdesk steps into it for a transaction, a superuser too, whom no wall
# would hold back otherwise.
ROLE = "frontdesk_memory"
PERSON = "frontdesk.user_id"

_MAKE_ROLE = f"""
DO $$ BEGIN
  CREATE ROLE {ROLE} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
END $$
"""
_JOIN_ROLE = f"""
DO $$ BEGIN
  IF NOT pg_has_role(current_user, '{ROLE}', 'MEMBER') THEN
    EXECUTE 'GRANT {ROLE} TO ' || quote_ident(current_user);
  END IF;
EXCEPTION WHEN undefined_object OR insufficient_privilege THEN NULL;
END $$
"""
_STEP_IN = text(f"SELECT set_config('role', '{ROLE}', true), set_config('{PERSON}', :person, true)")
_NAME = text(f"SELECT set_config('{PERSON}', :person, true)")
# One that was made by hand after the tables may have no rights on them.
_IS_THERE = text(
    "SELECT count(*) FROM pg_roles WHERE rolname = :role AND pg_has_role(current_user, oid, 'MEMBER')"
    " AND has_table_privilege(oid, 'timeline_items', 'SELECT')"
)


def raise_walls(connection: Connection, tables: list[str], open_tables: list[str]) -> None:
    """In a migration: these tables show a person their own rows alone; the others can be used by the role as well."""
    if connection.dialect.name != "postgresql":
        return
    for statement in (_MAKE_ROLE, _JOIN_ROLE):
        connection.exec_driver_sql(statement)
    has_role = connection.exec_driver_sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'").first() is not None  # noqa: S608 - our own name
    for table in tables:
        mine = f"user_id = current_setting('{PERSON}', true)"
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"CREATE POLICY own_rows ON {table} USING ({mine}) WITH CHECK ({mine})")
    if has_role:
        for table in (*tables, *open_tables):
            connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {ROLE}")
        connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {ROLE}")


def can_step_in(connection: Connection) -> bool:
    """Whether the role could be made here; without it the walls hold back all but a superuser."""
    return connection.execute(_IS_THERE, {"role": ROLE}).scalar_one() > 0


def step_in(connection: Connection, person: str, *, role: bool) -> None:
    """For the rest of this transaction there is this person alone."""
    connection.execute(_STEP_IN if role else _NAME, {"person": person})
