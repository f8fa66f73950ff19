"""The local platform in a thread of this process, on a loopback port; tests see its log, and break it on purpose."""

import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from frontdesk.agent365.environment import MANIFEST_NAME, SHARED_APP_ID
from frontdesk.agent365.local_platform import LocalPlatformState
from frontdesk.agent365.local_tokens import TokenMode
from frontdesk.interfaces.agent365.application import build_platform_application
from frontdesk.interfaces.agent365.control import HangUpProtocol
from frontdesk.interfaces.http.uvicorn_server import UvicornServer, uvicorn_config
from tests.support.serving import address_of, listen, run_aside

SECONDS = 10
# What a token is for when a test does not care.
APP = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True, slots=True)
class LocalPlatform:
    """A running platform: its address, its manifest on disk, what is behind it, and a client of one's own."""

    url: str
    manifest: Path
    standin: LocalPlatformState
    http: httpx2.Client

    def requests(self, agent: str = "") -> list[dict[str, Any]]:
        """The request log, the oldest first."""
        return self.ask("GET", f"/requests?agent={quote(agent)}")["requests"]

    def chats(self) -> list[dict[str, Any]]:
        return self.ask("GET", "/chats")["chats"]

    def fault(self, part: str, **fault: Any) -> None:
        """`fault("discovery", status=503, times=1)`, `fault("server:Mail", close=True)`."""
        self.ask("PUT", "/faults", {part: fault})

    def mend(self) -> None:
        """Remove every fault."""
        self.ask("DELETE", "/faults")

    def token(self, audience: str = SHARED_APP_ID, **claims: object) -> str:
        """A token of this platform; claims replace the usual ones."""
        return self.standin.token_signer.issue(audience, time.time(), {"appid": APP, "azp": APP, **claims})

    def headers(self, audience: str = SHARED_APP_ID, **claims: object) -> dict[str, str]:
        """The header that shows such a token."""
        return {"authorization": f"Bearer {self.token(audience, **claims)}"}

    def discover(self, headers: Mapping[str, str] | None = None, app_id: str = APP) -> httpx2.Response:
        """Ask for the servers, with a good token unless told otherwise."""
        url = f"{self.url}/agents/v2/{quote(app_id, safe='')}/mcpServers"
        return self.http.get(url, headers=self.headers() if headers is None else dict(headers))

    def rpc(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """One JSON-RPC request to a tool server, as clients of the older era send it, with a good token."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        url = f"{self.url}/agents/servers/{quote(server, safe='')}"
        said = {"content-type": "application/json", **self.headers(), **(headers or {})}
        return self.http.post(url, content=json.dumps(frame), headers=said)

    def call(self, server: str, tool: str, headers: Mapping[str, str] | None = None, /, **arguments: Any) -> Any:
        """What a tool of a server answers."""
        return self.rpc(server, "tools/call", {"name": tool, "arguments": arguments}, headers).json()["result"]

    def write(self, manifest: Mapping[str, Any]) -> None:
        """Put another manifest in the place of the present one."""
        _write(self.manifest, manifest)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.http.request(method, f"{self.url}{path}", json=body).raise_for_status()
        return answer.json() if answer.content else None


@contextmanager
def local_platform(
    manifest: Mapping[str, Any] | Path,
    *,
    tokens: str = "claims",
    seed: int | None = 1,
    sleep: Callable[[float], Awaitable[None]] | None = None,
) -> Generator[LocalPlatform]:
    """Run the platform until the end of the block; a manifest that is no path is written to a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = manifest if isinstance(manifest, Path) else Path(folder) / MANIFEST_NAME
        if not isinstance(manifest, Path):
            _write(path, manifest)
        standin = LocalPlatformState.for_manifest(path, TokenMode(tokens), seed)
        if sleep is not None:
            standin.sleep = sleep
        listener = listen()
        server = UvicornServer(uvicorn_config(build_platform_application(standin), http=HangUpProtocol))
        # A client made anew for each request takes longer than the request.
        with run_aside(server, listener), httpx2.Client(timeout=SECONDS) as http:
            yield LocalPlatform(address_of(listener), path, standin, http)


def _write(path: Path, manifest: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(manifest))
