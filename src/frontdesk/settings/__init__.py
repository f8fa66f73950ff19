"""Reads every setting once, from the environment and frontdesk.toml, and passes it on as values."""

from frontdesk.settings.model import (
    AGENT_ID_PATTERN,
    CONFIG_FILE_VARIABLE,
    EMPTY_AGENT_IDS,
    OBSOLETE_VARIABLES,
    Settings,
    clean_agent_id,
    config_file_keys,
    config_path,
    value_origin,
    variable_names,
)
from frontdesk.settings.sections import PlatformOAuth, ServerOAuth, ToolServer
from frontdesk.settings.values import ALL_ADDRESSES, Issuer, OAuthClient, Rate, SignIn, is_loopback

__all__ = [
    "AGENT_ID_PATTERN",
    "ALL_ADDRESSES",
    "CONFIG_FILE_VARIABLE",
    "EMPTY_AGENT_IDS",
    "OBSOLETE_VARIABLES",
    "Issuer",
    "OAuthClient",
    "PlatformOAuth",
    "Rate",
    "ServerOAuth",
    "Settings",
    "SignIn",
    "ToolServer",
    "clean_agent_id",
    "config_file_keys",
    "config_path",
    "is_loopback",
    "value_origin",
    "variable_names",
]
