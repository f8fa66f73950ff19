"""Gives leave or refuses it, asks the person where it must, and remembers what was said for good."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from frontdesk.workspace.permissions.decide import Answer, Verdict, decide
from frontdesk.workspace.permissions.guard import AGAIN, COARSE_SECONDS, changed_since
from frontdesk.workspace.permissions.model import ASK_SECONDS, Ask, Choice, Deed, Leave, Mode, Remembered, Word
from frontdesk.workspace.permissions.store import PermissionStore

COARSE = timedelta(seconds=COARSE_SECONDS)
SET_BACK = "you are asked again, since the clock was set back after you allowed this"
STOPPED = "the person stopped the turn"
REJECTED = "The person rejected this. Do not try to get there another way; ask them what to do instead."
UNANSWERED = "Nobody answered in time, which counts as a rejection. Go on without it, or say what you need."


class Permissions:
    """What is remembered holds for one person in one folder."""

    def __init__(self, store: PermissionStore, ask_seconds: float = ASK_SECONDS) -> None:
        self._store = store
        self._ask_seconds = ask_seconds

    def gate(self, user_id: str | None, cwd: Path, mode: Callable[[], Mode], ask: Ask) -> Leave:
        """What the deeds of one session have to pass; `mode` is looked at each time, since it may change in a turn."""
        return Gate(self._store, user_id, cwd, mode, ask, self._ask_seconds).leave

    async def list(self, user_id: str | None, cwd: Path) -> Sequence[Remembered]:
        return await self._store.of(user_id, cwd)

    async def forget(self, user_id: str | None, cwd: Path) -> int:
        """How many lasting words are no more."""
        return await self._store.forget(user_id, cwd)


class Gate:
    """Puts one deed at a time before the person, so that what they say of it for good holds for those that wait."""

    def __init__(
        self,
        store: PermissionStore,
        user_id: str | None,
        cwd: Path,
        mode: Callable[[], Mode],
        ask: Ask,
        ask_seconds: float,
    ) -> None:
        self._store = store
        self._user_id = user_id
        self._cwd = cwd
        self._mode = mode
        self._ask = ask
        self._ask_seconds = ask_seconds
        self._asking = anyio.Lock()

    async def leave(self, deed: Deed) -> Word:
        verdict, _ = await self._verdict(deed)
        if verdict.answer is Answer.ASK:
            return await self._asked(deed)
        return _word(verdict)

    async def _verdict(self, deed: Deed) -> tuple[Verdict, Deed]:
        """With why it is asked again, where what was allowed is no longer what it was."""
        remembered = {one.scope: one for one in await self._store.of(self._user_id, self._cwd)}
        said = remembered.get(deed.scope)
        if said is not None and said.allowed and deed.obeys and said.created_at > datetime.now(UTC) + COARSE:
            # Times of files say nothing then.
            del remembered[deed.scope]
            deed = replace(deed, why=deed.why or SET_BACK)
        elif said is not None and said.allowed and (changed := await changed_since(deed.obeys, said.created_at)):
            del remembered[deed.scope]
            path = changed.relative_to(self._cwd) if changed.is_relative_to(self._cwd) else changed
            deed = replace(deed, why=deed.why or AGAIN.format(path=path))
        return decide(self._mode(), deed, {scope: one.allowed for scope, one in remembered.items()}), deed

    async def _asked(self, deed: Deed) -> Word:
        # The time of those that wait for their turn counts as well: a tool has no more than that.
        with anyio.move_on_after(self._ask_seconds):
            async with self._asking:
                verdict, deed = await self._verdict(deed)
                return await self._answered(deed) if verdict.answer is Answer.ASK else _word(verdict)
        return Word(allowed=False, reason=UNANSWERED)

    async def _answered(self, deed: Deed) -> Word:
        choice = await self._ask(deed)
        if choice is Choice.CANCELLED:
            return Word(allowed=False, reason=STOPPED)
        if choice.lasts and deed.scope and not deed.each_time:
            remembered = Remembered(deed.scope, choice.allows, datetime.now(UTC))
            await self._store.keep(self._user_id, self._cwd, remembered)
        return Word(choice.allows, "" if choice.allows else REJECTED)


def _word(verdict: Verdict) -> Word:
    return Word(verdict.answer is Answer.ALLOW, verdict.reason)
