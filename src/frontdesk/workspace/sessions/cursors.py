"""Where a list of sessions goes on: after the last one that was shown, in a text that says nothing to others; pure."""

import base64
import json
from datetime import UTC, datetime

from frontdesk.errors import Invalid
from frontdesk.workspace.sessions.model import SESSION_ID, Session

LONGEST = 200


def cursor_after(session: Session) -> str:
    place = [session.updated_at.astimezone(UTC).isoformat(), session.id]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def place_of(cursor: str) -> tuple[datetime, str]:
    """When the last one that was shown had been used, and its id."""
    try:
        if len(cursor) > LONGEST:
            raise ValueError("too long")
        when, session_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        used = datetime.fromisoformat(when)
        if not SESSION_ID.fullmatch(session_id) or used.tzinfo is None:
            raise ValueError("not ours")
        return used.astimezone(UTC), session_id
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Invalid("That cursor is none of ours; list the sessions from the start") from error
