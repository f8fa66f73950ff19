"""Ids of records: UUIDs whose order is that of their making, so that what is made together lies together."""

import secrets
import uuid
from datetime import datetime

from frontdesk.errors import NotFound

VERSION, VARIANT = 0x7 << 76, 0x2 << 62


def new_id(now: datetime) -> str:
    """A UUID of version 7."""
    milliseconds = int(now.timestamp() * 1000) << 80
    chance = secrets.randbits(74)
    return str(uuid.UUID(int=milliseconds | VERSION | (chance >> 62) << 64 | VARIANT | chance & (1 << 62) - 1))


def known(text: str, what: str) -> str:
    """An id as it is stored; what cannot be one is answered as one that is not there."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise NotFound(f"{what} not found") from None
