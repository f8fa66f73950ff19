"""Decides which tools a caller may use, and which tool a name means to that caller."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property

from frontdesk.errors import Denied, Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.text import closest_name
from frontdesk.tools.model import HOST_SERVER, ID_SEPARATOR, CatalogueTool, split_id, tool_id

EVERYBODY = "*"
RULE_SUBJECT = re.compile(r"(agent|user):\S.{0,199}")
LONGEST_PATTERN = 300


class AccessEffect(StrEnum):
    """Whether a rule allows or denies the tools that it names."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AccessRule:
    """`subject` is `agent:ID`, `user:ID` or `*`. `pattern` is `server::tool`, with `*` and `?` as wildcards."""

    id: str
    subject: str
    effect: AccessEffect
    pattern: str

    def __post_init__(self) -> None:
        if self.subject != EVERYBODY and not RULE_SUBJECT.fullmatch(self.subject):
            raise Invalid("A rule is for agent:ID, user:ID or * (everybody)")
        if not self.pattern.strip() or len(self.pattern) > LONGEST_PATTERN:
            raise Invalid("A rule names tools as server::tool, where * stands for any; at most 300 characters")


@dataclass(frozen=True)
class PermittedTools:
    """The tools that a caller may use, by the rules for this caller.

    Without a rule all tools are allowed. A deny always wins. If there is an allow rule, only tools that such rules name
    are allowed.
    """

    rules: Collection[AccessRule] = ()

    @property
    def everything(self) -> bool:
        return not self.rules

    def allows(self, tool_id: str) -> bool:
        if self._denied is not None and self._denied.fullmatch(tool_id):
            return False
        return self._allowed is None or self._allowed.fullmatch(tool_id) is not None

    def sees(self, server: str) -> bool:
        """Whether the caller may use any tool of a server, as far as the rules show without the list of its tools."""
        named = (rule.pattern.partition(ID_SEPARATOR)[0] for rule in self.rules if rule.effect is AccessEffect.ALLOW)
        return self.allows(tool_id(server, "")) or any(fnmatchcase(server, pattern) for pattern in named)

    @cached_property
    def _denied(self) -> re.Pattern[str] | None:
        return _match_any(rule.pattern for rule in self.rules if rule.effect is AccessEffect.DENY)

    @cached_property
    def _allowed(self) -> re.Pattern[str] | None:
        return _match_any(rule.pattern for rule in self.rules if rule.effect is AccessEffect.ALLOW)


def rule_subjects(caller: Caller) -> frozenset[str]:
    """The subjects of rules that apply to this caller."""
    named = {f"agent:{caller.agent_id}" if caller.agent_id else "", f"user:{caller.user_id}" if caller.user_id else ""}
    return frozenset({EVERYBODY, *named} - {""})


def full_pattern(pattern: str) -> str:
    """The complete pattern. The name of a server alone means all its tools."""
    found = pattern.strip()
    return found if ID_SEPARATOR in found or found == "*" else f"{found}{ID_SEPARATOR}*"


def _match_any(patterns: Iterable[str]) -> re.Pattern[str] | None:
    found = sorted(_pattern_expression(pattern) for pattern in patterns)
    return re.compile("|".join(found), re.DOTALL) if found else None


def _pattern_expression(pattern: str) -> str:
    parts = re.split(r"([*?])", re.sub(r"\*+", "*", pattern))
    return "".join({"*": ".*", "?": "."}.get(part) or re.escape(part) for part in parts)


IDS_SHOWN = 8
NAME_LENGTH_SHOWN = 200


def find_similar_id(ids: Iterable[str], permitted: PermittedTools, name: str) -> str | None:
    """The id of a permitted tool whose id or own name is similar to a name, if there is one."""
    # A tool with exactly this name was just removed.
    others = [one for one in ids if name not in (one, split_id(one)[1])]
    usable = [one for one in others if split_id(one)[0] != HOST_SERVER and permitted.allows(one)]
    named = {split_id(one)[1]: one for one in reversed(usable)} | {one: one for one in usable}
    meant = closest_name(name, named)
    return None if meant is None else named[meant]


def require_one_tool(
    known: Sequence[CatalogueTool], permitted: PermittedTools, name: str, near: str | None = None
) -> CatalogueTool:
    """The one permitted tool among those with a name. If there is none, the error names `near`."""
    said = name[:NAME_LENGTH_SHOWN]
    usable = [tool for tool in known if permitted.allows(tool.id)]
    if known and not usable:
        raise Denied(f"You may not use the tool '{said}'; ask an administrator")
    if not usable:
        advice = f"did you mean '{near}'?" if near else "search for it by what it should do"
        raise NotFound(f"There is no tool '{said}'; {advice}")
    if len(usable) > 1:
        ids = ", ".join(tool.id for tool in usable[:IDS_SHOWN])
        raise Invalid(f"Several tools are called '{said}'; say which: {ids}")
    return usable[0]
