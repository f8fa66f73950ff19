"""`frontdesk platform serve`: the local platform, until it is told to stop."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import anyio
import structlog

from frontdesk import __version__
from frontdesk.errors import ConfigurationError, NotFound
from frontdesk.platform.constants import MANIFEST_NAME
from frontdesk.platform.environment import SHARED_SCOPE
from frontdesk.platform.local.checking import TokenMode
from frontdesk.platform.local.seen import Seen
from frontdesk.platform.local.standin import StandIn
from frontdesk.platform.manifest import find_manifest
from frontdesk.settings import Settings, is_loopback
from frontdesk.surfaces import logs, serving
from frontdesk.surfaces.cli.options import up_to
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import UVLOOP
from frontdesk.surfaces.platform.hanging import Loose
from frontdesk.surfaces.platform.http import build

PORT = 5309
EXAMPLE = (
    '{"mcpServers": [{"mcpServerName": "Mail", "tools": '
    '[{"name": "send", "description": "Send a mail.", "responseTemplate": "Sent to {{to}}"}]}]}'
)
SHOWN = 200

log = structlog.get_logger("frontdesk.platform")


def serve(
    manifest: Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, up_to(65_535, least=0)] = PORT,
    tokens: Literal["off", "claims", "signed"] = "claims",
    seed: int | None = None,
) -> None:
    """Serve a ToolingManifest.json as the platform would: discovery, tool servers, chat and tokens.

    Parameters
    ----------
    manifest
        The manifest; ToolingManifest.json here or in the folder above when left out.
    host
        Loopback address to listen on; no other is taken, as tokens are handed out to anybody.
    port
        Port to listen on, 0 for a free one.
    tokens
        How tokens are checked: off, by their claims (not expired, made for the right audience), or signed: also made
        by this platform.
    seed
        A number that makes what happens by chance (errorRate) happen the same way each time.
    """
    if not is_loopback(host):
        raise ConfigurationError(
            f"The local platform hands out tokens to anybody, so it listens on this machine alone: --host {host} is "
            "not taken; leave it out, or give a loopback address"
        )
    standin = StandIn.of(manifest or _found(), TokenMode(tokens), seed)
    # As they are by default: nothing of the house is needed here, nor what is set for it.
    logs.configure(Settings.model_construct())
    listener = serving.listen_at(host, port, "choose another port (--port)")
    _announce(standin, host, listener.getsockname()[1])
    server = serving.Server(serving.configured(build(standin, _tell), http=Loose))
    anyio.run(serving.serve_until_told, server, listener, backend_options={"use_uvloop": UVLOOP})


def _found() -> Path:
    found = find_manifest()
    if found is None:
        raise NotFound(
            f"There is no {MANIFEST_NAME} here or in the folder above; name one, or make one that begins like this: "
            f"{EXAMPLE}"
        )
    return found


def _announce(standin: StandIn, host: str, port: int) -> None:
    declared = standin.manifest.now()
    for problem in declared.problems:
        print(line(str(problem)), file=sys.stderr)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    count = len(declared.servers)
    print(f"Frontdesk {__version__} stands in for the platform: {url}  (Ctrl-C ends it)")
    print(f"{line(str(declared.path))}: {count} {'server' if count == 1 else 'servers'}; tokens: {standin.mode}")
    print("For the agent:")
    print(f"export MCP_PLATFORM_ENDPOINT={url}")
    # Otherwise its SDK reads the manifest itself, and asks nobody.
    print("export PYTHON_ENVIRONMENT=Production", flush=True)
    if standin.mode is not TokenMode.OFF:
        form = f"grant_type=client_credentials&client_id=my-agent&scope={SHARED_SCOPE}"
        print(f"A token: curl -d '{form}' {url}/oauth2/v2.0/token", flush=True)


def _tell(seen: Seen) -> None:
    """One line for each request; none of what it says may move the terminal."""
    told = {
        "agent_id": seen.agent_id,
        "agent_from": seen.agent_from,
        "server": seen.server,
        "rpc": seen.rpc_method,
        "tool": seen.tool,
        "token": seen.token,
    }
    shown = {name: line(text, SHOWN) for name, text in told.items() if text}
    log.info(
        "platform_request",
        method=line(seen.method, SHOWN),
        path=line(seen.path, SHOWN),
        status=seen.status,
        ms=seen.ms,
        **shown,
    )
