"""Decides which tools an agent gets, keeps and gives up: it changes as little as the limits allow."""

import math
from collections.abc import Collection, Mapping, Sequence

from frontdesk.loop.text import not_there
from frontdesk.tools.selection.model import Choice, Held, Limits, Match, Plan, Role, names_of
from frontdesk.tools.selection.room import Room, last_used, share_of

MIN_SCORE = 50.0
NAME = 200
WANTED = "wanted, and held already"


def plan(
    held: Sequence[Held],
    matches: Sequence[Match],
    limits: Limits,
    *,
    keep: Collection[str] = (),
    min_score: float = MIN_SCORE,
) -> Plan:
    """Add what was found, the best first; only where a limit would be passed, what was used least gives way.

    Tools stand at the start of a model's prompt, so each change makes the provider read all of it anew: what is held
    and wanted stays, and when something must go, as much goes at once as makes room for the next few finds too.
    """
    scores, wanted, skipped = _sorted_out(held, matches, limits, min_score)
    staying = {tool.name: reason for tool in held if (reason := _stays(tool, scores, limits, frozenset(keep)))}
    room = Room.of(held, limits, [tool for tool in held if tool.name not in staying])
    attach: list[Choice] = []
    for match in wanted:
        if room.make(match.role):
            attach.append(_choice(match, "asked for by its name" if match.exact else f"scored {match.score:.0f}"))
        else:
            skipped.append(_choice(match, f"no room: {room.why_not(match.role)}"))
    room.make_more(limits.drop_rate)
    kept, gone = _kept(held, room.gone, staying, scores), [_gone(tool) for tool in room.gone]
    return Plan(attach, kept, gone, skipped, _unknown(held, keep))


def prune_plan(
    held: Sequence[Held],
    scores: Mapping[str, float],
    limits: Limits,
    *,
    keep: Collection[str] = (),
    drop_rate: float | None = None,
) -> Plan:
    """Give up the share of the MCP tools that fits least; `scores` go by id or name, and what has none fits not."""
    mcp = [tool for tool in held if tool.role is Role.MCP]
    staying = {tool.name: reason for tool in held if (reason := _stays(tool, {}, limits, frozenset(keep)))}
    share = limits.drop_rate if drop_rate is None else drop_rate
    most = max(0, min(share_of(share, len(mcp)), len(mcp) - limits.min_mcp))
    loose = sorted(
        (tool for tool in mcp if tool.name not in staying),
        key=lambda tool: (_score(tool, scores), last_used(tool), tool.value, tool.name),
    )
    gone = loose[:most]
    detach = [Choice(tool.name, tool.id, "fits least", round(_score(tool, scores), 1)) for tool in gone]
    return Plan(keep=_kept(held, gone, staying, {}), detach=detach, unknown=_unknown(held, keep))


def _unknown(held: Sequence[Held], keep: Collection[str]) -> Sequence[str]:
    """A sentence for each of the tools to be kept that the agent does not hold."""
    known = {name for tool in held for name in names_of(tool.name, tool.id)}
    own = sorted(tool.name for tool in held)
    return [
        not_there(f"'{name[:NAME]}' is to be kept, and the agent holds no such tool", name, own)
        for name in dict.fromkeys(keep)
        if name not in known
    ]


def _sorted_out(
    held: Sequence[Held], matches: Sequence[Match], limits: Limits, min_score: float
) -> tuple[dict[str, float], list[Match], list[Choice]]:
    """(scores of held tools by name, matches to attach in order, matches that are left out and why)."""
    ids = {tool.id: tool.name for tool in held if tool.id is not None}
    names = {tool.name: tool.id for tool in held}
    scores: dict[str, float] = {}
    wanted: dict[str, Match] = {}
    skipped: dict[str, Choice] = {}
    for match in matches:
        has = ids.get(match.id) or (match.name if match.name in names and names[match.name] is None else None)
        if has is not None:
            if match.score >= min_score:
                scores.setdefault(has, match.score)
        elif match.id not in wanted and match.id not in skipped:
            taken = names.keys() | {one.name for one in wanted.values()}
            reason = _left_out(match, limits, min_score, taken)
            if reason is None:
                wanted[match.id] = match
            else:
                skipped[match.id] = _choice(match, reason)
    return scores, list(wanted.values()), list(skipped.values())


def _left_out(match: Match, limits: Limits, min_score: float, taken: Collection[str]) -> str | None:
    if match.score < min_score:
        return f"scored {match.score:.0f}, below {min_score:.0f}"
    if not _managed(match.role, limits) or (match.role is Role.CORE and limits.exclude_core):
        return f"tools of this kind ({match.role}) are not handed out here"
    return "the agent has another tool of this name" if match.name in taken else None


def _stays(tool: Held, scores: Mapping[str, float], limits: Limits, keep: frozenset[str]) -> str | None:
    """Why a held tool must not go; None where it may."""
    names = names_of(tool.name, tool.id)
    if tool.name in scores:
        return WANTED
    if tool.role is Role.CORE:
        return "the agent's own"
    if tool.protected or (names | tool.tags) & limits.never_detach:
        return "protected"
    if names & keep:
        return "named in keep_tools"
    return None if _managed(tool.role, limits) else f"tools of this kind ({tool.role}) are left alone here"


def _managed(role: Role, limits: Limits) -> bool:
    if role is Role.MCP:
        return True
    return not limits.manage_only_mcp and not (role is Role.OFFICIAL and limits.exclude_official)


def _kept(
    held: Sequence[Held], gone: Sequence[Held], staying: Mapping[str, str], scores: Mapping[str, float]
) -> list[Choice]:
    left = {tool.name for tool in gone}
    room = "others made room" if gone else "there is room"
    kept = [
        Choice(tool.name, tool.id, staying.get(tool.name, room), scores.get(tool.name))
        for tool in held
        if tool.name not in left
    ]
    return sorted(kept, key=lambda choice: -math.inf if choice.score is None else choice.score, reverse=True)


def _gone(tool: Held) -> Choice:
    last = f"last used {tool.used_at:%Y-%m-%d %H:%M} UTC" if tool.used_at else "not used so far"
    return Choice(tool.name, tool.id, f"made room for others: {last}")


def _choice(match: Match, reason: str) -> Choice:
    return Choice(match.name, match.id, reason, match.score)


def _score(tool: Held, scores: Mapping[str, float]) -> float:
    return scores.get(tool.id or "", scores.get(tool.name, 0.0))
