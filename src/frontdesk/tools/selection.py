"""Decides which tools an agent gets, keeps and loses. It changes as little as the limits allow."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from frontdesk.text import not_found_message
from frontdesk.tools.model import ID_SEPARATOR, split_id


class ToolRole(StrEnum):
    """The origin of a tool: an MCP server, the host's core, the host's extras, or a person who made it there."""

    MCP = "mcp"
    CORE = "core"
    OFFICIAL = "official"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class CurrentTool:
    """A tool that an agent holds. Of two tools last used at the same time, the one with the larger `value` stays."""

    name: str
    id: str | None = None
    role: ToolRole = ToolRole.MCP
    attached_at: datetime | None = None
    used_at: datetime | None = None
    protected: bool = False
    tags: frozenset[str] = frozenset()
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolCandidate:
    """A tool that a search found, with its score from 0 to 100. `exact`: the query named it."""

    id: str
    name: str
    score: float
    role: ToolRole = ToolRole.MCP
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How many tools an agent may hold, and which of them are never detached."""

    max_total: int = 30
    max_mcp: int = 20
    min_mcp: int = 7
    drop_rate: float = 0.6
    never_detach: frozenset[str] = frozenset({"find_tools"})
    manage_only_mcp: bool = False
    exclude_core: bool = False
    exclude_official: bool = False


class KeepReason(StrEnum):
    """Why an agent keeps a tool that it holds."""

    WANTED = "wanted, and held already"
    CORE = "the agent's own"
    PROTECTED = "protected"
    NAMED = "named in keep_tools"
    UNMANAGED = "tools of this kind are left alone here"
    OTHERS_WENT = "others made room"
    CAPACITY = "there is room"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What happens to one tool, and why. A match also has its score; a kept tool has a `KeepReason`."""

    name: str
    id: str | None
    reason: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class SelectionPlan:
    """The changes of an agent's tools. `keep` has all tools that stay, the wanted ones first."""

    attach: Sequence[ToolChoice] = ()
    keep: Sequence[ToolChoice] = ()
    detach: Sequence[ToolChoice] = ()
    skipped: Sequence[ToolChoice] = ()
    unknown: Sequence[str] = ()

    @property
    def changes(self) -> bool:
        return bool(self.attach or self.detach)


@dataclass(frozen=True, slots=True)
class SelectionResult:
    """The result of a plan, or of a dry run. `failed` has what the host did not do.

    `unknown` has a sentence for each tool that should be kept but that the agent does not hold.
    """

    attached: Sequence[ToolChoice] = ()
    kept: Sequence[ToolChoice] = ()
    detached: Sequence[ToolChoice] = ()
    skipped: Sequence[ToolChoice] = ()
    failed: Sequence[ToolChoice] = ()
    dry_run: bool = False
    unknown: Sequence[str] = ()


def all_names(name: str, tool_id: str | None) -> frozenset[str]:
    """All names of a tool: its id, its own name, and the name that the model sees."""
    if tool_id is None:
        return frozenset({name})
    return frozenset({name, tool_id, split_id(tool_id)[1]} if ID_SEPARATOR in tool_id else {name, tool_id})


# The tools that a Letta agent needs to speak, remember and read its files (letta 0.16, `constants.py`).
LETTA_CORE = frozenset(
    {
        "send_message",
        "conversation_search",
        "archival_memory_insert",
        "archival_memory_search",
        "core_memory_append",
        "core_memory_replace",
        "memory",
        "memory_apply_patch",
        "memory_replace",
        "memory_insert",
        "memory_rethink",
        "memory_finish_edits",
        "search_memory",
        "store_memories",
        "rethink_user_memory",
        "finish_rethinking_memory",
        "open_files",
        "grep_files",
        "semantic_search_files",
    }
)
# Other tools that come with Letta. An agent works without them.
LETTA_OFFICIAL = frozenset(
    {
        "run_code",
        "run_code_with_tools",
        "web_search",
        "fetch_webpage",
        "send_message_to_agent_and_wait_for_reply",
        "send_message_to_agents_matching_tags",
        "send_message_to_agent_async",
    }
)


def role_of(name: str, server: str | None) -> ToolRole:
    """The role of a tool. `server` is its MCP server; None for a tool of the host."""
    if server is not None:
        return ToolRole.MCP
    if name in LETTA_CORE:
        return ToolRole.CORE
    return ToolRole.OFFICIAL if name in LETTA_OFFICIAL else ToolRole.HOST


LONG_AGO = datetime.min.replace(tzinfo=UTC)


def last_used(tool: CurrentTool) -> datetime:
    """When a tool was last used or attached, whichever is later; a time long ago if neither is known."""
    return max(tool.used_at or LONG_AGO, tool.attached_at or LONG_AGO)


