"""Serves the editor that started us, on standard input and output; the house is opened after the first answer."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import anyio

from frontdesk.settings import Settings
from frontdesk.surfaces.acp.doorstep import Doorstep
from frontdesk.surfaces.acp.greeting import Capabilities
from frontdesk.surfaces.acp.offer import offer_of
from frontdesk.surfaces.acp.wire.peer import Peer
from frontdesk.surfaces.acp.wire.stdio import Stdio

if TYPE_CHECKING:
    from frontdesk.surfaces.acp.live.connection import Connection

# By name: what it stands on takes seconds to import, and the first answer does not wait for it.
HOUSE = "frontdesk.surfaces.acp.live.house"


def serve(user: str, agent: str | None) -> None:
    """Answer on standard output what comes by standard input, until that ends; `agent` is for every folder."""
    # Only the process that started us can write to our standard input: that is as near as loopback.
    settings = Settings.read().replaced(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    # Before there is an event loop, which would take the number of a descriptor that we were started without.
    carrier = Stdio.open()
    anyio.run(_serve, settings, carrier, user, agent)


async def _serve(settings: Settings, carrier: Stdio, user: str, agent: str | None) -> None:
    @asynccontextmanager
    async def connect(peer: Peer, can: Capabilities) -> AsyncGenerator["Connection"]:
        house = await anyio.to_thread.run_sync(import_module, HOUSE, abandon_on_cancel=True)
        async with house.open_connection(settings, peer, can, user, agent) as connection:
            yield connection

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        try:
            await Doorstep(carrier, offer_of(settings), connect, partial(_bug, settings)).run()
        finally:
            with anyio.CancelScope(shield=True):
                await carrier.close()
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _bug(settings: Settings, error: Exception) -> None:
    # Loaded by then, mostly: without the house there is little that can go wrong.
    import structlog  # noqa: PLC0415

    from frontdesk.surfaces import logs  # noqa: PLC0415

    logs.configure(settings)
    structlog.get_logger("frontdesk.acp").error("acp_request_failed", exc_info=error)
