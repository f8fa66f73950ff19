"""Lists in statements: as one parameter of any length, `one_of(column, "names")`, or so many items at a time."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Dialect, Text, TypeDecorator, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal
from typing_extensions import override

T = TypeVar("T")
CHUNK = 500


class _List(TypeDecorator[Sequence[Any]]):
    """Its JSON: an array of PostgreSQL's is dumped item by item in Python."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: Sequence[Any] | None, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value)


class _OneOf(ColumnElement[bool]):
    inherit_cache = True
    _traverse_internals = [  # noqa: RUF012 - SQLAlchemy's own way to say what makes a statement the same
        ("column", InternalTraversal.dp_clauseelement),
        ("items", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, column: ColumnElement[Any], items: BindParameter[Any]) -> None:
        self.column = column
        self.items = items


def one_of(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Whether the column's value is in the list given as parameter `name`; the list's items are texts or integers."""
    return _OneOf(column, bindparam(name, type_=_List()))


def sliced(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The items, so many at a time."""
    return (items[at : at + size] for at in range(0, len(items), size))


@compiles(_OneOf, "postgresql")
def _any(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    kind = "BIGINT" if element.column.type.python_type is int else "TEXT"
    items = f"json_array_elements_text(CAST({compiler.process(element.items, **options)} AS json))"
    array = f"ARRAY(SELECT CAST(item AS {kind}) FROM {items} AS item)"  # noqa: S608 - of statements of ours
    return f"{compiler.process(element.column, **options)} = ANY ({array})"


@compiles(_OneOf, "sqlite")
def _each(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    items = compiler.process(element.items, **options)
    return f"{compiler.process(element.column, **options)} IN (SELECT value FROM json_each({items}))"  # noqa: S608 - of statements of ours
