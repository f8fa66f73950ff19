"""Reads a turn of whoever hosts the agent by the attributes it has: its class is not ours, and parts may be missing."""

from frontdesk.identity.outbound import header_value, id_of

# The host's own models call the sender otherwise than its SDK for tools does.
SENDERS = ("from_", "from_property")
BLUEPRINTS = ("agentic_app_blueprint_id", "agenticAppBlueprintId")


def said(turn_context: object, *path: str) -> object:
    """What stands at a path of attributes; None where anything on the way is missing."""
    found = turn_context
    for name in path:
        try:
            found = getattr(found, name, None)
        # The turn is somebody else's code: a part that cannot be looked at is one that is missing.
        except Exception:  # noqa: BLE001
            return None
        if found is None:
            return None
    return found


def blueprint_id(turn_context: object) -> str | None:
    """The blueprint of the agent that a turn comes from, where it comes from one."""
    if turn_context is None:
        return None
    for sender in SENDERS:
        for blueprint in BLUEPRINTS:
            if found := id_of(said(turn_context, "activity", sender, blueprint)):
                return found
    return None


def activity_id(turn_context: object) -> str | None:
    return _text(said(turn_context, "activity", "id"))


def channels(turn_context: object) -> tuple[str | None, str | None]:
    """The channel of a turn and the channel within it: `msteams` and `copilot` of `msteams:copilot`."""
    if turn_context is None:
        return None, None
    whole = said(turn_context, "activity", "channel_id")
    channel, _, within = whole.partition(":") if isinstance(whole, str) else ("", "", "")
    sub_channel = _text(said(turn_context, "activity", "channel_id_sub_channel")) or _text(within)
    return _text(channel), sub_channel


def _text(value: object) -> str | None:
    return header_value(str.__str__(value)) or None if isinstance(value, str) else None
