"""Every setting, read once from the environment and frontdesk.toml, and handed down as values."""

from frontdesk.settings.model import (
    AGENT_ID,
    CONFIG_FILE_VARIABLE,
    NO_ID,
    NO_LONGER_NEEDED,
    Settings,
    agent_id_in,
    config_file,
    file_keys,
    origin,
    variables,
)
from frontdesk.settings.platform import PlatformOAuth
from frontdesk.settings.tools import ServerOAuth, ToolServer
from frontdesk.settings.values import Issuer, OAuthClient, Rate, SignIn, is_loopback

__all__ = [
    "AGENT_ID",
    "CONFIG_FILE_VARIABLE",
    "NO_ID",
    "NO_LONGER_NEEDED",
    "Issuer",
    "OAuthClient",
    "PlatformOAuth",
    "Rate",
    "ServerOAuth",
    "Settings",
    "SignIn",
    "ToolServer",
    "agent_id_in",
    "config_file",
    "file_keys",
    "is_loopback",
    "origin",
    "variables",
]
