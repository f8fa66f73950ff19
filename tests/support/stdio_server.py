"""A server on stdio with configurable behaviour; a program of its own that imports nothing of the product.

`python stdio_server.py [stubborn] [chatty] [modern] [mute]`: stubborn ones do not end on request, chatty ones print
greetings where only frames belong, modern ones support no handshake, mute ones send nothing at all.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn

MANNERS = frozenset(sys.argv[1:])
TOOLS = ("echo", "about", "seen", "hold", "release", "die", "steps", "huge", "adopt", "token", "set_access_token")
HUGE = 17 * 1024 * 1024
SEEN: list[dict[str, Any]] = []
HELD: list[Any] = []
KEPT: dict[str, str] = {}


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say(frame: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **frame}))


def text(number: object, words: object) -> None:
    said = words if isinstance(words, str) else json.dumps(words)
    say({"id": number, "result": {"content": [{"type": "text", "text": said}]}})


def adopt() -> int:
    """Start a process that outlives its parent and holds its pipes, unless both are ended together."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def release(number: object) -> None:
    text(number, "released")
    for waiting in HELD:
        text(waiting, "held")
    HELD.clear()


def die() -> NoReturn:
    sys.stderr.write("cannot go on with secret-value\n")
    sys.stderr.flush()
    os._exit(3)


def steps(number: object, token: object) -> None:
    for done in range(1, 4):
        told = {"progressToken": token, "progress": done, "total": 3, "message": f"step {done}"}
        say({"method": "notifications/progress", "params": told})
    text(number, "done")


def call(number: object, name: str, params: dict[str, Any]) -> None:
    arguments, meta = params.get("arguments", {}), params.get("_meta", {})
    KEPT.update({"token": arguments["access_token"]} if name == "set_access_token" else {})
    answers: dict[str, Callable[[], None]] = {
        "echo": lambda: text(number, arguments),
        "about": lambda: text(number, {"env": dict(os.environ), "meta": meta, "pid": os.getpid()}),
        "seen": lambda: text(number, SEEN),
        "hold": lambda: HELD.append(number),
        "release": lambda: release(number),
        "die": die,
        "steps": lambda: steps(number, meta["progressToken"]),
        "huge": lambda: text(number, "x" * HUGE),
        "adopt": lambda: text(number, str(adopt())),
        "set_access_token": lambda: text(number, "kept"),
        "token": lambda: text(number, KEPT.get("token", "none")),
    }
    unknown = {"id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}}
    answers.get(name, lambda: say(unknown))()


def answer(frame: dict[str, Any]) -> None:
    method, number, params = frame.get("method"), frame.get("id"), frame.get("params", {})
    if method is None or number is None:
        SEEN.append(frame)
    elif method == "initialize" and "modern" not in MANNERS:
        version = params["protocolVersion"]
        about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "stdio", "version": "1"}}
        say({"id": number, "result": {"protocolVersion": version, **about}})
    elif method == "server/discover" and "modern" in MANNERS:
        say({"id": number, "result": {"supportedVersions": ["2026-07-28"]}})
    elif method == "tools/list":
        say({"id": number, "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}})
    elif method == "tools/call":
        call(number, params["name"], params)
    else:
        say({"id": number, "error": {"code": -32601, "message": f"Method not found: {method}"}})


def main() -> None:
    if "stubborn" in MANNERS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "chatty" in MANNERS:
        write("Welcome! {not json\n[1, 2]\n\n")
        say({"id": "ping-1", "method": "ping"})
    for line in sys.stdin:
        if "mute" not in MANNERS:
            answer(json.loads(line))
    while "stubborn" in MANNERS:
        signal.pause()


if __name__ == "__main__":
    main()
