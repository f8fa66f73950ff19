"""Finds which agent calls, from a turn, a token or the application's name, and builds the User-Agent."""

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from uuid import UUID

from frontdesk.identity import outbound
from frontdesk.identity.outbound import agent_id_from_token, header_value, id_text

# The host's own models use another attribute name for the sender than its SDK for tools does.
SENDER_ATTRIBUTES = ("from_", "from_property")
BLUEPRINT_ATTRIBUTES = ("agentic_app_blueprint_id", "agenticAppBlueprintId")


def read_attribute_path(turn_context: object, *path: str) -> object:
    """The value at a path of attributes; None where any attribute on the way is missing."""
    found = turn_context
    for name in path:
        try:
            found = getattr(found, name, None)
        # The turn is foreign code: an attribute that cannot be read counts as missing.
        except Exception:  # noqa: BLE001
            return None
        if found is None:
            return None
    return found


def blueprint_id(turn_context: object) -> str | None:
    """The blueprint of the agent that a turn comes from; None where the turn names none."""
    if turn_context is None:
        return None
    for sender in SENDER_ATTRIBUTES:
        for blueprint in BLUEPRINT_ATTRIBUTES:
            if found := id_text(read_attribute_path(turn_context, "activity", sender, blueprint)):
                return found
    return None


def activity_id(turn_context: object) -> str | None:
    return _header_text(read_attribute_path(turn_context, "activity", "id"))


def channel_names(turn_context: object) -> tuple[str | None, str | None]:
    """The channel of a turn and the channel within it: `msteams` and `copilot` of `msteams:copilot`."""
    if turn_context is None:
        return None, None
    whole = read_attribute_path(turn_context, "activity", "channel_id")
    channel, _, within = whole.partition(":") if isinstance(whole, str) else ("", "", "")
    sub_channel = _header_text(read_attribute_path(turn_context, "activity", "channel_id_sub_channel")) or _header_text(
        within
    )
    return _header_text(channel), sub_channel


def _header_text(value: object) -> str | None:
    return header_value(str.__str__(value)) or None if isinstance(value, str) else None


NO_APPLICATION = str(UUID(int=0))
APPLICATION_CLAIMS = ("appid", "azp")

__all__ = ["blueprint_id", "get_agent_id_from_token", "get_app_id_from_token", "resolve_agent_identity"]


def get_agent_id_from_token(token: str | None) -> str:
    """The best agent id in a token's claims (`xms_par_app_azp`, `appid`, `azp`); empty when there is none."""
    return agent_id_from_token(token)


def get_app_id_from_token(token: str | None) -> str:
    """The application that a token was made for: a GUID of zeros without a token, empty where the token names none."""
    if not token or not token.strip():
        return NO_APPLICATION
    return agent_id_from_token(token, APPLICATION_CLAIMS)


def resolve_agent_identity(context: object, auth_token: str | None) -> str:
    """The id of the agent whose servers are listed: the turn's own instance, else the application of the token."""
    try:
        instance = _agentic_instance(read_attribute_path(context, "activity"))
    # The turn is foreign code, and an exception in it does not change who holds the token.
    except Exception:  # noqa: BLE001
        instance = None
    return get_app_id_from_token(auth_token) if instance is None else instance


def _agentic_instance(activity: object) -> str | None:
    """The instance that an agentic turn is for, empty where the turn does not name it; None for any other turn."""
    agentic = getattr(activity, "is_agentic_request", None)
    if not callable(agentic) or not agentic():
        return None
    instance = getattr(activity, "get_agentic_instance_id", None)
    if not callable(instance):
        return None
    found = instance()
    return found if isinstance(found, str) else ""


APPLICATION_NAME_VARIABLE = "AGENT365_APPLICATION_NAME"
_reading_lock = Lock()


def get_application_name(environ: Mapping[str, str] = os.environ) -> str | None:
    """The variable, which is read each time, else the name of the project in this folder, which is read once."""
    return environ.get(APPLICATION_NAME_VARIABLE) or _read_project_name()


def reset_application_name_cache() -> None:
    """Clear the cached name: the next call reads the project's file again."""
    _read_project_name.cache_clear()
    outbound.project_name.cache_clear()


@cache
def _read_project_name() -> str | None:
    # Several first threads may arrive together; those that waited find that the file was already read.
    with _reading_lock:
        try:
            return outbound.project_name(Path.cwd())
        except OSError:
            return None


SDK_PACKAGE = "microsoft-agents-a365-runtime"


def get_user_agent_header(orchestrator: str | None = None) -> str:
    """`Agent365SDK/2.0.0 (Linux; Python 3.12.1; OpenAI)`; the version is `unknown` where no SDK is installed."""
    # These characters would begin or end a comment in the header.
    named = header_value((orchestrator or "").translate(str.maketrans("", "", "()\\")))
    return f"{_sdk_product()}{f'; {named}' if named else ''})"


@cache
def _sdk_product() -> str:
    try:
        found = version(SDK_PACKAGE)
    except PackageNotFoundError:
        found = "unknown"
    return f"Agent365SDK/{found} ({platform.system()}; Python {platform.python_version()}"


class Utility:
    """The class of the same name in the SDK's runtime."""

    get_agent_id_from_token = staticmethod(get_agent_id_from_token)
    get_app_id_from_token = staticmethod(get_app_id_from_token)
    resolve_agent_identity = staticmethod(resolve_agent_identity)
    get_user_agent_header = staticmethod(get_user_agent_header)
    get_application_name = staticmethod(get_application_name)
    reset_application_name_cache = staticmethod(reset_application_name_cache)
