"""The commands in the documentation, pasted into a shell."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.desk import ROOT, clean_environment, open_desk

PAGES = ["README.md", *(f"docs/guide/{page.name}" for page in sorted(ROOT.joinpath("docs/guide").glob("*.md")))]
SECONDS = 60


@shows("DOCS-RUN")
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_works(page: str, tmp_path: Path) -> None:
    text = ROOT.joinpath(page).read_text()
    with open_desk(tmp_path / "data") as desk:
        for language, block in re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            port = desk.url.rpartition(":")[2]
            script = block.replace("3020", port).replace("./dev run", "frontdesk")
            done = run(language, script, tmp_path)
            assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
            assert '"error"' not in done.stdout, done.stdout


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def run(language: str, script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    _program(programs / "frontdesk", f'exec "{sys.executable}" -m frontdesk "$@"')
    if shutil.which("curl") is None:
        _program(programs / "curl", f'exec "{sys.executable}" "{ROOT}/tests/support/curl.py" "$@"')
    environment = clean_environment(FRONTDESK_DATA=str(tmp_path / "data"))
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    command = ["sh", "-eu", "-c", script] if language == "sh" else [sys.executable, "-c", script]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
