"""The tools that a manifest or a mock file declares."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from frontdesk.platform.declared.answers import Placed, answers, check_states
from frontdesk.platform.declared.fields import Fields, Said, check_keys, fields_in_any_case, kind_of
from frontdesk.platform.declared.files import below
from frontdesk.platform.declared.model import DeclaredTool
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted
from frontdesk.platform.declared.schemas import input_schema

READ = (
    "name",
    "description",
    "inputSchema",
    "responseTemplate",
    "delayMs",
    "errorRate",
    "statusCode",
    "enabled",
    "states",
)
# What MCP servers say of a tool beside this; a listing that was saved as it came has them.
ALSO = ("title", "annotations", "outputSchema", "icons", "_meta", "execution")
# What MCP clients and models take.
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
LONGEST_DELAY = 60_000


@dataclass(frozen=True, slots=True)
class Raw:
    """A tool as one file says it; one that is only named has nothing to say but that."""

    name: str
    said: Fields
    only_named: bool = False


def raw_tools(items: Sequence[object], where: str, notes: Notes) -> Mapping[str, Raw]:
    """The tools of one list, by name: without those that have none, or that stand there twice."""
    found: dict[str, Raw] = {}
    for number, item in enumerate(items):
        place = f"{where}[{number}]"
        raw = _raw(item, place, notes)
        if raw is None:
            continue
        if raw.name in found:
            notes.error(place, f"{quoted(raw.name)} is declared twice, and the first one counts; keep one")
        else:
            found[raw.name] = raw
    return found


def tools(declared: Mapping[str, Raw], mocked: Mapping[str, Raw], notes: Notes) -> tuple[DeclaredTool, ...]:
    """The tools of a server, from the manifest and from its mock file; what both say, the manifest decides."""
    both = {name: _merged(raw, mocked[name], notes) for name, raw in declared.items() if name in mocked}
    read = [_tool(raw, notes) for raw in {**declared, **mocked, **both}.values()]
    check_states([one for _, placed in read for one in placed], notes)
    return tuple(tool for tool, _ in read)


def _raw(item: object, where: str, notes: Notes) -> Raw | None:
    if isinstance(item, str):
        found = Fields(where, {"name": Said(where, item)})
    elif isinstance(item, dict):
        found = fields_in_any_case(cast("dict[str, object]", item), where, (*READ, *ALSO), notes)
        check_keys(found, (*READ, *ALSO), notes)
    else:
        notes.error(where, f"must be a tool's name or an object, not {kind_of(item)}, and is left out")
        return None
    name = found.text("name", notes)
    if name is None or not name.strip():
        notes.error(found.at("name"), "is missing or blank, and the tool is left out; name the tool")
        return None
    if not TOOL_NAME.fullmatch(name):
        notes.error(
            found.at("name"),
            f"{quoted(name)} is refused by MCP clients; keep to letters, digits, _, - and ., 128 at most",
        )
    return Raw(name, found, only_named=isinstance(item, str))


def _merged(declared: Raw, mocked: Raw, notes: Notes) -> Raw:
    ours, theirs = declared.said.said, mocked.said.said
    for key in ours.keys() & theirs.keys():
        if ours[key].value != theirs[key].value:
            notes.warn(theirs[key].where, f"is not what {ours[key].where} says, which counts; make them agree")
    said = Fields(mocked.said.where if declared.only_named else declared.said.where, {**theirs, **ours})
    return Raw(declared.name, said, declared.only_named and mocked.only_named)


def _tool(raw: Raw, notes: Notes) -> tuple[DeclaredTool, tuple[Placed, ...]]:
    found = raw.said
    description = found.text("description", notes) or ""
    if not description.strip() and not raw.only_named:
        notes.warn(below(found.where, "description"), "is empty, and agents choose tools by it; say what the tool does")
    schema = input_schema(found, notes)
    placed = answers(found, schema, notes)
    enabled = found.flag("enabled", notes)
    status = found.whole("statusCode", 200, 599, notes)
    tool = DeclaredTool(
        raw.name,
        description,
        schema,
        tuple(one.answer for one in placed),
        found.whole("delayMs", 0, LONGEST_DELAY, notes) or 0,
        float(found.number("errorRate", 0, 1, notes) or 0),
        200 if status is None else status,
        True if enabled is None else enabled,
    )
    return tool, placed
