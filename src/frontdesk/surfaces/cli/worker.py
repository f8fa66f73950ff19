"""`frontdesk worker`: deliver what is due, without serving anybody."""

import json
import signal

import anyio

from frontdesk import __version__
from frontdesk.app import App, running_worker
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.schedule.opening import Json


def work(*, concurrency: int | None = None, as_json: Json = False) -> None:
    """Deliver due prompts until told to stop; as many workers as you like may share a database.

    Parameters
    ----------
    concurrency
        How many prompts at once, instead of FRONTDESK_WORKER_CONCURRENCY.
    as_json
        Say when it starts and when it stops as JSON, one object a line.
    """
    settings = Settings.read().replaced(worker_concurrency=concurrency)
    logs.configure(settings)

    async def deliver(app: App) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with running_worker(app):
                _say("started", as_json=as_json, concurrency=settings.worker_concurrency)
                await anext(aiter(signals))
            status = app.worker.status()
            _say("stopped", as_json=as_json, delivered=status.delivered, failed=status.failed)

    with_app(deliver, settings, fast=True)


def _say(event: str, *, as_json: bool, **facts: int) -> None:
    if as_json:
        print(json.dumps({"event": event, "version": __version__, **facts}), flush=True)
        return
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"Frontdesk {__version__} worker {event}: {told}", flush=True)
