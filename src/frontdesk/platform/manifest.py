"""Finds and reads ToolingManifest.json, which names the servers while an agent is being developed."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from frontdesk.platform.constants import MANIFEST_NAME
from frontdesk.platform.errors import ManifestUnreadable
from frontdesk.platform.model import MCPServerConfig
from frontdesk.platform.parsing import LIST, log, parse_servers

LARGEST = 50_000_000


def find_manifest() -> Path | None:
    """The manifest in this folder, or in the one above."""
    try:
        here = Path.cwd()
        return next((path for folder in (here, here.parent) if (path := folder / MANIFEST_NAME).exists()), None)
    except OSError as error:
        raise ManifestUnreadable(str(error)) from error


def servers_of_manifest(environ: Mapping[str, str] = os.environ, logger: logging.Logger = log) -> list[MCPServerConfig]:
    """The servers of the manifest; none where there is no manifest."""
    path = find_manifest()
    if path is None:
        logger.info("No %s in this folder or the one above: there are no MCP servers", MANIFEST_NAME)
        return []
    document = _read(path)
    if not isinstance(document, dict):
        if isinstance(document, list):
            logger.warning("%s holds a list: write {%r: […]}", MANIFEST_NAME, LIST)
            return []
        raise ManifestUnreadable(f'it must hold an object, {{"{LIST}": […]}}')
    servers = parse_servers(cast("object", document), environ, logger)
    if servers is None:
        logger.warning("%s has no list %r: there are no MCP servers", MANIFEST_NAME, LIST)
    return servers or []


def _read(path: Path) -> object:
    try:
        # A pipe or a device has no end that anybody could wait for.
        if not path.is_file():
            raise ManifestUnreadable("it is no file")
        if path.stat().st_size > LARGEST:
            raise ManifestUnreadable(f"it is larger than {LARGEST // 1_000_000} MB")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise ManifestUnreadable("it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ManifestUnreadable(str(error)) from error
