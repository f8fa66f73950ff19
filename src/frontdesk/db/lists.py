"""A list as one parameter: `one_of(column, bindparam("names"))` is one statement for a list of any length."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, BindParameter, ColumnElement, Dialect, Text, TypeDecorator, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.types import TypeEngine
from typing_extensions import override


class _List(TypeDecorator[Sequence[Any]]):
    """An array for PostgreSQL, its JSON for SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self._item = item

    @override
    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else ARRAY(self._item))

    @override
    def process_bind_param(self, value: Sequence[Any] | None, dialect: Dialect) -> Any:
        return json.dumps(value) if dialect.name == "sqlite" and value is not None else value


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
    item = BigInteger() if column.type.python_type is int else Text()
    return _OneOf(column, bindparam(name, type_=_List(item)))


@compiles(_OneOf, "postgresql")
def _any(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    return f"{compiler.process(element.column, **options)} = ANY ({compiler.process(element.items, **options)})"


@compiles(_OneOf, "sqlite")
def _each(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 - SQLAlchemy's
    items = compiler.process(element.items, **options)
    return f"{compiler.process(element.column, **options)} IN (SELECT value FROM json_each({items}))"  # noqa: S608 - of statements of ours
