"""The example client of the TypeScript SDK, as it is published, with Frontdesk as its agent."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.editors import node
from tests.editors.running import running
from tests.requirements import shows
from tests.support.acp.process import FRONTDESK
from tests.support.acp.schema import Json
from tests.support.acp.words import script
from tests.support.desk import STOP_SECONDS

# The one thing that it ever says, and the path that it takes its agent by.
SAYS = "Hello, agent!"
LAUNCHER = "npx"
WRITING: Json = {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}}


def surroundings(home: Path, says: str) -> dict[str, str]:
    """What makes the client start Frontdesk where it would start its own example, and say something else."""
    words = re.sub(r"([\\/&])", r"\\\1", json.dumps(says)[1:-1])
    instead = f"sed -u {shlex.quote(f's/{SAYS}/{words}/')} | " if says != SAYS else ""
    launcher = home / LAUNCHER
    launcher.write_text(f"#!/bin/sh\n{instead}exec {shlex.join(FRONTDESK)}\n")
    launcher.chmod(0o755)
    return {"PATH": f"{home}:/usr/bin:/bin"}


def printed(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    told = process.stdout.read()
    assert process.wait(STOP_SECONDS) == 0
    return told


@shows("ACP-CLIENTS")
def test_the_example_client_has_a_conversation(work: Path, home: Path) -> None:
    around = surroundings(home, SAYS)
    with running([str(node.example_client())], work, home, around) as process:
        told = printed(process)
    assert "Connected to agent (protocol v1)" in told
    assert "Created session: sess_" in told
    assert "stand-in" in told
    assert "Agent completed with: end_turn" in told


@pytest.mark.slow
@shows("ACP-CLIENTS")
@pytest.mark.parametrize(("choice", "ended"), [("1", "completed"), ("3", "failed")])
def test_the_example_client_asks_its_person(work: Path, home: Path, choice: str, ended: str) -> None:
    around = surroundings(home, script(WRITING, {"text": "all done"}))
    with running([str(node.example_client())], work, home, around) as process:
        assert process.stdin is not None
        process.stdin.write(f"{choice}\n")
        process.stdin.flush()
        told = printed(process)
    assert "Permission requested: Write new.txt" in told
    assert f"updated: {ended}" in told
    assert "Agent completed with: end_turn" in told
