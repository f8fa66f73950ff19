"""Runs other authors' scanners on Frontdesk: mcp-authlab for authorization, mcp-scanner for the protocol."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import shows
from tests.scanners.conftest import Installation
from tests.support.desk import Desk, clean_environment
from tests.support.environments import program

JUDGE_SECONDS = 120
# All of them except the two about sessions, which a stateless server does not have.
AUTHLAB_CHECKS = 31
# mcp-scanner once for each address: it takes longer to load than to scan.
SCANS = """
import sys
from mcpscanner.cli import cli_entry_point
folder, *urls = sys.argv[1:]
for number, url in enumerate(urls):
    report = f"{folder}/scan-{number}.json"
    sys.argv[1:] = ["--log-level", "error", "--output", report, "protocol", "--server-url", url]
    cli_entry_point()
"""


@pytest.fixture(scope="module")
def findings(
    installation: Installation, desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, set[str]]:
    """The ids of the checks that mcp-scanner failed, for the installation and for a server that is open to all."""
    folder = tmp_path_factory.mktemp("scans")
    urls = (installation.desk.mcp, desk.mcp)
    judge(program("scanner", "mcp-scanner").with_name("python"), "-c", SCANS, str(folder), *urls, folder=folder)
    reports = [json.loads((folder / f"scan-{number}.json").read_text()) for number in range(len(urls))]
    assert [report["server_url"] for report in reports] == [*urls]
    return {
        report["server_url"]: {finding["details"]["check_id"] for finding in report["findings"]} for report in reports
    }


@shows("MCP-REFEREES")
def test_mcp_authlab_finds_no_must_failure_but_tls(installation: Installation, tmp_path: Path) -> None:
    report = authlab(installation.desk.mcp, tmp_path, login=True)

    assert report["canonical"] == installation.desk.mcp
    assert report["must_failures"] == []
    assert report["warnings"] == ["TLS-01"]
    assert report["counts"]["error"] == 0
    assert report["coverage"]["critical_not_run"] == []
    assert report["coverage"]["ran"] == report["coverage"]["applicable"] == AUTHLAB_CHECKS


@shows("MCP-REFEREES")
def test_mcp_scanner_finds_nothing_but_plain_http(installation: Installation, findings: Mapping[str, set[str]]) -> None:
    assert findings[installation.desk.mcp] == {"MCPS-001"}


def test_both_referees_object_to_a_server_that_asks_for_no_credential(
    desk: Desk, findings: Mapping[str, set[str]], tmp_path: Path
) -> None:
    report = authlab(desk.mcp, tmp_path, login=False)

    assert "CHAL-01" in report["must_failures"]
    assert "MCPS-002" in findings[desk.mcp]


def authlab(url: str, folder: Path, *, login: bool) -> dict[str, Any]:
    """mcp-authlab's report; with a login it has tokens of its own to try, for us and for another resource."""
    command = program("authlab", "mcp-authlab")
    if login:
        judge(command, "login", url, "--no-browser", "--timeout", "30", folder=folder)
    report = folder / "authlab.json"
    judge(command, "scan", url, "--format", "json", "--requests", "-o", str(report), folder=folder)
    return json.loads(report.read_text())


def judge(command: Path, *arguments: str, folder: Path) -> None:
    # Both keep files in the home folder, and the scanner's library would fetch a price list from the network.
    settings = {
        "HOME": str(folder),
        "MCP_AUTHLAB_TOKENS": str(folder / "tokens.json"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        [command, *arguments],
        env=clean_environment(**settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=JUDGE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command.name} {arguments[0]}:\n{done.stdout}\n{done.stderr}"