def rounded_share(rate: float, count: int) -> int:
    """A share of `count`, rounded down, with a margin for floating point."""
    return math.floor(rate * count + 1e-9)


@dataclass(slots=True)
class ToolCapacity:
    """Counts as they will be after the plan. `removable` may be detached, in this order; `removed` will be."""

    limits: ToolLimits
    total: int
    mcp: int
    floor: int
    removable: list[CurrentTool]
    removed: list[CurrentTool] = field(default_factory=list[CurrentTool])
    crowded: bool = False

    @classmethod
    def of(cls, held: Sequence[CurrentTool], limits: ToolLimits, loose: Sequence[CurrentTool]) -> Self:
        mcp = sum(tool.role is ToolRole.MCP for tool in held)
        order = sorted(loose, key=lambda tool: (last_used(tool), tool.value, tool.name))
        # If there are already fewer, a tool may go only if another replaces it.
        return cls(limits, len(held), mcp, min(mcp, limits.min_mcp, limits.max_mcp), order)

    def admit(self, role: ToolRole) -> bool:
        """Add one tool, and remove others to make room. Returns False and changes nothing if there is no room."""
        before = (self.total, self.mcp, list(self.removable), list(self.removed), self.crowded)
        self.total += 1
        self.mcp += role is ToolRole.MCP
        while (full := role is ToolRole.MCP and self.mcp > self.limits.max_mcp) or self.total > self.limits.max_total:
            self.crowded = self.crowded or not full
            if not self._remove_next(only_mcp=full):
                self.total, self.mcp, self.removable, self.removed, self.crowded = before
                return False
        return True

    def remove_share(self, share: float) -> None:
        """If any tool must go, remove this share of all removable ones, so that the next searches need no changes."""
        if not self.removed:
            return
        could = [tool for tool in (*self.removed, *self.removable) if self.crowded or tool.role is ToolRole.MCP]
        while len(self.removed) < rounded_share(share, len(could)) and self._remove_next(only_mcp=not self.crowded):
            pass

    def describe_limit(self, role: ToolRole) -> str:
        """The limit that was reached, as a sentence."""
        if role is ToolRole.MCP and self.mcp >= self.limits.max_mcp:
            return f"{self.limits.max_mcp} tools of MCP servers are the most, and none of those it has may go"
        return f"{self.limits.max_total} tools are the most, and none of those it has may go"

    def _remove_next(self, *, only_mcp: bool) -> bool:
        for index, tool in enumerate(self.removable):
            mcp = tool.role is ToolRole.MCP
            if (mcp and self.mcp > self.floor) or (not mcp and not only_mcp):
                self.total -= 1
                self.mcp -= mcp
                self.removed.append(self.removable.pop(index))
                return True
        return False


MIN_SCORE = 50.0
NAME_LENGTH_SHOWN = 200


def plan_selection(
    held: Sequence[CurrentTool],
    matches: Sequence[ToolCandidate],
    limits: ToolLimits,
    *,
    keep: Collection[str] = (),
    min_score: float = MIN_SCORE,
) -> SelectionPlan:
    """Attach the found tools, the best first, and detach the least used ones only if a limit is reached.

    Tools are at the start of a model's prompt, so after each change the provider must read the whole prompt again. So
    wanted tools stay, and if some tools must go, enough go to make room for the next few searches too.
    """
    scores, wanted, skipped = _sort_candidates(held, matches, limits, min_score)
    staying = {tool.name: reason for tool in held if (reason := _why_kept(tool, scores, limits, frozenset(keep)))}
    capacity = ToolCapacity.of(held, limits, [tool for tool in held if tool.name not in staying])
    attach: list[ToolChoice] = []
    for match in wanted:
        if capacity.admit(match.role):
            attach.append(
                _candidate_choice(match, "asked for by its name" if match.exact else f"scored {match.score:.0f}")
            )
        else:
            skipped.append(_candidate_choice(match, f"no room: {capacity.describe_limit(match.role)}"))
    capacity.remove_share(limits.drop_rate)
    kept, gone = (
        _kept_choices(held, capacity.removed, staying, scores),
        [_removed_choice(tool) for tool in capacity.removed],
    )
    return SelectionPlan(attach, kept, gone, skipped, _describe_unknown(held, keep))


def plan_pruning(
    held: Sequence[CurrentTool],
    scores: Mapping[str, float],
    limits: ToolLimits,
    *,
    keep: Collection[str] = (),
    drop_rate: float | None = None,
) -> SelectionPlan:
    """Detach the MCP tools with the lowest scores, up to a share. `scores` are by id or name; a missing score is 0."""
    mcp = [tool for tool in held if tool.role is ToolRole.MCP]
    staying = {tool.name: reason for tool in held if (reason := _why_kept(tool, {}, limits, frozenset(keep)))}
    share = limits.drop_rate if drop_rate is None else drop_rate
    most = max(0, min(rounded_share(share, len(mcp)), len(mcp) - limits.min_mcp))
    loose = sorted(
        (tool for tool in mcp if tool.name not in staying),
        key=lambda tool: (_score_of_tool(tool, scores), last_used(tool), tool.value, tool.name),
    )
    gone = loose[:most]
    detach = [ToolChoice(tool.name, tool.id, "fits least", round(_score_of_tool(tool, scores), 1)) for tool in gone]
    return SelectionPlan(
        keep=_kept_choices(held, gone, staying, {}), detach=detach, unknown=_describe_unknown(held, keep)
    )


