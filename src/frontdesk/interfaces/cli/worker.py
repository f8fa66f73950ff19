"""Implements `frontdesk worker`: deliver due prompts without serving HTTP."""

import json
import signal
from typing import Annotated

import anyio

from frontdesk import __version__
from frontdesk.app import App, running_worker
from frontdesk.interfaces import logs
from frontdesk.interfaces.app_runner import run_with_app
from frontdesk.interfaces.cli.options import JsonFlag, number_up_to
from frontdesk.settings import Settings

Concurrency = Annotated[int | None, number_up_to(10_000)]


def work(*, concurrency: Concurrency = None, as_json: JsonFlag = False) -> None:
    """Deliver due prompts.

    Parameters
    ----------
    concurrency
        Prompts at once; FRONTDESK_WORKER_CONCURRENCY, or 128, when left out.
    as_json
        Print start and stop as JSON, one object a line.
    """
    settings = Settings.read().with_values(worker_concurrency=concurrency)
    logs.configure_logs(settings)

    async def deliver(app: App) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with running_worker(app):
                _print_event("started", as_json=as_json, concurrency=settings.worker_concurrency)
                await anext(aiter(signals))
            status = app.worker.status()
            _print_event("stopped", as_json=as_json, delivered=status.delivered, failed=status.failed)

    run_with_app(deliver, settings, fast=True)


def _print_event(event: str, *, as_json: bool, **facts: int) -> None:
    if as_json:
        print(json.dumps({"event": event, "version": __version__, **facts}), flush=True)
        return
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"Frontdesk {__version__} worker {event}: {told}", flush=True)
