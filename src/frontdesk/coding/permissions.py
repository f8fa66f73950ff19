"""Decides whether a request is allowed, asks the person where it must, and remembers lasting answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import anyio

from frontdesk.coding.guard import ASKED_AGAIN, TIMESTAMP_GRAIN_SECONDS, changed_since
from frontdesk.coding.model import (
    ASK_SECONDS,
    AskPermission,
    AskPerson,
    OperationKind,
    PermissionAnswer,
    PermissionDecision,
    PermissionMode,
    PermissionRequest,
    StoredPermission,
)
from frontdesk.coding.store import PermissionStore

FREE_KINDS = frozenset({OperationKind.READ, OperationKind.SEARCH, OperationKind.THINK})
PLAN_MODE_REFUSAL = (
    "This is plan mode, in which nothing is changed or run. Describe what you would do instead; "
    "the person leaves plan mode by choosing another mode (ask, accept-edits or auto) in their editor."
)


class PolicyAction(StrEnum):
    """What happens with a request."""

    ALLOW = "allow"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The action, and for a refusal the reason, in words for the model."""

    action: PolicyAction
    reason: str = ""


ALLOW_DECISION = PolicyDecision(PolicyAction.ALLOW)
ASK_DECISION = PolicyDecision(PolicyAction.ASK)


def decide_permission(
    mode: PermissionMode, request: PermissionRequest, remembered: Mapping[str, bool]
) -> PolicyDecision:
    """What happens with a request; `remembered` are the person's lasting answers by scope."""
    answer = remembered.get(request.scope) if request.scope else None
    if answer is False:
        return PolicyDecision(
            PolicyAction.REFUSE,
            f"The person has rejected {request.scope_text or request.title} for good; do without it.",
        )
    if request.harmless or request.kind in FREE_KINDS:
        return ALLOW_DECISION
    if mode is PermissionMode.PLAN:
        return PolicyDecision(PolicyAction.REFUSE, PLAN_MODE_REFUSAL)
    if request.only_once:
        return ASK_DECISION
    return ALLOW_DECISION if answer or _mode_allows(mode, request.kind) else ASK_DECISION


def _mode_allows(mode: PermissionMode, kind: OperationKind) -> bool:
    return mode is PermissionMode.AUTO or (mode is PermissionMode.ACCEPT_EDITS and kind is OperationKind.EDIT)


TIMESTAMP_GRAIN = timedelta(seconds=TIMESTAMP_GRAIN_SECONDS)
CLOCK_SET_BACK = "you are asked again, since the clock was set back after you allowed this"
TURN_STOPPED = "the person stopped the turn"
PERSON_REJECTED = "The person rejected this. Do not try to get there another way; ask them what to do instead."
NOBODY_ANSWERED = "Nobody answered in time, which counts as a rejection. Go on without it, or say what you need."


class PermissionService:
    """Remembers lasting answers, each for one person in one folder."""

    def __init__(self, store: PermissionStore, ask_seconds: float = ASK_SECONDS) -> None:
        self._store = store
        self._ask_seconds = ask_seconds

    def for_session(
        self, user_id: str | None, cwd: Path, mode: Callable[[], PermissionMode], ask: AskPerson
    ) -> AskPermission:
        """A function that decides on requests; it calls `mode` each time, since the mode may change in a turn."""
        return PermissionGate(self._store, user_id, cwd, mode, ask, self._ask_seconds).ask_permission

    async def list(self, user_id: str | None, cwd: Path) -> Sequence[StoredPermission]:
        return await self._store.list(user_id, cwd)

    async def forget(self, user_id: str | None, cwd: Path) -> int:
        """Delete the lasting answers; returns how many there were."""
        return await self._store.forget(user_id, cwd)


class PermissionGate:
    """Asks the person about one request at a time, so that a lasting answer also decides the requests that wait."""

    def __init__(
        self,
        store: PermissionStore,
        user_id: str | None,
        cwd: Path,
        mode: Callable[[], PermissionMode],
        ask: AskPerson,
        ask_seconds: float,
    ) -> None:
        self._store = store
        self._user_id = user_id
        self._cwd = cwd
        self._mode = mode
        self._ask = ask
        self._ask_seconds = ask_seconds
        self._asking = anyio.Lock()

    async def ask_permission(self, request: PermissionRequest) -> PermissionDecision:
        decision, _ = await self._decide(request)
        if decision.action is PolicyAction.ASK:
            return await self._ask_in_turn(request)
        return _to_permission(decision)

    async def _decide(self, request: PermissionRequest) -> tuple[PolicyDecision, PermissionRequest]:
        """The decision, and the request; its `reason` says so if the person is asked again because a file changed."""
        remembered = {one.scope: one for one in await self._store.list(self._user_id, self._cwd)}
        stored = remembered.get(request.scope)
        if (
            stored is not None
            and stored.allowed
            and request.defining_files
            and stored.created_at > datetime.now(UTC) + TIMESTAMP_GRAIN
        ):
            # The clock was set back, so the times of files prove nothing.
            del remembered[request.scope]
            request = replace(request, reason=request.reason or CLOCK_SET_BACK)
        elif (
            stored is not None
            and stored.allowed
            and (changed := await changed_since(request.defining_files, stored.created_at))
        ):
            del remembered[request.scope]
            path = changed.relative_to(self._cwd) if changed.is_relative_to(self._cwd) else changed
            request = replace(request, reason=request.reason or ASKED_AGAIN.format(path=path))
        return decide_permission(
            self._mode(), request, {scope: one.allowed for scope, one in remembered.items()}
        ), request

    async def _ask_in_turn(self, request: PermissionRequest) -> PermissionDecision:
        # The time in which a request waits for others counts too, since its tool has a limit.
        with anyio.move_on_after(self._ask_seconds):
            async with self._asking:
                decision, request = await self._decide(request)
                return (
                    await self._ask_person(request) if decision.action is PolicyAction.ASK else _to_permission(decision)
                )
        return PermissionDecision(allowed=False, reason=NOBODY_ANSWERED)

    async def _ask_person(self, request: PermissionRequest) -> PermissionDecision:
        choice = await self._ask(request)
        if choice is PermissionAnswer.CANCELLED:
            return PermissionDecision(allowed=False, reason=TURN_STOPPED)
        if choice.lasts and request.scope and not request.only_once:
            remembered = StoredPermission(request.scope, choice.allows, datetime.now(UTC))
            await self._store.save(self._user_id, self._cwd, remembered)
        return PermissionDecision(choice.allows, "" if choice.allows else PERSON_REJECTED)


def _to_permission(decision: PolicyDecision) -> PermissionDecision:
    return PermissionDecision(decision.action is PolicyAction.ALLOW, decision.reason)
