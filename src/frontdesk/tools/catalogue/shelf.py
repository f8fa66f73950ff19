"""The tools that were asked for lately, whole: a call or a page of results need not go to the database for them."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from frontdesk.tools.catalogue.store import ToolStore
from frontdesk.tools.model import CatalogueTool

# With its schema a tool takes a few kilobytes.
KEPT = 2000


class Shelf:
    """Cleared whenever the catalogue changes, so what stands here is what the index shows."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._tools: OrderedDict[str, CatalogueTool] = OrderedDict()
        self._clearings = 0

    def clear(self) -> None:
        self._tools.clear()
        self._clearings += 1

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """Those of these tools that there are, in this order."""
        found = {wanted: self._tools[wanted] for wanted in ids if wanted in self._tools}
        missing = [wanted for wanted in ids if wanted not in found]
        if missing:
            clearings = self._clearings
            read = await self._store.many(missing)
            # What was read before a clearing may be from before the change.
            if clearings == self._clearings:
                self._keep(read)
            found |= read
        for used in found:
            if used in self._tools:
                self._tools.move_to_end(used)
        return {wanted: found[wanted] for wanted in ids if wanted in found}

    def _keep(self, tools: Mapping[str, CatalogueTool]) -> None:
        self._tools.update(tools)
        while len(self._tools) > KEPT:
            self._tools.popitem(last=False)
