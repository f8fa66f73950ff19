"""Starts Letta's server for the tests; runs in Letta's own environment, without Frontdesk."""

import asyncio
import gc
import ipaddress
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import uvicorn
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

STOP_SECONDS = 1


def main(port: int) -> None:
    # Hardly any object of the import is garbage, and the search for garbage takes a sixth of the time.
    gc.disable()
    allow_local_addresses()
    drop_the_second_set_of_routes()
    drop_the_watchdog()
    asyncio.run(create_schema())
    app = module("letta.server.rest_api.app").app
    gc.freeze()
    gc.enable()
    # Not with Letta's own start_server: that takes port 0 for its default port.
    uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, timeout_graceful_shutdown=STOP_SECONDS)


def module(name: str) -> Any:
    """Letta's modules by name: they are missing in the type checker's environment."""
    return import_module(name)


def allow_local_addresses() -> None:
    """Since 0.16.7 Letta connects to no MCP server on a private address, and has no setting for that."""

    def public(address: str) -> SimpleNamespace:
        # A value that is not an address has to fail here as in the original.
        ipaddress.ip_address(address)
        return SimpleNamespace(is_global=True)

    guard = module("letta.helpers.url_validation")
    guard.ipaddress = SimpleNamespace(ip_address=public)
    guard._BLOCKED_HOSTNAMES = frozenset[str]()
    guard._BLOCKED_SUFFIXES = ()


def drop_the_second_set_of_routes() -> None:
    """Letta builds each route again under /latest, undocumented, which takes a sixth of the time of a start."""
    application = module("fastapi").FastAPI
    include = application.include_router

    def include_once(self: object, router: object, **options: Any) -> None:
        if options.get("prefix") != "/latest":
            include(self, router, **options)

    application.include_router = include_once


def drop_the_watchdog() -> None:
    """Its thread sleeps for seconds at a time, and a stop waits for it."""

    def start(loop: asyncio.AbstractEventLoop, **options: float) -> None:
        pass

    module("letta.monitoring.event_loop_watchdog").start_watchdog = start


async def create_schema() -> None:
    """Creates Letta's tables from its classes: the wheel contains no migrations."""
    tables = module("letta.orm").Base.metadata
    engine: AsyncEngine = module("letta.server.db").engine
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.run_sync(tables.create_all)
        # A migration adds this, and no class declares it; without it no agent can be created.
        await connection.execute(text("CREATE SEQUENCE IF NOT EXISTS message_seq_id OWNED BY messages.sequence_id"))
        await connection.execute(
            text("ALTER TABLE messages ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')")
        )
    await engine.dispose()


if __name__ == "__main__":
    main(int(sys.argv[1]))