def _describe_unknown(held: Sequence[CurrentTool], keep: Collection[str]) -> Sequence[str]:
    """A sentence for each tool that should be kept but that the agent does not hold."""
    known = {name for tool in held for name in all_names(tool.name, tool.id)}
    own = sorted(tool.name for tool in held)
    return [
        not_found_message(f"'{name[:NAME_LENGTH_SHOWN]}' is to be kept, and the agent holds no such tool", name, own)
        for name in dict.fromkeys(keep)
        if name not in known
    ]


def _sort_candidates(
    held: Sequence[CurrentTool], matches: Sequence[ToolCandidate], limits: ToolLimits, min_score: float
) -> tuple[dict[str, float], list[ToolCandidate], list[ToolChoice]]:
    """The scores of held tools by name, the matches to attach in order, and the matches to skip with the reason."""
    ids = {tool.id: tool.name for tool in held if tool.id is not None}
    names = {tool.name: tool.id for tool in held}
    scores: dict[str, float] = {}
    wanted: dict[str, ToolCandidate] = {}
    skipped: dict[str, ToolChoice] = {}
    for match in matches:
        has = ids.get(match.id) or (match.name if match.name in names and names[match.name] is None else None)
        if has is not None:
            if match.score >= min_score:
                scores.setdefault(has, match.score)
        elif match.id not in wanted and match.id not in skipped:
            taken = names.keys() | {one.name for one in wanted.values()}
            reason = _why_skipped(match, limits, min_score, taken)
            if reason is None:
                wanted[match.id] = match
            else:
                skipped[match.id] = _candidate_choice(match, reason)
    return scores, list(wanted.values()), list(skipped.values())


def _why_skipped(match: ToolCandidate, limits: ToolLimits, min_score: float, taken: Collection[str]) -> str | None:
    if match.score < min_score:
        return f"scored {match.score:.0f}, below {min_score:.0f}"
    if not _is_managed(match.role, limits) or (match.role is ToolRole.CORE and limits.exclude_core):
        return f"tools of this kind ({match.role}) are not handed out here"
    return "the agent has another tool of this name" if match.name in taken else None


def _why_kept(
    tool: CurrentTool, scores: Mapping[str, float], limits: ToolLimits, keep: frozenset[str]
) -> KeepReason | None:
    """Why a held tool must stay; None if it may go."""
    names = all_names(tool.name, tool.id)
    if tool.name in scores:
        return KeepReason.WANTED
    if tool.role is ToolRole.CORE:
        return KeepReason.CORE
    if tool.protected or (names | tool.tags) & limits.never_detach:
        return KeepReason.PROTECTED
    if names & keep:
        return KeepReason.NAMED
    return None if _is_managed(tool.role, limits) else KeepReason.UNMANAGED


def _is_managed(role: ToolRole, limits: ToolLimits) -> bool:
    if role is ToolRole.MCP:
        return True
    return not limits.manage_only_mcp and not (role is ToolRole.OFFICIAL and limits.exclude_official)


def _kept_choices(
    held: Sequence[CurrentTool],
    gone: Sequence[CurrentTool],
    staying: Mapping[str, KeepReason],
    scores: Mapping[str, float],
) -> list[ToolChoice]:
    left = {tool.name for tool in gone}
    capacity = KeepReason.OTHERS_WENT if gone else KeepReason.CAPACITY
    kept = [
        ToolChoice(tool.name, tool.id, staying.get(tool.name, capacity), scores.get(tool.name))
        for tool in held
        if tool.name not in left
    ]
    return sorted(kept, key=lambda choice: -math.inf if choice.score is None else choice.score, reverse=True)


def _removed_choice(tool: CurrentTool) -> ToolChoice:
    last = f"last used {tool.used_at:%Y-%m-%d %H:%M} UTC" if tool.used_at else "not used so far"
    return ToolChoice(tool.name, tool.id, f"made room for others: {last}")


def _candidate_choice(match: ToolCandidate, reason: str) -> ToolChoice:
    return ToolChoice(match.name, match.id, reason, match.score)


def _score_of_tool(tool: CurrentTool, scores: Mapping[str, float]) -> float:
    return scores.get(tool.id or "", scores.get(tool.name, 0.0))
