"""Implements `frontdesk platform serve`: run the local Agent 365 platform until stopped."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import anyio
import structlog

from frontdesk import __version__
from frontdesk.agent365.environment import MANIFEST_NAME, SHARED_SCOPE
from frontdesk.agent365.local_platform import LocalPlatformState, LoggedRequest
from frontdesk.agent365.local_tokens import TokenMode
from frontdesk.agent365.servers import find_manifest
from frontdesk.errors import ConfigurationError, NotFound
from frontdesk.interfaces import logs
from frontdesk.interfaces.agent365.application import build_platform_application
from frontdesk.interfaces.agent365.control import HangUpProtocol
from frontdesk.interfaces.app_runner import UVLOOP
from frontdesk.interfaces.cli.output import number_up_to, printable_line
from frontdesk.interfaces.http.uvicorn_server import (
    UvicornServer,
    open_listener_at,
    serve_until_stopped,
    uvicorn_config,
)
from frontdesk.settings import Settings, is_loopback

DEFAULT_PORT = 5309
EXAMPLE_MANIFEST = (
    '{"mcpServers": [{"mcpServerName": "Mail", "tools": '
    '[{"name": "send", "description": "Send a mail.", "responseTemplate": "Sent to {{to}}"}]}]}'
)
SHOWN_LENGTH = 200

log = structlog.get_logger("frontdesk.agent365")


def serve(
    manifest: Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, number_up_to(65_535, least=0)] = DEFAULT_PORT,
    tokens: Literal["off", "claims", "signed"] = "claims",
    seed: int | None = None,
) -> None:
    """Serve a ToolingManifest.json as the platform would: discovery, tool servers, chat and tokens.

    Parameters
    ----------
    manifest
        The manifest; ToolingManifest.json here or in the folder above when left out.
    host
        Loopback address to listen on. Other addresses are refused, because anybody gets tokens.
    port
        Port to listen on, 0 for a free one.
    tokens
        How tokens are checked: off, claims (not expired, for the right audience), or signed (also issued by this
        platform).
    seed
        A number that makes random events (errorRate) repeatable.
    """
    if not is_loopback(host):
        raise ConfigurationError(
            f"The local platform gives tokens to anybody, so it listens only on this machine: --host {host} is "
            "refused; leave it out, or give a loopback address"
        )
    standin = LocalPlatformState.for_manifest(manifest or _require_manifest(), TokenMode(tokens), seed)
    # Default settings: this command uses nothing of the installation.
    logs.configure_logs(Settings.model_construct())
    listener = open_listener_at(host, port, "choose another port (--port)")
    _announce(standin, host, listener.getsockname()[1])
    server = UvicornServer(uvicorn_config(build_platform_application(standin, _print_request), http=HangUpProtocol))
    anyio.run(serve_until_stopped, server, listener, backend_options={"use_uvloop": UVLOOP})


def _require_manifest() -> Path:
    found = find_manifest()
    if found is None:
        raise NotFound(
            f"There is no {MANIFEST_NAME} here or in the folder above; name one, or make one that begins like this: "
            f"{EXAMPLE_MANIFEST}"
        )
    return found


def _announce(standin: LocalPlatformState, host: str, port: int) -> None:
    declared = standin.manifest.current()
    for problem in declared.problems:
        print(printable_line(str(problem)), file=sys.stderr)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    count = len(declared.servers)
    print(f"Frontdesk {__version__} stands in for the platform: {url}  (Ctrl-C ends it)")
    print(
        f"{printable_line(str(declared.path))}: {count} {'server' if count == 1 else 'servers'}; tokens: {standin.mode}"
    )
    print("For the agent:")
    print(f"export MCP_PLATFORM_ENDPOINT={url}")
    # Otherwise the SDK reads the manifest itself and sends no requests.
    print("export PYTHON_ENVIRONMENT=Production", flush=True)
    if standin.mode is not TokenMode.OFF:
        form = f"grant_type=client_credentials&client_id=my-agent&scope={SHARED_SCOPE}"
        print(f"A token: curl -d '{form}' {url}/oauth2/v2.0/token", flush=True)


def _print_request(seen: LoggedRequest) -> None:
    """Log one line for each request, without terminal control sequences."""
    told = {
        "agent_id": seen.agent_id,
        "agent_from": seen.agent_from,
        "server": seen.server,
        "rpc": seen.rpc_method,
        "tool": seen.tool,
        "token": seen.token,
    }
    shown = {name: printable_line(text, SHOWN_LENGTH) for name, text in told.items() if text}
    log.info(
        "platform_request",
        method=printable_line(seen.method, SHOWN_LENGTH),
        path=printable_line(seen.path, SHOWN_LENGTH),
        status=seen.status,
        ms=seen.ms,
        **shown,
    )
