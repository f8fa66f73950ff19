"""All the coding tools of a session."""

from collections.abc import Sequence

from frontdesk.loop.tools import Tool
from frontdesk.workspace.coding.changing import Changing
from frontdesk.workspace.coding.looking import Looking
from frontdesk.workspace.coding.model import Bench
from frontdesk.workspace.coding.running import Running
from frontdesk.workspace.coding.sight import Sight


def coding_tools(bench: Bench) -> Sequence[Tool]:
    """Made once for a session: they remember from when on commands may have changed what is on the disk."""
    sight = Sight(bench)
    return [*Looking(bench, sight).tools(), *Changing(bench, sight).tools(), *Running(bench, sight).tools()]
