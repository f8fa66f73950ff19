"""What editor and agent say first: versions, and what each side can do. Nothing heavy is loaded for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from frontdesk import __version__
from frontdesk.surfaces.acp.wire.model import INVALID_PARAMS, Json, RpcError

VERSION = 1
AUTH_METHOD = "frontdesk"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an editor can do for its agent."""

    reads: bool = False
    writes: bool = False
    terminals: bool = False
    elicits: bool = False
    notices: bool = False
    compaction: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What depends on how this house is set up."""

    images: bool = False
    sounds: bool = False
    steers: bool = False


def capabilities_of(params: Json) -> Capabilities:
    """As the editor says; what is of no known shape counts as not said."""
    said = _object(params.get("clientCapabilities"))
    files, session = _object(said.get("fs")), _object(said.get("session"))
    return Capabilities(
        reads=files.get("readTextFile") is True,
        writes=files.get("writeTextFile") is True,
        terminals=said.get("terminal") is True,
        elicits=isinstance(_object(said.get("elicitation")).get("form"), dict),
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
    )


def greet(params: Json, offer: Offer) -> Json:
    """The answer to `initialize`: our own version, whichever the editor would like."""
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise RpcError(INVALID_PARAMS, "Invalid params: protocolVersion must be an integer")
    return {
        "protocolVersion": VERSION,
        "agentInfo": {"name": "frontdesk", "title": "Frontdesk", "version": __version__},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": offer.images, "audio": offer.sounds, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {
                name: {} for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories", "title")
            },
            "auth": {"logout": {}},
        },
        "authMethods": [
            {
                "id": AUTH_METHOD,
                "name": "Frontdesk on this machine",
                "description": "Uses the model or the Letta server that Frontdesk is set up with.",
            }
        ],
        **({"_meta": {"steering": {"supported": True}}} if offer.steers else {}),
    }


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
