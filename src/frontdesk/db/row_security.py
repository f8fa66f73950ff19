"""Limits a transaction to one person's rows on PostgreSQL (row-level security).

The interfaces request only the caller's rows; this is a second barrier in case one of them has a mistake.
"""

from sqlalchemy import Connection, text

# This role owns nothing and cannot log in. Frontdesk's role takes it for a transaction. A superuser takes it too,
# because row-level security would not limit a superuser.
PERSON_ROLE = "frontdesk_memory"
PERSON_SETTING = "frontdesk.user_id"

_CREATE_ROLE = f"""
DO $$ BEGIN
  CREATE ROLE {PERSON_ROLE} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
END $$
"""
_GRANT_ROLE = f"""
DO $$ BEGIN
  IF NOT pg_has_role(current_user, '{PERSON_ROLE}', 'MEMBER') THEN
    EXECUTE 'GRANT {PERSON_ROLE} TO ' || quote_ident(current_user);
  END IF;
EXCEPTION WHEN undefined_object OR insufficient_privilege THEN NULL;
END $$
"""
_SET_ROLE_AND_PERSON = text(
    f"SELECT set_config('role', '{PERSON_ROLE}', true), set_config('{PERSON_SETTING}', :person, true)"
)
_SET_PERSON = text(f"SELECT set_config('{PERSON_SETTING}', :person, true)")
# A role that was created by hand after the tables may have no rights to them.
_COUNT_ROLES = text(
    "SELECT count(*) FROM pg_roles WHERE rolname = :role AND pg_has_role(current_user, oid, 'MEMBER')"
    " AND has_table_privilege(oid, 'timeline_items', 'SELECT')"
)


def enable_row_security(connection: Connection, tables: list[str], open_tables: list[str]) -> None:
    """In a migration: limit these tables to one person's rows, and let the role use the others.

    Published migrations call it, so what it does must not change; write another function instead.
    """
    if connection.dialect.name != "postgresql":
        return
    for statement in (_CREATE_ROLE, _GRANT_ROLE):
        connection.exec_driver_sql(statement)
    has_role = connection.exec_driver_sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{PERSON_ROLE}'").first() is not None  # noqa: S608 - our own name
    for table in tables:
        mine = f"user_id = current_setting('{PERSON_SETTING}', true)"
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"CREATE POLICY own_rows ON {table} USING ({mine}) WITH CHECK ({mine})")
    if has_role:
        for table in (*tables, *open_tables):
            connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {PERSON_ROLE}")
        connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {PERSON_ROLE}")


def can_set_role(connection: Connection) -> bool:
    """Whether the role could be created; without it, row-level security limits everyone except a superuser."""
    return connection.execute(_COUNT_ROLES, {"role": PERSON_ROLE}).scalar_one() > 0


def set_person(connection: Connection, person: str, *, role: bool) -> None:
    """Limit the rest of this transaction to this person's rows."""
    connection.execute(_SET_ROLE_AND_PERSON if role else _SET_PERSON, {"person": person})
