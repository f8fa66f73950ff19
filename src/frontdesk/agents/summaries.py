"""What came of a turn in which a conversation was summed up."""

from collections.abc import Sequence

from frontdesk.errors import Invalid, Unavailable
from frontdesk.loop.events import Compacted, Event, Failed


def compacted_of(events: Sequence[Event]) -> Compacted | None:
    """What took the place of what was said, or None where there was too little of it; a turn that failed is raised."""
    for event in events:
        if isinstance(event, Failed):
            if event.trouble.is_permanent:
                raise Invalid(event.message)
            raise Unavailable(event.message, retry_after=event.retry_after)
    return next((event for event in events if isinstance(event, Compacted)), None)
