"""Whether arguments fit a tool's schema, found out before the call and told so that an agent can act on it."""

import hashlib
import marshal
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio

from frontdesk.errors import Invalid
from frontdesk.tools.gateway import plain
from frontdesk.tools.gateway.problems import told
from frontdesk.tools.gateway.schemas import Unreadable, is_sound, problems

KEPT = 1000
# More than any tool needs; beyond, the server may check for itself.
MAX_VALUES = 10_000
MAX_SCHEMA = 256 * 1024
MAX_PROBLEMS = 50


@dataclass(slots=True)
class Known:
    """What was found out about one schema; `sound` once somebody had to know."""

    fits: plain.Fits | None
    sound: bool | None = None


class ArgumentCheck:
    """Remembers the schemas it has seen, by digest, the most recently used ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        # The very objects that were seen last, so that most calls need no digest; held, so that none takes their place.
        self._seen: dict[int, tuple[Mapping[str, Any], Known]] = {}

    async def check(self, tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """Raise `Invalid` where the arguments do not fit; a schema that makes no sense fits everything."""
        known = self._look_up(schema)
        if known is None or known.sound is False or _is_vast(arguments):
            return
        if known.fits is not None and known.fits(arguments):
            return
        try:
            found = problems(schema, arguments, MAX_PROBLEMS)
        except Unreadable:
            known.sound = False
            return
        if found and await self._is_sound(known, schema):
            raise Invalid(told(tool, schema, found))

    async def _is_sound(self, known: Known, schema: Mapping[str, Any]) -> bool:
        if known.sound is None:
            # Many milliseconds for a large one.
            known.sound = await anyio.to_thread.run_sync(is_sound, schema)
        return known.sound

    def _look_up(self, schema: Mapping[str, Any]) -> Known | None:
        seen = self._seen.get(id(schema))
        if seen is not None and seen[0] is schema:
            return seen[1]
        known = self._by_digest(schema)
        if known is not None:
            if len(self._seen) >= KEPT:
                self._seen.clear()
            self._seen[id(schema)] = schema, known
        return known

    def _by_digest(self, schema: Mapping[str, Any]) -> Known | None:
        try:
            # Four times as quick as JSON, and 1 is not True in it.
            written = marshal.dumps(cast("dict[str, None]", schema), 2)
        except ValueError:
            return None
        if len(written) > MAX_SCHEMA:
            return None
        key = hashlib.sha256(written).digest()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Known(plain.compiled(schema))
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known


def _is_vast(arguments: Mapping[str, Any]) -> bool:
    """Whether there are more values than are worth looking at while others wait."""
    waiting, seen = [cast("object", arguments)], 0
    while waiting and seen <= MAX_VALUES:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(cast("Mapping[str, object]", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))
        seen += 1
    return seen > MAX_VALUES
