"""One change to many rows, each with values of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, ColumnElement, Connection, Table, Text, Update, bindparam, cast, column, func, update
from sqlalchemy.dialects import sqlite


class UpdateEach:
    """An UPDATE of `table` for each of some rows, found by the columns of `keys`, which sets those of `values`.

    PostgreSQL takes all rows at once, as JSON: one trip, one plan, and no driver that dumps them item by item. SQLite
    has no trips, and is quickest with one statement many times. `always` is set alike for all, `where` holds for all;
    their parameters go into `common`.
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
        # Handed to the driver as it is: what SQLAlchemy does with each row's parameters costs as much as the update.
        one_by_one = made({one.name: bindparam(f"of_{one.name}", type_=one.type) for one in columns})
        compiled = one_by_one.compile(dialect=sqlite.dialect())
        self._sqlite = str(compiled)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        self._order = tuple(compiled.positiontup or ())

    def execute(self, connection: Connection, given: Sequence[tuple[Any, ...]], common: Mapping[str, Any]) -> int:
        """Each of `given` has the values of the keys, then those of the values; only plain numbers and texts.

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
