"""Builds statements for both databases: upserts, lists as one parameter, batch updates, counters, lease time."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    JSON,
    BindParameter,
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Table,
    Text,
    TypeDecorator,
    Update,
    bindparam,
    cast,
    column,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal
from typing_extensions import override

from frontdesk.db.engine import Transaction
from frontdesk.db.schema import UtcDateTime, counters


def per_dialect(make: Callable[[Any], Executable]) -> Mapping[str, Executable]:
    """A statement for each dialect, by the dialect's name, built once: building takes longer than running.

    `make` gets the dialect's own `insert`; the two have no common type.
    """
    return {"sqlite": make(sqlite.insert), "postgresql": make(postgresql.insert)}


T = TypeVar("T")
SLICE_SIZE = 500


class _JsonList(TypeDecorator[Sequence[Any]]):
    """Sends a list as JSON: a PostgreSQL array would be encoded item by item in Python."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: Sequence[Any] | None, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value)


class _OneOf(ColumnElement[bool]):
    inherit_cache = True
    _traverse_internals = [  # noqa: RUF012 - SQLAlchemy compares statements by this
        ("column", InternalTraversal.dp_clauseelement),
        ("items", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, column: ColumnElement[Any], items: BindParameter[Any]) -> None:
        self.column = column
        self.items = items


def one_of(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """A condition that the column's value is in the list parameter `name`, of texts or integers."""
    return _OneOf(column, bindparam(name, type_=_JsonList()))


def in_slices(items: Sequence[T], size: int = SLICE_SIZE) -> Iterator[Sequence[T]]:
    """The items in batches of `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))


@compiles(_OneOf, "postgresql")
def _compile_postgresql(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    kind = "BIGINT" if element.column.type.python_type is int else "TEXT"
    items = f"json_array_elements_text(CAST({compiler.process(element.items, **options)} AS json))"
    array = f"ARRAY(SELECT CAST(item AS {kind}) FROM {items} AS item)"  # noqa: S608 - only our own text
    return f"{compiler.process(element.column, **options)} = ANY ({array})"


@compiles(_OneOf, "sqlite")
def _compile_sqlite(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    items = compiler.process(element.items, **options)
    return f"{compiler.process(element.column, **options)} IN (SELECT value FROM json_each({items}))"  # noqa: S608 - only our own text


class BatchUpdate:
    """An UPDATE of `table` for each of many rows; `keys` are the columns that find a row, `values` those that are set.

    PostgreSQL gets all rows together, as JSON: one round trip, one plan, and no encoding item by item in the driver.
    SQLite has no round trips, and is fastest with one statement per row. `always` and `where` are the same for all
    rows; their parameters go into `common`.
    """

    def __init__(
        self,
        table: Table,
        keys: Sequence[str],
        values: Sequence[str],
        always: Mapping[str, Any] | None = None,
        *where: ColumnElement[bool],
    ) -> None:
        self._names = [*keys, *values]
        columns = [table.c[name] for name in self._names]
        rows = func.json_to_recordset(cast(bindparam("of_rows", type_=Text()), JSON))
        given = rows.table_valued(*(column(one.name, one.type) for one in columns))
        given = given.render_derived(name="given", with_types=True)

        def made(source: Mapping[str, ColumnElement[Any]]) -> Update:
            found = [table.c[name] == source[name] for name in keys]
            changed = {name: source[name] for name in values}
            return update(table).where(*found, *where).values({**changed, **(always or {})})

        self._at_once = made({name: given.c[name] for name in self._names})
        # Passed to the driver directly: SQLAlchemy's processing of each row's parameters costs as much as the update.
        one_by_one = made({one.name: bindparam(f"of_{one.name}", type_=one.type) for one in columns})
        compiled = one_by_one.compile(dialect=sqlite.dialect())
        self._sqlite = str(compiled)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        self._order = tuple(compiled.positiontup or ())

    def execute(self, connection: Connection, given: Sequence[tuple[Any, ...]], common: Mapping[str, Any]) -> int:
        """Update rows; each of `given` has the values of the keys, then the new values; only plain numbers and texts.

        Returns how many rows were found.
        """
        if not given:
            return 0
        if connection.dialect.name == "postgresql":
            rows = [dict(zip(self._names, one, strict=True)) for one in given]
            return connection.execute(self._at_once, {**common, "of_rows": json.dumps(rows)}).rowcount
        places = {f"of_{name}": place for place, name in enumerate(self._names)}
        alike = {**self._fixed, **common}
        picks = [(places.get(name, -1), alike.get(name)) for name in self._order]
        rows = [tuple([value if at < 0 else one[at] for at, value in picks]) for one in given]
        return connection.exec_driver_sql(self._sqlite, rows).rowcount


INSERT_COUNTER = per_dialect(lambda insert: insert(counters).on_conflict_do_nothing())


async def lock_counter(connection: Transaction, name: str) -> int:
    """The present number; no other transaction can increase it before this one ends."""
    mine = select(counters.c.value).where(counters.c.name == name).with_for_update()
    found = (await connection.execute(mine)).scalar_one_or_none()
    if found is None:
        await connection.execute(INSERT_COUNTER[connection.dialect.name], {"name": name, "value": 0})
        found = (await connection.execute(mine)).scalar_one()
    return found


async def increase_counter(connection: Transaction, name: str) -> int:
    """The next number, for a change made in this transaction."""
    value = await lock_counter(connection, name) + 1
    await connection.execute(update(counters).where(counters.c.name == name).values(value=value))
    return value


async def read_counter(connection: Transaction, name: str) -> int:
    """The last number whose change is visible; 0 before the first."""
    query = select(counters.c.value).where(counters.c.name == name)
    return (await connection.execute(query)).scalar_one_or_none() or 0


# For statements that only PostgreSQL needs.
DATABASE_TIME = func.clock_timestamp(type_=UtcDateTime)
SELECT_DATABASE_TIME = select(DATABASE_TIME)


async def lease_time(connection: Transaction) -> datetime:
    """The present time for leases. SQLite uses this machine's clock, as does every process that uses the file."""
    if connection.dialect.name != "postgresql":
        return datetime.now(UTC)
    return (await connection.execute(SELECT_DATABASE_TIME)).scalar_one()
