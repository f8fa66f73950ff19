"""Makes cases: what a value shows of the fixes goes with it, so that a product of values knows what it shows."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tests.referees.platform.cases import NONE

TYPED = frozenset({"typed-errors"})


@dataclass(frozen=True, slots=True)
class Option:
    """One value of a dimension, and the fixes that it shows wherever it counts."""

    name: str
    value: Any
    fixes: frozenset[str] = NONE


def same(values: Mapping[str, Any]) -> tuple[Option, ...]:
    """Options that show no difference."""
    return tuple(Option(name, value) for name, value in values.items())


def showing(fixes: str | Iterable[str], values: Mapping[str, Any]) -> tuple[Option, ...]:
    """Options that all show these fixes."""
    shown = frozenset({fixes} if isinstance(fixes, str) else fixes)
    return tuple(Option(name, value, shown) for name, value in values.items())


def turn(**activity: Any) -> SimpleNamespace:
    """A turn by its attributes, as a host that is not the SDK's own would have it."""
    return SimpleNamespace(activity=SimpleNamespace(**activity))


def manifest(*entries: object) -> bytes:
    return json.dumps({"mcpServers": entries}).encode()
