"""Rules about who may use which tools, and what they add up to for a caller."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property

from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.tools.model import SEPARATOR, tool_id

EVERYBODY = "*"
SUBJECT = re.compile(r"(agent|user):\S.{0,199}")
LONGEST_PATTERN = 300


class Effect(StrEnum):
    """What a rule says of the tools it names."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """`subject` is `agent:ID`, `user:ID` or `*`; `pattern` is `server::tool`, where `*` and `?` stand for others."""

    id: str
    subject: str
    effect: Effect
    pattern: str

    def __post_init__(self) -> None:
        if self.subject != EVERYBODY and not SUBJECT.fullmatch(self.subject):
            raise Invalid("A rule is for agent:ID, user:ID or * (everybody)")
        if not self.pattern.strip() or len(self.pattern) > LONGEST_PATTERN:
            raise Invalid("A rule names tools as server::tool, where * stands for any; at most 300 characters")


@dataclass(frozen=True)
class Permitted:
    """What the rules that concern a caller add up to.

    With no rule everything may be used. A deny always wins; where there are allows, only what they name may be used.
    """

    rules: Collection[Rule] = ()

    @property
    def everything(self) -> bool:
        return not self.rules

    def allows(self, tool_id: str) -> bool:
        if self._denied is not None and self._denied.fullmatch(tool_id):
            return False
        return self._allowed is None or self._allowed.fullmatch(tool_id) is not None

    def sees(self, server: str) -> bool:
        """Whether the rules leave anything of a server, as far as that can be told without its tools."""
        named = (rule.pattern.partition(SEPARATOR)[0] for rule in self.rules if rule.effect is Effect.ALLOW)
        return self.allows(tool_id(server, "")) or any(fnmatchcase(server, pattern) for pattern in named)

    @cached_property
    def _denied(self) -> re.Pattern[str] | None:
        return _any(rule.pattern for rule in self.rules if rule.effect is Effect.DENY)

    @cached_property
    def _allowed(self) -> re.Pattern[str] | None:
        return _any(rule.pattern for rule in self.rules if rule.effect is Effect.ALLOW)


def subjects(caller: Caller) -> frozenset[str]:
    """Whom a rule may name to concern this caller."""
    named = {f"agent:{caller.agent_id}" if caller.agent_id else "", f"user:{caller.user_id}" if caller.user_id else ""}
    return frozenset({EVERYBODY, *named} - {""})


def written(pattern: str) -> str:
    """A pattern in full: a server's name alone stands for all of its tools."""
    found = pattern.strip()
    return found if SEPARATOR in found or found == "*" else f"{found}{SEPARATOR}*"


def _any(patterns: Iterable[str]) -> re.Pattern[str] | None:
    found = sorted(_expression(pattern) for pattern in patterns)
    return re.compile("|".join(found), re.DOTALL) if found else None


def _expression(pattern: str) -> str:
    parts = re.split(r"([*?])", re.sub(r"\*+", "*", pattern))
    return "".join({"*": ".*", "?": "."}.get(part) or re.escape(part) for part in parts)
