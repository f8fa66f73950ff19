"""INSERT … ON CONFLICT: both databases have it, and SQLAlchemy says it in each one's own words."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Executable
from sqlalchemy.dialects import postgresql, sqlite


def per_dialect(make: Callable[[Any], Executable]) -> Mapping[str, Executable]:
    """A statement for each dialect, by its name, made once: to build one takes longer than to run it.

    `make` is handed the dialect's own `insert`; the two have no common type.
    """
    return {"sqlite": make(sqlite.insert), "postgresql": make(postgresql.insert)}
