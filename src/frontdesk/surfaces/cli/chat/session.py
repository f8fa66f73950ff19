"""A chat in a terminal: the person types here, while the agent's turns run on an event loop of their own.

Reading stays in the main thread: only there does Ctrl-C reach a line that is being typed.
"""

import signal
import sys
from collections.abc import Sequence
from contextlib import aclosing, suppress

import anyio
from anyio.from_thread import BlockingPortal

from frontdesk.agents.asking import recorded
from frontdesk.agents.host import Approval, Prompt
from frontdesk.app import App
from frontdesk.errors import FrontdeskError, PendingApproval, Unavailable
from frontdesk.loop.events import ApprovalRequest, Done, StopReason
from frontdesk.surfaces.cli.chat import turns
from frontdesk.surfaces.cli.chat.input import CHOICE, Left, Word, read, remember, word
from frontdesk.surfaces.cli.chat.slash import HELP, LOOKS
from frontdesk.surfaces.cli.chat.terminal import YOU, Ink, Pen, asking, drawn, painted
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.running import SURFACE

REJECTED = "Rejected in the terminal."


class Session:
    """One person's chat with one agent, until they leave."""

    def __init__(self, portal: BlockingPortal, app: App, thread: turns.Thread, *, colour: bool) -> None:
        self._portal = portal
        self._host = app.host
        self._journal = app.journal
        self._thread = thread
        self._pen = Pen(colour)
        self._always: set[str] = set()
        self._interrupted = False

    def run(self) -> None:
        """Talk until the person leaves; what still waits for approval then goes on waiting."""
        self._greet()
        step = self._arrive
        try:
            while True:
                try:
                    step()
                except KeyboardInterrupt:
                    self._interrupt()
                step = self._listen
        except Left:
            # What closes now takes a bounded time, and one more Ctrl-C must not cut it off.
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _greet(self) -> None:
        agent, conversation = self._thread.agent, self._thread.conversation_id
        which = f", conversation {line(conversation)}" if conversation else ""
        self._note(f"{line(agent.name)} ({agent.id}){which}. /help lists the commands; Ctrl-C stops a turn.")

    def _arrive(self) -> None:
        interrupted, waiting = self._portal.call(turns.standing, self._host, self._thread)
        if interrupted:
            self._note("The last turn was interrupted. What it had done stays done; say something to go on.")
        self._settle(waiting)

    def _listen(self) -> None:
        text = read(YOU).strip()
        self._interrupted = False
        if not text:
            return
        remember(text)
        try:
            self._hear(text)
        except PendingApproval:
            # It was left waiting, or somebody else's turn asked in the meantime.
            self._note("Something waits for your word first; after that, say it again.")
            thread = self._thread
            self._settle(self._portal.call(self._host.pending, thread.agent.id, thread.conversation_id, thread.whose))
        except FrontdeskError as error:
            print(f"frontdesk: {plain(str(error))}", file=sys.stderr)

    def _interrupt(self) -> None:
        """Ctrl-C where there is no turn to stop."""
        print()
        if self._interrupted:
            raise Left
        self._interrupted = True
        self._note("Ctrl-C again leaves, and so does Ctrl-D.")

    def _hear(self, text: str) -> None:
        # Two slashes are for a message that begins with one.
        if not text.startswith("/") or text.startswith("//"):
            self._settle(self._take(self._thread.says(text.removeprefix("/"))))
        elif text == "/quit":
            raise Left
        elif text == "/new":
            self._thread = self._portal.call(turns.begin, self._host, self._thread)
            self._always.clear()
            self._greet()
        elif text in LOOKS:
            self._print(self._portal.call(LOOKS[text], self._host, self._thread, self._pen))
        else:
            self._print(HELP if text == "/help" else f"There is no {line(text, 40)}.\n{HELP}")

    def _settle(self, waiting: Sequence[ApprovalRequest]) -> None:
        """Ask for each approval and let the agent go on, until nothing waits any more."""
        while waiting:
            approvals = [self._approval(request, (at, len(waiting))) for at, request in enumerate(waiting, 1)]
            waiting = self._take(self._thread.decides(approvals))

    def _approval(self, request: ApprovalRequest, place: tuple[int, int]) -> Approval:
        if request.name in self._always:
            self._note(f"{line(request.name)} is approved, as always in this chat.")
            return Approval(request.call_id, approve=True)
        self._print(asking(request, place, self._pen))
        said = self._word()
        if said.always:
            self._always.add(request.name)
        return Approval(request.call_id, said.approve, "" if said.approve else said.reason or REJECTED)

    def _word(self) -> Word:
        while True:
            if (said := word(read(CHOICE))) is not None:
                return said

    def _take(self, prompt: Prompt) -> Sequence[ApprovalRequest]:
        """Take a turn and draw it; what waits for approval at its end. Ctrl-C cancels it, a second one leaves."""
        scope = self._portal.call(anyio.CancelScope)
        turn = None
        try:
            turn = self._portal.start_task_soon(self._draw, prompt, scope)
            return turn.result()
        except KeyboardInterrupt:
            self._interrupted = True
            self._portal.call(scope.cancel)
            return turn.result() if turn else ()

    async def _draw(self, prompt: Prompt, scope: anyio.CancelScope) -> Sequence[ApprovalRequest]:
        pen, waiting, stop = self._pen, list[ApprovalRequest](), StopReason.CANCELLED
        with scope:
            async with aclosing(recorded(self._host, self._journal, SURFACE, prompt)) as events:
                async for event in events:
                    if isinstance(event, ApprovalRequest):
                        waiting.append(event)
                    elif isinstance(event, Done):
                        stop = event.stop
                    else:
                        text, pen = drawn(event, pen)
                        self._print(text)
        self._print(drawn(Done(stop), pen)[0])
        # Nothing runs behind a chat that would write the row; what cannot be written now is tried again at its end.
        with suppress(Unavailable):
            await self._journal.flush()
        return waiting if stop is StopReason.REQUIRES_APPROVAL else ()

    def _note(self, text: str) -> None:
        self._print(f"{painted(text, Ink.DIM, self._pen)}\n")

    def _print(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
