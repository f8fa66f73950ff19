"""An agent that makes the one mistake in its argument; a program of its own that imports nothing of the product."""

import json
import subprocess
import sys
from typing import Any

MANNER = sys.argv[1]
UPDATES: dict[str, dict[str, Any]] = {
    "polite": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}},
    "unknown kind": {"sessionUpdate": "agent_dance"},
    "wrong type": {"sessionUpdate": "agent_message_chunk", "content": "hello"},
    "further key": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}, "mood": "good"},
}


def say(frame: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)  # noqa: T201 - frames are printed


def misbehave(number: int) -> None:
    if MANNER == "greeting":
        print("Welcome!", flush=True)  # noqa: T201 - what it is for
    elif MANNER == "uninvited":
        say({"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/etc/passwd"}})
    elif MANNER == "twice":
        say({"id": number, "result": {"stopReason": "end_turn"}})
    elif MANNER == "child":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(5)"], start_new_session=True)
    elif MANNER == "half a line":
        sys.stdout.write('{"jsonrpc": "2.0"')
        sys.stdout.flush()
        sys.exit(0)
    elif MANNER == "death":
        sys.exit(3)


def answer(number: int, method: str) -> None:
    if method == "initialize":
        version = "1" if MANNER == "wrong answer" else 1
        say({"id": number, "result": {"protocolVersion": version}})
    elif method == "session/prompt":
        say(
            {"method": "session/update", "params": {"sessionId": "s", "update": UPDATES.get(MANNER, UPDATES["polite"])}}
        )
        misbehave(number)
        say({"id": number, "result": {"stopReason": "end_turn"}})
    else:
        words = "not\nfound" if MANNER == "two lines" else "not found"
        say({"id": number, "error": {"code": -32601, "message": words}})


for line in sys.stdin:
    asked = json.loads(line)
    if "method" in asked and "id" in asked:
        answer(asked["id"], asked["method"])
