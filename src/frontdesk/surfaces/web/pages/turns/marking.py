"""Whether something changed since a page was drawn: a short mark of what it shows."""

from collections.abc import Sequence
from hashlib import blake2s

from frontdesk.agents.retelling import Account
from frontdesk.agents.turns.model import TurnRecord


def mark_of_list(turns: Sequence[TurnRecord]) -> str:
    return _mark([(one.id, one.running, one.stop, one.waits) for one in turns])


def mark_of_turn(account: Account) -> str:
    turn = account.turn
    state = (turn.running, turn.stop, turn.cancel_asked, account.after, account.trouble)
    return _mark([state, *(one.id for one in account.said), *(one.call_id for one in account.waiting)])


def _mark(seen: Sequence[object]) -> str:
    return blake2s(repr(seen).encode(), digest_size=8).hexdigest()
